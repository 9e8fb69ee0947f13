"""What people type while composer and provider are at work: claims waited for, a rollout paused and undone."""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final

import pytest

from apis import names
from fairlead import backups, rollouts, status, trace, waiting
from fairlead.assets import assets
from fairlead.exits import CommandError, Exit
from fairlead.kube_options import USUAL
from fairlead.printing import wrapped
from fairlead.progress import Goal
from fairlead.rollout_report import Report, lines_of
from fairlead.simulation import clouds, virtual_time
from fairlead.simulation.platform import CLAIMS, Platform
from fairlead.yaml_files import objects_in
from runtime import clock
from runtime.kube import Kube
from runtime.objects import CONFIG_MAPS, EVENTS, Key, Object, dumps, loads
from tests.simulation.cast import Cast
from tests.simulation.history import PERSON, TEAM

pytestmark = pytest.mark.slow

_ENVIRONMENT = Key("fairlead-system", "limits")
_NAME: Final = "postgres-onprem"
_DATABASE: Final = "/spec/resources/0/template/spec/forProvider"
_PAUSED: Final = """
revision 2, wave 1 of 2, is paused: 1 of 4 claims have it; remove annotation
  fairlead.dev/paused of the Composition to go on

REVISION  AGE  CLAIMS  READY  PINNED  STATE     NAME
2         60m  1       1      0       Paused    postgres-onprem-HASH
1         75m  3       3      0       Finished  postgres-onprem-HASH

waves of 1, 100%, each watched for 60 s; on failure: Halt
3 in a later wave: team/claim-N, team/claim-N, team/claim-N
"""


_WAITED: Final = """
0:0x  good: no controller has looked at its newest spec yet
0:0x  good: Creating: PostgresDatabase good-database-ssovz3dgl4 is being created
    (usually seconds)
0:0x  good: Ready
0:0x  good: nobody has deleted it yet
0:0x  good: Synced
0:0x  bad: no controller has looked at its newest spec yet
0:0x  bad: CompositionNotFound: there is no Composition 'postgres-onprm' for
    this kind, did you mean 'postgres-onprem'?; known: postgres-onprem
1:00  bad: Stalled: CompositionNotFound: there is no Composition
    'postgres-onprm' for this kind, did you mean 'postgres-onprem'?; known:
    postgres-onprem; next move: the developer (edit the claim)
0:0x  good: no controller has looked at its newest spec yet
0:0x  bad: gone
0:0x  good: Deleting: waits for PostgresDatabase good-database-ssovz3dgl4 to go
    (Delete) (usually seconds)
0:0x  good: gone
"""


_KEPT: Final = {
    "aws": """
RDSInstance db-FQWI57DFGPBPPQWHDPCD6K2NMD of claim team/orders: a backup of fl-orders-ihybl4eyns 12m ago, 20 GiB
  back: claim orders in namespace team again, with spec.restoreFrom: {claim: orders, time: '2026-11-21T12:01:02Z'}
  for good: aws rds delete-db-instance-automated-backup --dbi-resource-id db-FQWI57DFGPBPPQWHDPCD6K2NMD
RDSInstance fl-final-fl-orders-ihybl4eyns-2720709f of claim team/orders: a backup of fl-orders-ihybl4eyns 11m ago, 20
    GiB
  back: claim orders in namespace team again, with spec.restoreFrom: {claim: orders}
  for good: aws rds delete-db-snapshot --db-snapshot-identifier fl-final-fl-orders-ihybl4eyns-2720709f
""",
    "gcp": """
CloudSQLInstance projects/fairlead-devcloud/backups/1795262528499 of claim team/orders: a backup of fl-orders-2zpel65635
    10m ago, until 2027-11-21T12:02:08.499Z
  back: claim orders in namespace team again, with spec.restoreFrom: {claim: orders}
  for good: gcloud sql backups delete projects/fairlead-devcloud/backups/1795262528499
""",
    "onprem": """
PostgresDatabase retired_20261121_orders_ssovz3dgl4 of claim team/orders: retired 12h ago
  back: fairlead import write providerconfigs.onprem.fairlead.dev/default retired_20261121_orders_ssovz3dgl4 -n team
  for good: write it so, adopt it, give it spec.deletionPolicy: Delete, and delete the object
""",
}


@pytest.fixture
def platform(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Platform:
    """Return a platform to which the commands connect."""
    cloud = getattr(request, "param", "onprem")
    platform = Platform("commands", virtual_time.Trace(), clouds.described(cloud))

    @asynccontextmanager
    async def connect(_: object) -> AsyncIterator[Kube]:
        yield platform.server

    for module in (backups, rollouts, status, trace, waiting):
        monkeypatch.setattr(module, "connected", connect)
    return platform


@asynccontextmanager
async def _at_work(platform: Platform, composition: Object) -> AsyncIterator[Cast]:
    platform.install((TEAM,), [composition])
    background = platform.background()
    for process in ("composer", platform.description.provider_process):
        await platform.start(process)
    yield Cast(platform, "commands")
    for process in tuple(platform.processes):
        await platform.kill(process)
    for task in background:
        task.cancel()


def _composition() -> Object:
    (shipped,) = objects_in(assets("compositions"), "postgres-onprem.yaml")
    spec = loads(dumps(shipped["spec"])) | {"environments": ["limits"]}
    spec["resources"][0]["template"]["spec"]["forProvider"]["connectionLimit"] = "{{ env.limits.connections }}"
    spec["rollout"] = {"waves": ["1", "100%"], "soakSeconds": 60}
    return {**shipped, "spec": spec}


def test_a_rollout_is_paused_followed_and_undone(platform: Platform) -> None:
    virtual_time.run("rollout", lambda: _rolled_out(platform))


async def _rolled_out(platform: Platform) -> None:
    (resource,) = platform.description.resources
    meta = {"name": _ENVIRONMENT.name, "namespace": _ENVIRONMENT.namespace}
    limits = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": {"connections.yaml": "20"}}

    def sizes() -> dict[int, int]:
        children = platform.server.all_of(resource).values()
        return dict(Counter(child["spec"]["forProvider"]["connectionLimit"] for child in children))

    async with _at_work(platform, _composition()) as cast:
        await platform.server.create(CONFIG_MAPS, limits, manager=PERSON)
        for number in range(4):
            await cast.make(CLAIMS, Key(TEAM, f"claim-{number}"), {"version": "16", "size": "small"})
        await asyncio.sleep(900)
        await cast.edit(CONFIG_MAPS, _ENVIRONMENT, "/data/connections.yaml", "33")
        await asyncio.sleep(30)
        await rollouts.pause(_NAME, until="2h", reason="a look", server=USUAL)
        await asyncio.sleep(3600)
        paused, halfway = await _ended(), sizes()
        shown = "\n".join(line for line, _ in lines_of(paused, clock.now(), 80))
        await rollouts.resume(_NAME, server=USUAL)
        said = list[str]()
        finished = await _ended(said)
        everywhere = sizes()
        with pytest.raises(CommandError, match="had other environments: ConfigMap limits") as refused:
            await rollouts.undo(_NAME, rollouts.Undo(), USUAL)
        await rollouts.undo(_NAME, rollouts.Undo(environments=True), USUAL)
        undone, before = await _ended(), sizes()
        await cast.edit(names.COMPOSITIONS, Key("", _NAME), f"{_DATABASE}/connectionLimit", 40)
        edited = (await _ended()).exit, sizes()
        # It begins paused, and goes on when the pause ends by itself.
        await rollouts.pause(_NAME, until="30m", reason="", server=USUAL)
        await rollouts.undo(_NAME, rollouts.Undo(), USUAL)
        held = (await _ended()).phase, sizes()
        await asyncio.sleep(1800)
        again = await _ended()

    # Who is first, and the revisions' names, follow from the content that is shipped.
    shown = re.sub(r"-[0-9a-f]{10}$", "-HASH", re.sub(r"claim-\d", "claim-N", shown), flags=re.MULTILINE)
    assert shown == _PAUSED.strip("\n")
    assert (paused.phase, paused.exit, halfway) == ("Paused", Exit.NOT_READY, {20: 3, 33: 1})
    assert (finished.exit, everywhere) == (Exit.DONE, {33: 4})
    assert "revision 2, wave 1 of 2: 1 of 4 claims have it and are watched for a while (3 in a later wave)" in said
    assert refused.value.exit_code is Exit.REFUSED
    assert (undone.rows[0].number, undone.exit, before) == (3, Exit.DONE, {20: 4})
    assert edited == (Exit.DONE, {40: 4})
    assert held == ("Paused", {40: 4})
    assert (again.rows[0].number, again.exit, sizes()) == (5, Exit.DONE, {20: 4})


def test_a_claim_is_waited_for_until_it_is_ready_stalled_or_gone(platform: Platform) -> None:
    virtual_time.run("wait", lambda: _waited(platform))


async def _waited(platform: Platform) -> None:
    (shipped,) = objects_in(assets("compositions"), "postgres-onprem.yaml")
    said = list[str]()
    spec: Object = {"version": "16", "size": "small", "deletionPolicy": "Delete"}
    good, bad = Key(TEAM, "good"), Key(TEAM, "bad")

    async def wait(goal: Goal, *names: str, timeout_s: float = 600) -> Exit:
        return await waiting.wait(waiting.Wanted(names, goal, TEAM, timeout_s), said.append)

    async def watch(name: str) -> list[tuple[str, int, str]]:
        seen = list[tuple[str, int, str]]()
        async for tree in trace.traces(name, namespace=TEAM, with_events=True):
            seen += [(tree.reason, len(tree.children), "+".join(event.reason for event in tree.events))]
        return seen

    async def watch_all(states: list[dict[str, str]]) -> None:
        async for fleet in status.statuses(status.Scope(TEAM)):
            states += [{member.name: member.state.value for member in fleet.members}]

    async with _at_work(platform, shipped) as cast:
        with pytest.raises(CommandError, match="namespace taem does not exist, did you mean 'team'"):
            await status.status(status.Scope("taem"))
        states = list[dict[str, str]]()
        glancing = asyncio.create_task(watch_all(states))
        await cast.make(CLAIMS, good, spec)
        watching = asyncio.create_task(watch("good"))
        exits = [await wait("ready", "good")]
        words = (f"composition/{_NAME}", "onprempc/default", "postgresdatabase/good-database-ssovz3dgl4")
        others = [await trace.trace(word, namespace=TEAM) for word in words]
        with pytest.raises(CommandError, match="not gone within 60 s: good: nobody has deleted it yet") as late:
            await wait("gone", "good", timeout_s=60)
        await cast.make(CLAIMS, bad, {**spec, "compositionRef": {"name": "postgres-onprm"}})
        exits.append(await wait("synced", "good", "bad"))
        for key in (good, bad):
            await cast.remove(CLAIMS, key)
        exits.append(await wait("gone", "good", "bad"))
        seen = await watching
        await asyncio.sleep(5)
        glancing.cancel()

    assert exits == [Exit.DONE, Exit.STALLED, Exit.DONE]
    assert [(tree.reason, tree.owner) for tree in others] == [
        ("Accepted", ""),
        ("Connected", ""),
        ("Available", "good"),
    ]
    assert (seen[0], seen[-1][0]) == (("not seen yet", 1, ""), "Deleting")
    assert ("Available", 2, "ChildCreated") in seen
    assert states[-1] == {}
    # The database of the claim is its own, and none that was made by hand.
    assert {"good": "ready"} in states
    assert {"good": "ready", "bad": "waiting"} in states
    assert late.value.exit_code is Exit.NOT_READY
    shown = "\n".join(wrapped(line, 80) for line in said)
    assert re.sub(r"^0:0\d", "0:0x", shown, flags=re.MULTILINE) == _WAITED.strip("\n")


@pytest.mark.parametrize("platform", ["aws", "gcp", "onprem"], indirect=True)
def test_what_a_deleted_claim_keeps_is_listed_and_comes_back(platform: Platform) -> None:
    virtual_time.run("backups", lambda: _kept(platform))


async def _kept(platform: Platform) -> None:
    cloud, claim = platform.description.name, Key(TEAM, "orders")
    (shipped,) = objects_in(assets("compositions"), f"postgres-{cloud}.yaml")
    spec: Object = {"version": "16", "size": "small", "deletionPolicy": "Snapshot"}
    async with _at_work(platform, shipped) as cast:
        await cast.make(CLAIMS, claim, spec)
        await waiting.wait(waiting.Wanted(("orders",), "ready", TEAM, 7200), lambda _: None)
        await cast.remove(CLAIMS, claim)
        await waiting.wait(waiting.Wanted(("orders",), "gone", TEAM, 7200), lambda _: None)
        await asyncio.sleep(600)
        (none,) = await backups.backups("", USUAL, namespace=TEAM, claim="other")
        (account,) = await backups.backups("", USUAL, namespace=TEAM, claim="orders")
        shown = [line for item in account.kept for line in item.lines(clock.now())]
        events = [event for event in platform.server.all_of(EVENTS).values() if event["regarding"]["name"] == "orders"]
        last = max(events, key=lambda event: str(event["eventTime"]))
        end = Exit.DONE
        if cloud != "onprem":
            await cast.make(CLAIMS, claim, {**spec, "restoreFrom": {"claim": "orders"}})
            end = await waiting.wait(waiting.Wanted(("orders",), "ready", TEAM, 86400), lambda _: None)

    assert (none.kept, account.complete) == ((), True)
    assert {(item.how, item.namespace, item.claim) for item in account.kept} == {
        ("retired" if cloud == "onprem" else "a backup", TEAM, "orders")
    }
    assert "\n".join(wrapped(line, 120) for line in shown) == _KEPT[cloud].strip("\n")
    assert (last["reason"], end) == ("BackupTaken", Exit.DONE)
    assert last["note"].endswith(
        " of claim team/orders: kept (Snapshot); `fairlead backups -n team --claim orders` says how it comes back"
    )


async def _ended(said: list[str] | None = None) -> Report:
    """Follow a rollout as `rollout status` does."""
    show: Any = (said if said is not None else []).append
    return await rollouts.ended(_NAME, USUAL, 7200, show)
