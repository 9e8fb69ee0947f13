"""A claim in a namespace of Azure: its server, database, rules and parameters, a login; by roles that allow no more."""

import asyncio
import re
import secrets
from collections.abc import Mapping
from datetime import datetime, timedelta

import psycopg
import pytest

from tests.support.api import JsonObject
from tests.support.azure import (
    CONFIGURATION,
    FIREWALL_RULE,
    FLEXIBLE_SERVER,
    SERVER_DATABASE,
    Azure,
)
from tests.support.connections import relayed
from tests.support.kinds import CLAIM, EVENT, claim, is_ready
from tests.support.waiting import eventually

INSIDE, OUTSIDE = "127.0.0.1", "127.0.0.2"
"""Addresses of clients of which a rule lets in the first."""


async def actions_of(azure: Azure, since: int) -> list[str]:
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


async def live(azure: Azure) -> None:
    """Serve a claim by its rules, edit it, put drift back, rotate its password, and take it away."""
    system = azure.system
    async with azure.namespace() as namespace:
        since = await azure.mark()
        spec = {
            "parameters": {"work_mem": "8MB"},
            "network": {"public": True, "allowedCIDRs": [f"{INSIDE}/32"]},
            "deletionPolicy": "Delete",
        }
        await system.create(CLAIM, claim(namespace, "orders", **spec))
        made = await system.until(CLAIM, namespace, "orders", is_ready, limit_s=180)

        actions = await actions_of(azure, since)
        assert actions[0] == "flexibleServers.put"
        assert sorted(actions[1:]) == ["configurations.put", "databases.put", "firewallRules.put"]
        binding = await system.binding(namespace, "orders")
        assert (binding["provider"], binding["database"], binding["username"]) == ("azure", "orders", "orders_app")
        assert binding["sslmode"] == "verify-full"
        assert made["status"]["endpoint"] == binding["host"]
        async with await system.login(namespace, "orders") as connection:
            await connection.execute("CREATE TABLE goods AS SELECT 'canary' AS name")
        name = await azure.name_of(namespace, "orders")
        assert (await azure.properties(f"{name}/configurations/work_mem"))["value"] == "8192"

        await _only_the_rules_addresses_get_in(azure, binding)
        await _a_lost_rule_comes_back(azure, namespace, name, binding)
        await _edits_and_drift_are_one_call_each(azure, namespace, name)
        await _a_new_password_ends_the_old_one(azure, namespace)
        await _delete_takes_the_server(azure, namespace, name)


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
    assert await actions_of(azure, since) == ["firewallRules.put"]
    assert place.startswith(f"{name}/firewallRules/")


async def _edits_and_drift_are_one_call_each(azure: Azure, namespace: str, name: str) -> None:
    """Prove that an edit of a parameter reaches the parameter alone, and that a person's change is put back."""
    await azure.system.until(CLAIM, namespace, "orders", is_ready, limit_s=90)
    since = await azure.mark()
    await azure.system.edit(CLAIM, namespace, "orders", {"spec": {"parameters": {"work_mem": "16MB"}}})
    await azure.until_properties(f"{name}/configurations/work_mem", lambda shown: shown["value"] == "16384")
    await azure.system.until(CLAIM, namespace, "orders", is_ready, limit_s=90)
    assert await actions_of(azure, since) == ["configurations.put"]

    await azure.person("PATCH", name, {"properties": {"backup": {"backupRetentionDays": 12}}})
    await azure.until_properties(name, lambda shown: shown["backup"]["backupRetentionDays"] == 7)
    server = await azure.server_of(namespace, "orders")

    def is_reported(obj: JsonObject) -> bool:
        return is_ready(obj) and any(
            (entry["path"], entry["action"]) == ("backupRetentionDays", "Corrected")
            for entry in obj["status"].get("drift") or ()
        )

    await azure.system.until(FLEXIBLE_SERVER, namespace, server["metadata"]["name"], is_reported, limit_s=90)
    assert await actions_of(azure, since) == ["configurations.put", "flexibleServers.patch"]


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
    assert await actions_of(azure, since) == ["flexibleServers.patch"]


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
