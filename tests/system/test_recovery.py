"""A cluster that was copied, and one that was made anew: the two commands by which a person has the databases again."""

from __future__ import annotations

import asyncio
import re
import shlex

import pytest

from fairlead.cli import run
from tests.support.home import claim, move_in
from tests.support.kinds import CLAIM, CONFIG_MAP, condition, in_trouble, is_ready
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
