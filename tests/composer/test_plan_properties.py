"""What holds for every plan, whatever a render says and whatever was found: hypothesis looks for a way round."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from apis import names
from apis.teardown import DeletionPolicy
from composer.claim.decide import Annotate, Create, Delete, Keep, Orphan, Plan, RemoveFinalizer, decide
from composer.claim.deletion import tear_down
from composer.claim.snapshot import ObservedChild, Snapshot, live_hash
from composer.hashes import sent_hash
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
        spoken = draw(st.sampled_from(["", f"{uid}/Delete", f"{uid}/Detach", "other/Delete"]))
        if spoken:
            stored = annotated(stored, teardown=spoken)
        if facts is VOLUME:
            stored["metadata"]["finalizers"] = [names.TEARDOWN_FINALIZER]
    depends_on = tuple(each for each in RESOURCES if each < resource and draw(st.booleans()))
    in_sync = stored is not None and draw(st.booleans())
    fields: dict[str, Any] = {"uid": uid, "depends_on": depends_on}
    if in_sync and stored is not None:
        fields |= {"desired": sent_hash(obj), "live": live_hash(stored, obj, None), "applied": True}
    return ObservedChild(entry(resource, facts, **fields), stored, facts)


@st.composite
def _case(draw: st.DrawFn) -> tuple[Snapshot, Rendered]:
    drawn = [draw(_known(resource)) for resource in RESOURCES]
    known = [each for each in drawn if each is not None]
    wanted = draw(st.lists(st.sampled_from(RESOURCES), unique=True))
    waiting = [each for each in RESOURCES if each not in wanted and draw(st.booleans())]
    consents = [each for each in RESOURCES if draw(st.booleans())]
    owner = claim(
        annotations={names.CONSENT: ",".join(f"{each}={each}-uid" for each in consents)},
        deletionPolicy=draw(st.sampled_from(POLICIES)),
    )
    children = [child(desired(each, draw(st.sampled_from(KINDS))), each) for each in wanted]
    found = rendered(*children, waiting=tuple(Waiting(each, "x", "resources.x.status.y") for each in waiting))
    return snapshot(*known, of=owner), found


def _words(plan: Plan) -> list[tuple[str, str]]:
    """Return every word of a plan: whose, and which."""
    removed = [(step.entry.resource, step.instruction) for step in plan.steps if isinstance(step, Delete)]
    annotated_ones = [step for step in plan.steps if isinstance(step, Annotate)]
    spoken = [(step.entry.resource, step.annotations.get(names.TEARDOWN) or "") for step in annotated_ones]
    return [*removed, *spoken]


@given(_case())
def test_data_goes_by_consent_alone(case: tuple[Snapshot, Rendered]) -> None:
    seen, found = case
    consents = seen.annotations[names.CONSENT].split(",")
    for step in decide(seen, found, now=NOW).steps:
        if isinstance(step, Delete | Orphan) and step.entry.stateful:
            assert f"{step.entry.resource}={uid_of(step.live)}" in consents


@given(_case())
def test_what_is_wanted_is_never_removed(case: tuple[Snapshot, Rendered]) -> None:
    seen, found = case
    wanted = {each.place for each in found.children} | {("waiting", each.resource, "") for each in found.waiting}
    for step in decide(seen, found, now=NOW).steps:
        if isinstance(step, Delete | Orphan):
            assert step.entry.place not in wanted
            assert ("waiting", step.entry.resource, "") not in wanted


@given(_case())
def test_a_word_to_what_is_wanted_is_detach(case: tuple[Snapshot, Rendered]) -> None:
    seen, found = case
    wanted = {each.resource for each in found.children}
    gone = {each.entry.resource for each in seen.known} - wanted
    for resource, word in _words(decide(seen, found, now=NOW)):
        if word and resource not in gone:
            kinds = {each.entry.place for each in seen.known if each.entry.resource == resource}
            is_switch = not kinds & {each.place for each in found.children}
            assert is_switch or word == f"{resource}-uid/Detach"


@given(_case())
def test_every_word_names_its_own_child(case: tuple[Snapshot, Rendered]) -> None:
    for resource, word in _words(decide(*case, now=NOW)):
        assert not word or word.startswith(f"{resource}-uid/")


@given(_case())
def test_nothing_that_lives_is_forgotten(case: tuple[Snapshot, Rendered]) -> None:
    """What has no step leaves the inventory: only what is gone may."""
    seen, found = case
    stepped = {step.entry.place for step in decide(seen, found, now=NOW).steps}

    for each in seen.known:
        assert each.live is None or each.entry.place in stepped


@given(_case())
def test_each_place_has_one_step(case: tuple[Snapshot, Rendered]) -> None:
    steps = decide(*case, now=NOW).steps

    assert len({step.entry.place for step in steps}) == len(steps)


@given(_case())
def test_nothing_goes_while_anything_waits(case: tuple[Snapshot, Rendered]) -> None:
    seen, found = case
    if not found.waiting:
        return
    consents = seen.annotations[names.CONSENT].split(",")
    for step in decide(seen, found, now=NOW).steps:
        if isinstance(step, Delete | Orphan):
            assert f"{step.entry.resource}={step.entry.resource}-uid" in consents


@given(_case(), st.sampled_from(POLICIES))
def test_a_teardown_ends_and_respects_the_order(case: tuple[Snapshot, Rendered], policy: DeletionPolicy) -> None:
    """Played forward, each wave after the last is gone, every teardown comes to its end."""
    known = case[0].known
    for _ in range(2 * len(RESOURCES) + 1):
        going = snapshot(*known, of=claim(deleted=True, deletionPolicy=policy))
        plan = tear_down(going, policy)
        if plan.done:
            return
        alive = [each for each in known if each.live is not None]
        for step in plan.steps:
            if not isinstance(step, Keep):
                dependents = [each for each in alive if step.entry.resource in each.entry.depends_on]
                assert dependents == []
        acted = {
            step.entry.place for step in plan.steps if isinstance(step, Delete | RemoveFinalizer | Orphan | Annotate)
        }
        # Whoever was told, and whoever had the instruction already, is gone by the next pass.
        told = {each.entry.place for each in alive if _has_word(each, plan)}
        known = tuple(
            ObservedChild(each.entry, None, each.facts) if each.entry.place in acted | told else each for each in known
        )
    raise AssertionError("the teardown does not end")


def _has_word(each: ObservedChild, plan: Plan | Any) -> bool:
    kept = any(isinstance(step, Keep) and step.entry.place == each.entry.place for step in plan.steps)
    needed = any(
        each.entry.resource in step.entry.depends_on for step in plan.steps if step.entry.place != each.entry.place
    )
    return kept and not needed


@given(_case())
def test_what_never_lived_is_created_once(case: tuple[Snapshot, Rendered]) -> None:
    seen, found = case
    alive = {each.entry.place for each in seen.known if each.live is not None}
    for step in decide(seen, found, now=NOW).steps:
        if isinstance(step, Create):
            assert step.entry.place not in alive
