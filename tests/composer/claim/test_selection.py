"""Which Composition and revision serve a claim."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import msgspec
import pytest

from apis.reasons import ReasonClass
from composer.causes import Cause, cause
from composer.claim.selection import admitted, choose, choose_revision, not_allowed
from composer.composition.revision import Candidate, Revision, candidates
from composer.models import AllowedNamespaces, AppliesTo, ClaimSpec


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
    "a tie is reported": Case(
        (GOLD, RIVAL), "AmbiguousComposition", labels={"tier": "gold"}, is_cause=True, says=("gold", "rival")
    ),
    "a choice is never made again": Case((EVERYWHERE, GOLD), "onprem", chosen="onprem", labels={"tier": "gold"}),
    "a choice that is gone is not replaced": Case((EVERYWHERE,), "CompositionNotFound", chosen="aws", is_cause=True),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_the_composition_is_chosen_by_the_rules(case: Case) -> None:
    spec = msgspec.convert(case.spec, ClaimSpec)

    chosen = choose(spec, case.chosen, case.labels, case.namespace, case.known)

    assert isinstance(chosen, Cause) == case.is_cause
    assert (chosen.reason if isinstance(chosen, Cause) else chosen) == case.gives
    for words in case.says:
        assert isinstance(chosen, Cause)
        assert words in chosen.message


def _fenced(name: str, applies_to: dict[str, Any] | None = None, allowed: dict[str, Any] | None = None) -> Candidate:
    made = _candidate(name, applies_to=applies_to, cloud=name)
    return replace(made, allowed=None if allowed is None else msgspec.convert(allowed, AllowedNamespaces))


_RED = {"namespaceSelector": {"matchLabels": {"team": "red"}}}
_FOR_RED = {"selector": {"matchLabels": {"team": "red"}}}


class Fence(msgspec.Struct, frozen=True):
    """A Composition, and whether a claim of namespace `shop` may name it."""

    composition: Candidate
    admits: bool
    labels: dict[str, str] = {}
    chosen: str = ""


FENCES = {
    "without allowedNamespaces it is for all": Fence(_fenced("c"), admits=True),
    "it is for those to which it applies": Fence(_fenced("c", _RED), admits=True, labels={"team": "red"}),
    "it is not for the others": Fence(_fenced("c", _RED), admits=False, labels={"team": "blue"}),
    "what applies to claims by their labels is for all": Fence(
        _fenced("c", {"claimSelector": {"matchLabels": {"tier": "gold"}}}), admits=True
    ),
    "by name": Fence(_fenced("c", allowed={"names": ["shop"]}), admits=True),
    "by another name": Fence(_fenced("c", allowed={"names": ["shop-2"]}), admits=False),
    "by labels": Fence(_fenced("c", allowed=_FOR_RED), admits=True, labels={"team": "red"}),
    "by other labels": Fence(_fenced("c", allowed=_FOR_RED), admits=False, labels={"team": "blue"}),
    "by name, though the labels are others": Fence(
        _fenced("c", allowed={"names": ["shop"], **_FOR_RED}), admits=True, labels={"team": "blue"}
    ),
    "by an empty selector all": Fence(_fenced("c", allowed={"selector": {}}), admits=True),
    "an empty fence lets nobody in": Fence(_fenced("c", allowed={}), admits=False),
    "allowedNamespaces goes before appliesTo": Fence(
        _fenced("c", _RED, {"names": ["other"]}), admits=False, labels={"team": "red"}
    ),
    "who has it keeps it": Fence(_fenced("c", allowed={}), admits=True, chosen="c"),
}


@pytest.mark.parametrize("case", FENCES.values(), ids=FENCES)
@pytest.mark.parametrize("how", ["compositionRef", "compositionSelector"])
def test_a_composition_is_chosen_by_claims_of_allowed_namespaces_alone(case: Fence, how: str) -> None:
    spec = {"compositionRef": {"name": "c"}} if how == "compositionRef" else {how: {"matchLabels": {"cloud": "c"}}}
    known = admitted((case.composition, EVERYWHERE), case.chosen, "shop", case.labels)

    chosen = choose(msgspec.convert(spec, ClaimSpec), case.chosen, {}, case.labels, known)

    assert (chosen == "c") == case.admits
    if isinstance(chosen, Cause):
        assert chosen.reason == "CompositionNotFound"
        elsewhere = choose(msgspec.convert(spec, ClaimSpec), "", {}, {}, (EVERYWHERE,))
        assert isinstance(elsewhere, Cause)
        assert chosen.message == elsewhere.message


def test_a_composition_that_applies_to_a_namespace_and_is_not_for_it_does_not_serve_it() -> None:
    fenced = _fenced("c", {"priority": 9}, {"names": ["other"]})

    chosen = choose(ClaimSpec(), "", {}, {}, admitted((fenced, EVERYWHERE), "", "shop", {}))

    assert chosen == "onprem"


def test_a_living_claim_reports_that_a_new_one_would_not_get_its_composition() -> None:
    refusal = not_allowed(_fenced("c", allowed={}), "shop", {})

    assert refusal is not None
    assert (refusal.reason, refusal.reason_class) == ("NotAllowed", ReasonClass.HELD)
    assert "keeps it and goes on" in refusal.message
    assert not_allowed(_fenced("c"), "shop", {}) is None


def test_the_allowed_namespaces_are_read_from_the_composition() -> None:
    spec = {"compositeTypeRef": {"apiVersion": "db/v1", "kind": "Db"}, "resources": []}
    obj = {"metadata": {"name": "a", "generation": 1}, "spec": {**spec, "allowedNamespaces": {"names": ["shop"]}}}

    (candidate,) = candidates([obj], "db/v1", "Db")

    assert (candidate.admits("shop", {}), candidate.admits("other", {})) == (True, False)


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
def test_the_revision_is_chosen_by_the_rules(pin: str, known: tuple[Revision, ...], gives: str) -> None:
    chosen = choose_revision("c", pin, known)

    assert (chosen.reason if isinstance(chosen, Cause) else chosen.name) == gives


def test_the_refusal_is_reported_without_a_good_revision() -> None:
    assert choose_revision("c", "", (), refusal=REFUSED) == REFUSED
    assert choose_revision("c", "", (ONE,), refusal=REFUSED) == ONE


def test_candidates_are_compositions_of_the_kind_alone() -> None:
    def composition(name: str, kind: str) -> dict[str, Any]:
        ref = {"apiVersion": "db/v1", "kind": kind}
        return {"metadata": {"name": name, "generation": 1}, "spec": {"compositeTypeRef": ref, "resources": []}}

    objects = [composition("b", "Db"), composition("a", "Db"), composition("c", "Queue"), {"metadata": {"name": "x"}}]

    assert [candidate.name for candidate in candidates(objects, "db/v1", "Db")] == ["a", "b"]
