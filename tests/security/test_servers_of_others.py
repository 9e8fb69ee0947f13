"""What names a server of somebody else is refused, whoever wrote it, and nothing inside that server is called."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from devcloud.gcp.platform import NETWORK, REGION
from tests.support.api import JsonObject, connect
from tests.support.azure import FLEXIBLE_SERVER, SERVER_DATABASE, Azure, flexible_server
from tests.support.gcp import (
    CLOUD_SQL_DATABASE,
    CLOUD_SQL_INSTANCE,
    CLOUD_SQL_USER,
    FLAGS,
    GCP_CONFIG,
    Gcp,
    instance,
)
from tests.support.kinds import CLAIM, Kind, claim, composition, condition, is_ready
from tests.support.simulated_cloud import SimulatedCloud
from tests.support.system import System

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.apiserver, pytest.mark.postgres]

_LIMIT_S = 180.0
_FIREWALL_RULE = Kind("azure.fairlead.dev", "v1alpha1", "FlexibleServerFirewallRule", "flexibleserverfirewallrules")
_CONFIGURATION = Kind("azure.fairlead.dev", "v1alpha1", "FlexibleServerConfiguration", "flexibleserverconfigurations")
_PERSONS = "of-a-person"
_INSIDE = ("users.", "databases.", "firewallRules.", "configurations.")


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def gcp(alone: System, shared_gcp: Gcp) -> Gcp:
    """Return Cloud SQL with composer and provider at work."""
    await alone.start_composer("--no-elect")
    await shared_gcp.start_provider(*FLAGS)
    await alone.until(GCP_CONFIG, "", "default", is_ready, limit_s=_LIMIT_S)
    return shared_gcp


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def victim(gcp: Gcp) -> AsyncIterator[str]:
    """Yield the name in the cloud of an instance of another namespace, in which a person made a user.

    Of its users nobody asks for the victim: each call inside it is for the attacker.
    """
    async with gcp.namespace() as namespace:
        await gcp.system.create(CLOUD_SQL_INSTANCE, instance(namespace, "victim"))
        await gcp.system.until(CLOUD_SQL_INSTANCE, namespace, "victim", is_ready, limit_s=_LIMIT_S)
        name = await gcp.external(CLOUD_SQL_INSTANCE, namespace, "victim")
        await gcp.person("POST", f"instances/{name}/users", {"name": "owner", "password": "of-the-owner"})
        yield name


def _is_refused(obj: JsonObject) -> bool:
    return condition(obj, "Synced").get("reason") == "AdoptionRefused"


def _login(namespace: str, server: str) -> JsonObject:
    """Return a CloudSQLUser that is to have what the victim's user has."""
    parameters = {"instance": server, "name": "evil", "databaseRoles": ["owner"]}
    return CLOUD_SQL_USER.new(namespace, "evil", spec={"forProvider": parameters, "deletionPolicy": "Delete"})


async def _calls_inside(cloud: SimulatedCloud, since: int) -> list[str]:
    calls = [call for call in await cloud.calls(since) if not call["principal"].endswith(cloud.person_principal)]
    return [str(call["action"]) for call in calls if call["action"].startswith(_INSIDE)]


async def test_a_user_and_a_database_in_an_instance_of_another_namespace_are_refused(gcp: Gcp, victim: str) -> None:
    system = gcp.system
    async with gcp.namespace() as namespace:
        since = await gcp.mark()
        database = {"instance": victim, "name": "evil"}
        await system.create(CLOUD_SQL_USER, _login(namespace, victim))
        await system.create(
            CLOUD_SQL_DATABASE, CLOUD_SQL_DATABASE.new(namespace, "evil", spec={"forProvider": database})
        )
        for kind in (CLOUD_SQL_USER, CLOUD_SQL_DATABASE):
            await system.until(kind, namespace, "evil", _is_refused, limit_s=_LIMIT_S)
        assert await _calls_inside(gcp, since) == []


async def test_a_composition_leads_into_no_instance_of_another_namespace(gcp: Gcp, victim: str) -> None:
    system = gcp.system
    spec = {"forProvider": _login("", victim)["spec"]["forProvider"]}
    template = {"apiVersion": CLOUD_SQL_USER.api_version, "kind": CLOUD_SQL_USER.kind, "spec": spec}
    obj = composition("evil", {"name": "user", "template": template})
    async with gcp.namespace() as namespace, system.composition(obj) as name:
        since = await gcp.mark()
        await system.create(CLAIM, claim(namespace, "orders", compositionRef={"name": name}))

        def has_refused_child(obj: JsonObject) -> bool:
            return "AdoptionRefused" in str(obj.get("status", {}))

        await system.until(CLAIM, namespace, "orders", has_refused_child, limit_s=_LIMIT_S)
        assert await _calls_inside(gcp, since) == []


async def test_the_composers_token_leads_into_no_instance_of_another_namespace(gcp: Gcp, victim: str) -> None:
    system = gcp.system
    kubeconfig = await system.plane.service_account_kubeconfig("fairlead-system", "fairlead-composer")
    async with gcp.namespace() as namespace, connect(kubeconfig) as stolen:
        since = await gcp.mark()
        await stolen.create(CLOUD_SQL_USER.path(namespace), _login(namespace, victim))
        await system.until(CLOUD_SQL_USER, namespace, "evil", _is_refused, limit_s=_LIMIT_S)
        assert await _calls_inside(gcp, since) == []


async def test_an_instance_that_fairlead_never_made_is_closed(gcp: Gcp) -> None:
    network = {"ipv4Enabled": False, "privateNetwork": NETWORK}
    settings = {"tier": "db-custom-1-3840", "edition": "ENTERPRISE", "ipConfiguration": network}
    body = {"name": _PERSONS, "region": REGION, "databaseVersion": "POSTGRES_16", "settings": settings}
    await gcp.person("POST", "instances", body)
    async with gcp.namespace() as namespace:
        since = await gcp.mark()
        await gcp.system.create(CLOUD_SQL_USER, _login(namespace, _PERSONS))
        await gcp.system.until(CLOUD_SQL_USER, namespace, "evil", _is_refused, limit_s=_LIMIT_S)
        assert await _calls_inside(gcp, since) == []


async def test_nothing_inside_a_flexible_server_of_another_namespace_is_made(
    alone: System, shared_azure: Azure
) -> None:
    azure, inside = (
        shared_azure,
        (
            (SERVER_DATABASE, {"name": "evil"}),
            (_FIREWALL_RULE, {"cidr": "0.0.0.0/0"}),
            (_CONFIGURATION, {"name": "log_statement", "value": "all"}),
        ),
    )
    provider = await azure.start_provider()
    async with azure.namespace() as theirs, azure.namespace() as namespace:
        await alone.create(FLEXIBLE_SERVER, flexible_server(theirs, "victim"))
        await alone.until(FLEXIBLE_SERVER, theirs, "victim", is_ready, limit_s=_LIMIT_S)
        name = (await alone.api.get(FLEXIBLE_SERVER.path(theirs, "victim")))["status"]["externalName"]
        since = await azure.mark()
        for kind, fields in inside:
            parameters = {"server": name, **fields}
            await alone.create(kind, kind.new(namespace, "evil", spec={"forProvider": parameters}))
        for kind, _ in inside:
            await alone.until(kind, namespace, "evil", _is_refused, limit_s=_LIMIT_S)
        assert await _calls_inside(azure, since) == []
    await provider.terminate()
