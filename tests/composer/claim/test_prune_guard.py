"""Nothing new is made in the place of data before the consent: an application would be led to an empty database."""

from __future__ import annotations

from dataclasses import replace

import msgspec
import pytest

from apis import names
from composer.claim.decide import Annotate, Delete, Keep, decide
from composer.claim.prune_guard import replacing_data, unwanted
from composer.claim.snapshot import ObservedChild, live_hash
from composer.claim.undecided import steps_unrendered, taken_out
from composer.hashes import sent_hash
from composer.kinds.catalog import KindFacts
from composer.render.render import Child, Waiting
from runtime.objects import Object, Resource
from tests.composer.factories import (
    DATABASE,
    NOW,
    RULES,
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


def test_a_held_child_that_somebody_deleted_is_released_by_its_provider() -> None:
    known = ObservedChild(entry(external_reference=_REFERENCE), _DYING, DATABASE)
    plan = decide(snapshot(known), rendered(RENAMED), now=NOW)

    step = next(step for step in plan.steps if step.entry.resource == "database")
    assert isinstance(step, Annotate)
    assert step.annotations[names.TEARDOWN] == "child-uid/Detach"
    assert [why.reason for why in plan.causes] == ["HeldDeletion"]
    assert steps_unrendered(snapshot(known)) == (step,)
    assert steps_unrendered(snapshot(HELD)) == ()


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


ASO_RULES = KindFacts(
    Resource("dbforpostgresql.azure.com", "v1", "FlexibleServersFirewallRule", "flexibleserversfirewallrules"),
    stateful=False,
    allowed=True,
)
USERS = KindFacts(
    Resource("gcp.fairlead.dev", "v1alpha1", "CloudSQLUser", "cloudsqlusers"), stateful=False, allowed=True
)
LOGIN = {"connection": {"username": "app", "secretRef": {"name": "app-credentials"}}}


def _there(name: str, facts: KindFacts, status: Object | None = None) -> ObservedChild:
    return ObservedChild(
        entry(name, facts, uid=name), live(desired(name, facts), uid=name) | {"status": status or {}}, facts
    )


_SIX_RULES = tuple(f"rule-{number}" for number in range(6))
TAKEN_OUT: dict[str, tuple[tuple[ObservedChild, ...], tuple[str, ...], tuple[str, ...]]] = {
    "five of six rules go at once": (tuple(_there(name, RULES) for name in _SIX_RULES), ("rule-0",), ()),
    "all rules go beside a database that stays": (
        (_there("database", DATABASE), *(_there(name, RULES) for name in _SIX_RULES)),
        ("database",),
        (),
    ),
    "rules that are all that a claim has go": (tuple(_there(name, RULES) for name in _SIX_RULES), (), ()),
    "most logins are held, and the rules beside them are not": (
        (*(_there(name, USERS, LOGIN) for name in "abc"), *(_there(name, RULES) for name in _SIX_RULES)),
        ("a",),
        ("b", "c"),
    ),
    "rules that stay do not outweigh logins that go": (
        (*(_there(name, USERS, LOGIN) for name in "abc"), *(_there(name, RULES) for name in _SIX_RULES)),
        ("a", *_SIX_RULES),
        ("b", "c"),
    ),
    "most of another operator's objects are held": (
        tuple(_there(name, SETTINGS) for name in "abc"),
        ("a",),
        ("b", "c"),
    ),
}


@pytest.mark.parametrize(("present", "wanted", "held"), TAKEN_OUT.values(), ids=TAKEN_OUT.keys())
def test_what_holds_neither_data_nor_a_login_goes_at_once(
    present: tuple[ObservedChild, ...], wanted: tuple[str, ...], held: tuple[str, ...]
) -> None:
    facts_of = {observed.entry.resource: observed.facts or DATABASE for observed in present}
    whole = rendered(*(_child(name, facts_of[name]) for name in wanted))
    causes = {observed.entry.resource: why for observed, why in unwanted(snapshot(*present), whole)}

    assert set(causes) == set(facts_of) - set(wanted)
    assert {name for name, why in causes.items() if why is not None} == set(held)
    assert {why.reason for why in causes.values() if why is not None} <= {"HeldDeletion"}


STRANGER = ObservedChild(entry(uid=""), live(OLD, uid="strangers", labels={}), DATABASE)
USER_OF_RULES = replace(HELD, entry=entry(depends_on=("rule-0", "rule-1")))
OTHERS: dict[str, tuple[ObservedChild, tuple[Child, ...], tuple[Waiting, ...], set[str]]] = {
    "is not the claim's": (STRANGER, (SAME,), (), {"rule-0", "rule-1"}),
    "waits": (HELD, (), (Waiting("database", "network", "p"),), {"rule-0", "rule-1"}),
    "is held": (HELD, (RENAMED,), (), {"rule-0", "rule-1"}),
    "is held, and depends on them": (USER_OF_RULES, (RENAMED,), (), set()),
    "waits, and depends on them": (USER_OF_RULES, (), (Waiting("database", "network", "p"),), set()),
}


@pytest.mark.parametrize(("other", "wanted", "waiting", "going"), OTHERS.values(), ids=OTHERS.keys())
def test_rules_go_whatever_another_part_of_the_claim_waits_for_but_for_their_order(
    other: ObservedChild, wanted: tuple[Child, ...], waiting: tuple[Waiting, ...], going: set[str]
) -> None:
    rules = (*(_there(f"rule-{number}", RULES) for number in range(2)), _there("aso", ASO_RULES), _there("s", SETTINGS))
    composed = rendered(*wanted, waiting=waiting)
    going = {*going, "aso"}
    plan = decide(snapshot(other, *rules), composed, now=NOW)

    assert {step.entry.resource for step in plan.steps if isinstance(step, Delete)} - {"s"} == going
    if wanted == (RENAMED,):
        resources = {"elsewhere", "rule-0", "rule-1", "aso"}
        held = taken_out(snapshot(other, *rules), composed, resources)
        assert {gone.entry.resource for gone in held} == going
        assert taken_out(snapshot(other, *rules), composed, {"elsewhere"}) == ()
    else:
        assert {why.resource for why in plan.causes} == {"database", "s"}


SYNCED = {"observedGeneration": 1, "conditions": [{"type": "Synced", "status": "True", "reason": "InSync"}]}
HELD_CHANGE = {"observedGeneration": 1, "conditions": [{"type": "Synced", "status": "False", "reason": "DriftHeld"}]}


def _steps_of_what_is_not_wanted_any_more(
    database: Object, *, wanted_database: Object, facts: KindFacts = SETTINGS, deleted: bool = False
) -> list[type]:
    """Decide on a database with its settings, which the composition has no more; return the steps of the settings."""
    old = desired("settings", facts)
    leaving = ObservedChild(entry("settings", facts, uid="s"), live(old, uid="s", deleted=deleted), facts)
    sent = {"desired": sent_hash(OLD), "live": live_hash(database, OLD, None), "applied": True}
    known = ObservedChild(entry("database", DATABASE, depends_on=("settings",), **sent), database, DATABASE)
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


def test_child_that_somebody_deletes_while_another_uses_it_gets_its_instruction() -> None:
    used = _database(SYNCED, generation=2)
    assert _steps_of_what_is_not_wanted_any_more(used, wanted_database=OLD, facts=RULES, deleted=True) == [Delete]
