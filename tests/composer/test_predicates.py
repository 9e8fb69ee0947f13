"""What a list finds at the start goes behind all that is new, unless nobody has answered it yet."""

from __future__ import annotations

from typing import Any

import pytest

from composer.predicates import changes_kind
from runtime.changes import Change, ChangeKind
from runtime.objects import CRDS, Key, Object, dumps
from runtime.record import record_of
from tests.composer.factories import CLAIMS
from tests.support.second_api import SecondApi


def _change(before: Object | None, after: Object | None, resource: Any = CLAIMS) -> Change:
    old, new = (record_of(dumps(obj), resource, {}) if obj else None for obj in (before, after))
    return Change(Key("shop", "orders"), ChangeKind.MODIFIED, old, new)


def _crd(**changes: Any) -> Object:
    whole = SecondApi("cache.example.org").node_crd(**changes)
    whole["metadata"] |= {"uid": "u", "resourceVersion": "1"}
    return whole


@pytest.mark.parametrize(
    ("before", "after", "expected"),
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
def test_a_change_of_a_crd_concerns_claims_when_it_changes_the_kind(
    before: Object | None, after: Object | None, *, expected: bool
) -> None:
    assert changes_kind(_change(before, after, CRDS)) is expected
