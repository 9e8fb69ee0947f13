"""A platform team's own kind of claim is as guarded as the shipped one, once bound as docs/kinds.md says."""

from __future__ import annotations

import asyncio
import textwrap
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from devcloud.controlplane.plane import Plane
from fairlead.cli import run
from tests.apiserver.policies.actors import COMPOSER, DEVELOPER, IDENTITY, PREFIX, As
from tests.support.api import Api, JsonObject
from tests.support.kinds import CLUSTER_ROLE, CLUSTER_ROLE_BINDING, CRD
from tests.support.second_api import SecondApi
from tests.support.waiting import eventually

_PAGE = Path(__file__).resolve().parents[3] / "docs" / "kinds.md"
_API = SecondApi("cache.example.org")


def _bindings() -> str:
    """Take the bindings out of the page, as its reader does."""
    blocks = _PAGE.read_text(encoding="utf-8").split("```")
    (binding,) = [block for block in blocks if "ValidatingAdmissionPolicyBinding" in block]
    return textwrap.dedent(binding.partition("\n")[2])


@pytest.fixture
async def caches(people: Plane, api: Api, namespace: str) -> AsyncIterator[str]:
    """Yield the kind, everybody's right to it, and its bindings; the path of the namespace's objects."""
    definition = _API.cache_crd()
    spec = definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
    spec["properties"]["deletionProtection"] = {"type": "boolean"}
    made = await api.create(CRD.path(), definition)
    rules = [{"apiGroups": [_API.group], "resources": ["*"], "verbs": ["*"]}]
    subjects = [
        {"apiGroup": CLUSTER_ROLE.group, "kind": "User", "name": DEVELOPER},
        {"kind": "ServiceAccount", "name": "fairlead-composer", "namespace": "fairlead-system"},
    ]
    role = {"apiGroup": CLUSTER_ROLE.group, "kind": CLUSTER_ROLE.kind, "name": _API.group}
    await api.create(CLUSTER_ROLE.path(), CLUSTER_ROLE.new("", _API.group, rules=rules))
    await api.create(
        CLUSTER_ROLE_BINDING.path(), CLUSTER_ROLE_BINDING.new("", _API.group, roleRef=role, subjects=subjects)
    )
    await people.kubectl.run("apply", "--server-side", "--filename", "-", standard_input=_bindings())
    await api.until_served(_API.cache.path())
    yield _API.cache.path(namespace)
    await people.kubectl.run("delete", "--filename", "-", standard_input=_bindings())
    for kind, name in ((CLUSTER_ROLE_BINDING, _API.group), (CLUSTER_ROLE, _API.group), (CRD, made["metadata"]["name"])):
        await api.delete(kind.path("", name))


def _cache(name: str, annotations: dict[str, str], *, protected: bool = False) -> JsonObject:
    made = _API.cache.new("", name, spec={"memoryMB": 64, "deletionProtection": protected})
    made["metadata"]["annotations"] = {PREFIX + key: value for key, value in annotations.items()}
    return made


async def test_claims_of_an_own_kind_are_guarded_once_bound(caches: str, api: Api) -> None:
    developer, composer = As(api, DEVELOPER), As(api, COMPOSER)

    async def refused() -> bool:
        answers = await asyncio.gather(
            developer.refusal("POST", caches, _cache("forged", IDENTITY)),
            developer.refusal("PUT", f"{caches}/kept/status", stored | {"status": {}}),
            developer.refusal("DELETE", f"{caches}/kept"),
        )
        texts = ("written by the composer only", "written by its own controller only", "protected from deletion")
        return all(text in answer for text, answer in zip(texts, answers, strict=True))

    stored = await composer.request("POST", caches, _cache("kept", IDENTITY, protected=True))
    await eventually(refused, "the policies hold for the new kind")

    status = {"status": {"observedGeneration": 1, "conditions": []}}
    await composer.request("PUT", f"{caches}/kept/status", stored | status)
    await developer.merge(f"{caches}/kept", {"spec": {"deletionProtection": False}})
    await developer.request("DELETE", f"{caches}/kept")


async def test_what_crd_new_writes_is_taken_by_an_api_server(people: Plane, tmp_path: Path) -> None:
    assert run(["crd", "new", "Queue", "--group", "queues.example.org", "-o", str(tmp_path)]) == 0
    files = (f"--filename={tmp_path}/{folder}" for folder in ("crds", "deploy", "compositions/queue-plain.yaml"))

    answer = await people.kubectl.run("apply", "--server-side", "--dry-run=server", *files)

    assert answer.count("serverside-applied (server dry run)") == 9
