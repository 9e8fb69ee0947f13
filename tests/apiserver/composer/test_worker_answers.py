"""A template worker that was taken over makes the composer write nothing that its claim may not have."""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator

import msgspec
import pytest
import pytest_asyncio

from devcloud.controlplane import Programs
from tests.support.grants import allow_composer
from tests.support.kinds import CLAIM, CONFIG_MAP, claim, composition, condition, in_trouble, is_ready
from tests.support.system import System, rig
from tests.support.waiting import eventually

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.apiserver, pytest.mark.postgres]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def composing(
    tmp_path_factory: pytest.TempPathFactory, control_plane_programs: Programs
) -> AsyncIterator[System]:
    async with rig(tmp_path_factory.mktemp(f"rig-{secrets.token_hex(2)}"), control_plane_programs) as made:
        await allow_composer(made, "", "configmaps")
        account = ("fairlead-system", "fairlead-composer")
        flags = ("--no-elect", "--resync", "5")
        await made._start("composer", ("tests.support.forging_composer",), account, flags, wait=True)
        yield made


async def test_a_forged_answer_writes_nothing_and_is_said_on_its_claim(composing: System) -> None:
    settings = {"apiVersion": "v1", "kind": "ConfigMap", "data": {"size": "{{ claim.spec.size }}"}}
    async with composing.namespace() as alice, composing.namespace() as mallory:
        made = composition(f"{alice}-settings", {"name": "settings", "template": settings})
        async with composing.composition(made) as name:
            await composing.create(CLAIM, claim(alice, "app", compositionRef={"name": name}))
            before = await composing.until(CLAIM, alice, "app", is_ready, limit_s=120)
            objects = (await composing.api.get(CONFIG_MAP.path(alice)))["items"]

            forging = claim(mallory, "app", compositionRef={"name": name})
            forging["metadata"]["annotations"] = {"forge": f"{alice}/{before['metadata']['uid']}"}
            await composing.create(CLAIM, forging)
            refused = await composing.until(CLAIM, mallory, "app", in_trouble("RenderRefused"), limit_s=120)
            await composing.create(CLAIM, claim(mallory, "honest", compositionRef={"name": name}))
            await composing.until(CLAIM, mallory, "honest", is_ready, limit_s=120)
            (ended,) = await eventually(lambda: _audit(composing, mallory), "the audit names the namespace")

            message = condition(refused, "Stalled")["message"]
            assert "settings: metadata." in message
            assert "was ended" in message
            assert "metadata." in ended["why"]
            assert await composing.children(mallory, "app") == []
            assert (await composing.api.get(CONFIG_MAP.path(alice)))["items"] == objects
            assert await composing.api.get(CLAIM.path(alice, "app")) == before


async def _audit(system: System, namespace: str) -> list[dict[str, str]]:
    lines = [line for line in system.started[0].log.read_bytes().splitlines() if b'"WorkerEnded"' in line]
    entries = [msgspec.json.decode(line, type=dict[str, object]) for line in lines]
    return [{name: str(text) for name, text in entry.items()} for entry in entries if entry["namespace"] == namespace][
        :1
    ]
