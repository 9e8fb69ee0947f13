"""What other operators and tenants write, however odd, is reported in words on its own claim and disturbs no other."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import aiohttp
import pytest

from tests.support.api import JsonObject
from tests.support.audit import Match
from tests.support.kinds import CLUSTER_ROLE, COMPOSITION, CRD, SECRET, condition, in_trouble, is_ready
from tests.support.second_api import SecondApi
from tests.support.system import COMPOSER, System

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.apiserver, pytest.mark.postgres]
_PANICS = re.compile(r"^controller_runtime_reconcile_panics_total\{.*\} (\S+)$", re.MULTILINE)

# Each is no condition at all for the default readiness, or one that lacks what a reader expects.
ODD: dict[str, Any] = {
    "conditions that are a text": "none",
    "conditions that are a map": {"Ready": "True"},
    "conditions that are texts": ["Ready"],
    "a type that is a list": [{"type": ["Ready"], "status": "True"}],
}


async def _panics(system: System) -> float:
    url = f"http://127.0.0.1:{system.ports['composer']}/metrics"
    async with aiohttp.ClientSession() as session, session.get(url) as answer:
        return sum(map(float, _PANICS.findall(await answer.text())))


async def _served(system: System, group: str, name: str, **spec: Any) -> SecondApi:
    """Install the second API; the foreign kind reports whatever it likes."""
    api = SecondApi(group)
    node = api.node_crd(composable="true")
    schema = node["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    schema["properties"]["status"] = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    await system.apply(CLUSTER_ROLE, api.role())
    await system.apply(CRD, api.cache_crd())
    await system.apply(CRD, node)
    for kind in (api.cache, api.node):
        await system.api.until_served(kind.path())
    await system.create(COMPOSITION, api.composition(name, **spec))
    await system.until(COMPOSITION, "", name, is_ready, limit_s=120)
    return api


async def _claim(system: System, api: SecondApi, namespace: str, name: str, composition: str) -> str:
    """Make a claim; return the name of its node."""
    spec = {"memoryMB": 64, "compositionRef": {"name": composition}}
    await system.create(api.cache, api.cache.new(namespace, name, spec=spec))
    made = await system.until(
        api.cache, namespace, name, lambda obj: len(obj.get("status", {}).get("inventory", [])) == 2, limit_s=120
    )
    return next(str(entry["name"]) for entry in made["status"]["inventory"] if entry["kind"] == "Node")


async def _report(system: System, api: SecondApi, namespace: str, node: str, **status: Any) -> None:
    await system.api.merge(api.node.path(namespace, node, "status"), {"status": status})


def _says(type_: str, reason: str, *words: str) -> Callable[[JsonObject], bool]:
    def holds(obj: JsonObject) -> bool:
        entry = condition(obj, type_)
        return entry.get("reason") == reason and all(word in entry["message"] for word in words)

    return holds


async def test_an_odd_status_is_reported_on_its_claim_and_refuses_nothing_to_a_neighbour(composing: System) -> None:
    before = await _panics(composing)
    async with composing.namespace() as alice, composing.namespace() as mallory:
        api = await _served(composing, "odd.example.org", "odd")
        node = await _claim(composing, api, mallory, "sessions", "odd")
        for odd in ODD.values():
            await _report(composing, api, mallory, node, conditions=odd, observedGeneration=1)
            await composing.until(api.cache, mallory, "sessions", is_ready, limit_s=120)
            await _report(composing, api, mallory, node, conditions=[{"type": "Ready", "status": "False"}])
            await composing.until(
                api.cache, mallory, "sessions", _says("Ready", "Unknown", "does not say why"), limit_s=120
            )

        loud = {"type": "Stalled", "status": "True", "reason": "R" * 1_024, "message": "m" * 40_000}
        await _report(composing, api, mallory, node, conditions=[loud])
        obj = await composing.until(api.cache, mallory, "sessions", in_trouble("R" * 1_024), limit_s=120)
        assert len(condition(obj, "Stalled")["message"]) == 2_000

        theirs = await _claim(composing, api, alice, "sessions", "odd")
        ready = {"type": "Ready", "status": "True", "reason": "Up", "message": "up"}
        await _report(composing, api, alice, theirs, conditions=[ready])
        await composing.until(api.cache, alice, "sessions", is_ready, limit_s=120)

        assert await _panics(composing) == before
        await composing.delete(api.cache, mallory, "sessions")
        await composing.delete(api.cache, alice, "sessions")
        await composing.api.delete(COMPOSITION.path("", "odd"))


async def test_bytes_that_are_no_text_in_a_secret_are_a_missing_key_of_their_claim(composing: System) -> None:
    before = await _panics(composing)
    keys = {"password": "secret", "username": "user"}
    named = {"resource": "node", "name": "{{ resources.node.metadata.name }}-auth", "keys": keys}
    connection = {"secretRef": named, "type": "redis", "host": "cache.example"}
    async with composing.namespace() as mallory:
        api = await _served(composing, "bytes.example.org", "bytes", connection=connection)
        node = await _claim(composing, api, mallory, "sessions", "bytes")
        data = {"user": "YXBw", "secret": "//79/A=="}
        await composing.create(SECRET, SECRET.new(mallory, f"{node}-auth", data=data))
        ready = {"type": "Ready", "status": "True", "reason": "Up", "message": "up"}
        await _report(composing, api, mallory, node, conditions=[ready])

        refused = await composing.until(api.cache, mallory, "sessions", in_trouble("SecretNotFound"), limit_s=120)
        assert f"Secret {node}-auth has no key 'secret' with a text" in condition(refused, "Synced")["message"]
        assert await _panics(composing) == before

        await composing.api.merge(SECRET.path(mallory, f"{node}-auth"), {"data": {"secret": "cHc="}})
        await composing.until(api.cache, mallory, "sessions", is_ready, limit_s=120)
        await composing.delete(api.cache, mallory, "sessions")
        await composing.api.delete(COMPOSITION.path("", "bytes"))


@pytest.mark.parametrize("name", ["../alice/app-connection", "x?y#z", "%2e%2e"])
async def test_a_reference_that_leads_elsewhere_is_read_by_nobody_and_reported(composing: System, name: str) -> None:
    """The caRef of a Composition may be any text that an expression gives."""
    ca = {"kind": "Secret", "name": f"{{{{ '{name}' }}}}", "key": "ca.crt"}
    keys = {"password": "secret", "username": "user"}
    named = {"resource": "node", "name": "{{ resources.node.metadata.name }}-auth", "keys": keys}
    connection = {"secretRef": named, "type": "redis", "host": "cache.example", "caRef": ca}
    async with composing.namespace() as mallory:
        composition = f"{mallory}-paths"
        api = await _served(composing, f"{mallory}.example.org", composition, connection=connection)
        node = await _claim(composing, api, mallory, "sessions", composition)
        audit = composing.audit()
        ready = {"type": "Ready", "status": "True", "reason": "Up", "message": "up"}
        await _report(composing, api, mallory, node, conditions=[ready])

        refused = await composing.until(api.cache, mallory, "sessions", in_trouble("InvalidValue"), limit_s=120)
        assert f"{name!r} is no name of a Secret" in condition(refused, "Synced")["message"]
        assert audit.requests(Match(user=COMPOSER, resource="secrets")) == []
        await composing.delete(api.cache, mallory, "sessions")
        await composing.api.delete(COMPOSITION.path("", composition))
