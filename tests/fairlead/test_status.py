"""What `fairlead status` shows of a fleet, in an API server in memory: the screen at two widths, and its exit code."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest

from apis import names
from fairlead.exits import Exit
from fairlead.fleet import Fleet, Listed, fleet_of
from fairlead.status import By, Scope, json_of, kinds_of, lines_of, looked_at
from runtime.objects import Resource
from tests.composer.factories import CLAIMS, DATABASES
from tests.support.memory_kube import MemoryKube

NOW = datetime.fromisoformat("2026-11-28T12:00:00Z")
CONFIGS = Resource("onprem.fairlead.dev", "v1alpha1", "ProviderConfig", "providerconfigs", namespaced=False)
LOST = 'database "orders_x" is gone from the server; consent with recreate=16384 to start empty, or restore it by hand'
NARROW = """
6 claims, 1 managed resource made by hand: 3 need a person

COMPOSITION      ALL  READY  ROLLING OUT  WAITING  PAUSED  STALLED
-                2    0      0            0        0       2
postgres-onprem  5    1      1            2        1       0

SINCE  STATE        MOVE       REASON
3d     stalled      developer  CompositionNotFound
       PostgreSQLInstance shop/typing: there is no Composition
2d     stalled      platform   DatabaseLost
       PostgresDatabase shop/by-hand: database "orders_x" is gone from the
       server; consent with recreate=16384 to start empty, or restore it by hand
60m    stalled      platform   RolloutHalted
       Composition postgres-other: claim shop/a failed
90m    paused       anyone     Paused
       PostgreSQLInstance shop/resting: disk exchange
6m     waiting      cloud      Creating
       PostgreSQLInstance shop/new and 1 more: being made
-      rolling out  fairlead   RollingOut
       PostgreSQLInstance shop/older: revision r2 has not come to it yet

onprem/default: 2 databases deleted or interrupted within the hour, which the
  destroy rate limit counts
onprem/default: 1 orphan when the account was listed last; `fairlead orphans`
  lists it now
"""


def conditions(reason: str, since: str, message: str = "", **types: str) -> list[dict[str, Any]]:
    return [
        {"type": type_, "status": status, "reason": reason, "message": message, "lastTransitionTime": since}
        for type_, status in types.items()
    ]


BROAD = """
6 claims, 1 managed resource made by hand: 3 need a person

NAMESPACE  ALL  READY  ROLLING OUT  WAITING  PAUSED  STALLED
shop       7    1      1            2        1       2

SINCE  STATE        MOVE       REASON               OBJECT
3d     stalled      developer  CompositionNotFound  PostgreSQLInstance shop/typing
       there is no Composition
2d     stalled      platform   DatabaseLost         PostgresDatabase shop/by-hand
       database "orders_x" is gone from the server; consent with recreate=16384 to start empty, or restore it by hand
60m    stalled      platform   RolloutHalted        Composition postgres-other
       claim shop/a failed
90m    paused       anyone     Paused               PostgreSQLInstance shop/resting
       disk exchange
6m     waiting      cloud      Creating             PostgreSQLInstance shop/new and 1 more
       being made
-      rolling out  fairlead   RollingOut           PostgreSQLInstance shop/older
       revision r2 has not come to it yet

onprem/default: 2 databases deleted or interrupted within the hour, which the destroy rate limit counts
onprem/default: 1 orphan when the account was listed last; `fairlead orphans` lists it now
"""


WELL = conditions("Available", "2026-11-01T00:00:00Z", Ready="True", Synced="True")


def _fleet_in(kube: MemoryKube) -> None:
    inventory = [{"apiVersion": DATABASES.api_version, "kind": DATABASES.kind, "name": "x"}]

    def claim(name: str, condition: list[dict[str, Any]], revision: str = "r2", *, composed: bool = True) -> None:
        choice = {"composition": {"name": "postgres-onprem", "revision": revision}, "inventory": inventory}
        kube.put(CLAIMS, name, namespace="shop", status={"conditions": condition} | (choice if composed else {}))

    claim("well", WELL)
    claim("older", WELL, "r1")
    for name, minute in (("new", "54"), ("newer", "55")):
        claim(
            name, conditions("Creating", f"2026-11-28T11:{minute}:00Z", "being made", Ready="False", Reconciling="True")
        )
    claim("resting", conditions("Paused", "2026-11-28T10:30:00Z", "disk exchange", Synced="False"))
    said = conditions("CompositionNotFound", "2026-11-25T11:00:00Z", "there is no Composition", Stalled="True")
    claim("typing", said, composed=False)
    lost = conditions("DatabaseLost", "2026-11-26T11:00:00Z", LOST, Ready="False", Stalled="True")
    kube.put(DATABASES, "by-hand", namespace="shop", status={"conditions": lost})
    kube.put(DATABASES, "x", namespace="shop", metadata={"labels": {names.CLAIM_LABEL: "u"}}, status={})
    halted = conditions("RolloutHalted", "2026-11-28T11:00:00Z", "claim shop/a failed", Ready="True", Stalled="True")
    kube.put(names.COMPOSITIONS, "postgres-other", namespace="", spec={}, status={"conditions": halted})
    for number, phase in ((1, "Finished"), (2, "Soaking")):
        spec = {"compositionName": "postgres-onprem", "revision": number}
        kube.put(names.REVISIONS, f"r{number}", namespace="", spec=spec, status={"rollout": {"phase": phase}})
    destroys = [
        {"kind": "a", "count": 2, "minute": minute} for minute in ("2026-11-28T11:30:00Z", "2020-01-01T00:00:00Z")
    ]
    status = {"conditions": WELL, "orphans": {"items": [{"name": "left"}]}, "recentDestroys": destroys}
    kube.put(CONFIGS, "default", namespace="", status=status)


@pytest.fixture
async def fleet() -> Fleet:
    kube = MemoryKube(served={CLAIMS, DATABASES, CONFIGS, names.COMPOSITIONS, names.REVISIONS})
    _fleet_in(kube)
    listed = await looked_at(kube, await kinds_of(kube), Scope("shop"))
    # To know the kinds Compositions are listed, too.
    assert sorted(dial.resource for dial in kube.dials if dial.verb == "list") == sorted([
        "compositions", "compositions", "compositionrevisions", "postgresdatabases", "postgresqlinstances",
        "providerconfigs",
    ])  # fmt: skip
    return fleet_of(listed, NOW)


@pytest.mark.parametrize(("by", "columns", "screen"), [("composition", 80, NARROW), ("namespace", 120, BROAD)])
def test_a_fleet_is_one_screen(fleet: Fleet, by: By, columns: int, screen: str) -> None:
    lines = [line for line, _ in lines_of(fleet, by, columns, NOW)]

    assert "\n".join(lines) == screen.strip("\n")
    assert max(map(len, lines)) <= columns
    narrow = [line for line, _ in lines_of(fleet, by, 60, NOW)]
    assert max(map(len, narrow)) <= 60
    assert ("-: 2 stalled" in narrow) == (by == "composition")


def test_programs_read_who_is_needed_and_for_what(fleet: Fleet) -> None:
    read = json_of(fleet)

    assert (fleet.exit, read["needsPerson"], read["counts"]["cloud"]) == (
        Exit.STALLED, True, {"-": {"stalled": 1}, "onprem": {"stalled": 1, "paused": 1, "waiting": 2, "rolling out": 1,
                                                             "ready": 1}},
    )  # fmt: skip
    assert [member["name"] for member in read["notWell"] if member["needsPerson"]] == [
        "typing",
        "by-hand",
        "postgres-other",
    ]


@pytest.mark.parametrize(
    ("made_at", "condition", "exit_code"),
    [
        pytest.param("2026-11-28T11:59:50Z", [], Exit.DONE, id="a claim that is new"),
        pytest.param("2026-11-28T11:00:00Z", [], Exit.STALLED, id="one that no controller looks at"),
        pytest.param("", conditions("DriftHeld", "", Ready="True", Synced="False"), Exit.DIFFERENCES, id="drift"),
    ],
)
def test_the_exit_code_says_whether_a_person_is_needed(
    made_at: str, condition: list[dict[str, Any]], exit_code: Exit
) -> None:
    meta = {"name": "orders", "namespace": "shop", "creationTimestamp": made_at}
    claim = {"apiVersion": "a/v1", "kind": "Queue", "metadata": meta, "status": {"conditions": condition}}

    assert fleet_of(Listed(claims=(claim,)), NOW).exit is exit_code


def test_a_resource_that_only_looks_drifts_where_it_sees_differences() -> None:
    status = {
        "conditions": [WELL[0], WELL[1] | {"reason": "ObserveOnly"}],
        "drift": [{"path": "a", "action": "Observed"}],
    }
    meta = {"name": "looked-at", "namespace": "shop"}
    obj = {"apiVersion": DATABASES.api_version, "kind": DATABASES.kind, "metadata": meta, "status": status}

    (member,) = fleet_of(Listed(managed=(obj | {"spec": {"managementPolicy": "Observe"}},)), NOW).not_well

    assert (member.state, member.reason, member.actor) == ("drifting", "ObserveOnly", "anyone")
    assert fleet_of(Listed(managed=(obj,)), NOW).not_well == []


def test_a_pause_of_an_account_is_shown() -> None:
    meta = {"name": "default", "annotations": {names.PAUSED: "true", names.PAUSED_REASON: "disk exchange"}}
    obj = {"apiVersion": CONFIGS.api_version, "kind": CONFIGS.kind, "metadata": meta, "status": {"conditions": WELL}}

    (member,) = fleet_of(Listed(configs=(obj,)), NOW).not_well

    assert (member.state, member.message) == ("paused", "paused until lifted: disk exchange")
