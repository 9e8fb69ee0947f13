"""What a pass came to: the outcomes of its steps, put together for the report. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import msgspec

from apis import names
from composer.causes import Cause, cause
from composer.claim.decide import Annotate, Create, Keep, LetGo, Plan, Release, Step, with_word
from composer.claim.field_conflicts import at_rest
from composer.claim.prune_guard import taken_away
from composer.claim.readiness import broken
from composer.claim.report import Findings, child_cause
from composer.claim.snapshot import Known, View
from composer.inventory import Entry
from composer.kinds.catalog import KindFacts
from composer.render.render import Rendered
from runtime.errors import ApiError, Conflict, NotFound, WriteConflict
from runtime.objects import Object, annotations_of, deleting, generation_of, observed_generation_of


@dataclass(frozen=True, slots=True)
class Note:
    """Something that happened, for an event."""

    reason: str
    message: str
    is_warning: bool = False


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one step: the entry as it is now (None when it is gone), the object if it was written."""

    entry: Entry | None
    written: Object | None = None
    facts: KindFacts | None = None
    cause: Cause | None = None
    error: ApiError | None = None
    notes: tuple[Note, ...] = ()


def after(
    view: View, rendered: Rendered, steps: tuple[Step, ...], outcomes: tuple[Outcome, ...]
) -> tuple[View, Rendered]:
    """Let what was just written stand in for what was read: an old status proves nothing about a new spec."""
    written = {outcome.entry.place: outcome.written for outcome in outcomes if outcome.entry and outcome.written}
    created = {step.entry.place for step in steps if isinstance(step, Create)}
    if not written:
        return view, rendered
    known = tuple(
        replace(each, live=written.get(each.entry.place, each.live)) if each.entry.place not in created else each
        for each in view.known
    )
    children = tuple(
        msgspec.structs.replace(child, ready=child.ready and _has_seen(written.get(child.place)))
        for child in rendered.children
    )
    return replace(view, known=known), msgspec.structs.replace(rendered, children=children)


def _has_seen(live: Object | None) -> bool:
    if live is None:
        return True
    observed = observed_generation_of(live)
    return observed is None or observed == generation_of(live)


def live_of(view: View, place: tuple[str, str, str]) -> Object | None:
    """Return the live child at a place of the composition, or None."""
    return next((each.live for each in view.known if each.entry.place == place), None)


def told_by(view: View, rendered: Rendered, plan: Plan) -> tuple[Cause, ...]:
    """Return what the children say of themselves, those apart of which the plan has spoken."""
    silent = {each.resource for each in plan.causes}
    found = (
        child_cause(child.resource, live_of(view, child.place), ready=child.ready)
        for child in rendered.children
        if child.resource not in silent
    )
    return tuple(each for each in found if each is not None)


def with_broken(view: View, found: Findings) -> Findings:
    """Put first what the unusable children say of themselves that are wanted, and not rendered in this pass."""
    rendered = found.rendered
    waiting = {each.resource for each in rendered.waiting} if rendered else set()
    if rendered and not waiting:
        return found
    unusable = broken(view, rendered, found.judged)
    more = tuple(of_broken(view, each) for each in unusable if rendered is None or each.entry.resource in waiting)
    return replace(found, causes=tuple(dict.fromkeys((*more, *found.causes)))) if more else found


def of_broken(view: View, each: Known) -> Cause:
    """Say why a child that a claim uses is not usable, where nothing can be made in its place in this pass."""
    entry, live = each.entry, each.live
    if live is not None and not deleting(live):
        said = child_cause(entry.resource, live, ready=False)
        return said or cause("ChildNotReady", f"{entry.kind} {entry.name} is not ready", resource=entry.resource)
    what = "is gone" if live is None else "was deleted"
    text = f"{entry.kind} {entry.name} {what}, and is not made again while the claim stays as it is"
    return taken_away(view, each) or cause("ChildNotReady", text, resource=entry.resource)


def in_order(causes: tuple[Cause, ...], rendered: Rendered) -> tuple[Cause, ...]:
    """Put the causes in the order of the composition; what is about no child comes last."""
    position = {child.resource: index for index, child in enumerate(rendered.children)}
    return tuple(sorted(causes, key=lambda each: position.get(each.resource, len(position))))


def causes_of(outcomes: tuple[Outcome, ...]) -> tuple[Cause, ...]:
    """Return what stood in the way of steps."""
    return tuple(outcome.cause for outcome in outcomes if outcome.cause)


def notes_of(outcomes: tuple[Outcome, ...]) -> tuple[Note, ...]:
    """Return what happened."""
    return tuple(note for outcome in outcomes for note in outcome.notes)


def word_note(view: View, step: Annotate) -> Note | None:
    """Say what a child that somebody deleted is told; None for annotations that tell it nothing."""
    verdict = (step.annotations.get(names.TEARDOWN) or "").partition("/")[2]
    what = f"{step.entry.kind} {step.entry.name}"
    if not verdict:
        return None
    if view.deleting:
        how = "let go of, untouched" if verdict == "Detach" else f"told {verdict}"
        return Note("LetGo" if verdict == "Detach" else "ChildDeleted", f"{what} is {how}: the claim is being deleted")
    return Note("LetGo", f"{what} was deleted by somebody else: it is let go of, untouched, and made again")


def release_note(view: View, step: Release | LetGo) -> Note | None:
    """Say that a foreign child is let go of; its deletion by ourselves was told when it was asked for."""
    what = f"{step.entry.kind} {step.entry.name}"
    if isinstance(step, LetGo):
        return Note("LetGo", f"{what} lives on by itself: the deletion policy is {view.spec.deletion_policy}")
    if view.deleting:
        return None
    return Note("ChildDeleted", f"{what} was deleted by somebody else: it is let go of and made again")


def gathered(notes: Iterable[Note]) -> tuple[Note, ...]:
    """Put notes of one reason into one, in the order in which the reasons came."""
    found: dict[tuple[str, bool], list[str]] = {}
    for each in notes:
        found.setdefault((each.reason, each.is_warning), []).append(each.message)
    return tuple(Note(reason, "; ".join(texts), is_warning) for (reason, is_warning), texts in found.items())


def entries_of(rendered: Rendered, outcomes: tuple[Outcome, ...]) -> tuple[Entry, ...]:
    """Return the inventory after a pass, in the order of creation."""
    position = {child.slot: index for index, child in enumerate(rendered.children)}
    entries = [outcome.entry for outcome in outcomes if outcome.entry]
    return tuple(sorted(entries, key=lambda each: (position.get(each.slot, len(position)), each.name)))


def heard_words(outcomes: tuple[Outcome, ...]) -> tuple[Entry, ...]:
    """Return the entries of the objects that now carry a teardown word, with the word."""
    return tuple(
        with_word(outcome.entry, outcome.written, annotations_of(outcome.written)[names.TEARDOWN].rpartition("/")[2])
        for outcome in outcomes
        if outcome.entry and outcome.written and names.TEARDOWN in annotations_of(outcome.written)
    )


def marks_moved(view: View, plan: Plan) -> bool:
    """Tell whether a dying child's marks were only now recorded: its word waits for the next pass, at once."""
    before = {each.entry.place: each.entry.marks for each in view.known}
    return any(
        isinstance(step, Keep) and step.entry.place in before and step.entry.marks != before[step.entry.place]
        for step in plan.steps
        if step.entry.marks and _is_dying(view, step)
    )


def _is_dying(view: View, step: Step) -> bool:
    live = live_of(view, step.entry.place)
    return live is not None and "deletionTimestamp" in live["metadata"]


def raise_first(outcomes: tuple[Outcome, ...]) -> None:
    """Fail the pass by its first error that time may heal, after everything else was done and told."""
    errors: list[ApiError] = [outcome.error for outcome in outcomes if outcome.error]
    for error in errors:
        if isinstance(error, WriteConflict | NotFound):
            raise Conflict(str(error)) from error
    if errors:
        raise errors[0]


def larger_of(rendered: Rendered) -> tuple[Cause, ...]:
    """Say which fields keep a larger value than the composition asks for now."""
    found: list[Cause] = []
    for child in rendered.children:
        for each in child.kept:
            asks = "leaves it out" if each.wanted is None else f"asks for {each.wanted}"
            what = f"{child.object['kind']} {child.object['metadata']['name']}: {each.path} stays {each.value}"
            text = f"{what}, which it never falls below; the composition {asks} now"
            found.append(cause("KeptLarger", text, resource=child.resource))
    return tuple(found)


def fights_of(entries: tuple[Entry, ...], now: str) -> tuple[Cause, ...]:
    """Say which fields rest at `now` (RFC 3339 in UTC) because another manager keeps taking them."""
    found: list[Cause] = []
    for entry in entries:
        resting = at_rest(entry.resting, now)
        if resting:
            fields = ", ".join(f"{each.field} ({each.manager}; tried again at {each.until})" for each in resting)
            text = f"{entry.kind} {entry.name}: another manager keeps changing fields, which are left alone: {fields}"
            found.append(cause("FieldConflict", text, resource=entry.resource))
    return tuple(found)
