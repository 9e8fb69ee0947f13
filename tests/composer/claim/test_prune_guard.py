"""Nothing new is made in the place of data before the consent: an application would be led to an empty database."""

from __future__ import annotations

import msgspec
import pytest

from apis import names
from composer.claim.decide import Delete, Keep, decide
from composer.claim.prune_guard import replacing_data, unwanted
from composer.claim.snapshot import ObservedChild, live_hash
from composer.hashes import sent_hash
from composer.kinds.catalog import KindFacts
from composer.render.render import Child
from runtime.objects import Object
from tests.composer.factories import (
    DATABASE,
    NOW,
    SETTINGS,
    annotated,
    child,
    claim,
    desired,
    entry,
    live,
    rendered,
    snapshot,
)

OLD = desired("database", DATABASE)
HELD = ObservedChild(entry("database", DATABASE), live(OLD), DATABASE)
CONSENT = {names.CONSENT: "database=child-uid"}


def _child(resource: str, facts: KindFacts, *, stateful: bool | None = None) -> Child:
    return msgspec.structs.replace(child(desired(resource, facts), resource, ready=False), stateful=stateful)


SAME, RENAMED = _child("database", DATABASE), _child("elsewhere", DATABASE)


@pytest.mark.parametrize(
    ("wanted", "annotations", "holds"),
    [
        pytest.param((SAME,), {}, False, id="the same resource"),
        pytest.param((RENAMED,), {}, True, id="another name for it"),
        pytest.param((_child("database", SETTINGS, stateful=True),), {}, True, id="another kind in its place"),
        pytest.param((RENAMED,), CONSENT, False, id="another name, with consent"),
        pytest.param((SAME, _child("second", DATABASE)), {}, False, id="one more beside it"),
        pytest.param((_child("settings", SETTINGS),), {}, False, id="only settings in its place"),
    ],
)
def test_a_replacement_of_data_waits_for_consent(
    wanted: tuple[Child, ...], annotations: dict[str, str], *, holds: bool
) -> None:
    causes = replacing_data(snapshot(HELD, of=claim(annotations=annotations)), rendered(*wanted))

    assert [cause.reason for cause in causes] == (["HeldDeletion"] if holds else [])


_REFERENCE = {"external-name": "orders_x", "incarnation": "oid-1"}
_DYING = live(annotated(OLD, **{"external-name": "orders_x", "incarnation": "oid-1"}), deleted=True)


def test_what_leads_to_a_database_is_recorded_before_its_provider_lets_go() -> None:
    steps = decide(snapshot(ObservedChild(entry(), _DYING, DATABASE)), rendered(RENAMED), now=NOW).steps

    assert Keep(entry(external_reference=_REFERENCE)) in steps


@pytest.mark.parametrize(
    ("known", "annotations", "held"),
    [
        pytest.param({"external_reference": _REFERENCE}, {}, True, id="nobody consented"),
        pytest.param({"external_reference": _REFERENCE}, CONSENT, False, id="by consent"),
        pytest.param({"external_reference": _REFERENCE, "outcome": "child-uid/Delete"}, {}, False, id="instructed"),
        pytest.param({}, {}, False, id="never made"),
        # A crash after its deletion may keep its instruction from the inventory.
        pytest.param({"external_reference": _REFERENCE, "stateful": False}, {}, False, id="without data"),
    ],
)
def test_a_held_child_that_is_gone_is_held_on(known: Object, annotations: dict[str, str], *, held: bool) -> None:
    of = claim(annotations=annotations)
    gone = ObservedChild(entry(**known), None, DATABASE)

    causes = [why for _, why in unwanted(snapshot(gone, of=of), rendered(RENAMED))]
    assert [why is not None and "orders_x stays in the cloud" in why.message for why in causes] == [held]
    assert bool(replacing_data(snapshot(gone, of=of), rendered(RENAMED))) is held


SYNCED = {"observedGeneration": 1, "conditions": [{"type": "Synced", "status": "True", "reason": "InSync"}]}
HELD_CHANGE = {"observedGeneration": 1, "conditions": [{"type": "Synced", "status": "False", "reason": "DriftHeld"}]}


def _steps_of_what_is_not_wanted_any_more(
    database: Object, *, wanted_database: Object, depends_on: tuple[str, ...] = ("settings",), deleted: bool = False
) -> list[type]:
    """Decide on a database with its settings, which the composition has no more; return the steps of the settings."""
    old = desired("settings", SETTINGS)
    leaving = ObservedChild(entry("settings", SETTINGS, uid="s"), live(old, uid="s", deleted=deleted), SETTINGS)
    sent = {"desired": sent_hash(OLD), "live": live_hash(database, OLD, None), "applied": True}
    known = ObservedChild(entry("database", DATABASE, depends_on=depends_on, **sent), database, DATABASE)
    others = [
        ObservedChild(entry(name, SETTINGS, uid=name), live(desired(name, SETTINGS), uid=name), SETTINGS)
        for name in ("first", "second")
    ]
    wanted = [
        child(wanted_database, "database"),
        *(child(desired(name, SETTINGS), name) for name in ("first", "second")),
    ]
    plan = decide(snapshot(leaving, known, *others), rendered(*wanted), now=NOW)
    return [type(step) for step in plan.steps if step.entry.resource == "settings"]


def _database(status: Object, *, deleted: bool = False, generation: int = 1) -> Object:
    return {**live(OLD, deleted=deleted, generation=generation), "status": status}


USES = {
    "carried out": (_database(SYNCED), OLD, Delete),
    "changed by this very pass": (_database(SYNCED), desired("database", DATABASE, spec={"limit": 30}), Keep),
    "not seen by its provider yet": (_database(SYNCED, generation=2), OLD, Keep),
    "waiting for its window": (_database(HELD_CHANGE), OLD, Keep),
    "without a word of its provider": (_database({}), OLD, Delete),
}


@pytest.mark.parametrize(("database", "wanted", "step"), USES.values(), ids=USES.keys())
def test_child_goes_once_what_depended_on_it_has_carried_out_its_spec(
    database: Object, wanted: Object, step: type
) -> None:
    assert _steps_of_what_is_not_wanted_any_more(database, wanted_database=wanted) == [step]
