"""Fields that never become smaller: what is kept, where it comes from, and what is reported."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import msgspec
import pytest

from composer.claim.outcomes import causes_of_floors
from composer.models import CompositionSpec
from composer.quantities import Amount
from composer.render.errors import CompositionError
from composer.render.floors import Floor, Kept, faults, floors_of, raised, reached
from composer.render.render import render
from composer.render.request import Request
from runtime.objects import Object
from tests.composer.factories import (
    DATABASE,
    IDENTITY,
    claim,
    composition_of,
    desired,
    live,
    observed,
    resource_of,
    template_of,
)

PATH = "spec.forProvider.storageGiB"
KIND = DATABASE.resource.group_kind


def _sized(size: Amount | None) -> Object:
    return desired(spec={"forProvider": {"storageGiB": size} if size is not None else {}})


def _floor(value: Amount) -> Floor:
    return Floor("database", "", KIND, PATH, value)


@pytest.mark.parametrize(
    ("size", "floor", "expected"),
    [
        pytest.param(20, 100, 100, id="a smaller value is raised"),
        pytest.param(200, 100, 200, id="a larger value is taken"),
        pytest.param(100, 100, 100, id="the same value is taken"),
        pytest.param(None, 100, 100, id="a field that is left out stays"),
        pytest.param("512Mi", "1Gi", "1Gi", id="a smaller quantity is raised"),
        pytest.param("1025Mi", "1Gi", "1025Mi", id="a larger quantity in a smaller unit is taken"),
        pytest.param("20G", "20Gi", "20Gi", id="binary units are larger than decimal ones"),
        pytest.param("1024Mi", "1Gi", "1024Mi", id="the same quantity written otherwise is taken"),
        pytest.param("1.5Gi", "1536Mi", "1.5Gi", id="a fraction is compared exactly"),
        pytest.param("1e9", "1G", "1e9", id="an exponent is read"),
        pytest.param("999m", 1, 1, id="thousandths are less than a whole"),
        pytest.param(2**30, "1Gi", 2**30, id="a bare number counts in the quantity's unit"),
    ],
)
def test_a_field_does_not_fall_below_its_floor(size: Amount | None, floor: Amount, expected: Amount) -> None:
    before = _sized(size)

    obj, kept = raised(before, [_floor(floor)])

    assert reached(obj, [PATH]) == {PATH: expected}
    assert kept == ((Kept(PATH, floor, size),) if size != expected else ())
    assert before == _sized(size)


def _spec(*floors: str) -> CompositionSpec:
    resource = {"name": "database", "template": {"kind": "X"}, "floors": list(floors)}
    kind = {"apiVersion": "database.fairlead.dev/v1alpha1", "kind": "X"}
    return msgspec.convert({"compositeTypeRef": kind, "resources": [resource]}, CompositionSpec)


STORED = live(_sized(50))


DONE = "status.atProvider.storageGiB"
CARRIED_OUT: dict[str, tuple[Amount | None, Object, list[Amount]]] = {
    "what was carried out stays": (100, {"atProvider": {"storageGiB": 100}}, [100]),
    "what was never carried out may be taken back": (7000, {"atProvider": {"storageGiB": 100}}, [100]),
    "what grew by itself is no floor": (100, {"atProvider": {"storageGiB": 300}}, [100]),
    "where the status says nothing, what was applied counts": (7000, {}, [7000]),
    "a status that is no amount says nothing": (7000, {"atProvider": {"storageGiB": "much"}}, [7000]),
    "without a memory the object counts": (None, {"atProvider": {"storageGiB": 20}}, [20]),
}


@pytest.mark.parametrize(("memory", "status", "values"), CARRIED_OUT.values(), ids=CARRIED_OUT)
def test_a_floor_is_no_larger_than_what_was_carried_out(
    memory: Amount | None, status: Object, values: list[Amount]
) -> None:
    known = observed(stored={**STORED, "status": status}, floors={} if memory is None else {PATH: memory})
    spec = _spec(PATH)
    resource = msgspec.structs.replace(spec.resources[0], carried_out={PATH: DONE})
    spec = msgspec.structs.replace(spec, resources=(resource,))
    assert [floor.value for floor in floors_of([(known.entry, known.live)], spec)] == values
    gone = replace(known, live=None)
    assert [floor.value for floor in floors_of([(gone.entry, gone.live)], spec)] == ([] if memory is None else [memory])


def _composition(size: Any) -> dict[str, Any]:
    status = {"size": "{{ resources.database.spec.forProvider.storageGiB }}"}
    return composition_of(resource_of("database", template_of(storageGiB=size), floors=[PATH]), status=status)


@pytest.mark.parametrize(("size", "floor"), [(20, 100), ("20Gi", "0.1Ti")], ids=["numbers", "quantities"])
def test_a_render_keeps_to_the_floor_and_reports_it(size: Amount, floor: Amount) -> None:
    other = Floor("database", "", "Other.example.org", PATH, 900)

    made = render(Request("c", _composition(size), claim(), str(IDENTITY), floors=(_floor(floor), other)))

    assert made.children[0].object["spec"]["forProvider"]["storageGiB"] == floor
    assert made.children[0].floors == {PATH: floor}
    assert made.status == {"size": floor}
    (note,) = causes_of_floors(made)
    assert note.reason == "KeptLarger"
    assert f"stays {floor}" in note.message
    assert f"asks for {size}" in note.message


@pytest.mark.parametrize("size", ["20GB", "much", True, 1.5, ["20Gi"]], ids=str)
def test_a_value_that_nobody_can_compare_is_refused_and_never_replaced(size: Any) -> None:
    with pytest.raises(CompositionError, match="neither a whole number nor a quantity like 20Gi") as caught:
        render(Request("c", _composition(size), claim(), str(IDENTITY), floors=(_floor(100),)))

    assert caught.value.problems[0].path == f"spec.resources[0].template.{PATH}"
    assert caught.value.problems[0].resource == "database"


SCHEMA: dict[str, Any] = {
    "properties": {
        "spec": {
            "properties": {
                "size": {"type": "integer"},
                "storage": {"type": "string"},
                "either": {"x-kubernetes-int-or-string": True},
                "whether": {"type": "boolean"},
                "any": {"x-kubernetes-preserve-unknown-fields": True},
            }
        }
    }
}


def test_carried_out_is_an_amount_of_a_floor() -> None:
    (source,) = _spec("spec.size").resources
    for carried_out, path in (
        ({"spec.size": "spec.storage"}, ""),
        ({"spec.size": "spec.none"}, "spec.resources[0].carriedOut"),
        ({"spec.storage": "spec.storage"}, "spec.resources[0].carriedOut"),
    ):
        named = msgspec.structs.replace(source, carried_out=carried_out)
        assert [problem.path for problem in faults(named, SCHEMA, "spec.resources[0]")] == ([path] if path else [])
