"""Which Composition and revision serve a claim."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from composer.choose import Candidate, Revision, candidates, choose, choose_revision
from composer.models import AppliesTo, ClaimSpec
from composer.reasons import Cause, cause


def _candidate(name: str, *, applies_to: dict[str, Any] | None = None, **labels: str) -> Candidate:
    return Candidate(name, labels, None if applies_to is None else msgspec.convert(applies_to, AppliesTo))


AWS = _candidate("aws", cloud="aws", tier="gold")
GCP = _candidate("gcp", cloud="gcp", tier="gold")
EVERYWHERE = _candidate("onprem", applies_to={})
GOLD = _candidate("gold", applies_to={"claimSelector": {"matchLabels": {"tier": "gold"}}, "priority": 10})
TEAM = _candidate("team", applies_to={"namespaceSelector": {"matchLabels": {"team": "red"}}, "priority": 5})
RIVAL = _candidate("rival", applies_to={"priority": 10})


class Case(msgspec.Struct, frozen=True):
    known: tuple[Candidate, ...]
    gives: str
    spec: dict[str, Any] = {}
    chosen: str = ""
    labels: dict[str, str] = {}
    namespace: dict[str, str] = {}
    is_cause: bool = False
    says: tuple[str, ...] = ()


CASES = {
    "a ref wins over everything": Case(
        (AWS, GCP, EVERYWHERE), "gcp", {"compositionRef": {"name": "gcp"}}, chosen="aws"
    ),
    "a ref that is not there names its neighbours": Case(
        (AWS, GCP), "CompositionNotFound", {"compositionRef": {"name": "awz"}}, is_cause=True, says=("'aws'", "gcp")
    ),
    "a selector chooses the only one": Case(
        (AWS, GCP), "aws", {"compositionSelector": {"matchLabels": {"cloud": "aws"}}}
    ),
    "a selector that matches two names both": Case(
        (AWS, GCP),
        "AmbiguousComposition",
        {"compositionSelector": {"matchLabels": {"tier": "gold"}}},
        is_cause=True,
        says=("aws", "gcp"),
    ),
    "a selector that matches two keeps what was chosen": Case(
        (AWS, GCP), "gcp", {"compositionSelector": {"matchLabels": {"tier": "gold"}}}, chosen="gcp"
    ),
    "a selector that matches none": Case(
        (AWS,), "CompositionNotFound", {"compositionSelector": {"matchLabels": {"cloud": "x"}}}, is_cause=True
    ),
    "a selector that changed switches": Case(
        (AWS, GCP), "gcp", {"compositionSelector": {"matchLabels": {"cloud": "gcp"}}}, chosen="aws"
    ),
    "what applies to everything serves": Case((AWS, EVERYWHERE), "onprem"),
    "what says nothing of itself never serves by default": Case((AWS, GCP), "CompositionNotFound", is_cause=True),
    "the highest priority goes first": Case((EVERYWHERE, GOLD), "gold", labels={"tier": "gold"}),
    "labels of the claim decide": Case((EVERYWHERE, GOLD), "onprem", labels={"tier": "silver"}),
    "labels of the namespace decide": Case((EVERYWHERE, TEAM), "team", namespace={"team": "red"}),
    "a tie is told": Case(
        (GOLD, RIVAL), "AmbiguousComposition", labels={"tier": "gold"}, is_cause=True, says=("gold", "rival")
    ),
    "a choice is never made again": Case((EVERYWHERE, GOLD), "onprem", chosen="onprem", labels={"tier": "gold"}),
    "a choice that is gone is not replaced": Case((EVERYWHERE,), "CompositionNotFound", chosen="aws", is_cause=True),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_the_choice(case: Case) -> None:
    spec = msgspec.convert(case.spec, ClaimSpec)

    found = choose(spec, case.chosen, case.labels, case.namespace, case.known)

    assert isinstance(found, Cause) == case.is_cause
    assert (found.reason if isinstance(found, Cause) else found) == case.gives
    for words in case.says:
        assert isinstance(found, Cause)
        assert words in found.message


ONE = Revision("c-one", 1, "c", {})
TWO = Revision("c-two", 2, "c", {})
OTHER = Revision("d-one", 9, "d", {})
REFUSED = cause("TemplateInvalid", "spec.x:3: broken")


@pytest.mark.parametrize(
    ("pin", "known", "gives"),
    [
        ("", (ONE, TWO, OTHER), "c-two"),
        ("c-one", (ONE, TWO), "c-one"),
        ("d-one", (ONE, OTHER), "CompositionNotFound"),
        ("", (OTHER,), "CompositionNotFound"),
    ],
    ids=["the newest", "the pinned one", "a pin to another composition's is refused", "none is there yet"],
)
def test_the_revision(pin: str, known: tuple[Revision, ...], gives: str) -> None:
    found = choose_revision("c", pin, known)

    assert (found.reason if isinstance(found, Cause) else found.name) == gives


def test_without_a_good_revision_the_refusal_is_told() -> None:
    assert choose_revision("c", "", (), refusal=REFUSED) == REFUSED
    assert choose_revision("c", "", (ONE,), refusal=REFUSED) == ONE


def test_only_compositions_of_the_kind_are_candidates() -> None:
    def composition(name: str, kind: str) -> dict[str, Any]:
        ref = {"apiVersion": "db/v1", "kind": kind}
        return {"metadata": {"name": name, "generation": 1}, "spec": {"compositeTypeRef": ref, "resources": []}}

    objects = [composition("b", "Db"), composition("a", "Db"), composition("c", "Queue"), {"metadata": {"name": "x"}}]

    assert [each.name for each in candidates(objects, "db/v1", "Db")] == ["a", "b"]
