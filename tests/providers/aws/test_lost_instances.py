"""A lost instance is restored by consent from a snapshot or from automated backups of its own, over RDS's wire."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import timedelta
from typing import Any

import msgspec
import pytest

from devcloud.aws.server import Served
from providers.aws.account import AwsAccount, connect
from providers.aws.config import ProviderConfigSpec
from providers.aws.tag_lists import tags_of
from providers.external.ownership import owner_of
from runtime.objects import NAMESPACES, Key
from tests.providers.aws.rds_world import RdsPaced, RdsWorld
from tests.providers.paced import texts

pytestmark = pytest.mark.rds
HOUR = timedelta(hours=1)


@asynccontextmanager
async def _person(world: RdsWorld) -> AsyncIterator[AwsAccount]:
    """Somebody with the account's keys."""
    async with connect(msgspec.convert(world.config(), ProviderConfigSpec), {"keys": world.keys}) as account:
        yield account


async def _lost(served: Served, **deletion: Any) -> tuple[RdsWorld, RdsPaced]:
    """Return a world whose instance somebody deleted."""
    world = RdsWorld(served)
    paced = RdsPaced(world)
    world.ask(parameters={"backupRetentionPeriod": 7, "dbName": "orders"}, deletionPolicy="Snapshot")
    await paced.settle()
    await paced.until(world.now + HOUR)
    await paced.settle()
    async with _person(world) as person:
        name = world.external_name
        await person.call("delete_db_instance", "delete it", DBInstanceIdentifier=name, **deletion)
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


async def test_snapshot_of_another_instance_or_namespace_is_refused_with_those_that_there_are(
    stopped: Served,
) -> None:
    final = {"SkipFinalSnapshot": False, "FinalDBSnapshotIdentifier": "by-hand", "DeleteAutomatedBackups": True}
    world, paced = await _lost(stopped, **final)
    namespace = world.kube.objects[NAMESPACES, Key("", "team")]["metadata"]["uid"]
    ours = owner_of(world.get() or {}, "home", namespace)
    foreign = {
        "another": replace(ours, identity="uid-9", claim="fedcba9876543210", name="other"),
        "former": replace(ours, namespace_uid="uid-of-a-former-one"),
        "untagged": None,
    }
    async with _person(world) as person:
        for name, owner in foreign.items():
            await person.call("create_db_instance", "make it", DBInstanceIdentifier=f"fl-{name}", Engine="postgres",
                              DBInstanceClass="db.t4g.micro", AllocatedStorage=20, MasterUsername="app",
                              MasterUserPassword="Sufficient-1", CopyTagsToSnapshot=True,
                              Tags=[] if owner is None else tags_of(owner))  # fmt: skip
        paced.move_on(HOUR)
        for name in foreign:
            await person.call(
                "create_db_snapshot", "take it", DBSnapshotIdentifier=f"of-{name}", DBInstanceIdentifier=f"fl-{name}"
            )
        paced.move_on(HOUR)
    paced.forget()
    for named in (*(f"of-{name}" for name in foreign), "of-nobody"):
        world.annotate(consent=f"restore={named}")
        paced.wake()
        await paced.until(world.now + timedelta(minutes=1))
        said = " ".join(texts(world.get()))
        assert (world.reason("Ready"), paced.calls()) == ("DatabaseLost", 0)
        assert f"{named} is no backup of it that this namespace may have" in said
        assert "its backups, the newest first: by-hand;" in said

    # The platform may agree to that of the namespace's former owner by its name.
    world.annotate(consent="restore=of-former,restoreFrom=of-former")
    paced.wake()
    await paced.settle()
    assert (paced.calls("RestoreDBInstanceFromDBSnapshot"), paced.calls("CreateDBInstance")) == (1, 0)
