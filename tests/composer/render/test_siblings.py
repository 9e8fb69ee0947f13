"""Elements of a forEach that other resources read by key, and names that are not known yet."""

from __future__ import annotations

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


def test_the_key_of_an_element_is_a_text() -> None:
    with pytest.raises(CompositionError, match="16 is undefined, did you mean '16'"):
        _reading("{{ resources.groups[claim.spec.version | int].metadata.name }}")


# Its own name
