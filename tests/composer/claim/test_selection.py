"""Which Composition and revision serve a claim."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import msgspec
import pytest

from apis.reasons import ReasonClass
from composer.causes import Cause, cause
from composer.claim.selection import ClaimState, choose, choose_revision, not_allowed
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
    says: tuple[str, ...] = ()


def _selector(**labels: str) -> dict[str, Any]:
    return {"compositionSelector": {"matchLabels": labels}}


def _ref(name: str) -> dict[str, Any]:
    return {"compositionRef": {"name": name}}


TIER = {"tier": "gold"}
BOTH, AMBIGUOUS, ABSENT = (AWS, GCP), "AmbiguousComposition", "CompositionNotFound"
CASES = {
    "a ref wins over everything": Case((*BOTH, EVERYWHERE), "gcp", _ref("gcp"), chosen="aws"),
    "a ref that is not there names its neighbours": Case(BOTH, ABSENT, _ref("awz"), says=("'aws'", "gcp")),
    "a selector chooses the only one": Case(BOTH, "aws", _selector(cloud="aws")),
    "a selector that matches two names both": Case(BOTH, AMBIGUOUS, _selector(tier="gold"), says=("aws", "gcp")),
    "a selector that matches two keeps what was chosen": Case(BOTH, "gcp", _selector(tier="gold"), chosen="gcp"),
    "a selector that matches none": Case((AWS,), ABSENT, _selector(cloud="x")),
    "a selector that changed switches": Case(BOTH, "gcp", _selector(cloud="gcp"), chosen="aws"),
    "what applies to everything serves": Case((AWS, EVERYWHERE), "onprem"),
    "what says nothing of itself never serves by default": Case(BOTH, ABSENT),
    "the highest priority goes first": Case((EVERYWHERE, GOLD), "gold", labels=TIER),
    "labels of the claim decide": Case((EVERYWHERE, GOLD), "onprem", labels={"tier": "silver"}),
    "labels of the namespace decide": Case((EVERYWHERE, TEAM), "team", namespace={"team": "red"}),
    "a tie is reported": Case((GOLD, RIVAL), AMBIGUOUS, labels=TIER, says=("gold", "rival")),
    "a choice is never made again": Case((EVERYWHERE, GOLD), "onprem", chosen="onprem", labels=TIER),
    "a choice that is gone is not replaced": Case((EVERYWHERE,), ABSENT, chosen="aws"),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_the_composition_is_chosen_by_the_rules(case: Case) -> None:
    chosen = choose(msgspec.convert(case.spec, ClaimSpec), case.chosen, case.labels, case.namespace, case.known)

    assert (chosen.reason if isinstance(chosen, Cause) else chosen) == case.gives
    assert isinstance(chosen, Cause) == (case.gives in (AMBIGUOUS, ABSENT))
    assert all(isinstance(chosen, Cause) and words in chosen.message for words in case.says)


def _fenced(name: str, applies_to: dict[str, Any] | None = None, allowed: dict[str, Any] | None = None) -> Candidate:
    made = _candidate(name, applies_to=applies_to, cloud=name)
    return replace(made, allowed=None if allowed is None else msgspec.convert(allowed, AllowedNamespaces))


RED, BLUE = {"team": "red"}, {"team": "blue"}


def test_a_living_claim_reports_that_a_new_one_would_not_get_its_composition() -> None:
    refusal = not_allowed(_fenced("c", allowed={}), "shop", {})

    assert refusal is not None
    assert (refusal.reason, refusal.reason_class) == ("NotAllowed", ReasonClass.HELD)
    assert "keeps it and goes on" in refusal.message
    assert not_allowed(_fenced("c"), "shop", {}) is None


ONE = Revision("c-one", 1, "c", {})
TWO = Revision("c-two", 2, "c", {})
WAVES = Revision("c-two", 2, "c", {"rollout": {"waves": ["1"]}})
OTHER = Revision("d-one", 9, "d", {})
_NEW = ClaimState()
REFUSED = cause("TemplateInvalid", "spec.x:3: broken")


@pytest.mark.parametrize(
    ("pin", "known", "state", "gives"),
    [
        pytest.param("", (ONE, TWO, OTHER), _NEW, "c-two", id="the newest"),
        pytest.param("c-two", (ONE, TWO), _NEW, "c-two", id="a pin to the newest"),
        pytest.param("c-one", (ONE, TWO), _NEW, "InvalidValue", id="a new claim gets none that was replaced"),
        pytest.param("c-one", (ONE, TWO), ClaimState(revision="c-two"), "InvalidValue", id="nor one that has another"),
        pytest.param("c-one", (ONE, TWO), ClaimState(revision="c-one"), "c-one", id="it stays on its own"),
        pytest.param("c-one", (ONE, TWO), ClaimState("", "c-two", "c-one"), "c-one", id="it goes back to its former"),
        pytest.param("c-one", (ONE, WAVES), _NEW, "c-one", id="what new claims get while another goes by waves"),
        pytest.param("c-one", (ONE, TWO), ClaimState(has_children=True), "c-one", id="it is not known which it had"),
        pytest.param("d-one", (ONE, OTHER), _NEW, "CompositionNotFound", id="a pin to another composition's"),
        pytest.param("", (OTHER,), _NEW, "CompositionNotFound", id="none is there yet"),
    ],
)
def test_the_revision_is_chosen_by_the_rules(
    pin: str, known: tuple[Revision, ...], state: ClaimState, gives: str
) -> None:
    chosen = choose_revision("c", pin, known, state=state)

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
