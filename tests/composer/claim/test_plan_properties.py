"""What holds for every plan, whatever a render says and whatever was found: hypothesis looks for a way round."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from apis import names
from apis.teardown import DeletionPolicy
from composer.claim.decide import Annotate, Create, Delete, Keep, Orphan, Plan, RemoveFinalizer, decide
from composer.claim.deletion import tear_down
from composer.claim.snapshot import ObservedChild, Snapshot
from composer.kinds.catalog import KindFacts
from composer.render.render import Rendered, Waiting
from runtime.objects import Object, uid_of
from tests.composer.factories import (
    DATABASE,
    NOW,
    SETTINGS,
    VOLUME,
    annotated,
    child,
    claim,
    desired,
    entry,
    live,
    rendered,
    sent,
    snapshot,
)

RESOURCES = ("a", "b", "c", "d")
KINDS = (DATABASE, SETTINGS, VOLUME)
# All properties look at one plan; each had a hundred of its own.
MOST_PLANS = max(150, settings().max_examples)
POLICIES: tuple[DeletionPolicy, ...] = ("Orphan", "Snapshot", "Delete")


@st.composite
def _known(draw: st.DrawFn, resource: str) -> ObservedChild | None:
    facts: KindFacts = draw(st.sampled_from(KINDS))
    state = draw(st.sampled_from(["never", "gone", "alive", "dying"]))
    if state == "never":
        return None
    uid = f"{resource}-uid"
    obj = desired(resource, facts)
    stored: Object | None = None
    if state != "gone":
        stored = live(obj, uid=uid, deleted=state == "dying")
        instruction = draw(st.sampled_from(["", f"{uid}/Delete", f"{uid}/Detach", "other/Delete"]))
        if instruction:
            stored = annotated(stored, teardown=instruction)
        if facts is VOLUME:
            stored["metadata"]["finalizers"] = [names.TEARDOWN_FINALIZER]
    depends_on = tuple(name for name in RESOURCES if name < resource and draw(st.booleans()))
    if stored is not None and draw(st.booleans()):
        return ObservedChild(sent(obj, stored, depends_on=depends_on), stored, facts)
    return ObservedChild(entry(resource, facts, uid=uid, depends_on=depends_on), stored, facts)


@st.composite
def _case(draw: st.DrawFn) -> tuple[Snapshot, Rendered]:
    drawn = [draw(_known(resource)) for resource in RESOURCES]
    known = [observed for observed in drawn if observed is not None]
    wanted = draw(st.lists(st.sampled_from(RESOURCES), unique=True))
    waiting = [name for name in RESOURCES if name not in wanted and draw(st.booleans())]
    consents = [name for name in RESOURCES if draw(st.booleans())]
    owner = claim(
        annotations={names.CONSENT: ",".join(f"{name}={name}-uid" for name in consents)},
        deletionPolicy=draw(st.sampled_from(POLICIES)),
    )
    children = [child(desired(name, draw(st.sampled_from(KINDS))), name) for name in wanted]
    composed = rendered(*children, waiting=tuple(Waiting(name, "x", "resources.x.status.y") for name in waiting))
    return snapshot(*known, of=owner), composed


def _instructions(plan: Plan) -> list[tuple[str, str]]:
    """Return every instruction of a plan: whose, and which."""
    removed = [(step.entry.resource, step.instruction) for step in plan.steps if isinstance(step, Delete)]
    annotated_ones = [step for step in plan.steps if isinstance(step, Annotate)]
    written = [(step.entry.resource, step.annotations.get(names.TEARDOWN) or "") for step in annotated_ones]
    return [*removed, *written]


@dataclass(frozen=True)
class _Case:
    """What a pass has seen and rendered, and the plan that it makes of both."""

    seen: Snapshot
    composed: Rendered
    plan: Plan

    @property
    def consents(self) -> list[str]:
        return self.seen.annotations[names.CONSENT].split(",")

    @property
    def removals(self) -> list[Delete | Orphan]:
        return [step for step in self.plan.steps if isinstance(step, Delete | Orphan)]


def _data_is_deleted_by_consent_alone(case: _Case) -> bool:
    stateful = [step for step in case.removals if step.entry.stateful]
    return all(f"{step.entry.resource}={uid_of(step.live)}" in case.consents for step in stateful)


def _a_wanted_child_is_never_removed(case: _Case) -> bool:
    wanted = {child.place for child in case.composed.children}
    waiting = {held.resource for held in case.composed.waiting}
    return not any(step.entry.place in wanted or step.entry.resource in waiting for step in case.removals)


def _an_instruction_to_a_wanted_child_is_detach(case: _Case) -> bool:
    wanted = {child.resource for child in case.composed.children}
    gone = {observed.entry.resource for observed in case.seen.children} - wanted
    places = {child.place for child in case.composed.children}
    for resource, instruction in _instructions(case.plan):
        if instruction and resource not in gone:
            kinds = {observed.entry.place for observed in case.seen.children if observed.entry.resource == resource}
            if kinds & places and instruction != f"{resource}-uid/Detach":
                return False
    return True


def _an_instruction_names_its_own_child(case: _Case) -> bool:
    return all(not text or text.startswith(f"{resource}-uid/") for resource, text in _instructions(case.plan))


def _a_living_child_is_never_forgotten(case: _Case) -> bool:
    """What has no step leaves the inventory: only what is gone may."""
    stepped = {step.entry.place for step in case.plan.steps}
    return all(observed.live is None or observed.entry.place in stepped for observed in case.seen.children)


def _a_place_has_one_step(case: _Case) -> bool:
    return len({step.entry.place for step in case.plan.steps}) == len(case.plan.steps)


def _a_deletion_waits_while_anything_waits(case: _Case) -> bool:
    consented = (f"{step.entry.resource}={step.entry.resource}-uid" in case.consents for step in case.removals)
    return not case.composed.waiting or all(consented)


def _a_child_that_never_lived_is_created_once(case: _Case) -> bool:
    alive = {observed.entry.place for observed in case.seen.children if observed.live is not None}
    return not any(isinstance(step, Create) and step.entry.place in alive for step in case.plan.steps)


PROPERTIES = (
    _data_is_deleted_by_consent_alone,
    _a_wanted_child_is_never_removed,
    _an_instruction_to_a_wanted_child_is_detach,
    _an_instruction_names_its_own_child,
    _a_living_child_is_never_forgotten,
    _a_place_has_one_step,
    _a_deletion_waits_while_anything_waits,
    _a_child_that_never_lived_is_created_once,
)


@settings(max_examples=MOST_PLANS)
@given(_case())
def test_a_plan_has_the_properties_of_every_plan(drawn: tuple[Snapshot, Rendered]) -> None:
    case = _Case(*drawn, decide(*drawn, now=NOW))

    assert [holds.__name__ for holds in PROPERTIES if not holds(case)] == []


@given(_case(), st.sampled_from(POLICIES))
def test_a_teardown_ends_and_respects_the_order(case: tuple[Snapshot, Rendered], policy: DeletionPolicy) -> None:
    """Played forward, each wave after the last is gone, every teardown comes to its end."""
    known = case[0].children
    for _ in range(2 * len(RESOURCES) + 1):
        going = snapshot(*known, of=claim(deleted=True, deletionPolicy=policy))
        plan = tear_down(going, policy)
        if plan.done:
            return
        alive = [observed for observed in known if observed.live is not None]
        for step in plan.steps:
            if not isinstance(step, Keep):
                dependents = [observed for observed in alive if step.entry.resource in observed.entry.depends_on]
                assert dependents == []
        acted = {
            step.entry.place for step in plan.steps if isinstance(step, Delete | RemoveFinalizer | Orphan | Annotate)
        }
        # Whoever was instructed, and whoever had the instruction already, is gone by the next pass.
        instructed = {observed.entry.place for observed in alive if _has_instruction(observed, plan)}
        known = tuple(
            ObservedChild(observed.entry, None, observed.facts)
            if observed.entry.place in acted | instructed
            else observed
            for observed in known
        )
    raise AssertionError("the teardown does not end")


def _has_instruction(observed: ObservedChild, plan: Plan | Any) -> bool:
    kept = any(isinstance(step, Keep) and step.entry.place == observed.entry.place for step in plan.steps)
    needed = any(
        observed.entry.resource in step.entry.depends_on
        for step in plan.steps
        if step.entry.place != observed.entry.place
    )
    return kept and not needed
