"""A namespace is its uid: who gets a namespace of an old name gets none of the former tenant's data."""

from __future__ import annotations

import pytest
import pytest_asyncio

from tests.support.api import JsonObject
from tests.support.aws import Aws, at_work
from tests.support.home import until_gone
from tests.support.kinds import CLAIM, NAMESPACE, claim, condition, is_ready
from tests.support.system import System
from tests.support.tenants import tenant

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.apiserver, pytest.mark.rds]

_LIMIT_S = 120.0
_LOGIN = {"databaseName": "orders", "username": "orders_app"}


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def serving(alone: System, shared_aws: Aws) -> Aws:
    del alone
    await at_work(shared_aws)
    return shared_aws


async def _new_namespace(aws: Aws, name: str) -> None:
    await aws.system.namespaced(name)
    await aws.system.api.merge(NAMESPACE.path("", name), {"metadata": {"labels": {"cloud": "aws"}}})


async def test_a_namespaces_new_owner_restores_no_backup_of_the_former_one(serving: Aws) -> None:
    system, namespace = serving.system, "teamx"
    await _new_namespace(serving, namespace)
    async with tenant(system, namespace) as former:
        await former.claim("db", deletionPolicy="Snapshot", **_LOGIN)
        await system.until(CLAIM, namespace, "db", is_ready, limit_s=_LIMIT_S)
        async with await system.login(namespace, "db") as connection:
            await connection.execute("CREATE TABLE kept AS SELECT 'canary of the former tenant' AS note")
        await former.api.delete(CLAIM.path(namespace, "db"))
        await until_gone(system, CLAIM.path(namespace, "db"))
    await system.api.delete(NAMESPACE.path("", namespace))
    await until_gone(system, NAMESPACE.path("", namespace))

    await _new_namespace(serving, namespace)
    since = await serving.mark()
    snapshots = (await serving.person("describe_db_snapshots", SnapshotType="manual"))["DBSnapshots"]
    [final] = [snapshot["DBSnapshotIdentifier"] for snapshot in snapshots]
    async with tenant(system, namespace) as newcomer:
        await newcomer.claim("heir", restoreFrom={"claim": "db"}, **_LOGIN)
        await newcomer.claim("by-name", restoreFrom={"backup": final}, **_LOGIN)
        for name in ("heir", "by-name"):
            await system.until(CLAIM, namespace, name, _is_refused, limit_s=_LIMIT_S)

    restored = [call for call in await serving.changes(since) if call["action"].startswith("Restore")]
    assert restored == []


async def test_a_neighbour_restores_no_backup_of_another_namespace(serving: Aws) -> None:
    system = serving.system
    async with serving.namespace() as victim, serving.namespace() as other:
        await system.create(CLAIM, claim(victim, "db", deletionPolicy="Snapshot", **_LOGIN))
        await system.until(CLAIM, victim, "db", is_ready, limit_s=_LIMIT_S)
        await system.delete(CLAIM, victim, "db")
        snapshots = (await serving.person("describe_db_snapshots", SnapshotType="manual"))["DBSnapshots"]
        [final] = [
            snapshot["DBSnapshotArn"]
            for snapshot in snapshots
            if victim in snapshot["DBSnapshotIdentifier"] + str(snapshot)
        ]
        since = await serving.mark()
        sources: dict[str, JsonObject] = {
            "by-claim": {"claim": "db"},
            "by-arn": {"backup": final},
            "by-name": {"backup": final.rpartition(":")[2]},
            "by-upper": {"backup": final.rpartition(":")[2].upper()},
            "by-automated": {"backup": "rds:fl-db-2026-11-22-03-58"},
        }
        async with tenant(system, other) as attacker:
            for name, source in sources.items():
                await attacker.claim(name, restoreFrom=source, **_LOGIN)
            for name in sources:
                await system.until(CLAIM, other, name, _is_refused, limit_s=_LIMIT_S)

        assert [call for call in await serving.changes(since) if call["action"].startswith("Restore")] == []


def _is_refused(obj: JsonObject) -> bool:
    """Return whether a claim has no database because its source is not there for it, or is not its own."""
    ready = condition(obj, "Ready")
    return ready.get("status") == "False" and ready["reason"] in {"AdoptionRefused", "ReferenceNotFound"}
