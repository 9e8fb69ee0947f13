"""Data that a claim composed stays, whatever forgets that it is data: labels, templates, people, other operators."""

from __future__ import annotations

from dataclasses import replace

import msgspec
import pytest

from apis import names
from apis.reasons import ReasonClass
from composer.claim.decide import Create, Delete, Keep, RemoveFinalizer, decide
from composer.claim.snapshot import ObservedChild, Snapshot
from composer.kinds.catalog import KindFacts
from composer.render.render import Child, Rendered, Waiting
from runtime.objects import Object
from tests.composer.factories import (
    DATABASE,
    NOW,
    SETTINGS,
    VOLUME,
    child,
    claim,
    desired,
    live,
    observed,
    rendered,
    sent,
    snapshot,
)

WANTED = desired()
LIVE = live(WANTED)
SENT = sent(WANTED, LIVE)
KEPT = ObservedChild(SENT, LIVE, DATABASE)
SETTINGS_KNOWN = observed("settings", SETTINGS, uid="settings-uid")


def _reasons(known: Snapshot, composed: Rendered) -> list[str]:
    return [cause.reason for cause in decide(known, composed, now=NOW).causes]


def test_a_child_that_once_held_data_is_held_although_its_kind_says_otherwise_now() -> None:
    """The label of a CRD was lost, or the Composition says it no more."""
    harmless = msgspec.structs.replace(DATABASE, stateful=False)
    recorded = ObservedChild(SENT, LIVE, harmless)
    (kept,) = decide(_in(harmless, recorded), rendered(child(WANTED)), now=NOW).steps

    assert kept.entry.stateful
    assert _reasons(
        _in(harmless, recorded, SETTINGS_KNOWN), rendered(child(desired("settings", SETTINGS), "settings"))
    ) == ["HeldDeletion"]


def _in(facts: KindFacts, *known: ObservedChild) -> Snapshot:
    seen = snapshot(*known)
    return replace(seen, catalog={**seen.catalog, facts.resource.group_kind: facts})


# A foreign child that is gone, or goes, although it is wanted

VOLUME_WANTED = desired("data", VOLUME)
TAKEN: dict[str, tuple[Object | None, str, str]] = {
    "while it goes": (live(VOLUME_WANTED, deleted=True, finalizers=[names.TEARDOWN_FINALIZER]), "", "HeldDeletion"),
    "while somebody else holds it": (live(VOLUME_WANTED, deleted=True, finalizers=["theirs"]), "", "HeldDeletion"),
    "when it is gone": (None, "", "DatabaseLost"),
    "with a consent for another object": (None, "data=other-uid", "DatabaseLost"),
}


@pytest.mark.parametrize(("stored", "consent", "reason"), TAKEN.values(), ids=TAKEN)
def test_foreign_data_that_somebody_deleted_is_not_replaced(stored: Object | None, consent: str, reason: str) -> None:
    owner = claim(annotations={names.CONSENT: consent})
    plan = decide(snapshot(observed("data", VOLUME, stored=stored), of=owner), _with_volume(), now=NOW)

    assert [type(step) for step in plan.steps] == [Keep]
    assert plan.steps[0].entry.uid == "child-uid"
    (why,) = plan.causes
    assert (why.reason, why.reason_class) == (reason, ReasonClass.STALLED)
    assert "data=child-uid`" in why.message


@pytest.mark.parametrize(
    ("stored", "does"),
    [
        (live(VOLUME_WANTED, deleted=True, finalizers=[names.TEARDOWN_FINALIZER]), RemoveFinalizer),
        (live(VOLUME_WANTED, deleted=True, finalizers=["theirs"]), Keep),
        (None, Create),
    ],
    ids=["is let go of", "goes when its operator lets it", "is made anew"],
)
def test_consent_releases_foreign_data_that_somebody_deleted(stored: Object | None, does: type) -> None:
    owner = claim(annotations={names.CONSENT: "data=child-uid"})
    plan = decide(snapshot(observed("data", VOLUME, stored=stored), of=owner), _with_volume(), now=NOW)

    assert [type(step) for step in plan.steps] == [does]
    assert plan.causes == ()


def test_a_foreign_child_without_data_is_created_again() -> None:
    wanted = rendered(child(desired("settings", SETTINGS), "settings", ready=False))
    plan = decide(snapshot(observed("settings", SETTINGS, stored=None)), wanted, now=NOW)

    assert [type(step) for step in plan.steps] == [Create]


def _with_volume() -> Rendered:
    return rendered(child(VOLUME_WANTED, "data", ready=False))


def test_foreign_data_does_not_leave_the_composition_under_snapshot() -> None:
    owner = claim(annotations={names.CONSENT: "data=child-uid"}, deletionPolicy="Snapshot")
    plan = decide(snapshot(KEPT, observed("data", VOLUME), of=owner), rendered(child(WANTED)), now=NOW)

    assert [type(step) for step in plan.steps] == [Keep, Keep]
    assert [cause.reason for cause in plan.causes] == ["BackupImpossible"]


# A kind that is not served


def test_a_child_of_an_unlistable_kind_stays_in_the_inventory() -> None:
    gone = replace(observed("other", stored=None), facts=None, unseen=True)
    plan = decide(snapshot(gone, KEPT), rendered(child(WANTED)), now=NOW)

    assert sorted(step.entry.resource for step in plan.steps) == ["database", "other"]
    assert {type(step) for step in plan.steps} == {Keep}
    assert [cause.reason for cause in plan.causes] == ["KindNotInstalled"]


# One object under two names


FORMER = ObservedChild(msgspec.structs.replace(SENT, resource="first"), LIVE, DATABASE)
"""The same object, as the resource had it under its former name; consented to below."""
CONSENTED = claim(annotations={names.CONSENT: "first=child-uid"}, deletionPolicy="Delete")


def test_an_object_that_another_resource_has_is_not_deleted_with_its_former_name() -> None:
    for known in ((KEPT, FORMER), (FORMER, KEPT)):
        plan = decide(snapshot(*known, SETTINGS_KNOWN, of=CONSENTED), _with_settings(child(WANTED)), now=NOW)

        assert not [step for step in plan.steps if isinstance(step, Delete)]
        assert [step.entry.resource for step in plan.steps] == ["database", "settings"]


def test_an_object_of_a_resource_that_waits_is_not_deleted_with_its_former_name() -> None:
    composed = _with_settings(waiting=(Waiting("database", "settings", "resources.settings.status.x"),))
    plan = decide(snapshot(KEPT, FORMER, SETTINGS_KNOWN, of=CONSENTED), composed, now=NOW)

    assert not [step for step in plan.steps if isinstance(step, Delete)]


def _with_settings(*children: Child, **fields: object) -> Rendered:
    settings = child(desired("settings", SETTINGS), "settings")
    return rendered(*children, settings, **fields)
