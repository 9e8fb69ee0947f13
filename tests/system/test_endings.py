"""An end with something in its way: nothing hangs in silence, nothing is destroyed unasked, all ends in time."""

from __future__ import annotations

import asyncio
import re

import psycopg
import pytest

from tests.support.api import Api, JsonObject
from tests.support.home import Home, claim, move_in, until_gone
from tests.support.kinds import (
    CLAIM,
    DATABASE,
    EVENT,
    PROVIDER_CONFIG,
    SECRET,
    condition,
    in_trouble,
)
from tests.support.staff import Staff
from tests.support.system import ADMIN_SECRET
from tests.support.waiting import eventually

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.apiserver, pytest.mark.postgres]

LIMIT_S = 120.0


async def test_a_refused_deletion_is_reported_with_blocker_error_since_when_and_the_next_try(
    staff: Staff, namespace: str
) -> None:
    system = staff.system
    home = await move_in(system, claim(namespace, "blocked", deletionPolicy="Delete"))
    child = (await home.child())["metadata"]["name"]

    # The superuser's session is one that the provider's login may not end.
    session = await psycopg.AsyncConnection.connect(system.server.server.superuser_conninfo(home.database))
    async with session:
        await system.api.delete(home.path)
        held = await home.until_stalled("DeleteBlocked")
        text = condition(held, "Stalled")["message"]
        assert child in text
        assert "sessions are still open in database" in text
        assert re.search(r"since \d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ, tried again within 5 minutes", text), text
        assert home.drops() == 0
    await system.ask_for_a_pass(DATABASE, namespace, child)

    await until_gone(system, home.path)
    assert home.drops_carried_out() == 1
    assert await home.names() == []
    audited = [line for line in staff.composer.text().splitlines() if child in line and '"audit"' in line]
    assert ["ChildDeleted" in line and "the claim is being deleted (Delete)" in line for line in audited] == [True]


async def test_dead_credentials_hold_what_is_to_be_destroyed_and_release_an_orphan(
    staff: Staff, namespace: str
) -> None:
    system = staff.system
    orphan, doomed = await asyncio.gather(
        *(move_in(system, claim(namespace, policy.lower(), deletionPolicy=policy)) for policy in ("Orphan", "Delete"))
    )
    child = await doomed.child()
    secret = SECRET.path("fairlead-onprem", ADMIN_SECRET)
    await system.api.merge(secret, {"stringData": {"password": "of-yesterday"}})
    try:
        await system.until(PROVIDER_CONFIG, "", "default", in_trouble("CredentialsInvalid"))
        await asyncio.gather(*(system.api.delete(home.path) for home in (orphan, doomed)))

        await until_gone(system, orphan.path)
        await orphan.untouched()
        notes = await _notes(system.api, namespace, "LetGo")
        assert any(orphan.database in note and "stays" in note for note in notes), notes
        await until_said(doomed, "CredentialsInvalid")
        held = await system.api.get(DATABASE.path(namespace, child["metadata"]["name"]))
        assert held["metadata"]["finalizers"] == ["fairlead.dev/teardown"]
        await doomed.untouched()
    finally:
        await system.api.merge(secret, {"stringData": {"password": system.server.password}})

    await until_gone(system, doomed.path)
    assert await doomed.names() == []
    await orphan.untouched()


async def until_said(home: Home, reason: str) -> None:
    def says(obj: JsonObject) -> bool:
        return "deletionTimestamp" in obj["metadata"] and condition(obj, "Synced").get("reason") == reason

    await home.system.until(CLAIM, home.namespace, home.name, says, limit_s=LIMIT_S)


async def _notes(api: Api, namespace: str, reason: str) -> list[str]:
    async def notes() -> list[str]:
        return [event["note"] for event in await api.items(EVENT.path(namespace)) if event["reason"] == reason]

    return await eventually(notes, f"an event {reason}")
