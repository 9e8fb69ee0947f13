"""What a list finds at the start goes behind all that is new, unless nobody has answered it yet."""

from __future__ import annotations

from typing import Any

import pytest

from apis.names import COMPOSITIONS
from composer.predicates import changes_admission, changes_choice, changes_kind, is_unanswered
from runtime.changes import Change, ChangeKind
from runtime.objects import CRDS, Key, Object, dumps
from runtime.record import record_of
from tests.composer.factories import CLAIMS, claim
from tests.support.second_api import SecondApi

ANSWERED: Object = {"observedGeneration": 3}


def _change(before: Object | None, after: Object | None, resource: Any = CLAIMS) -> Change:
    old, new = (record_of(dumps(obj), resource, {}) if obj else None for obj in (before, after))
    return Change(Key("shop", "orders"), ChangeKind.MODIFIED, old, new)


@pytest.mark.parametrize(
    ("obj", "unanswered"),
    [
        pytest.param(claim(generation=3, status=ANSWERED), False, id="settled"),
        pytest.param(claim(generation=3, status={"observedGeneration": -1}), True, id="created meanwhile"),
        pytest.param(claim(generation=4, status=ANSWERED), True, id="edited meanwhile"),
        pytest.param(claim(generation=3, status=ANSWERED, deleted=True), True, id="deleted meanwhile"),
    ],
)
def test_a_claim_is_unanswered_until_its_status_has_its_generation(obj: Object, *, unanswered: bool) -> None:
    assert is_unanswered(_change(None, obj)) is unanswered


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


def _composition(*, status: str = "True", checked: int = 3, generation: int = 3, **spec: Any) -> Object:
    ready = {"type": "Ready", "status": status, "reason": "Accepted", "message": "", "observedGeneration": checked}
    meta = {"name": "c", "uid": "u", "resourceVersion": "1", "generation": generation, "labels": {"tier": "a"}}
    return {
        "apiVersion": COMPOSITIONS.api_version,
        "kind": COMPOSITIONS.kind,
        "metadata": meta,
        "spec": {"resources": [], **spec},
        "status": {"conditions": [ready]},
    }


def _with_metadata(obj: Object, **changes: Any) -> Object:
    return {**obj, "metadata": {**obj["metadata"], **changes}}


@pytest.mark.parametrize(
    ("after", "of_undecided", "of_all"),
    [
        pytest.param(_composition(), False, False, id="nothing"),
        pytest.param(_composition(generation=4, resources=[{"name": "a"}]), True, False, id="another content"),
        pytest.param(_composition(checked=4), True, False, id="its content was checked"),
        pytest.param(_composition(status="False"), True, True, id="it is not accepted any more"),
        pytest.param(_composition(generation=4, appliesTo={"priority": 1}), True, True, id="whom it applies to"),
        pytest.param(_composition(generation=4, allowedNamespaces={}), True, True, id="who may use it"),
        pytest.param(_composition(generation=4, compositeTypeRef={"kind": "Queue"}), True, True, id="whom it serves"),
        pytest.param(_with_metadata(_composition(), labels={"tier": "b"}), True, True, id="its labels"),
        pytest.param(
            _with_metadata(_composition(), deletionTimestamp="2026-01-01T00:00:00Z"), True, True, id="it goes"
        ),
        pytest.param(None, True, True, id="it is gone"),
    ],
)
def test_a_new_content_of_a_composition_concerns_claims_without_a_revision(
    after: Object | None, *, of_undecided: bool, of_all: bool
) -> None:
    change = _change(_composition(), after, COMPOSITIONS)
    assert (changes_choice(change), changes_admission(change)) == (of_undecided, of_all)
