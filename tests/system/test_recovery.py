"""A cluster that was copied, and one that was made anew: the two commands by which a person has the databases again."""

from __future__ import annotations

import asyncio
import re
import shlex

import msgspec
import pytest

from fairlead.cli import run
from tests.support.home import claim, move_in, poke, until_gone
from tests.support.kinds import CLAIM, CONFIG_MAP, NAMESPACE, PROVIDER_CONFIG, condition, in_trouble, is_ready
from tests.support.staff import Staff

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.apiserver, pytest.mark.postgres]

INSTALLATION = CONFIG_MAP.path("fairlead-system", "fairlead-installation")
FORMER = "11111111-2222-4333-8444-555555555555"


async def _run(staff: Staff, *arguments: str) -> int:
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
    assert await _run(staff, *shlex.split(command)) == 0
    # It runs as no Deployment here: the command says so, and a person restarts it.
    await staff.stop_provider()
    await staff.start_provider()

    await system.until(CLAIM, namespace, "new", is_ready)
    await old.until_home()
    assert too_early == []
    assert len([statement for statement in system.sql.statements(since) if "CREATE DATABASE" in statement]) == 1


async def test_claims_that_come_anew_have_their_databases_again_by_one_command(staff: Staff) -> None:
    system = staff.system
    installation = (await system.api.get(INSTALLATION))["data"]["id"]
    async with system.namespace() as namespace:
        bodies = [claim(namespace, name, deletionPolicy="Delete") for name in ("first", "second")]
        homes = [await move_in(system, body) for body in bodies]
        await system.api.delete(NAMESPACE.path("", namespace))
        await until_gone(system, NAMESPACE.path("", namespace))
        await system.namespaced(namespace)
        for body in bodies:
            await system.create(CLAIM, body)
        for home in homes:
            await home.until_stalled("PredecessorFound")
        await system.api.merge(PROVIDER_CONFIG.path("", "default"), {"spec": {"allowAdoption": True}})

        assert await _run(staff, "adopt", "--installation", installation) == 0

        for home in homes:
            # The passwords went with the namespace's Secrets.
            await home.until_stalled("PasswordUnknown")
            await system.api.merge(home.path, {"spec": {"passwordRotation": {"token": "adopted"}}})
            await home.until_home()
            assert (home.creates(), home.drops()) == (1, 0)


async def test_a_database_that_outlives_its_claim_is_listed_on_request_and_nothing_is_listed_at_rest(
    staff: Staff, namespace: str, capsys: pytest.CaptureFixture[str]
) -> None:
    system = staff.system
    left, living = [
        await move_in(system, claim(namespace, name, deletionPolicy="Orphan")) for name in ("left", "living")
    ]
    await left.delete()

    assert await _run(staff, "orphans", "onprempc/default", "-o", "json") == 0
    (account,) = msgspec.json.decode(capsys.readouterr().out)["accounts"]
    before = await system.api.get(PROVIDER_CONFIG.path("", "default"))
    await poke(system, living.path)
    await living.until_home()

    assert account["complete"] is True
    named = {item["name"]: item for item in account["items"]}
    assert living.database not in named
    assert named[left.database]["claim"] == "left"
    assert named[left.database]["namespace"] == namespace
    after = await system.api.get(PROVIDER_CONFIG.path("", "default"))
    assert after["status"]["orphans"] == before["status"]["orphans"]
    assert after["status"]["lastHandledReconcileAt"].startswith("orphans-")
