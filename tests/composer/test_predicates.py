"""What a list finds at the start goes behind all that is new, unless nobody has answered it yet."""

from __future__ import annotations

from typing import Any

import pytest

from composer.predicates import changes_kind, is_unanswered
from runtime.changes import Change, ChangeKind
from runtime.objects import CRDS, Key, Object, dumps
from runtime.record import record_of
from tests.composer.factories import CLAIMS, claim
from tests.support.second_api import SecondApi

ANSWERED: Object = {"observedGeneration": 3}


def _change(before: Object | None, after: Object | None, resource: Any = CLAIMS) -> Change:
    old, new = (record_of(dumps(each), resource, {}) if each else None for each in (before, after))
    return Change(Key("shop", "orders"), ChangeKind.MODIFIED, old, new)


@pytest.mark.parametrize(
    ("found", "unanswered"),
    [
        pytest.param(claim(generation=3, status=ANSWERED), False, id="at rest"),
        pytest.param(claim(generation=3, status={"observedGeneration": -1}), True, id="born while nobody was at work"),
        pytest.param(claim(generation=4, status=ANSWERED), True, id="edited while nobody was at work"),
        pytest.param(claim(generation=3, status=ANSWERED, deleted=True), True, id="deleted while nobody was at work"),
    ],
)
def test_what_nobody_has_answered(found: Object, *, unanswered: bool) -> None:
    assert is_unanswered(_change(None, found)) is unanswered


def _crd(**changes: Any) -> Object:
    whole = SecondApi("cache.example.org").node_crd(**changes)
    whole["metadata"] |= {"uid": "u", "resourceVersion": "1"}
    return whole


@pytest.mark.parametrize(
    ("before", "after", "news"),
    [
        pytest.param(_crd(), _crd(), False, id="nothing"),
        pytest.param(_crd(), _crd(composable="true"), True, id="on the list"),
        pytest.param(_crd(), _crd(zone={"type": "string"}), True, id="another schema"),
        pytest.param(None, _crd(), True, id="it comes"),
        pytest.param(_crd(), None, True, id="it goes"),
        pytest.param(
            _crd(),
            {**_crd(), "status": {"conditions": [{"type": "Established", "status": "False"}]}},
            True,
            id="served no longer",
        ),
        pytest.param(
            _crd(),
            {**_crd(), "status": {"conditions": [{"type": "Established", "status": "True"}], "storedVersions": ["v1"]}},
            False,
            id="what it says of its storage",
        ),
    ],
)
def test_which_changes_of_a_definition_concern_claims(
    before: Object | None, after: Object | None, *, news: bool
) -> None:
    assert changes_kind(_change(before, after, CRDS)) is news
