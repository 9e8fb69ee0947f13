"""Fields that never become smaller: what is kept, where it comes from, and what is said."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from composer.decide import Apply, Create, Keep, decide
from composer.floors import Floor, Kept, faults, floors_of, raised, reached
from composer.hashes import live_hash, sent_hash
from composer.models import CompositionSpec
from composer.outcomes import larger_of
from composer.render import Request, render
from composer.view import Known
from runtime.objects import Object
from tests.composer.factories import DATABASE, IDENTITY, NOW, child, claim, desired, entry, live, rendered, view

PATH = "spec.forProvider.storageGiB"
KIND = DATABASE.resource.group_kind


def _sized(size: int | None) -> Object:
    return desired(spec={"forProvider": {"storageGiB": size} if size is not None else {}})


def _floor(value: int) -> Floor:
    return Floor("database", "", KIND, PATH, value)


class Case(msgspec.Struct, frozen=True):
    asked: int | None
    floor: int
    gives: int
    kept: tuple[Kept, ...] = ()


CASES = {
    "a smaller value is raised": Case(20, 100, 100, (Kept(PATH, 100, 20),)),
    "a larger value is taken": Case(200, 100, 200),
    "the same value is taken": Case(100, 100, 100),
    "a field that is left out stays": Case(None, 100, 100, (Kept(PATH, 100, None),)),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_no_field_falls_below_its_floor(case: Case) -> None:
    before = _sized(case.asked)

    obj, kept = raised(before, [_floor(case.floor)])

    assert reached(obj, [PATH]) == {PATH: case.gives}
    assert kept == case.kept
    assert before == _sized(case.asked)


def _spec(*floors: str) -> CompositionSpec:
    resource = {"name": "database", "template": {"kind": "X"}, "floors": list(floors)}
    kind = {"apiVersion": "database.fairlead.dev/v1alpha1", "kind": "X"}
    return msgspec.convert({"compositeTypeRef": kind, "resources": [resource]}, CompositionSpec)


STORED = live(_sized(50))
SOURCES: dict[str, tuple[Known, tuple[str, ...], list[int]]] = {
    "the inventory remembers it": (Known(entry(floors={PATH: 100}), STORED, DATABASE), (PATH,), [100]),
    "the inventory remembers it of an object that is gone": (
        Known(entry(floors={PATH: 100}), None, DATABASE),
        (PATH,),
        [100],
    ),
    "without a memory the object tells": (Known(entry(), STORED, DATABASE), (PATH,), [50]),
    "without either there is none": (Known(entry(), None, DATABASE), (PATH,), []),
    "what the composition does not name has none": (Known(entry(floors={PATH: 100}), STORED, DATABASE), (), []),
}


@pytest.mark.parametrize(("known", "named", "values"), SOURCES.values(), ids=SOURCES)
def test_where_a_floor_comes_from(known: Known, named: tuple[str, ...], values: list[int]) -> None:
    assert [each.value for each in floors_of(view(known), _spec(*named))] == values


def test_a_render_keeps_to_the_floor_and_tells_it() -> None:
    template = {
        "apiVersion": DATABASE.resource.api_version,
        "kind": DATABASE.resource.kind,
        "spec": {"forProvider": {"storageGiB": 20}},
    }
    kind = {"apiVersion": "database.fairlead.dev/v1alpha1", "kind": "PostgreSQLInstance"}
    resources = [{"name": "database", "template": template, "floors": [PATH]}]
    status = {"size": "{{ resources.database.spec.forProvider.storageGiB }}"}
    composition = {"compositeTypeRef": kind, "resources": resources, "status": status}
    other = Floor("database", "", "Other.example.org", PATH, 900)

    made = render(Request("c", composition, claim(), str(IDENTITY), floors=(_floor(100), other)))

    assert made.children[0].object["spec"]["forProvider"]["storageGiB"] == 100
    assert made.status == {"size": 100}
    (told,) = larger_of(made)
    assert told.reason == "KeptLarger"
    assert "stays 100" in told.message
    assert "asks for 20" in told.message


def _rendered(size: int) -> Any:
    made = msgspec.structs.replace(child(_sized(size)), floors={PATH: size})
    return rendered(made)


def test_a_floor_holds_once_it_is_applied() -> None:
    (born,) = decide(view(), _rendered(100), now=NOW).steps
    (changed,) = decide(view(Known(entry(floors={PATH: 50}), STORED, DATABASE)), _rendered(100), now=NOW).steps
    at_rest = entry(desired=sent_hash(_sized(50)), live=live_hash(STORED, _sized(50), None), applied=True)
    (kept,) = decide(view(Known(at_rest, STORED, DATABASE)), _rendered(50), now=NOW).steps

    assert isinstance(born, Create)
    assert (born.entry.floors, born.floors) == ({}, {PATH: 100})
    assert isinstance(changed, Apply)
    # What is refused was never applied.
    assert (changed.entry.floors, changed.floors) == ({PATH: 50}, {PATH: 100})
    assert isinstance(kept, Keep)
    assert kept.entry.floors == {PATH: 50}


SCHEMA: dict[str, Any] = {
    "properties": {
        "spec": {
            "properties": {
                "size": {"type": "integer"},
                "name": {"type": "string"},
                "any": {"x-kubernetes-preserve-unknown-fields": True},
            }
        }
    }
}


@pytest.mark.parametrize(
    ("path", "count"), [("spec.size", 0), ("spec.any.size", 0), ("spec.name", 1), ("spec.none", 1)]
)
def test_only_whole_numbers_have_a_floor(path: str, count: int) -> None:
    (source,) = _spec(path).resources

    assert len(tuple(faults(source, SCHEMA, "spec.resources[0]"))) == count
