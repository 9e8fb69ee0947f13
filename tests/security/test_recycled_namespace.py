"""A namespace is its uid: who gets a namespace of an old name gets none of the former tenant's data."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
import pytest_asyncio

from tests.support.api import JsonObject
from tests.support.aws import Aws, at_work
from tests.support.home import until_gone
from tests.support.kinds import CLAIM, NAMESPACE, condition, is_ready
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


async def test_no_backup_of_a_namespace_is_restored_by_its_new_owner_or_by_a_neighbour(serving: Aws) -> None:
    system, namespace = serving.system, "teamx"
    await _new_namespace(serving, namespace)
    async with tenant(system, namespace) as former:
        await former.claim("db", deletionPolicy="Snapshot", **_LOGIN)
        await system.until(CLAIM, namespace, "db", is_ready, limit_s=_LIMIT_S)
        async with await system.login(namespace, "db") as connection:
            await connection.execute("CREATE TABLE kept AS SELECT 'canary of the former tenant' AS note")
        await former.api.delete(CLAIM.path(namespace, "db"))
        await until_gone(system, CLAIM.path(namespace, "db"))
    since = await serving.mark()
    snapshots = (await serving.person("describe_db_snapshots", SnapshotType="manual"))["DBSnapshots"]
    [final] = [snapshot["DBSnapshotArn"] for snapshot in snapshots]
    async with serving.namespace() as other:
        await _is_refused(system, other, _sources(final))
    await system.api.delete(NAMESPACE.path("", namespace))
    await until_gone(system, NAMESPACE.path("", namespace))
    await _new_namespace(serving, namespace)
    # The new tenant has what ties a backup to a namespace; the other ways are those of any neighbour.
    await _is_refused(system, namespace, {name: _sources(final)[name] for name in ("by-claim", "by-arn")})

    assert [call for call in await serving.changes(since) if call["action"].startswith("Restore")] == []


def _sources(arn: str) -> dict[str, JsonObject]:
    """Return every way in which a claim can name the former claim and its backups."""
    name = arn.rpartition(":")[2]
    return {
        "by-claim": {"claim": "db"},
        "by-arn": {"backup": arn},
        "by-name": {"backup": name},
        "by-upper": {"backup": name.upper()},
        "by-automated": {"backup": "rds:fl-db-2026-11-22-03-58"},
    }


async def _is_refused(system: System, namespace: str, sources: Mapping[str, JsonObject]) -> None:
    """Have a tenant of the namespace name these sources; none makes a database."""
    async with tenant(system, namespace) as attacker:
        for called, source in sources.items():
            await attacker.claim(called, restoreFrom=source, **_LOGIN)
        for called in sources:
            await system.until(CLAIM, namespace, called, _has_no_source, limit_s=_LIMIT_S)


def _has_no_source(obj: JsonObject) -> bool:
    """Return whether a claim has no database because its source is not there for it, or is not its own."""
    ready = condition(obj, "Ready")
    return ready.get("status") == "False" and ready["reason"] in {"AdoptionRefused", "ReferenceNotFound"}
