"""A template worker that was taken over makes the composer write nothing that its claim may not have."""

from __future__ import annotations

import msgspec
import pytest
import pytest_asyncio

from tests.support.kinds import CLAIM, CONFIG_MAP, claim, composition, condition, in_trouble, is_ready
from tests.support.shared import USUAL, at_work
from tests.support.system import System
from tests.support.waiting import eventually

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.apiserver, pytest.mark.postgres]


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def composing(alone: System) -> System:
    account = ("fairlead-system", "fairlead-composer")
    await alone._start("composer", ("tests.support.forging_composer",), account, USUAL["composer"], wait=True)
    return alone


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
    lines = [line for line in at_work(system, "composer")[0].log.read_bytes().splitlines() if b'"WorkerEnded"' in line]
    entries = [msgspec.json.decode(line, type=dict[str, object]) for line in lines]
    return [{name: str(text) for name, text in entry.items()} for entry in entries if entry["namespace"] == namespace][
        :1
    ]
