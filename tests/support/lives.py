"""Lives of claims that take every right which a process of ours has: in each cloud, and of another operator's kind."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from tests.security.builders import database
from tests.support.api import JsonObject
from tests.support.aws import AWS_CONFIG, RDS_INSTANCE, Aws, instance
from tests.support.azure import AZURE_CONFIG, FLEXIBLE_SERVER, Azure, flexible_server
from tests.support.gcp import CLOUD_SQL_INSTANCE, GCP_CONFIG, Gcp
from tests.support.gcp import instance as cloud_sql_instance
from tests.support.grants import let_watch_secrets
from tests.support.kinds import (
    CLAIM,
    CLUSTER_ROLE,
    COMPOSITION,
    CONFIG_MAP,
    CRD,
    DATABASE,
    SECRET,
    Kind,
    claim,
    composition,
    is_ready,
)
from tests.support.kinds import database as lone_database
from tests.support.second_api import SecondApi
from tests.support.simulated_cloud import SimulatedCloud
from tests.support.system import System
from tests.support.waiting import eventually

FOREIGN = SecondApi("rights.example.org")
"""Of another operator, as a platform team adds it by a role of its own: only such a connection reads a ConfigMap."""
_LIMIT_S = 240.0
BeforeEnd = Callable[[str], Awaitable[None]]
"""What is done once a claim's password was rotated; it gets the former one."""


async def _nothing(former: str) -> None:
    del former


async def live_on_prem(system: System, namespace: str) -> None:
    """Have a claim's whole life, and those of a foreign kind and of a Composition that keeps few revisions."""
    await system.namespaced(namespace)
    await let_watch_secrets(system, namespace)
    await _life(system, namespace)
    await _lose_the_connection_secret(system, namespace)
    await system.edit(CLAIM, namespace, "orders", {"spec": {"connectionSecretName": "moved"}})
    await system.api.until_gone(SECRET.path(namespace, "orders-connection"), limit_s=_LIMIT_S)
    await _foreign_life(system, namespace)
    await system.create(COMPOSITION, composition("rights", database(), revisionHistoryLimit=1))
    await system.create(CLAIM, claim(namespace, "revised", compositionRef={"name": "rights"}, deletionPolicy="Delete"))
    await _until_limit(system, namespace, None)
    for limit in (7, 8, 9, 10):
        resource = database(forProvider={"databaseName": "app", "username": "app", "connectionLimit": limit})
        await system.edit(COMPOSITION, "", "rights", {"spec": {"resources": [resource]}})
        await _until_limit(system, namespace, limit)
    await _lone(system, DATABASE, lone_database(namespace, "alone"))
    await _end(system, namespace, "orders", "revised")
    await system.api.delete(COMPOSITION.path("", "rights"))
    await system.api.until_gone(COMPOSITION.path("", "rights"), limit_s=_LIMIT_S)


async def _foreign_life(system: System, namespace: str) -> None:
    """Have a claim whose connection copies keys of another operator's Secret, and the certificate of a ConfigMap."""
    await system.apply(CLUSTER_ROLE, FOREIGN.role())
    for crd in (FOREIGN.cache_crd(), FOREIGN.node_crd(composable="true")):
        await system.apply(CRD, crd)
    for kind in (FOREIGN.cache, FOREIGN.node):
        await system.api.until_served(kind.path())
    body = FOREIGN.composition("foreign", appliesTo={}, deletionPolicies=["Delete"])
    body["spec"]["resources"] = body["spec"]["resources"][1:]
    body["spec"]["connection"] = {
        "secretRef": {"resource": "node", "name": "login", "keys": {"password": "secret"}},
        "type": "redis",
        "caRef": {"kind": "ConfigMap", "name": "company", "key": "ca.crt"},
    }
    await system.create(COMPOSITION, body)
    await system.create(CONFIG_MAP, CONFIG_MAP.new(namespace, "company", data={"ca.crt": "PEM"}))
    await system.create(SECRET, SECRET.new(namespace, "login", stringData={"secret": "s"}))
    spec = {"memoryMB": 64, "deletionPolicy": "Delete"}
    await system.create(FOREIGN.cache, FOREIGN.cache.new(namespace, "sessions", spec=spec))

    async def node() -> JsonObject | None:
        return next(iter(await system.api.items(FOREIGN.node.path(namespace))), None)

    name = (await eventually(node, "the node is composed", limit_s=_LIMIT_S))["metadata"]["name"]
    ready = {"type": "Ready", "status": "True", "reason": "Up", "message": "up"}
    await system.api.merge(FOREIGN.node.path(namespace, name, "status"), {"status": {"conditions": [ready]}})
    await system.until(FOREIGN.cache, namespace, "sessions", is_ready, limit_s=_LIMIT_S)
    await system.api.delete(FOREIGN.cache.path(namespace, "sessions"))
    await system.api.until_gone(FOREIGN.cache.path(namespace, "sessions"), limit_s=_LIMIT_S)


async def _until_limit(system: System, namespace: str, limit: int | None) -> None:
    async def has_it() -> bool:
        children = await system.children(namespace, "revised")
        return [child["spec"]["forProvider"].get("connectionLimit") for child in children] == [limit]

    await eventually(has_it, f"connectionLimit {limit} is composed", limit_s=_LIMIT_S)


async def live_on_aws(aws: Aws, namespace: str, before_end: BeforeEnd = _nothing) -> None:
    """Have a claim's whole life on RDS, and that of an instance without a claim."""
    await _live_in(aws, namespace, before_end, AWS_CONFIG, (RDS_INSTANCE, instance(namespace, "alone")))


async def live_on_azure(azure: Azure, namespace: str, before_end: BeforeEnd = _nothing) -> None:
    """Have the whole life of a claim with a firewall rule on Azure, and that of a server without a claim."""
    network = {"public": True, "allowedCIDRs": ["127.0.0.1/32"]}
    alone = (FLEXIBLE_SERVER, flexible_server(namespace, "alone"))
    await _live_in(azure, namespace, before_end, AZURE_CONFIG, alone, network=network)


async def live_on_cloud_sql(gcp: Gcp, namespace: str, before_end: BeforeEnd = _nothing) -> None:
    """Have a claim's whole life on Cloud SQL, and that of an instance without a claim."""
    alone = (CLOUD_SQL_INSTANCE, cloud_sql_instance(namespace, "alone"))
    await _live_in(gcp, namespace, before_end, GCP_CONFIG, alone)


async def _live_in(
    cloud: SimulatedCloud,
    namespace: str,
    before_end: BeforeEnd,
    config: Kind,
    alone: tuple[Kind, JsonObject],
    **spec: Any,
) -> None:
    system = cloud.system
    await system.until(config, "", "default", is_ready, limit_s=_LIMIT_S)
    await system.namespaced(namespace, cloud=cloud.cloud)
    await before_end(await _life(system, namespace, parameters={"work_mem": "8MB"}, **spec))
    await _lone(system, *alone)
    await _end(system, namespace, "orders")


async def _lone(system: System, kind: Kind, obj: JsonObject) -> None:
    """Have a managed resource made that no claim stands behind, and deleted."""
    namespace, name = obj["metadata"]["namespace"], obj["metadata"]["name"]
    await system.create(kind, obj)
    await system.until(kind, namespace, name, lambda made: "finalizers" in made["metadata"], limit_s=_LIMIT_S)
    await system.api.delete(kind.path(namespace, name))
    await system.api.until_gone(kind.path(namespace, name), limit_s=_LIMIT_S)


async def _life(system: System, namespace: str, **spec: Any) -> str:
    """Have a claim made, looked at on request, and its password changed; return the former password."""
    await system.create(CLAIM, claim(namespace, "orders", deletionPolicy="Delete", **spec))
    await system.until(CLAIM, namespace, "orders", is_ready, limit_s=_LIMIT_S)
    before = await system.binding(namespace, "orders")
    await system.ask_for_a_pass(CLAIM, namespace, "orders")
    await system.edit(CLAIM, namespace, "orders", {"spec": {"passwordRotation": {"token": "next"}}})

    async def is_another() -> bool:
        return (await system.binding(namespace, "orders"))["password"] != before["password"]

    await eventually(is_another, "another password is published", limit_s=_LIMIT_S)
    await system.until(CLAIM, namespace, "orders", is_ready, limit_s=_LIMIT_S)
    return before["password"]


async def _lose_the_connection_secret(system: System, namespace: str) -> None:
    path = SECRET.path(namespace, "orders-connection")
    lost = await system.api.get(path)
    await system.api.delete(path)

    async def is_back() -> bool:
        secret = await system.api.find(path)
        return secret is not None and secret["metadata"]["uid"] != lost["metadata"]["uid"]

    await eventually(is_back, "the connection Secret is back", limit_s=_LIMIT_S)


async def _end(system: System, namespace: str, *names: str) -> None:
    for name in names:
        await system.api.delete(CLAIM.path(namespace, name))

    async def all_gone() -> bool:
        return not await system.api.items(CLAIM.path(namespace))

    await eventually(all_gone, f"the claims of {namespace} are gone", limit_s=_LIMIT_S)
