"""Passes of the generic reconciler over a cloud that takes its time, loses answers and refuses."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from providers.external.ownership import Owner, identity_of
from runtime.errors import Failure, Terminal, Throttled, Transient
from runtime.objects import SECRETS, Key
from tests.providers.toy import TOYS, Toy, ToyCloud
from tests.providers.world import World, settled

SLOW = [0, 1, 3]


async def test_instant_create_is_four_object_writes_and_two_of_the_secret() -> None:
    world = World(ToyCloud())
    world.ask()
    await world.step()

    assert [write for write in world.kube.writes if write[1].startswith("toys")] == [
        ("apply", "toys"),
        ("patch", "toys/status"),
        ("apply", "toys"),
        ("patch", "toys/status"),
    ]
    assert [verb for verb, written in world.kube.writes if written == "secrets"] == ["create", "replace"]


@pytest.mark.parametrize("slow", SLOW)
async def test_edit_and_drift_are_each_sent_once(slow: int) -> None:
    world = await settled(ToyCloud(slow=slow), size=1)

    world.ask(size=2)
    await world.settle()
    assert world.toy.size == 2
    world.toy.size = 99
    await world.settle()

    assert world.toy.size == 2
    assert [call for call in world.cloud.calls if call.startswith("update")] == ["update ['size']"] * 2
    (entry,) = world.status["drift"]
    assert {key: entry[key] for key in ("path", "desired", "observed", "action")} == {
        "path": "size",
        "desired": "2",
        "observed": "99",
        "action": "Corrected",
    }


@pytest.mark.parametrize(
    "intent",
    [
        pytest.param({"format": 99, "by": "x", "notAfter": "2026-11-21T12:00:25Z", "calls": []}, id="known fields"),
        pytest.param({"format": 99, "by": "x"}, id="without an end that this version knows"),
    ],
)
async def test_intent_of_a_newer_version_is_left_alone_for_good(intent: dict[str, object]) -> None:
    world = World(ToyCloud())
    world.ask()
    (world.get() or {})["status"] = {"intent": intent}

    await world.passes(3, timedelta(hours=1))

    after = world.get()
    assert world.cloud.calls == []
    assert world.reason() == "NewerProvider"
    assert after is not None
    assert after["status"]["intent"] == intent


async def test_name_that_a_person_set_is_never_created() -> None:
    world = World(ToyCloud())
    world.ask()
    world.annotate(**{"external-name": "somebody-elses-next"})

    await world.step()

    assert world.cloud.calls == []
    assert world.reason("Stalled") == "AdoptionRefused"


@pytest.mark.parametrize("word", ["", "uid-999/Delete", "own/Detach", "own/Orphan", "own/Snapshot", "own/Delete"])
async def test_child_is_deleted_by_the_teardown_instruction_of_its_claim_alone(word: str) -> None:
    world = World(ToyCloud())
    world.ask()
    world.compose()
    await world.settle()
    calls = len(world.cloud.calls)
    world.delete()
    world.annotate(teardown=word.replace("own", world.uid))

    await world.passes(3, timedelta(minutes=2))

    done = world.cloud.calls[calls:]
    (toy,) = world.cloud.toys.values() or (None,)
    match word.partition("own/")[2]:
        case "":
            assert (done, world.reason()) == ([], "AwaitingTeardown")
        case "Detach":
            assert (done, toy is not None, world.get()) == ([], True, None)
        case "Orphan":
            assert (done, toy is not None and toy.released, world.get()) == (["release"], True, None)
        case "Snapshot":
            assert (done[0], toy, world.get()) == ("delete Snapshot", None, None)
        case _:
            assert (done, toy, world.get()) == (["delete Delete"], None, None)
    assert ((SECRETS, Key("team", "db-credentials")) in world.kube.objects) == (toy is not None)


async def test_lost_password_of_an_adopted_database_is_reported_without_a_resync() -> None:
    world = await settled(ToyCloud())
    (toy,) = world.cloud.toys.values()
    # As the end of a namespace takes both along.
    for place in ((TOYS, Key("team", "db")), (SECRETS, Key("team", "db-credentials"))):
        world.kube.objects.pop(place)
    await world.step()
    world.ask()
    await world.step()
    assert world.reason("Stalled") == "PredecessorFound"

    # A login by rule is there, and somebody may use it.
    toy.passwords = {f"app_{identity_of(world.get() or {}).hash}_a": "theirs"}
    world.annotate(adopt=toy.incarnation)
    await world.settle()

    assert world.reason("Stalled") == "PasswordUnknown"
    assert world.cloud.calls == ["create", "adopt"]


@settings(max_examples=40)
@given(
    st.integers(0, 2),
    st.lists(
        st.tuples(
            st.sampled_from(["create", "update", "delete", "observe", "poll", "set_password"]),
            st.sampled_from([Transient("away"), Throttled("slow", after=timedelta(0)), Terminal("AccessDenied", "no")]),
            st.booleans(),
        ),
        max_size=6,
    ),
    st.lists(st.integers(1, 5), max_size=3),
)
async def test_failures_in_any_order_end_settled(
    slow: int, faults: list[tuple[str, Failure, bool]], sizes: list[int]
) -> None:
    cloud: Any = ToyCloud(slow=slow, faults=list(faults))
    foreign = Toy("foreign", Owner("elsewhere", "x", "y"), 1)
    cloud.toys["foreign"] = foreign
    world = World(cloud)
    for size in (9, *sizes):
        world.ask(size=size)
        await world.passes(3, timedelta(minutes=6))
    cloud.faults.clear()
    await world.passes(12, timedelta(minutes=6))

    (ours,) = [toy for name, toy in cloud.toys.items() if name != "foreign"]
    assert ours.size == (sizes or [9])[-1]
    assert world.reason("Ready") == "Available"
    assert world.reason() == "InSync"
    assert cloud.toys["foreign"] == Toy("foreign", Owner("elsewhere", "x", "y"), 1)
