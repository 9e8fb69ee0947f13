"""A lost instance is restored by consent from a snapshot or from automated backups of its own, over RDS's wire."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from botocore.credentials import Credentials

from devcloud.aws.server import Served
from providers.aws.account import Clients
from tests.providers.aws.rds_world import RdsPaced, RdsWorld
from tests.providers.paced import texts

pytestmark = pytest.mark.rds
HOUR = timedelta(hours=1)


async def _lost(served: Served, **deletion: Any) -> tuple[RdsWorld, RdsPaced]:
    """Return a world whose instance somebody deleted."""
    world = RdsWorld(served)
    paced = RdsPaced(world)
    world.ask(parameters={"backupRetentionPeriod": 7, "dbName": "orders"}, deletionPolicy="Snapshot")
    await paced.settle()
    await paced.until(world.now + HOUR)
    await paced.settle()
    person = Clients("eu-west-1", served.url).make("rds", Credentials(*served.credentials))
    person.delete_db_instance(DBInstanceIdentifier=world.external_name, **deletion)
    paced.move_on(HOUR)
    paced.wake()
    await paced.until(world.now + timedelta(minutes=10))
    assert world.reason("Ready") == "DatabaseLost"
    paced.forget()
    return world, paced


def _incarnation(world: RdsWorld) -> str:
    return str((world.get() or {})["metadata"]["annotations"]["fairlead.dev/incarnation"])


@pytest.mark.parametrize("source", ["a snapshot", "automated backups"])
async def test_lost_instance_is_restored_under_its_name(stopped: Served, source: str) -> None:
    final = {"SkipFinalSnapshot": False, "FinalDBSnapshotIdentifier": "by-hand", "DeleteAutomatedBackups": True}
    kept = {"SkipFinalSnapshot": True, "DeleteAutomatedBackups": False}
    world, paced = await _lost(stopped, **(final if source == "a snapshot" else kept))
    name, lost, password = world.external_name, _incarnation(world), world.secret["current"]
    backup = "by-hand" if source == "a snapshot" else lost
    assert f"fairlead.dev/consent=restore={backup}" in " ".join(texts(world.get()))

    since = len(paced.conditions)
    world.annotate(consent=f"restore={backup}")
    paced.wake()
    await paced.settle()

    action = "RestoreDBInstanceFromDBSnapshot" if source == "a snapshot" else "RestoreDBInstanceToPointInTime"
    assert (paced.calls(action), paced.calls("CreateDBInstance"), paced.crashes) == (1, 0, 0)
    assert world.external_name == name
    assert _incarnation(world) != lost
    status = (world.get() or {})["status"]
    assert status["usedConsents"] == [f"restore={backup}"]
    assert status["connection"]["database"] == "orders"
    assert "restoring" not in status
    assert "Ready=False Restoring" in paced.reported(since)
    # What applications have goes on to count.
    assert world.secret["current"] == password
    assert paced.calls("ModifyDBInstance") >= 1
