"""Elements of a forEach that other resources read by key, and names that are not known yet."""

from __future__ import annotations

import re
from typing import Any

import pytest

from composer.render.errors import CompositionError
from composer.render.render import Rendered, render
from composer.render.request import Observed, Request
from tests.composer.factories import claim, composition_of, resource_of

SETTINGS: dict[str, Any] = {"apiVersion": "v1", "kind": "ConfigMap"}


def _render(*resources: dict[str, Any], observed: tuple[Observed, ...] = ()) -> Rendered:
    return render(Request("c", composition_of(*resources), claim(), "claim-uid@shop/orders", observed=observed))


_GROUPS = resource_of("groups", SETTINGS, forEach="{{ [claim.spec.version] }}")


def _reading(text: str, *others: dict[str, Any], observed: tuple[Observed, ...] = ()) -> Rendered:
    reader = resource_of("reader", {**SETTINGS, "data": {"of": text}})
    return _render(*(others or (_GROUPS,)), reader, observed=observed)


def _said_by_reader(rendered: Rendered) -> Any:
    return next(child for child in rendered.children if child.resource == "reader").object["data"].get("of")


@pytest.mark.parametrize(
    "text",
    [
        "{{ resources.groups['16'].metadata.name }}",
        "{{ resources.groups[claim.spec.version].metadata.name }}",
        "{{ resources['groups'][claim.spec.version]['metadata'].name }}",
    ],
)
def test_an_element_is_read_by_its_key(text: str) -> None:
    rendered = _reading(text)

    assert [child.slot for child in rendered.children] == [("groups", "16"), ("reader", "")]
    assert _said_by_reader(rendered) == rendered.children[0].name
    assert rendered.children[1].depends_on == ("groups",)


def test_the_status_of_an_element_is_waited_for_by_its_key() -> None:
    text = "{{ resources.groups[claim.spec.version].status.address }}"
    (waiting,) = _reading(text).waiting
    status = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}, "status": {"address": "10.0.0.1"}}

    assert str(waiting) == "resource 'reader' waits for resources.groups['16'].status.address"
    assert _said_by_reader(_reading(text, observed=(Observed("groups", "16", status),))) == "10.0.0.1"


def test_elements_of_a_resource_that_waits_are_waited_for() -> None:
    first = resource_of("first", SETTINGS)
    late = resource_of("groups", SETTINGS, forEach="{{ [resources.first.status.version] }}")

    rendered = _reading("{{ resources.groups['16'].metadata.name }}", first, late)

    assert [held.resource for held in rendered.waiting] == ["groups", "reader"]


@pytest.mark.parametrize(
    ("others", "says"),
    [
        ((_GROUPS,), """resource "groups['17']" is not composed for this claim"""),
        (
            (resource_of("groups", SETTINGS, forEach="{{ ['17'] }}", when="{{ false }}"),),
            "is not composed for this claim",
        ),
        ((resource_of("groups", SETTINGS, forEach="{{ [] }}"),), "is not composed for this claim"),
    ],
    ids=["another element is", "no element is by when", "no element is by forEach"],
)
def test_an_element_that_is_not_composed_is_an_error_or_replaced(others: tuple[dict[str, Any], ...], says: str) -> None:
    with pytest.raises(CompositionError, match=re.escape(says)):
        _reading("{{ resources.groups['17'].metadata.name }}", *others)
    assert _said_by_reader(_reading("{{ resources.groups['17'].metadata.name | or_else('none') }}", *others)) == "none"


def test_the_key_of_an_element_is_a_text() -> None:
    with pytest.raises(CompositionError, match="16 is undefined, did you mean '16'"):
        _reading("{{ resources.groups[claim.spec.version | int].metadata.name }}")


def test_the_name_of_a_resource_that_waits_is_waited_for() -> None:
    first = resource_of("first", SETTINGS)
    late = resource_of("late", {**SETTINGS, "data": {"of": "{{ resources.first.status.version }}"}})

    rendered = _reading("{{ resources.late.metadata.name }}", first, late)

    assert [held.resource for held in rendered.waiting] == ["late", "reader"]


# Its own name

OWN = resource_of("own", {**SETTINGS, "data": {"of": "fl {{ resources.own.metadata.name }}"}})


@pytest.mark.parametrize("observed", [(), (Observed("own", "", {**SETTINGS, "metadata": {"name": "another"}}),)])
def test_a_template_reads_the_name_of_its_own_object(observed: tuple[Observed, ...]) -> None:
    (child,) = _render(OWN, observed=observed).children

    assert child.object["data"]["of"] == f"fl {child.name}"
    assert child.depends_on == ()


def test_the_own_name_of_what_is_taken_over_is_the_one_it_has() -> None:
    adopted = {"own": {"": "of-the-former-claim"}}

    (child,) = render(Request("c", composition_of(OWN), claim(), "claim-uid@shop/orders", adopted=adopted)).children

    assert (child.name, child.object["data"]["of"]) == ("of-the-former-claim", "fl of-the-former-claim")
