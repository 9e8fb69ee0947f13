"""What becomes of an instance and of a user by the real reconciler, over the wire of a simulated Cloud SQL."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from devcloud.gcp.server import Served
from providers.gcp import DATABASES, USERS
from tests.providers.gcp.sql_world import SqlWorld
from tests.support.simulator_control import control

pytestmark = pytest.mark.slow

INSERT, PATCH, DELETE = "instances.insert", "instances.patch", "instances.delete"


async def _ready(served: Served, **parameters: Any) -> SqlWorld:
    world = SqlWorld(served)
    world.ask(parameters=parameters)
    await world.rest()
    assert world.reason("Ready") == "Available", world.get()
    return world


async def test_one_call_makes_an_instance_that_is_ours(served: Served) -> None:
    world = await _ready(served)
    assert world.changes() == [INSERT]
    assert world.reason() == "InSync"
    assert world.status["incarnation"] == world.shown()["createTime"]
    assert world.shown()["settings"]["userLabels"]["fairlead-installation"] == "home"


async def test_an_instance_at_rest_is_written_to_by_nobody(served: Served) -> None:
    world = await _ready(served, databaseFlags={"work_mem": "64MB"})
    world.forget()
    for _ in range(100):
        await world.step()
        world.pass_time(timedelta(minutes=5))
    assert world.changes() == []
    assert (world.reason("Ready"), world.reason()) == ("Available", "InSync")


EDITS: list[tuple[dict[str, Any], int]] = [
    ({"dataDiskSizeGb": 40}, 1),
    ({"backupStartTime": "05:00", "retainedBackups": 14, "queryInsightsEnabled": True}, 1),
    ({"userLabels": {"team": "shop"}}, 1),
    ({"databaseFlags": {"work_mem": "64MB"}}, 1),
    ({"tier": "db-custom-2-7680"}, 1),
    ({"edition": "ENTERPRISE_PLUS", "tier": "db-perf-optimized-N-2"}, 1),
    ({"tier": "db-custom-2-7680", "dataDiskSizeGb": 40, "sslMode": "ENCRYPTED_ONLY"}, 1),
]


@pytest.mark.parametrize(("edit", "calls"), EDITS, ids=[str(row[0]) for row in EDITS])
async def test_an_edit_is_carried_out_by_as_few_calls_as_cloud_sql_allows(
    served: Served, edit: dict[str, Any], calls: int
) -> None:
    world = await _ready(served)
    world.forget()
    world.ask(parameters=edit, maintenance={"apply": "Immediate"})
    await world.rest()
    assert world.changes() == [PATCH] * calls
    assert world.reason() == "InSync", world.get()


async def test_an_edit_that_restarts_waits_for_the_window(served: Served) -> None:
    world = await _ready(served, maintenanceDay=7, maintenanceHour=3)
    world.forget()
    world.ask(parameters={"maintenanceDay": 7, "maintenanceHour": 3, "tier": "db-custom-2-7680"})
    await world.rest()
    assert world.reason() == "WaitingForWindow"
    assert world.changes() == []
    while not (world.now.isoweekday() == 7 and world.now.hour == 3):
        world.pass_time(timedelta(minutes=30))
    await world.rest()
    assert world.changes() == [PATCH]
    assert world.reason() == "InSync"


async def test_a_major_version_wants_a_consent(served: Served) -> None:
    world = await _ready(served)
    world.forget()
    world.ask(parameters={"databaseVersion": "POSTGRES_17"}, maintenance={"apply": "Immediate"})
    await world.rest()
    assert (world.reason(), world.changes()) == ("HeldChange", [])
    world.annotate(consent="databaseVersion=POSTGRES_17")
    await world.rest()
    assert world.changes() == [PATCH]
    assert world.shown()["databaseVersion"] == "POSTGRES_17"


DRIFTS: list[tuple[dict[str, Any], str]] = [
    ({"settings": {"backupConfiguration": {"enabled": False}}}, "InSync"),
    ({"settings": {"deletionProtectionEnabled": True}}, "InSync"),
    ({"settings": {"tier": "db-custom-4-15360"}}, "DriftHeld"),
]


@pytest.mark.parametrize(("drift", "reason"), DRIFTS, ids=[str(row[0]) for row in DRIFTS])
async def test_drift_is_put_back_or_held_by_its_class(served: Served, drift: dict[str, Any], reason: str) -> None:
    world = await _ready(served)
    world.forget()
    world.steer(set=drift)
    await world.rest()
    assert world.reason() == reason
    assert world.changes() == ([PATCH] if reason == "InSync" else [])


async def test_a_disk_that_grew_by_itself_is_listed_and_left(served: Served) -> None:
    world = await _ready(served)
    world.forget()
    world.steer(grow=60)
    await world.rest()
    assert (world.reason(), world.changes()) == ("InSync", [])
    assert world.status["atProvider"]["dataDiskSizeGb"] == 60


async def test_an_edition_that_is_never_shown_is_sent_once(served: Served) -> None:
    control(served, "POST", "behaviour", {"dropped_settings": ["edition"]})
    world = await _ready(served)
    await world.for_hours(2)
    assert world.changes() == [INSERT]


async def test_a_stopped_instance_is_started_where_the_spec_says_so(served: Served) -> None:
    world = await _ready(served)
    world.forget()
    world.steer(set={"settings": {"activationPolicy": "NEVER"}})
    await world.rest()
    assert world.changes() == [PATCH]
    assert (world.reason("Ready"), world.shown()["settings"]["activationPolicy"]) == ("Available", "ALWAYS")


async def test_a_stopped_instance_stays_stopped_where_the_spec_says_nothing(served: Served) -> None:
    world = await _ready(served, activationPolicy=None)
    world.forget()
    world.steer(set={"settings": {"activationPolicy": "NEVER"}})
    await world.rest()
    assert (world.reason("Ready"), world.changes()) == ("DatabaseStopped", [])


REFUSED = [("instances.*", "notAuthorized", 403), ("instances.*", "internalError", 500), ("*", "authError", 401)]


@pytest.mark.parametrize(("action", "code", "status"), REFUSED)
async def test_nothing_is_made_or_deleted_on_a_refusal(served: Served, action: str, code: str, status: int) -> None:
    world = await _ready(served)
    world.forget()
    world.fail(action, code, status=status)
    for _ in range(5):
        await world.step()
        world.pass_time(timedelta(minutes=2))
    world.delete()
    for _ in range(5):
        await world.step()
        world.pass_time(timedelta(minutes=2))
    world.heal()
    assert world.get() is not None
    assert [instance["name"] for instance in control(served, "GET", "instances")] == [world.name]


async def test_a_silent_region_makes_nothing_absent(served: Served) -> None:
    world = await _ready(served)
    world.behave(unreachable_regions=["europe-west1"], forbidden_when_gone=["*"])
    world.forget()
    world.steer(vanish=True)
    await world.for_hours(1)
    assert world.changes() == []
    assert world.reason() == "CloudUnreachable"


async def test_an_operation_that_fails_at_its_end_is_said_and_not_repeated(served: Served) -> None:
    world = await _ready(served)
    world.forget()
    failure = {"kind": "UPDATE", "code": "ERROR_RDBMS", "message": "The flag is not known.", "times": None}
    control(served, "POST", "operations", failure)
    world.ask(parameters={"databaseFlags": {"work_mem": "64MB"}})
    await world.for_hours(5)
    assert world.reason() == "InvalidValue"
    assert "The flag is not known" in world.condition()["message"]
    assert len(world.changes()) <= 3
    control(served, "DELETE", "operations")


async def test_a_lost_instance_is_never_replaced_by_an_empty_one(served: Served) -> None:
    world = await _ready(served)
    world.forget()
    world.steer(vanish=True)
    await world.for_hours(1)
    assert (world.reason(), world.changes()) == ("DatabaseLost", [])


async def test_another_instance_of_the_name_is_only_read(served: Served) -> None:
    world = await _ready(served)
    world.forget()
    world.steer(replace=True)
    await world.for_hours(1)
    assert (world.reason(), world.changes()) == ("Replaced", [])


async def _deleted(world: SqlWorld, policy: str) -> None:
    world.ask(deletionPolicy=policy)
    await world.rest()
    world.forget()
    world.delete()
    await world.rest()


async def test_a_snapshot_is_a_final_backup_that_outlives_the_instance(served: Served) -> None:
    world = await _ready(served)
    await _deleted(world, "Snapshot")
    assert world.get() is None
    assert world.changes() == [DELETE]
    assert len(control(served, "GET", "backups")) == 1


async def test_a_final_backup_that_fails_keeps_the_finalizer(served: Served) -> None:
    world = await _ready(served)
    world.behave(failing_backups=["*"])
    world.ask(deletionPolicy="Snapshot")
    await world.rest()
    world.delete()
    await world.for_hours(1)
    assert world.get() is not None
    assert world.reason() == "BackupImpossible"


async def test_a_deletion_leaves_nothing(served: Served) -> None:
    world = await _ready(served)
    await _deleted(world, "Delete")
    assert world.get() is None
    assert world.changes() == [DELETE]
    assert control(served, "GET", "instances") == []


async def test_an_orphan_lives_on_with_a_label(served: Served) -> None:
    world = await _ready(served)
    await _deleted(world, "Orphan")
    assert world.get() is None
    assert world.changes() == [PATCH]


async def test_a_protected_instance_waits_in_words_and_goes_once_the_spec_says_so(served: Served) -> None:
    world = await _ready(served, deletionProtectionEnabled=True)
    world.forget()
    world.delete()
    for _ in range(5):
        await world.step()
        world.pass_time(timedelta(minutes=1))
    assert (world.reason(), world.changes()) == ("DeleteBlocked", [])
    world.ask(parameters={"deletionProtectionEnabled": False})
    await world.rest()
    assert world.get() is None
    assert world.changes() == [PATCH, DELETE]


async def test_an_instance_of_a_person_is_not_taken(served: Served) -> None:
    world = await _ready(served)
    labels = world.shown()["settings"]["userLabels"]
    world.steer(set={"settings": {"userLabels": dict.fromkeys(labels)}})
    other = SqlWorld(served)
    other.ask()
    other.forget()
    await other.rest()
    assert (other.reason(), other.changes()) == ("NotOwned", [])


async def _child(served: Served, kind: Any, **spec: Any) -> tuple[SqlWorld, SqlWorld]:
    server = await _ready(served)
    child = SqlWorld(served, kind=kind, spec={"instance": server.name, "name": "app", **spec})
    child.now = server.now
    child.ask()
    return server, child


async def test_a_database_is_made_inside_and_stays_with_its_instance(served: Served) -> None:
    server, database = await _child(served, DATABASES)
    server.forget()
    await database.rest()
    assert (database.reason("Ready"), database.changes()) == ("Available", ["databases.insert"])
    database.ask(deletionPolicy="Snapshot")
    await database.rest()
    database.delete()
    await database.rest()
    assert database.get() is None
    assert database.changes() == ["databases.insert"]


async def test_a_user_publishes_a_connection_and_rotates_its_password(served: Served) -> None:
    server, user = await _child(served, USERS)
    server.forget()
    await user.rest()
    assert user.reason("Ready") == "Available", user.get()
    assert user.changes() == ["users.insert"]
    first, connection = user.secret, user.status["connection"]
    assert (connection["username"], connection["sslmode"]) == ("app", "verify-ca")
    assert first["ca.crt"].startswith("-----BEGIN CERTIFICATE-----")
    user.ask(passwordRotation={"token": "1"})
    await user.rest()
    assert user.changes() == ["users.insert", "users.update"]
    assert user.secret["current"] not in {"", first["current"]}


async def test_a_user_of_iam_has_no_password(served: Served) -> None:
    _, user = await _child(served, USERS, type="CLOUD_IAM_USER", name="dev@example.com")
    await user.rest()
    assert user.reason("Ready") == "Available", user.get()
    assert "passwordRef" not in user.status.get("connection", {})
