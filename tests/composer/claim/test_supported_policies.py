"""Which deletion policies a claim has where its status, which names the revision in use, was lost."""

from __future__ import annotations

from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apis import names
from apis.teardown import DeletionPolicy
from composer.claim.compose import Preparer
from composer.claim.deletion import effective_policy
from composer.claim.snapshot import Snapshot
from composer.composition.revision import Candidate, Revision
from composer.models import RolloutPhase, RolloutStatus
from composer.render.render import Rendered
from composer.render.request import Request
from runtime.objects import Object
from tests.composer.factories import CLAIMS, claim, snapshot

ALL: tuple[DeletionPolicy, ...] = ("Orphan", "Snapshot", "Delete")
ANNOTATED = {names.COMPOSITION: "c"}
LOST: dict[str, Object] = {
    "no status at all": {},
    "a status without a composition": {"observedGeneration": 1},
    "a status without a revision": {"composition": {"name": "c"}},
}


class _Library:
    """Knows the revisions of one Composition, named `c`."""

    def __init__(self, *revisions: Revision) -> None:
        self._revisions = revisions

    def candidates(self, api_version: str, kind: str) -> tuple[Candidate, ...]:
        raise NotImplementedError

    def revisions(self, composition: str) -> tuple[Revision, ...]:
        return self._revisions if composition == "c" else ()

    def environment(self, name: str) -> dict[str, str] | None:
        raise NotImplementedError


class _NoRenderer:
    async def render(self, request: Request) -> Rendered:
        raise NotImplementedError


def _composition(policies: tuple[DeletionPolicy, ...]) -> dict[str, Any]:
    made = {"apiVersion": "v1", "kind": "ConfigMap", "data": {"a": "b"}}
    return {
        "compositeTypeRef": {"apiVersion": CLAIMS.api_version, "kind": CLAIMS.kind},
        "deletionPolicies": list(policies),
        "resources": [{"name": "settings", "template": made}],
    }


def _revision(
    number: int, policies: tuple[DeletionPolicy, ...], phase: RolloutPhase = "Finished", *, of: int | None = None
) -> Revision:
    """Return a revision with waves; `of`: the number that its state speaks of, its own by default."""
    state = RolloutStatus(revision=number if of is None else of, phase=phase)
    return Revision(f"c-{number}", number, "c", {**_composition(policies), "rollout": {"waves": ["100%"]}}, state)


def _unreadable(number: int) -> Revision:
    return Revision(f"c-{number}", number, "c", {"resources": "none"})


def _supported(of: Object, *revisions: Revision) -> tuple[DeletionPolicy, ...] | None:
    return Preparer(_Library(*revisions), _NoRenderer()).supported_policies(snapshot(of=of))


def _lost(status: Object | None = None, **spec: Any) -> Object:
    made = claim(annotations=ANNOTATED, **spec)
    del made["status"]
    return made if not status else {**made, "status": status}


CASES: dict[str, tuple[Revision, ...]] = {
    "no revision": (),
    "a finished one": (_revision(1, ALL),),
    "one without waves": (Revision("c-1", 1, "c", _composition(ALL)),),
    "one that offers Delete alone": (_revision(1, ("Delete",)),),
    "one that offers no backup": (_revision(1, ("Orphan", "Delete")),),
    "none that finished": (_revision(1, ALL, "Progressing"), _revision(2, ALL, "Halted")),
    "a newer one that failed": (_revision(1, ALL), _revision(2, ("Orphan",), "Reverted")),
    "an unreadable one": (_unreadable(1),),
}


@pytest.mark.parametrize("wanted", ALL)
@pytest.mark.parametrize("lost", LOST.values(), ids=LOST)
@pytest.mark.parametrize("known", CASES.values(), ids=CASES)
def test_a_claim_without_its_status_gets_the_backup_that_it_asks_for_and_loses_nothing(
    known: tuple[Revision, ...], lost: Object, wanted: DeletionPolicy
) -> None:
    of = _lost(lost, deletionPolicy=wanted)

    assert effective_policy(snapshot(of=of), _supported(of, *known)) == (
        "Snapshot" if wanted == "Snapshot" else "Orphan"
    )


def test_a_claim_without_its_status_and_composition_gets_the_backup_too() -> None:
    of = _lost(deletionPolicy="Snapshot")
    of["metadata"]["annotations"] = {}

    assert effective_policy(snapshot(of=of), _supported(of, _revision(1, ALL))) == "Snapshot"


_revisions = st.lists(
    st.builds(
        _revision,
        st.integers(min_value=1, max_value=5),
        st.permutations(ALL).flatmap(lambda order: st.integers(1, 3).map(lambda count: tuple(order[:count]))),
        st.sampled_from(get_args(RolloutPhase)),
    )
    | st.builds(_unreadable, st.integers(min_value=1, max_value=5)),
    max_size=4,
)


@given(known=_revisions, lost=st.sampled_from(sorted(LOST)), wanted=st.sampled_from(ALL))
def test_a_claim_without_its_status_is_never_destroyed(
    known: list[Revision], lost: str, wanted: DeletionPolicy
) -> None:
    of = _lost(LOST[lost], deletionPolicy=wanted)
    supported = _supported(of, *known)

    assert "Delete" not in (supported or ())
    assert effective_policy(snapshot(of=of), supported) != "Delete"


def _with(revision: str) -> Snapshot:
    return snapshot(of=claim(annotations=ANNOTATED, status={"composition": {"name": "c", "revision": revision}}))


def test_a_claim_with_its_status_has_the_policies_of_the_revision_that_it_names() -> None:
    preparer = Preparer(_Library(_revision(1, ("Orphan", "Delete")), _revision(2, ALL), _unreadable(3)), _NoRenderer())

    assert preparer.supported_policies(_with("c-1")) == ("Orphan", "Delete")
    assert preparer.supported_policies(_with("c-3")) is None
    assert preparer.supported_policies(_with("c-4")) is None
