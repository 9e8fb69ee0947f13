"""A claim in a namespace of Azure: its server, database, rules and parameters, a login; by roles that allow no more."""

import asyncio
import json
import re
import secrets
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from pathlib import Path

import psycopg
import pytest
import pytest_asyncio

from devcloud.azure.entra.directory import CLIENT_ID
from devcloud.azure.platform import RESOURCE_GROUP
from tests.support.api import ApiError, JsonObject
from tests.support.azure import (
    AZURE_CONFIG,
    CONFIGURATION,
    FIREWALL_RULE,
    FLEXIBLE_SERVER,
    SCOPE,
    SERVER_DATABASE,
    Azure,
    at_work,
    flexible_server,
    simulated_azure,
)
from tests.support.connections import relayed
from tests.support.kinds import CLAIM, EVENT, Kind, claim, condition, in_trouble, is_ready
from tests.support.system import System
from tests.support.waiting import eventually

pytestmark = pytest.mark.asyncio(loop_scope="session")

IAM = Path(__file__).resolve().parents[2] / "deploy" / "iam" / "azure"
INSIDE, OUTSIDE = "127.0.0.1", "127.0.0.2"
"""Addresses of clients of which a rule lets in the first."""


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def fenced(system: System) -> AsyncIterator[Azure]:
    """Yield composer and provider at work, the provider with the shipped role definitions, each at its own scope."""
    async with simulated_azure(system) as azure:
        principal = (await azure.control("GET", "principals"))[CLIENT_ID]
        await azure.control("DELETE", f"roles/{principal}")
        for path in sorted(IAM.glob("*.json")):
            shipped = json.loads(path.read_text(encoding="utf-8"))
            scope = SCOPE if path.stem.endswith("-subscription") else f"{SCOPE}/resourceGroups/{RESOURCE_GROUP}"
            role = {"name": shipped["Name"], "actions": shipped["Actions"], "notActions": shipped["NotActions"]}
            await azure.control("POST", "roles", {"object_id": principal, "scope": scope, "role": role})
        await at_work(azure)
        yield azure


async def _actions(azure: Azure, since: int) -> list[str]:
    return [str(call["action"]) for call in await azure.changes(since)]


async def _login_from(azure: Azure, source: str, binding: Mapping[str, str], *, sslmode: str = "") -> None:
    """Log in from an address; raises OperationalError where the server does not let it in."""
    authority = azure.system.folder / f"ca-{secrets.token_hex(4)}.pem"
    await asyncio.to_thread(authority.write_text, binding["certificates"])
    async with relayed(binding["host"], int(binding["port"]), source=source) as port:
        connection = await psycopg.AsyncConnection.connect(
            host=binding["host"],
            hostaddr="127.0.0.1",
            port=port,
            dbname=binding["database"],
            user=binding["username"],
            password=binding["password"],
            sslmode=sslmode or binding["sslmode"],
            sslrootcert=str(authority),
            connect_timeout=60,
        )
        await connection.close()


async def test_a_claim_is_served_changed_and_taken_away(fenced: Azure) -> None:
    system = fenced.system
    async with fenced.namespace() as namespace:
        since = await fenced.mark()
        spec = {
            "parameters": {"work_mem": "8MB"},
            "network": {"public": True, "allowedCIDRs": [f"{INSIDE}/32"]},
            "deletionPolicy": "Delete",
        }
        await system.create(CLAIM, claim(namespace, "orders", **spec))
        made = await system.until(CLAIM, namespace, "orders", is_ready, limit_s=180)

        actions = await _actions(fenced, since)
        assert actions[0] == "flexibleServers.put"
        assert sorted(actions[1:]) == ["configurations.put", "databases.put", "firewallRules.put"]
        binding = await system.binding(namespace, "orders")
        assert (binding["provider"], binding["database"], binding["username"]) == ("azure", "orders", "orders_app")
        assert binding["sslmode"] == "verify-full"
        assert made["status"]["endpoint"] == binding["host"]
        async with await system.login(namespace, "orders") as connection:
            await connection.execute("CREATE TABLE goods AS SELECT 'canary' AS name")
        name = await fenced.name_of(namespace, "orders")
        assert (await fenced.properties(f"{name}/configurations/work_mem"))["value"] == "8192"

        await _only_the_rules_addresses_get_in(fenced, binding)
        await _a_lost_rule_comes_back(fenced, namespace, name, binding)
        await _edits_and_drift_are_one_call_each(fenced, namespace, name)
        await _a_new_password_ends_the_old_one(fenced, namespace)
        await _delete_takes_the_server(fenced, namespace, name)


async def _only_the_rules_addresses_get_in(azure: Azure, binding: Mapping[str, str]) -> None:
    await _login_from(azure, INSIDE, binding)
    with pytest.raises(psycopg.OperationalError, match=rf'no pg_hba\.conf entry for host "{OUTSIDE}"'):
        await _login_from(azure, OUTSIDE, binding)
    with pytest.raises(psycopg.OperationalError, match="no encryption"):
        await _login_from(azure, INSIDE, binding, sslmode="disable")


async def _a_lost_rule_comes_back(azure: Azure, namespace: str, name: str, binding: Mapping[str, str]) -> None:
    """Prove that a rule that somebody deleted is made again, and then lets in whom it let in before."""
    (rule,) = await azure.system.api.items(FIREWALL_RULE.path(namespace))
    place = rule["status"]["externalName"].split("/", 1)[1].replace("/", "/firewallRules/")
    await azure.person("DELETE", place)
    with pytest.raises(psycopg.OperationalError, match="no pg_hba\\.conf entry"):
        await _login_from(azure, INSIDE, binding)

    since = await azure.mark()
    await azure.system.ask_for_a_pass(FIREWALL_RULE, namespace, rule["metadata"]["name"])

    async def is_back() -> bool:
        return await azure.system.logs_in(namespace, "orders")

    await eventually(is_back, "the rule lets in again", limit_s=90)
    assert await _actions(azure, since) == ["firewallRules.put"]
    assert place.startswith(f"{name}/firewallRules/")


async def _edits_and_drift_are_one_call_each(azure: Azure, namespace: str, name: str) -> None:
    """Prove that an edit of a parameter reaches the parameter alone, and that a person's change is put back."""
    await azure.system.until(CLAIM, namespace, "orders", is_ready, limit_s=90)
    since = await azure.mark()
    await azure.system.edit(CLAIM, namespace, "orders", {"spec": {"parameters": {"work_mem": "16MB"}}})
    await azure.until_properties(f"{name}/configurations/work_mem", lambda shown: shown["value"] == "16384")
    await azure.system.until(CLAIM, namespace, "orders", is_ready, limit_s=90)
    assert await _actions(azure, since) == ["configurations.put"]

    await azure.person("PATCH", name, {"properties": {"backup": {"backupRetentionDays": 12}}})
    await azure.until_properties(name, lambda shown: shown["backup"]["backupRetentionDays"] == 7)
    server = await azure.server_of(namespace, "orders")

    def is_reported(obj: JsonObject) -> bool:
        return is_ready(obj) and any(
            (entry["path"], entry["action"]) == ("backupRetentionDays", "Corrected")
            for entry in obj["status"].get("drift") or ()
        )

    await azure.system.until(FLEXIBLE_SERVER, namespace, server["metadata"]["name"], is_reported, limit_s=90)
    assert await _actions(azure, since) == ["configurations.put", "flexibleServers.patch"]


async def _a_new_password_ends_the_old_one(azure: Azure, namespace: str) -> None:
    system = azure.system
    await system.until(CLAIM, namespace, "orders", is_ready, limit_s=90)
    before, since = await system.binding(namespace, "orders"), await azure.mark()
    await system.edit(CLAIM, namespace, "orders", {"spec": {"passwordRotation": {"token": "2"}}})

    async def is_published() -> bool:
        binding = await system.binding(namespace, "orders")
        return binding["password"] != before["password"] and await system.logs_in_by(binding)

    await eventually(is_published, "a new password is in the connection Secret and works", limit_s=120)
    assert not await system.logs_in_by(before)
    await system.until(CLAIM, namespace, "orders", is_ready, limit_s=90)
    assert await _actions(azure, since) == ["flexibleServers.patch"]


async def _delete_takes_the_server(azure: Azure, namespace: str, name: str) -> None:
    """Prove that under Delete the server goes, by one call, and that an event says until when it can be revived."""
    server, since = await azure.server_of(namespace, "orders"), await azure.mark()
    await azure.system.api.delete(CLAIM.path(namespace, "orders"))
    await azure.system.api.until_gone(CLAIM.path(namespace, "orders"), limit_s=180)

    assert name not in await azure.states()
    done = [call["action"] for call in await azure.changes(since) if call["outcome"] == "ok"]
    assert done.count("flexibleServers.delete") == 1
    assert {action.partition(".")[2] for action in done} <= {"delete", "put"}
    for kind in (FLEXIBLE_SERVER, SERVER_DATABASE, FIREWALL_RULE, CONFIGURATION):
        assert await azure.system.api.items(kind.path(namespace)) == []
    (until,) = (until for arm_id, until in (await azure.control("GET", "dropped")).items() if arm_id.endswith(name))
    said = await eventually(lambda: _revivable_until(azure, namespace, server), "an event says until when", limit_s=30)
    early = datetime.fromisoformat(until) - datetime.fromisoformat(said)
    assert timedelta(0) <= early < timedelta(minutes=10)


async def _revivable_until(azure: Azure, namespace: str, server: JsonObject) -> str:
    """Return the date that the event of a server's deletion has, empty while there is no such event."""
    for event in await azure.system.api.items(EVENT.path(namespace)):
        if event["regarding"].get("uid") == server["metadata"]["uid"] and event["reason"] == "DeleteRequested":
            date = re.search(r"it can be revived until (\S+) at the latest", event["note"])
            return date[1] if date is not None else ""
    return ""


async def test_orphan_leaves_the_server_and_its_login(fenced: Azure) -> None:
    system = fenced.system
    async with fenced.namespace() as namespace:
        await system.create(CLAIM, claim(namespace, "orders", deletionPolicy="Orphan"))
        await system.until(CLAIM, namespace, "orders", is_ready, limit_s=180)
        name, binding = await fenced.name_of(namespace, "orders"), await system.binding(namespace, "orders")
        network = await fenced.properties(name)
        assert network["network"]["publicNetworkAccess"] == "Disabled"

        since = await fenced.mark()
        await system.delete(CLAIM, namespace, "orders")

        assert await _actions(fenced, since) == ["flexibleServers.patch"]
        assert (await fenced.states())[name] in {"Ready", "Updating"}

        async def is_marked() -> bool:
            return "fairlead-released" in (await fenced.person("GET", name))["tags"]

        await eventually(is_marked, f"{name} is marked as released")
        assert await system.logs_in_by(binding)


async def test_snapshot_is_refused_and_never_becomes_delete(fenced: Azure) -> None:
    system = fenced.system
    async with fenced.namespace() as namespace:
        since = await fenced.mark()
        await system.create(CLAIM, claim(namespace, "refused", deletionPolicy="Snapshot"))
        refused = await system.until(CLAIM, namespace, "refused", in_trouble("UnsupportedPolicy"))
        assert "offers Orphan, Delete" in condition(refused, "Synced")["message"]
        assert await _actions(fenced, since) == []
        with pytest.raises(ApiError, match="Unsupported value"):
            await system.create(FLEXIBLE_SERVER, flexible_server(namespace, "kept", deletionPolicy="Snapshot"))

        await system.create(CLAIM, claim(namespace, "orders", deletionPolicy="Delete"))
        await system.until(CLAIM, namespace, "orders", is_ready, limit_s=180)
        name = await fenced.name_of(namespace, "orders")
        await system.edit(CLAIM, namespace, "orders", {"spec": {"deletionPolicy": "Snapshot"}})
        await system.until(CLAIM, namespace, "orders", in_trouble("UnsupportedPolicy"))
        since = await fenced.mark()
        await system.delete(CLAIM, namespace, "orders")

        assert "flexibleServers.delete" not in await _actions(fenced, since)
        assert "databases.delete" not in await _actions(fenced, since)
        assert name in await fenced.states()


async def test_a_dropped_server_is_lost_and_its_status_says_until_when_it_can_be_revived(fenced: Azure) -> None:
    system = fenced.system
    async with fenced.namespace() as namespace:
        await system.create(CLAIM, claim(namespace, "orders", deletionPolicy="Delete"))
        await system.until(CLAIM, namespace, "orders", is_ready, limit_s=180)
        server = await fenced.server_of(namespace, "orders")
        name, since = await fenced.name_of(namespace, "orders"), await fenced.mark()
        await fenced.person("DELETE", name)
        lost = await system.until(
            FLEXIBLE_SERVER, namespace, server["metadata"]["name"], in_trouble("DatabaseLost"), limit_s=90
        )

        until = lost["status"]["revivableUntil"]
        text = condition(lost, "Synced")["message"]
        assert f"until {until}" in text
        assert "az postgres flexible-server revive-dropped" in text
        shown = await system.until(CLAIM, namespace, "orders", lambda obj: until in str(obj["status"]["conditions"]))
        assert condition(shown, "Ready")["status"] == "False"
        assert await _actions(fenced, since) == []


async def test_a_revived_server_is_taken_over_by_the_commands_of_its_messages(fenced: Azure) -> None:
    system = fenced.system
    async with fenced.namespace() as namespace, _adoption(system):
        await system.create(CLAIM, claim(namespace, "orders", deletionPolicy="Delete"))
        await system.until(CLAIM, namespace, "orders", is_ready, limit_s=180)
        async with await system.login(namespace, "orders") as connection:
            await connection.execute("CREATE TABLE goods AS SELECT 'canary' AS name")
        name = await fenced.name_of(namespace, "orders")
        arm_id = (await fenced.person("GET", name))["id"]
        await fenced.person("DELETE", name)
        child = (await fenced.server_of(namespace, "orders"))["metadata"]["name"]
        await system.until(FLEXIBLE_SERVER, namespace, child, in_trouble("DatabaseLost"), limit_s=90)

        since = await fenced.mark()
        await fenced.person("PUT", name, _revival(arm_id))
        for kind in (FLEXIBLE_SERVER, SERVER_DATABASE):
            await _adopt(system, kind, namespace)
        await system.until(CLAIM, namespace, "orders", is_ready, limit_s=120)
        async with await system.login(namespace, "orders") as connection:
            rows = await (await connection.execute("SELECT name FROM goods")).fetchall()

    assert rows == [("canary",)]
    assert not {"flexibleServers.put", "databases.put"} & set(await _actions(fenced, since))


@asynccontextmanager
async def _adoption(system: System) -> AsyncIterator[None]:
    """Let the ProviderConfig allow adoptions for the length of a block."""
    path = AZURE_CONFIG.path("", "default")
    await system.api.merge(path, {"spec": {"allowAdoption": True}})
    try:
        yield
    finally:
        await system.api.merge(path, {"spec": {"allowAdoption": False}})


def _revival(arm_id: str) -> JsonObject:
    """Return the body of the PUT that `az postgres flexible-server revive-dropped` sends."""
    source = {"createMode": "ReviveDropped", "sourceServerResourceId": arm_id, "pointInTimeUTC": "2026-01-01T00:00:00Z"}
    return {"location": "uksouth", "properties": source}


async def _adopt(system: System, kind: Kind, namespace: str) -> None:
    """Give the one object of a kind the annotation that its message names."""
    (obj,) = await system.api.items(kind.path(namespace))
    name = obj["metadata"]["name"]
    shown = await system.until(kind, namespace, name, in_trouble("Replaced"), limit_s=120)
    command = re.search(r"(fairlead\.dev/adopt)='?([^'` ]+)", condition(shown, "Synced")["message"])
    assert command is not None, condition(shown, "Synced")["message"]
    await system.api.merge(kind.path(namespace, name), {"metadata": {"annotations": {command[1]: command[2]}}})
