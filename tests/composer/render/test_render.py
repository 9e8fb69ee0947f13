"""How resources wait, repeat and disappear; what a render is refused for."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import msgspec
import pytest

from composer.render.errors import CompositionError
from composer.render.render import Rendered, render
from composer.render.request import Observed, Request
from runtime.objects import Object
from tests.composer.factories import TEMPLATE, claim, composition_of, resource_of, template_of

IDENTITY = "claim-uid@shop/orders"
READY = [{"type": "Ready", "status": "True"}]


def _render(composition: dict[str, Any], *observed: Observed, **spec: Any) -> Rendered:
    return render(Request("c", composition, claim(**spec), IDENTITY, observed=observed))


def _observed(name: str, status: Object | None = None, key: str = "") -> Observed:
    obj = {
        **TEMPLATE,
        "metadata": {"name": name, "generation": 1},
        "status": {"observedGeneration": 1, **(status or {})},
    }
    return Observed(name, key, obj)


def test_ready_when_decides_where_it_is_set() -> None:
    composition = composition_of(resource_of("a", readyWhen="{{ resources.a.status.phase == 'Up' }}"))

    assert not _render(composition, _observed("a", {"conditions": READY})).children[0].ready
    assert not _render(composition, _observed("a", {"phase": "Down"})).children[0].ready
    assert _render(composition, _observed("a", {"phase": "Up"})).children[0].ready


@pytest.mark.parametrize(
    ("text", "is_refused"),
    [("a=legacy", False), ("b=legacy", True), ("a/x=legacy", True), ("a=", True), ("a", True)],
)
def test_a_name_in_the_cloud_of_what_is_not_composed_is_refused(text: str, *, is_refused: bool) -> None:
    request = Request(
        "c", composition_of(resource_of("a")), claim(annotations={"fairlead.dev/external-names": text}), IDENTITY
    )
    with pytest.raises(CompositionError, match="external-names") if is_refused else nullcontext():
        render(request)
    # What is there already is another matter.
    assert render(msgspec.structs.replace(request, observed=(_observed("a"),))).children


REPEATED = resource_of("a", forEach="{{ claim.spec.extensions }}")


@pytest.mark.parametrize(
    ("resource", "reason"),
    [
        pytest.param(resource_of("a", when="{{ false }}"), "EmptyResult", id="nothing composed"),
        pytest.param(resource_of("a", when="{{ 'yes' }}"), "RenderFailed", id="when that is no condition"),
        pytest.param(resource_of("a", forEach="{{ 3 }}"), "RenderFailed", id="forEach over a number"),
        pytest.param(resource_of("a", forEach="{{ ['x', 'x'] }}"), "DuplicateResource", id="the same key twice"),
        pytest.param(resource_of("a", forEach="{{ [''] }}"), "RenderFailed", id="an empty key"),
        pytest.param(REPEATED, "RenderLimit", id="more children than there may be"),
    ],
)
def test_a_render_with_a_fault_is_refused_whole(resource: dict[str, Any], reason: str) -> None:
    with pytest.raises(CompositionError) as caught:
        _render(composition_of(resource), extensions=[f"x{number}" for number in range(200)])

    assert [problem.reason for problem in caught.value.problems] == [reason]


@pytest.mark.parametrize(
    "spec", [{"deletionPolicy": "Delete"}, "{{ {'deletionPolicy': 'Delete'} }}"], ids=["plain", "computed"]
)
def test_a_template_cannot_set_the_deletion_policy(spec: Any) -> None:
    with pytest.raises(CompositionError) as refused:
        _render(composition_of(resource_of("a", {**TEMPLATE, "spec": spec})))

    (problem,) = refused.value.problems
    assert (problem.reason, problem.path) == ("TemplateForbidden", "spec.resources[0].template.spec.deletionPolicy")


# All faults at once


def _faults(*resources: dict[str, Any], **spec: Any) -> list[tuple[str, str]]:
    with pytest.raises(CompositionError) as caught:
        _render(composition_of(*resources, **spec))
    return [(problem.path, problem.message) for problem in caught.value.problems]


def test_a_render_that_used_up_a_limit_goes_no_further() -> None:
    large = template_of(username="{{ 'a' * 100000000 }}")

    faults = _faults(resource_of("one", large), resource_of("two", template_of(username="{{ claim.spec.sise }}")))

    assert len(faults) == 1
