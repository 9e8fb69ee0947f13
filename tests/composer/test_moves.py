"""Resources under a new name keep what they have; a rollback that would cost data is held."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from apis import names
from apis.identity import child_name
from composer.claim import renames
from composer.claim.rollback import held_on_rollback
from composer.claim.snapshot import ObservedChild
from composer.inventory import Entry
from composer.models import CompositionSpec
from composer.render.errors import CompositionError
from composer.render.render import Request, render
from composer.validation.renames import faults, reused
from tests.composer.factories import (
    CATALOG,
    DATABASE,
    IDENTITY,
    SETTINGS,
    child,
    claim,
    desired,
    entry,
    live,
    rendered,
    snapshot,
)

_TEMPLATE = {"apiVersion": "v1", "kind": "ConfigMap", "data": {"a": "b"}}


def _spec(*resources: dict[str, Any]) -> dict[str, Any]:
    whole = [{"template": _TEMPLATE, **each} for each in resources]
    return {"compositeTypeRef": {"apiVersion": "database.fairlead.dev/v1alpha1", "kind": "X"}, "resources": whole}


def _read(*resources: dict[str, Any]) -> CompositionSpec:
    return msgspec.convert(_spec(*resources), CompositionSpec)


class Move(msgspec.Struct, frozen=True):
    recorded: tuple[Entry, ...]
    resources: tuple[dict[str, Any], ...]
    gives: tuple[tuple[str, str], ...]
    """(resource, origin) of each entry."""


def _entry(resource: str, **fields: Any) -> Entry:
    return entry(resource, SETTINGS, **fields)


MOVES = {
    "a resource under a new name takes the entry over": Move(
        (_entry("old"),), ({"name": "fresh", "movedFrom": ["old"]},), (("fresh", "old"),)
    ),
    "all elements of a forEach go along": Move(
        (_entry("old", key="a"), _entry("old", key="b")),
        ({"name": "fresh", "movedFrom": ["old"]},),
        (("fresh", "old"), ("fresh", "old")),
    ),
    "a second move keeps the first origin": Move(
        (_entry("mid", origin="old"),), ({"name": "fresh", "movedFrom": ["mid", "old"]},), (("fresh", "old"),)
    ),
    "a move is made once": Move(
        (_entry("fresh", origin="old"),), ({"name": "fresh", "movedFrom": ["old"]},), (("fresh", "old"),)
    ),
    "what has an object of its own takes none over": Move(
        (_entry("old"), _entry("fresh")), ({"name": "fresh", "movedFrom": ["old"]},), (("old", ""), ("fresh", ""))
    ),
    "an earlier revision gets its name back": Move(
        (_entry("fresh", origin="old"),), ({"name": "old"},), (("old", ""),)
    ),
    "a name without a move is another resource": Move((_entry("old"),), ({"name": "fresh"},), (("old", ""),)),
}


@pytest.mark.parametrize("case", MOVES.values(), ids=MOVES)
def test_a_move(case: Move) -> None:
    before = snapshot(*(ObservedChild(each, None, SETTINGS) for each in case.recorded))

    after = renames.moved(before, _read(*case.resources))

    assert tuple((each.entry.resource, each.entry.origin) for each in after.known) == case.gives
    assert [each.entry.name for each in after.known] == [each.name for each in case.recorded]


def test_a_move_is_known_to_what_goes_before_the_moved_resource() -> None:
    user = ObservedChild(_entry("user", depends_on=("old", "net")), None, SETTINGS)
    before = snapshot(ObservedChild(_entry("old"), None, SETTINGS), user)

    after = renames.moved(before, _read({"name": "fresh", "movedFrom": ["old"]}, {"name": "user"}, {"name": "net"}))

    assert after.known[1].entry.depends_on == ("fresh", "net")


def test_a_moved_resource_renders_under_the_names_of_its_origin() -> None:
    composition = _spec({"name": "fresh", "movedFrom": ["old"]})

    (kept,) = render(Request("c", composition, claim(), str(IDENTITY), origins={"fresh": "old"})).children
    (made,) = render(Request("c", composition, claim(), str(IDENTITY))).children

    assert kept.resource == made.resource == "fresh"
    assert kept.object["metadata"]["name"] == child_name(IDENTITY, "old")
    assert kept.object["metadata"]["annotations"][names.RESOURCE] == "old"
    assert made.object["metadata"]["name"] == child_name(IDENTITY, "fresh")


@pytest.mark.parametrize(
    ("resources", "count"),
    [
        (({"name": "a", "movedFrom": ["b"]},), 0),
        (({"name": "a", "movedFrom": ["b"]}, {"name": "b"}), 1),
        (({"name": "a", "movedFrom": ["c"]}, {"name": "b", "movedFrom": ["c"]}), 1),
    ],
    ids=["from a name that is free", "from a resource that is there", "to two at once"],
)
def test_moves_that_lead_nowhere_are_refused(resources: tuple[dict[str, Any], ...], count: int) -> None:
    assert len(tuple(faults(_read(*resources)))) == count


class Reuse(msgspec.Struct, frozen=True):
    earlier: tuple[tuple[dict[str, Any], ...], ...]
    resources: tuple[dict[str, Any], ...]
    told: tuple[tuple[str, str], ...]
    """(resource, path) of each problem."""


_MOVED = ({"name": "b", "movedFrom": ["a"]},)
_AGAIN = (("c", "spec.resources[1].name"),)
REUSES = {
    "a name that nothing was moved from": Reuse((_MOVED,), ({"name": "b"}, {"name": "c"}), ()),
    "the name that a resource was moved from": Reuse(
        (_MOVED,), ({"name": "b"}, {"name": "a"}), (("a", "spec.resources[1].name"),)
    ),
    "the first name of two": Reuse(
        (({"name": "b", "movedFrom": ["c"]},), ({"name": "a", "movedFrom": ["b"]},)),
        ({"name": "a"}, {"name": "c"}),
        _AGAIN,
    ),
    "a way back to the former name": Reuse((_MOVED,), ({"name": "a"},), ()),
    "names that were exchanged there and back": Reuse(
        (_MOVED, ({"name": "a", "movedFrom": ["b"]},)), ({"name": "a"}, {"name": "c"}), ()
    ),
}


@pytest.mark.parametrize("case", REUSES.values(), ids=REUSES)
def test_a_name_is_not_given_again_while_objects_may_have_it(case: Reuse) -> None:
    found = reused(_read(*case.resources), (_read(*each) for each in case.earlier))

    assert tuple((each.resource, each.path) for each in found) == case.told


def test_two_resources_with_one_object_are_refused() -> None:
    composition = _spec({"name": "fresh"}, {"name": "old"})

    with pytest.raises(CompositionError) as refused:
        render(Request("c", composition, claim(), str(IDENTITY), origins={"fresh": "old"}))

    (problem,) = refused.value.problems
    assert problem.reason == "DuplicateResource"
    assert "'fresh'" in problem.message
    assert "'old'" in problem.message


_DATABASE = live(desired())
_HELD = ObservedChild(entry(), _DATABASE, DATABASE)


def test_the_way_back_in_place_is_free() -> None:
    assert held_on_rollback(snapshot(_HELD), rendered(child(desired())), "c-old") == ()


def test_a_way_back_that_takes_data_away_is_held_until_consent() -> None:
    back = rendered(child(desired("settings", SETTINGS), "settings"))

    (why,) = held_on_rollback(snapshot(_HELD), back, "c-old")

    assert why.reason == "HeldDeletion"
    assert "fairlead.dev/consent=database=child-uid`" in why.message
    consented = claim(annotations={names.CONSENT: "database=child-uid"})
    assert held_on_rollback(snapshot(_HELD, of=consented), back, "c-old") == ()


def test_a_way_back_that_makes_an_empty_database_is_held() -> None:
    assert DATABASE.resource.group_kind in CATALOG

    (why,) = held_on_rollback(snapshot(), rendered(child(desired())), "c-old")

    assert why.reason == "RolloutHalted"
    assert "compositionRevisionRef" in why.message
