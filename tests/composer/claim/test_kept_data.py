"""Data that a claim composed stays, whatever forgets that it is data: labels, templates, people, other operators."""

from __future__ import annotations

from dataclasses import replace

import msgspec

from apis import names
from composer.claim.decide import Create, Delete, decide
from composer.claim.snapshot import ObservedChild, Snapshot
from composer.kinds.catalog import KindFacts
from composer.render.render import Child, Rendered, Waiting
from tests.composer.factories import (
    DATABASE,
    NOW,
    SETTINGS,
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


def test_a_foreign_child_without_data_is_created_again() -> None:
    wanted = rendered(child(desired("settings", SETTINGS), "settings", ready=False))
    plan = decide(snapshot(observed("settings", SETTINGS, stored=None)), wanted, now=NOW)

    assert [type(step) for step in plan.steps] == [Create]


# A kind that is not served


# One object under two names


FORMER = ObservedChild(msgspec.structs.replace(SENT, resource="first"), LIVE, DATABASE)
"""The same object, as the resource had it under its former name; consented to below."""
CONSENTED = claim(annotations={names.CONSENT: "first=child-uid"}, deletionPolicy="Delete")


def test_an_object_of_a_resource_that_waits_is_not_deleted_with_its_former_name() -> None:
    composed = _with_settings(waiting=(Waiting("database", "settings", "resources.settings.status.x"),))
    plan = decide(snapshot(KEPT, FORMER, SETTINGS_KNOWN, of=CONSENTED), composed, now=NOW)

    assert not [step for step in plan.steps if isinstance(step, Delete)]


def _with_settings(*children: Child, **fields: object) -> Rendered:
    settings = child(desired("settings", SETTINGS), "settings")
    return rendered(*children, settings, **fields)
