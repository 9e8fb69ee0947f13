"""What holds for every plan, whatever a render says and whatever was found: hypothesis looks for a way round."""

from __future__ import annotations

from typing import Any

from hypothesis import given
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


@given(_case())
def test_data_is_deleted_by_consent_alone(case: tuple[Snapshot, Rendered]) -> None:
    seen, composed = case
    consents = seen.annotations[names.CONSENT].split(",")
    for step in decide(seen, composed, now=NOW).steps:
        if isinstance(step, Delete | Orphan) and step.entry.stateful:
            assert f"{step.entry.resource}={uid_of(step.live)}" in consents


@given(_case())
def test_a_wanted_child_is_never_removed(case: tuple[Snapshot, Rendered]) -> None:
    seen, composed = case
    wanted = {child.place for child in composed.children} | {
        ("waiting", held.resource, "") for held in composed.waiting
    }
    for step in decide(seen, composed, now=NOW).steps:
        if isinstance(step, Delete | Orphan):
            assert step.entry.place not in wanted
            assert ("waiting", step.entry.resource, "") not in wanted


@given(_case())
def test_an_instruction_to_a_wanted_child_is_detach(case: tuple[Snapshot, Rendered]) -> None:
    seen, composed = case
    wanted = {child.resource for child in composed.children}
    gone = {observed.entry.resource for observed in seen.children} - wanted
    for resource, instruction in _instructions(decide(seen, composed, now=NOW)):
        if instruction and resource not in gone:
            kinds = {observed.entry.place for observed in seen.children if observed.entry.resource == resource}
            is_switch = not kinds & {child.place for child in composed.children}
            assert is_switch or instruction == f"{resource}-uid/Detach"


@given(_case())
def test_an_instruction_names_its_own_child(case: tuple[Snapshot, Rendered]) -> None:
    for resource, instruction in _instructions(decide(*case, now=NOW)):
        assert not instruction or instruction.startswith(f"{resource}-uid/")


@given(_case())
def test_a_living_child_is_never_forgotten(case: tuple[Snapshot, Rendered]) -> None:
    """What has no step leaves the inventory: only what is gone may."""
    seen, composed = case
    stepped = {step.entry.place for step in decide(seen, composed, now=NOW).steps}

    for observed in seen.children:
        assert observed.live is None or observed.entry.place in stepped


@given(_case())
def test_a_place_has_one_step(case: tuple[Snapshot, Rendered]) -> None:
    steps = decide(*case, now=NOW).steps

    assert len({step.entry.place for step in steps}) == len(steps)


@given(_case())
def test_a_deletion_waits_while_anything_waits(case: tuple[Snapshot, Rendered]) -> None:
    seen, composed = case
    if not composed.waiting:
        return
    consents = seen.annotations[names.CONSENT].split(",")
    for step in decide(seen, composed, now=NOW).steps:
        if isinstance(step, Delete | Orphan):
            assert f"{step.entry.resource}={step.entry.resource}-uid" in consents


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


@given(_case())
def test_a_child_that_never_lived_is_created_once(case: tuple[Snapshot, Rendered]) -> None:
    seen, composed = case
    alive = {observed.entry.place for observed in seen.children if observed.live is not None}
    for step in decide(seen, composed, now=NOW).steps:
        if isinstance(step, Create):
            assert step.entry.place not in alive
