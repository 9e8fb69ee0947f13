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


# Its own name
