"""Resources under a new name keep what they have; a rollback that would cost data is held."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from apis import names
from apis.identity import child_name
from composer.claim import renames
from composer.claim.prune_guard import held_on_rollback
from composer.claim.snapshot import ObservedChild
from composer.inventory import Entry
from composer.models import CompositionSpec
from composer.render.errors import CompositionError
from composer.render.render import render
from composer.render.request import Request
from composer.validation.renames import faults, reused
from tests.composer.factories import (
    CATALOG,
    DATABASE,
    IDENTITY,
    SETTINGS,
    child,
    claim,
    composition_of,
    desired,
    entry,
    live,
    rendered,
    snapshot,
)

_TEMPLATE = {"apiVersion": "v1", "kind": "ConfigMap", "data": {"a": "b"}}


def _spec(*resources: dict[str, Any]) -> dict[str, Any]:
    return composition_of(*({"template": _TEMPLATE, **resource} for resource in resources))


def _read(*resources: dict[str, Any]) -> CompositionSpec:
    return msgspec.convert(_spec(*resources), CompositionSpec)


def _entry(resource: str, **fields: Any) -> Entry:
    return entry(resource, SETTINGS, **fields)


_FRESH = ({"name": "fresh", "movedFrom": ["old"]},)


class Move(msgspec.Struct, frozen=True):
    recorded: tuple[Entry, ...]
    resources: tuple[dict[str, Any], ...]
    gives: tuple[tuple[str, str, str], ...]
    """(resource, forEach key, origin) of each entry."""
    element_origins: dict[str, dict[str, str]] = {}
    origins: dict[str, str] = {}


_MANY = {"name": "groups", "forEach": "{{ [claim.spec.version] }}", "movedFrom": ["group{{ each.key }}"]}
_ELEMENT = _entry("groups", key="16", origin="group16", name=child_name(IDENTITY, "group16"))
_OWN_ELEMENT = _entry("groups", key="17", name=child_name(IDENTITY, "groups", "17"))
MOVES = {
    "a resource under a new name takes the entry over": Move(
        (_entry("old"),), _FRESH, (("fresh", "", "old"),), origins={"fresh": "old"}
    ),
    "all elements of a forEach go along": Move(
        tuple(_entry("old", key=key, name=child_name(IDENTITY, "old", key)) for key in ("a", "b")),
        _FRESH,
        (("fresh", "a", "old"), ("fresh", "b", "old")),
        origins={"fresh": "old"},
    ),
    "a second move keeps the first origin": Move(
        (_entry("mid", origin="old"),),
        ({"name": "fresh", "movedFrom": ["mid", "old"]},),
        (("fresh", "", "old"),),
        origins={"fresh": "old"},
    ),
    "a move is made once": Move(
        (_entry("fresh", origin="old"),), _FRESH, (("fresh", "", "old"),), origins={"fresh": "old"}
    ),
    "what has an object of its own takes none over": Move(
        (_entry("old"), _entry("fresh")), _FRESH, (("old", "", ""), ("fresh", "", ""))
    ),
    "an earlier revision gets its name back": Move(
        (_entry("fresh", origin="old"),), ({"name": "old"},), (("old", "", ""),)
    ),
    "a name without a move is another resource": Move((_entry("old"),), ({"name": "fresh"},), (("old", "", ""),)),
    "a resource without a key becomes an element": Move(
        (_entry("group16"), _entry("other")),
        (_MANY, {"name": "other"}),
        (("groups", "16", "group16"), ("other", "", "")),
        {"groups": {"16": "group16"}},
    ),
    "several become one element each": Move(
        (_entry("group16"), _entry("group17")),
        (_MANY,),
        (("groups", "16", "group16"), ("groups", "17", "group17")),
        {"groups": {"16": "group16", "17": "group17"}},
    ),
    "what comes before and after the key is cut off": Move(
        (_entry("my16group"),),
        ({**_MANY, "movedFrom": ["my{{each.key}}group"]},),
        (("groups", "16", "my16group"),),
        {"groups": {"16": "my16group"}},
    ),
    "an element is moved once": Move(
        (_ELEMENT,), (_MANY,), (("groups", "16", "group16"),), {"groups": {"16": "group16"}}
    ),
    "an element that has an object takes none over": Move(
        (_entry("group17"), _OWN_ELEMENT), (_MANY,), (("group17", "", ""), ("groups", "17", ""))
    ),
    "an element with an object of its own keeps no other from moving": Move(
        (_entry("group16"), _OWN_ELEMENT),
        (_MANY,),
        (("groups", "16", "group16"), ("groups", "17", "")),
        {"groups": {"16": "group16"}},
    ),
    "the first of two earlier names is taken": Move(
        (_entry("b16"), _entry("a16")),
        ({**_MANY, "movedFrom": ["a{{ each.key }}", "b{{ each.key }}"]},),
        (("b16", "", ""), ("groups", "16", "a16")),
        {"groups": {"16": "a16"}},
    ),
    "elements are moved on with their resource": Move(
        (_ELEMENT, _OWN_ELEMENT),
        ({"name": "sets", "forEach": "{{ ['16'] }}", "movedFrom": ["groups"]},),
        (("sets", "16", "group16"), ("sets", "17", "groups")),
        {"sets": {"16": "group16"}},
        {"sets": "groups"},
    ),
    "an earlier revision gets its resource back": Move((_ELEMENT,), ({"name": "group16"},), (("group16", "", ""),)),
    "an earlier revision gets no element that was made later": Move(
        (_ELEMENT, _OWN_ELEMENT),
        ({"name": "group16"}, {"name": "group17"}),
        (("group16", "", ""), ("groups", "17", "")),
    ),
    "an element of a former forEach is none of the new one by its name": Move(
        (_entry("group16", key="a"),), (_MANY,), (("group16", "a", ""),)
    ),
    "the name without a key is no element": Move((_entry("group"),), (_MANY,), (("group", "", ""),)),
}


@pytest.mark.parametrize("case", MOVES.values(), ids=MOVES)
def test_a_rename_moves_the_entries(case: Move) -> None:
    before = snapshot(*(ObservedChild(recorded, None, SETTINGS) for recorded in case.recorded))
    spec = _read(*case.resources)

    after = renames.renamed(before, spec)

    assert (
        tuple((observed.entry.resource, observed.entry.key, observed.entry.origin) for observed in after.children)
        == case.gives
    )
    assert [observed.entry.name for observed in after.children] == [recorded.name for recorded in case.recorded]
    assert renames.element_origins(after) == case.element_origins
    assert renames.origins(after) == case.origins
    assert renames.renamed(after, spec) == after


def test_a_rename_to_an_element_and_back_restores_the_entries() -> None:
    before = snapshot(*(ObservedChild(_entry(name), None, SETTINGS) for name in ("group16", "group17", "other")))
    there = renames.renamed(before, _read(_MANY, {"name": "other"}))

    assert renames.renamed(there, _read({"name": "group16"}, {"name": "group17"}, {"name": "other"})) == before


def test_a_rename_is_known_to_the_resources_before_the_renamed_one() -> None:
    user = ObservedChild(_entry("user", depends_on=("old", "net")), None, SETTINGS)
    before = snapshot(ObservedChild(_entry("old"), None, SETTINGS), user)

    after = renames.renamed(before, _read({"name": "fresh", "movedFrom": ["old"]}, {"name": "user"}, {"name": "net"}))

    assert after.children[1].entry.depends_on == ("fresh", "net")


@pytest.mark.parametrize(
    ("resources", "count"),
    [
        pytest.param(({"name": "a", "movedFrom": ["b"]},), 0, id="from a name that is free"),
        pytest.param(({"name": "a", "movedFrom": ["b"]}, {"name": "b"}), 1, id="from a resource that is there"),
        pytest.param(({"name": "a", "movedFrom": ["c"]}, {"name": "b", "movedFrom": ["c"]}), 1, id="to two at once"),
    ],
)
def test_renames_that_lead_nowhere_are_refused(resources: tuple[dict[str, Any], ...], count: int) -> None:
    assert len(tuple(faults(_read(*resources)))) == count


class Reuse(msgspec.Struct, frozen=True):
    earlier: tuple[tuple[dict[str, Any], ...], ...]
    resources: tuple[dict[str, Any], ...]
    problems: tuple[tuple[str, str], ...]
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
    "a name that objects of an element have": Reuse(
        (({"name": "group16"},), (_MANY,)),
        (_MANY | {"movedFrom": []}, {"name": "group16"}),
        (("group16", "spec.resources[1].name"),),
    ),
    "a way back from elements to the former names": Reuse(
        (({"name": "group16"},), (_MANY,)), ({"name": "group16"},), ()
    ),
    "names that were exchanged there and back": Reuse(
        (_MOVED, ({"name": "a", "movedFrom": ["b"]},)), ({"name": "a"}, {"name": "c"}), ()
    ),
}


@pytest.mark.parametrize("case", REUSES.values(), ids=REUSES)
def test_a_name_is_not_used_again_while_objects_may_have_it(case: Reuse) -> None:
    problems = reused(_read(*case.resources), (_read(*resources) for resources in case.earlier))

    assert tuple((problem.resource, problem.path) for problem in problems) == case.problems


def test_resources_that_share_one_object_are_refused() -> None:
    composition = _spec({"name": "fresh"}, {"name": "old"})

    with pytest.raises(CompositionError) as refused:
        render(Request("c", composition, claim(), str(IDENTITY), origins={"fresh": "old"}))

    (problem,) = refused.value.problems
    assert problem.reason == "DuplicateResource"
    assert "'fresh'" in problem.message
    assert "'old'" in problem.message


_DATABASE = live(desired())
_HELD = ObservedChild(entry(), _DATABASE, DATABASE)


def test_a_rollback_that_takes_data_away_is_held_until_consent() -> None:
    back = rendered(child(desired("settings", SETTINGS), "settings"))

    (why,) = held_on_rollback(snapshot(_HELD), back, "c-old")

    assert why.reason == "HeldDeletion"
    assert "fairlead.dev/consent=database=child-uid`" in why.message
    consented = claim(annotations={names.CONSENT: "database=child-uid"})
    assert held_on_rollback(snapshot(_HELD, of=consented), back, "c-old") == ()


def test_a_rollback_that_creates_an_empty_database_is_held() -> None:
    assert DATABASE.resource.group_kind in CATALOG

    (why,) = held_on_rollback(snapshot(), rendered(child(desired())), "c-old")

    assert why.reason == "RolloutHalted"
    assert "compositionRevisionRef" in why.message
