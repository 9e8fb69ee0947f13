"""What was compared with its template once is known again by a digest of all that the comparison reads."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from apis import names
from composer.render.render import render
from composer.workers.answer_check import AnswerError, CheckedObjects, refuse_foreign
from tests.composer.factories import claim
from tests.composer.workers.forged_answers import COMPOSITION, FORGED, IDENTITY, Plain, forged, request_of_all


@pytest.mark.parametrize("forge", FORGED.values(), ids=FORGED)
def test_a_forged_render_is_refused_after_a_true_one_was_accepted(forge: Callable[[Plain], None]) -> None:
    request, checked = request_of_all(), CheckedObjects()
    refuse_foreign(request, render(request), checked)

    with pytest.raises(AnswerError):
        refuse_foreign(request, forged(request, forge), checked)


def _database(**changes: Any) -> dict[str, Any]:
    """Return the Composition with a changed resource `database`."""
    resources = [
        {**resource, **changes} if resource["name"] == "database" else resource for resource in COMPOSITION["resources"]
    ]
    return {**COMPOSITION, "resources": resources}


OTHER_REQUESTS: dict[str, dict[str, Any]] = {
    "another claim of the name": {"identity": IDENTITY.replace("claim-uid", "other-uid")},
    "another uid": {"claim": {**claim(), "metadata": {**claim()["metadata"], "uid": "other-uid"}}},
    "another policy": {
        "claim": claim(deletionPolicy="Delete"),
        "composition": {**COMPOSITION, "deletionPolicies": ["Delete"]},
    },
    "no adoption": {"claim": claim(annotations={names.ADOPT: "none"})},
    "another Composition": {"composition_name": "mysql"},
    "another template": {"composition": _database(template={"apiVersion": "v1", "kind": "ConfigMap"})},
    "another place of origin": {"origins": {"database": "db"}},
    "another origin of an element": {"element_origins": {"each": {"x": "x"}}},
    "a place that held data": {"stateful_places": (("network", "", "ConfigMap"),)},
    "a kind that holds data": {"stateful_foreign": ("ConfigMap",)},
    "no floors": {"floors": ()},
}


@pytest.mark.parametrize("change", OTHER_REQUESTS.values(), ids=OTHER_REQUESTS)
def test_an_object_that_was_accepted_for_one_request_is_not_for_another(change: dict[str, Any]) -> None:
    request, checked = request_of_all(), CheckedObjects()
    rendered = render(request)
    refuse_foreign(request, rendered, checked)

    with pytest.raises(AnswerError):
        refuse_foreign(msgspec.structs.replace(request, **change), rendered, checked)


def test_the_oldest_of_the_checked_objects_is_forgotten() -> None:
    checked = CheckedObjects(limit=2)
    for digest in (b"1", b"2", b"3"):
        checked.add(digest)

    assert [digest in checked for digest in (b"1", b"2", b"3")] == [False, True, True]
