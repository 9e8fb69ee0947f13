"""Claims of another API that come while the composer runs, and their connection from another operator's Secret."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.support.api import JsonObject
from tests.support.audit import WRITES, Match
from tests.support.kinds import (
    CLUSTER_ROLE,
    COMPOSITION,
    CONFIG_MAP,
    CRD,
    SECRET,
    Kind,
    condition,
    in_trouble,
    is_ready,
)
from tests.support.second_api import SecondApi
from tests.support.system import COMPOSER, System, decoded
from tests.support.waiting import eventually

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.apiserver, pytest.mark.postgres]

_LIMIT_S = 120.0


async def _until(
    system: System, kind: Kind, namespace: str, name: str, holds: Callable[[JsonObject], bool]
) -> JsonObject:
    """Wait through the pause of a watch that was refused, and the aggregation of roles."""
    return await system.until(kind, namespace, name, holds, limit_s=_LIMIT_S)


async def _served(system: System, api: SecondApi) -> None:
    """Install both kinds, allowed, with the right for them."""
    await system.apply(CLUSTER_ROLE, api.role())
    await system.apply(CRD, api.cache_crd())
    await system.apply(CRD, api.node_crd(composable="true"))
    for kind in (api.cache, api.node):
        await system.api.until_served(kind.path())


async def _node_of(system: System, api: SecondApi, namespace: str) -> JsonObject:
    (node,) = await system.api.items(api.node.path(namespace))
    return node


async def _make_ready(system: System, api: SecondApi, namespace: str, **status: str) -> None:
    name = (await _node_of(system, api, namespace))["metadata"]["name"]
    ready = {"type": "Ready", "status": "True", "reason": "Up", "message": "up"}
    await system.api.merge(api.node.path(namespace, name, "status"), {"status": {"conditions": [ready], **status}})


async def test_a_connection_appears_whole_in_one_write_and_is_put_back_at_once_when_it_is_edited(
    composing: System,
) -> None:
    """Nobody asks for a pass here, and the next look at an unchanged Secret would be ten minutes away."""
    api, namespace = SecondApi("secrets.example.org"), "watched"
    await _served(composing, api)
    connection = {
        "secretRef": {
            "resource": "node",
            "name": "{{ resources.node.metadata.name }}-auth",
            "keys": {"password": "secret", "username": "user"},
        },
        "type": "redis",
        "host": "{{ resources.node.status.address }}",
        "caRef": {"kind": "ConfigMap", "name": "authority", "key": "ca.crt"},
    }
    policies = ["Orphan", "Delete"]
    body = api.composition("secretive", connection=connection, appliesTo={}, deletionPolicies=policies)
    await composing.create(COMPOSITION, body)
    await composing.create(CONFIG_MAP, CONFIG_MAP.new(namespace, "authority", data={"ca.crt": "PEM"}))
    spec = {"memoryMB": 64, "deletionPolicy": "Delete"}
    claim = await composing.create(api.cache, api.cache.new(namespace, "sessions", spec=spec))
    await _until(composing, api.cache, namespace, "sessions", lambda obj: "inventory" in obj.get("status", {}))
    audit = composing.audit()
    await _make_ready(composing, api, namespace, address="cache.example")
    source = f"{(await _node_of(composing, api, namespace))['metadata']['name']}-auth"
    refused = await _until(composing, api.cache, namespace, "sessions", in_trouble("SecretNotFound"))
    assert source in condition(refused, "Synced")["message"]

    login = {"user": "app", "secret": "first"}
    await composing.create(SECRET, SECRET.new(namespace, source, stringData=login))
    bound = await _until(composing, api.cache, namespace, "sessions", is_ready)
    path = SECRET.path(namespace, bound["status"]["binding"]["name"])
    made = await composing.api.get(path)
    assert made["type"] == "servicebinding.io/redis"
    assert [owner["uid"] for owner in made["metadata"]["ownerReferences"]] == [claim["metadata"]["uid"]]
    written = audit.requests(Match(user=COMPOSER, verbs=WRITES, resource="secrets", succeeded=True))
    assert [request.verb for request in written] == ["create"]
    keys = {"type": "redis", "provider": api.group, "host": "cache.example", "username": "app", "certificates": "PEM"}
    assert decoded(made) == {**keys, "password": "first"}

    async def holds(password: str) -> bool:
        secret = await composing.api.find(path)
        return secret is not None and decoded(secret) == {**keys, "password": password}

    await composing.api.merge(path, {"data": {"password": None, "host": "ZXZpbA=="}})
    await eventually(lambda: holds("first"), "an edited Secret is back")
    await composing.api.delete(path)
    await eventually(lambda: holds("first"), "a deleted Secret is back")
    await composing.api.merge(SECRET.path(namespace, source), {"stringData": {"secret": "second"}})
    await eventually(lambda: holds("second"), "a new password of the foreign kind is published")

    await composing.at_rest()
    audit.rewind()
    await composing.at_rest(for_s=2.0)
    assert audit.writes(COMPOSER) == []
    await composing.delete(api.cache, namespace, "sessions")
    await composing.api.delete(COMPOSITION.path("", "secretive"))
