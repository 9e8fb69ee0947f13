"""What the processes do in lives of claims in every cloud is what `deploy/rights` lists, and all that it lists is used.

`tests/deploy/test_effective_rights.py` holds the lists against the API server's own answer.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from tests.security.builders import database
from tests.support.api import JsonObject
from tests.support.aws import AWS_CONFIG, RDS_INSTANCE, instance, simulated_rds
from tests.support.azure import AZURE_CONFIG, FLEXIBLE_SERVER, flexible_server, simulated_azure
from tests.support.gcp import CLOUD_SQL_INSTANCE, FLAGS, GCP_CONFIG, simulated_cloud_sql
from tests.support.gcp import instance as cloud_sql_instance
from tests.support.kinds import (
    CLAIM,
    CLUSTER_ROLE,
    COMPOSITION,
    CONFIG_MAP,
    CRD,
    DATABASE,
    PROVIDER_CONFIG,
    SECRET,
    Kind,
    claim,
    composition,
    is_ready,
)
from tests.support.kinds import database as lone_database
from tests.support.rights import Usage, rights_in, usage_of
from tests.support.second_api import SecondApi
from tests.support.simulated_cloud import QUICK, SimulatedCloud
from tests.support.system import System, let_watch_secrets
from tests.support.waiting import eventually

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.apiserver, pytest.mark.postgres]

_ROOT = Path(__file__).resolve().parents[2]
_RIGHTS = _ROOT / "deploy" / "rights"
_CLOUDS = ("onprem", "aws", "azure", "gcp")
_ACCOUNTS = {
    "fairlead-composer": "fairlead-system",
    **{f"fairlead-provider-{cloud}": f"fairlead-{cloud}" for cloud in _CLOUDS},
}
_LIMIT_S = 240.0
# Of another operator, as a platform team adds it by a role of its own: only such a connection reads a ConfigMap.
_FOREIGN = SecondApi("rights.example.org")
# What no life of a claim has to use. A status over which somebody edited the spec meanwhile is read and sent once more
# (tests/apiserver/runtime/test_kube_client.py). The admission plugin OwnerReferencesPermissionEnforcement asks for the
# last one when a child with an owner is created: no request has that verb.
_NOT_HERE = {
    "get compositions.fairlead.dev",
    *(f"get providerconfigs.{cloud}.fairlead.dev" for cloud in _CLOUDS),
    "update postgresqlinstances.database.fairlead.dev/finalizers",
}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def usages(system: System) -> dict[str, Usage]:
    """Return what each account's requests come to, after lives of claims in every cloud."""
    audit = system.audit()
    for cloud in _CLOUDS:
        folder = _ROOT / "deploy" / "kustomize" / "clouds" / cloud
        await system.kubectl.run("apply", "--server-side", "--kustomize", str(folder))
    for name in ("composer", "standby"):
        await system.start_composer(name=name)
    for name in ("provider", "provider-standby"):
        await system.start_provider(*QUICK, name=name)
    await system.until(PROVIDER_CONFIG, "", "default", is_ready)
    await _live_on_prem(system, "rights-onprem")
    async with simulated_rds(system) as rds:
        await _live_in(rds, AWS_CONFIG, (RDS_INSTANCE, instance("rights-aws", "alone")), QUICK)
    async with simulated_azure(system) as azure:
        network = {"public": True, "allowedCIDRs": ["127.0.0.1/32"]}
        alone = (FLEXIBLE_SERVER, flexible_server("rights-azure", "alone"))
        await _live_in(azure, AZURE_CONFIG, alone, QUICK, network=network)
    async with simulated_cloud_sql(system) as cloud_sql:
        await _live_in(cloud_sql, GCP_CONFIG, (CLOUD_SQL_INSTANCE, cloud_sql_instance("rights-gcp", "alone")), FLAGS)
    requests = audit.requests(begun=True)
    usages = {}
    for account, own in _ACCOUNTS.items():
        user = f"system:serviceaccount:{own}:{account}"
        text = (_RIGHTS / f"{account}.txt").read_text(encoding="utf-8")
        usages[account] = usage_of(
            rights_in(text),
            [request for request in requests if request.user == user and request.group != _FOREIGN.group],
            own=own,
            with_claims=frozenset(f"rights-{cloud}" for cloud in _CLOUDS),
        )
    return usages


async def _live_on_prem(system: System, namespace: str) -> None:
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
    await system.apply(CLUSTER_ROLE, _FOREIGN.role())
    for crd in (_FOREIGN.cache_crd(), _FOREIGN.node_crd(composable="true")):
        await system.apply(CRD, crd)
    for kind in (_FOREIGN.cache, _FOREIGN.node):
        await system.api.until_served(kind.path())
    body = _FOREIGN.composition("foreign", appliesTo={}, deletionPolicies=["Delete"])
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
    await system.create(_FOREIGN.cache, _FOREIGN.cache.new(namespace, "sessions", spec=spec))

    async def node() -> JsonObject | None:
        return next(iter(await system.api.items(_FOREIGN.node.path(namespace))), None)

    name = (await eventually(node, "the node is composed", limit_s=_LIMIT_S))["metadata"]["name"]
    ready = {"type": "Ready", "status": "True", "reason": "Up", "message": "up"}
    await system.api.merge(_FOREIGN.node.path(namespace, name, "status"), {"status": {"conditions": [ready]}})
    await system.until(_FOREIGN.cache, namespace, "sessions", is_ready, limit_s=_LIMIT_S)
    await system.api.delete(_FOREIGN.cache.path(namespace, "sessions"))
    await system.api.until_gone(_FOREIGN.cache.path(namespace, "sessions"), limit_s=_LIMIT_S)


async def _until_limit(system: System, namespace: str, limit: int | None) -> None:
    async def has_it() -> bool:
        children = await system.children(namespace, "revised")
        return [child["spec"]["forProvider"].get("connectionLimit") for child in children] == [limit]

    await eventually(has_it, f"connectionLimit {limit} is composed", limit_s=_LIMIT_S)


async def _live_in(
    cloud: SimulatedCloud, config: Kind, alone: tuple[Kind, JsonObject], flags: tuple[str, ...], **spec: Any
) -> None:
    system, namespace = cloud.system, f"rights-{cloud.cloud}"
    providers = [await cloud.start_provider(*flags, name=f"{cloud.cloud}-{number}") for number in (1, 2)]
    await system.until(config, "", "default", is_ready, limit_s=_LIMIT_S)
    await system.namespaced(namespace, cloud=cloud.cloud)
    await _life(system, namespace, parameters={"work_mem": "8MB"}, **spec)
    await _lone(system, *alone)
    await _end(system, namespace, "orders")
    for provider in providers:
        assert await provider.terminate() == 0


async def _lone(system: System, kind: Kind, obj: JsonObject) -> None:
    """Have a managed resource made that no claim stands behind, and deleted."""
    namespace, name = obj["metadata"]["namespace"], obj["metadata"]["name"]
    await system.create(kind, obj)
    await system.until(kind, namespace, name, lambda made: "finalizers" in made["metadata"], limit_s=_LIMIT_S)
    await system.api.delete(kind.path(namespace, name))
    await system.api.until_gone(kind.path(namespace, name), limit_s=_LIMIT_S)


async def _life(system: System, namespace: str, **spec: Any) -> None:
    """Have a claim made, looked at on request, and its password changed."""
    await system.create(CLAIM, claim(namespace, "orders", deletionPolicy="Delete", **spec))
    await system.until(CLAIM, namespace, "orders", is_ready, limit_s=_LIMIT_S)
    before = await system.binding(namespace, "orders")
    await system.ask_for_a_pass(CLAIM, namespace, "orders")
    await system.edit(CLAIM, namespace, "orders", {"spec": {"passwordRotation": {"token": "next"}}})

    async def is_another() -> bool:
        return (await system.binding(namespace, "orders"))["password"] != before["password"]

    await eventually(is_another, "another password is published", limit_s=_LIMIT_S)
    await system.until(CLAIM, namespace, "orders", is_ready, limit_s=_LIMIT_S)


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


@pytest.mark.parametrize("account", _ACCOUNTS)
async def test_no_request_was_refused_for_want_of_a_right(usages: dict[str, Usage], account: str) -> None:
    assert usages[account].refused == []


@pytest.mark.parametrize("account", _ACCOUNTS)
async def test_no_request_was_unlisted(usages: dict[str, Usage], account: str) -> None:
    assert usages[account].unlisted == []


@pytest.mark.parametrize("account", _ACCOUNTS)
async def test_every_right_of_the_file_was_used(usages: dict[str, Usage], account: str) -> None:
    assert [right for right in usages[account].unused if right not in _NOT_HERE] == []
