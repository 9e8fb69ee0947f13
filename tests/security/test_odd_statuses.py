"""The status of another operator's object is input: an odd one hurts its own claim, in words, and no neighbour's."""

from __future__ import annotations

import pytest
import pytest_asyncio

from tests.security.builders import panics
from tests.support.api import JsonObject
from tests.support.grants import allow_composer
from tests.support.kinds import CLAIM, COMPOSITION, CRD, Kind, composition, condition, crd_of, is_ready
from tests.support.system import System
from tests.support.tenants import Person, tenant
from tests.support.waiting import eventually

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.apiserver, pytest.mark.postgres]

_KIND = Kind("odd.example.org", "v1", "Node", "nodes")
_READY: JsonObject = {"type": "Ready", "status": "True", "reason": "Up", "message": "up"}
_LONG = "x" * 40_000
_ODD: dict[str, JsonObject] = {
    "conditions-text": {"conditions": "broken"},
    "conditions-map": {"conditions": {"Ready": "True"}},
    "conditions-texts": {"conditions": ["Ready", "Synced"]},
    "conditions-null": {"conditions": None},
    "generation-text": {"conditions": [_READY], "observedGeneration": "one"},
    "type-number": {"conditions": [{"type": 1, "status": True}]},
    "type-list": {"conditions": [{"type": ["Ready"], "status": "True"}]},
    "no-reason": {"conditions": [{"type": "Ready", "status": "False"}]},
    "long-message": {"conditions": [{"type": "Ready", "status": "False", "reason": "Broken", "message": _LONG}]},
    "long-reason": {"conditions": [{"type": "Ready", "status": "False", "reason": _LONG, "message": "broken"}]},
}
_NOT_READY = ("no-reason", "long-message", "long-reason")


def _crd() -> JsonObject:
    free = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    return crd_of(_KIND, {"type": "object", "properties": {"spec": free, "status": free}}, composable="true")


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def nodes(running: System) -> str:
    """Return the name of a Composition of a foreign kind whose statuses the test writes."""
    await running.apply(CRD, _crd())
    await running.api.until_served(_KIND.path())
    await allow_composer(running, _KIND.group, "nodes")
    template = {"apiVersion": _KIND.api_version, "kind": "Node", "spec": {"size": "{{ claim.spec.size }}"}}
    await running.create(COMPOSITION, composition("nodes", {"name": "node", "template": template}))
    await running.until(COMPOSITION, "", "nodes", is_ready)
    return "nodes"


async def _report(system: System, namespace: str, claim: str, status: JsonObject) -> None:
    """Write the status of a claim's child, as its operator does."""

    async def child() -> JsonObject | None:
        items = await system.api.items(_KIND.path(namespace))
        mine = [item for item in items if item["metadata"]["annotations"]["fairlead.dev/claim-name"] == claim]
        return mine[0] if mine else None

    target = await eventually(child, f"the child of {claim}")
    await system.api.merge(_KIND.path(namespace, target["metadata"]["name"], "status"), {"status": status})


async def test_odd_statuses_are_reported_in_words_and_starve_no_neighbour(
    running: System, nodes: str, mallory: Person
) -> None:
    for name in _ODD:
        await mallory.claim(name, compositionRef={"name": nodes})
    for name, status in _ODD.items():
        await _report(running, "mallory", name, status)
    await running.at_rest(for_s=2.0)

    for name in _ODD:
        claim = await running.api.get(CLAIM.path("mallory", name))
        # What says that it is not ready is not ready; a condition that is none says nothing.
        assert condition(claim, "Ready").get("status") == "False" or name not in _NOT_READY, claim["status"]
        conditions = claim["status"]["conditions"]
        assert all(entry["message"] and entry["observedGeneration"] == 1 for entry in conditions)
        reasons = {entry["reason"] for entry in conditions}
        assert not reasons & {"RenderLimit", "SchemaMismatch", "InternalError"}, conditions
        assert all(len(entry["message"]) <= 32_768 and len(entry["reason"]) <= 1_024 for entry in conditions)

    async with tenant(running, "neighbour") as neighbour:
        await neighbour.claim("healthy", compositionRef={"name": nodes})
        await _report(running, "neighbour", "healthy", {"conditions": [_READY]})
        await running.until(CLAIM, "neighbour", "healthy", is_ready)
        # The same spec again, after the neighbour's have failed for a while.
        await running.ask_for_a_pass(CLAIM, "neighbour", "healthy")
        await running.at_rest(for_s=1.0)
        assert is_ready(await running.api.get(CLAIM.path("neighbour", "healthy")))
    assert await panics(running) == 0
