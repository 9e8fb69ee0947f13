"""A cluster that was copied, and a namespace out of a backup: both have their databases again, each once."""

from __future__ import annotations

import asyncio
import re
import shlex

import pytest

from fairlead.cli import run
from tests.support.home import claim, move_in
from tests.support.kinds import CLAIM, CONFIG_MAP, DATABASE, SECRET, condition, in_trouble, is_ready
from tests.support.namespaces import end_namespace
from tests.support.staff import Staff

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.apiserver, pytest.mark.postgres]

INSTALLATION = CONFIG_MAP.path("fairlead-system", "fairlead-installation")
FORMER = "11111111-2222-4333-8444-555555555555"


async def run_command(staff: Staff, *arguments: str) -> int:
    return await asyncio.to_thread(run, [*arguments, "--kubeconfig", str(staff.system.plane.kubeconfig)])


async def test_a_copied_cluster_only_reads_until_the_command_of_its_message_takes_over(
    staff: Staff, namespace: str
) -> None:
    system = staff.system
    old = await move_in(system, claim(namespace, "old"))
    await staff.stop_provider()
    await system.api.merge(INSTALLATION, {"data": {"clusterUid": FORMER}})
    await staff.start_provider()
    since = system.sql.mark()

    await system.create(CLAIM, claim(namespace, "new"))
    waiting = await system.until(CLAIM, namespace, "new", in_trouble("AwaitingTakeover"))
    await old.until_out_of_sync("AwaitingTakeover")
    message = condition(waiting, "Synced")["message"]
    (command,) = re.findall(r"fairlead (takeover --from-cluster \S+)", message)
    too_early = [statement for statement in system.sql.statements(since) if "CREATE DATABASE" in statement]
    assert await run_command(staff, *shlex.split(command)) == 0
    # It runs as no Deployment here: the command says so, and a person restarts it.
    await staff.stop_provider()
    await staff.start_provider()

    await system.until(CLAIM, namespace, "new", is_ready)
    await old.until_home()
    assert too_early == []
    assert len([statement for statement in system.sql.statements(since) if "CREATE DATABASE" in statement]) == 1


async def test_a_namespace_out_of_a_backup_has_its_database_again(staff: Staff, namespace: str) -> None:
    """As backup tools restore it: objects with new uids, without owners, finalizers and status."""
    api, kinds = staff.system.api, (SECRET, DATABASE, CLAIM)
    home = await move_in(staff.system, claim(namespace, "restored", deletionPolicy="Delete"))
    async with staff.away():
        saved = [(kind, obj) for kind in kinds for obj in await api.items(kind.path(namespace))]
        await end_namespace(api, namespace)
        await staff.system.namespaced(namespace)
        for kind, obj in saved:
            kept = {name: obj["metadata"].get(name) for name in ("name", "namespace", "labels", "annotations")}
            whole = {**obj, "apiVersion": kind.api_version, "kind": kind.kind, "metadata": kept, "status": None}
            await api.create(kind.path(namespace), whole, fieldManager="velero-server")
    await home.until_home()
    await home.untouched()
