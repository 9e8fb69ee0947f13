"""What a pass came to: the outcomes of its steps, put together for the report. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

import msgspec

from apis import names
from composer.causes import Cause, cause
from composer.claim.compose import Prepared
from composer.claim.decide import Annotate, Create, Keep, Orphan, Plan, RemoveFinalizer, Step, with_instruction
from composer.claim.deletion import effective_policy
from composer.claim.field_conflicts import still_yielded
from composer.claim.readiness import broken, child_cause, live_of, of_broken
from composer.claim.report import Findings
from composer.claim.snapshot import Snapshot
from composer.inventory import Entry
from composer.kinds.catalog import KindFacts
from composer.render.render import Rendered
from runtime.conditions import timestamp
from runtime.errors import ApiError, Conflict, NotFound, NotLeading, WriteConflict
from runtime.objects import Object, annotations_of, generation_of, observed_generation_of
from runtime.results import Result

_TEXT_LIMIT = 400


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


@dataclass(frozen=True, slots=True)
class Connected:
    """The Secret and what it was made from, both empty until it was complete once; what stands in the way.

    `is_denied`: the namespace does not let us use its Secrets. `again`: when the Secret is to be looked at next; None
    where that is left to the resync. `is_seen`: it is as it should be; `is_lost`: the one that the claim names is gone,
    or not the claim's any more.
    """

    secret: str
    hash: str
    causes: tuple[Cause, ...] = ()
    notes: tuple[Note, ...] = ()
    is_denied: bool = False
    again: timedelta | None = None
    is_seen: bool = False
    is_lost: bool = False

    @property
    def is_usable(self) -> bool:
        """Whether the claim has a connection Secret that is not known to be lost."""
        return bool(self.secret) and not self.is_lost

    def next_look(self, result: Result) -> Result:
        """Return when to make the next pass: for the Secret, or for what else asked for one, whichever is sooner."""
        asked = [after for after in (result.requeue_after, self.again) if after is not None]
        return Result(min(asked, default=None))


def after(
    snapshot: Snapshot, rendered: Rendered, steps: tuple[Step, ...], outcomes: tuple[Outcome, ...]
) -> tuple[Snapshot, Rendered]:
    """Let what was just written stand in for what was read: an old status proves nothing about a new spec."""
    written = {outcome.entry.place: outcome.written for outcome in outcomes if outcome.entry and outcome.written}
    created = {step.entry.place for step in steps if isinstance(step, Create)}
    if not written:
        return snapshot, rendered
    known = tuple(
        replace(each, live=written.get(each.entry.place, each.live)) if each.entry.place not in created else each
        for each in snapshot.known
    )
    children = tuple(
        msgspec.structs.replace(child, ready=child.ready and _has_seen(written.get(child.place)))
        for child in rendered.children
    )
    return replace(snapshot, known=known), msgspec.structs.replace(rendered, children=children)


def _has_seen(live: Object | None) -> bool:
    if live is None:
        return True
    observed = observed_generation_of(live)
    return observed is None or observed == generation_of(live)


def causes_of_children(snapshot: Snapshot, rendered: Rendered, plan: Plan) -> tuple[Cause, ...]:
    """Return what the children say of themselves, those apart of which the plan has spoken."""
    silent = {each.resource for each in plan.causes}
    found = (
        child_cause(child.resource, live_of(snapshot, child.place), ready=child.ready)
        for child in rendered.children
        if child.resource not in silent
    )
    return tuple(each for each in found if each is not None)


@dataclass(frozen=True, slots=True)
class Acted:
    """What a pass did: the claim as it stands now, the plan, what became of its steps and of the connection Secret."""

    prepared: Prepared
    plan: Plan
    outcomes: tuple[Outcome, ...]
    connected: Connected


def findings_of(acted: Acted, now: datetime, *, repeats: bool) -> Findings:
    """Return what a pass that composed a claim found; `repeats`: passes fail in a row, so that errors are told."""
    prepared, plan, outcomes, connected = acted.prepared, acted.plan, acted.outcomes, acted.connected
    snapshot, rendered = prepared.snapshot, prepared.rendered
    entries = entries_of(rendered, outcomes)
    causes = (
        *plan.causes,
        *causes_of(outcomes),
        *causes_of_errors(outcomes, repeats=repeats),
        *causes_of_conflicts(entries, timestamp(now)),
        *causes_of_children(snapshot, rendered, plan),
        *larger_of(rendered),
        *connected.causes,
        *prepared.remarks,
    )
    return Findings(
        causes=in_order(causes, rendered),
        entries=entries,
        rendered=rendered,
        judged=frozenset(resource.name for resource in prepared.spec.resources if resource.ready_when),
        composition=prepared.composition,
        revision=prepared.revision.name,
        has_rollout=prepared.revision.has_rollout,
        deletion_policy=effective_policy(snapshot, prepared.spec.deletion_policies),
        secret=connected.secret,
        connection_hash=connected.hash,
        published=connected.is_usable or not rendered.connection,
    )


def with_broken(snapshot: Snapshot, found: Findings) -> Findings:
    """Put first what the unusable children say of themselves that are wanted, and not rendered in this pass."""
    rendered = found.rendered
    waiting = {each.resource for each in rendered.waiting} if rendered else set()
    if rendered and not waiting:
        return found
    unusable = broken(snapshot, rendered, found.judged)
    more = tuple(of_broken(snapshot, each) for each in unusable if rendered is None or each.entry.resource in waiting)
    return replace(found, causes=tuple(dict.fromkeys((*more, *found.causes)))) if more else found


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


def instruction_note(snapshot: Snapshot, step: Annotate) -> Note | None:
    """Say what a child that somebody deleted is told; None for annotations that tell it nothing."""
    teardown = (step.annotations.get(names.TEARDOWN) or "").partition("/")[2]
    what = f"{step.entry.kind} {step.entry.name}"
    if not teardown:
        return None
    if snapshot.deleting:
        how = "let go of, untouched" if teardown == "Detach" else f"told {teardown}"
        return Note("LetGo" if teardown == "Detach" else "ChildDeleted", f"{what} is {how}: the claim is being deleted")
    return Note("LetGo", f"{what} was deleted by somebody else: it is let go of, untouched, and made again")


def finalizer_note(snapshot: Snapshot, step: RemoveFinalizer | Orphan) -> Note | None:
    """Say that a foreign child is let go of; its deletion by ourselves was told when it was asked for."""
    what = f"{step.entry.kind} {step.entry.name}"
    if isinstance(step, Orphan):
        return Note("LetGo", f"{what} lives on by itself: the deletion policy is {snapshot.spec.deletion_policy}")
    if snapshot.deleting:
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


def instructed_entries(outcomes: tuple[Outcome, ...]) -> tuple[Entry, ...]:
    """Return the entries of the objects that now carry a teardown instruction, with the instruction."""
    return tuple(
        with_instruction(
            outcome.entry, outcome.written, annotations_of(outcome.written)[names.TEARDOWN].rpartition("/")[2]
        )
        for outcome in outcomes
        if outcome.entry and outcome.written and names.TEARDOWN in annotations_of(outcome.written)
    )


def marks_moved(snapshot: Snapshot, plan: Plan) -> bool:
    """Return whether a dying child's marks were only now recorded: its word waits for the next pass, at once."""
    before = {each.entry.place: each.entry.marks for each in snapshot.known}
    return any(
        isinstance(step, Keep) and step.entry.place in before and step.entry.marks != before[step.entry.place]
        for step in plan.steps
        if step.entry.marks and _is_dying(snapshot, step)
    )


def _is_dying(snapshot: Snapshot, step: Step) -> bool:
    live = live_of(snapshot, step.entry.place)
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


def causes_of_conflicts(entries: tuple[Entry, ...], now: str) -> tuple[Cause, ...]:
    """Say which fields are yielded at `now` (RFC 3339 in UTC) because another manager keeps taking them."""
    found: list[Cause] = []
    for entry in entries:
        yielded = still_yielded(entry.yielded, now)
        if yielded:
            fields = ", ".join(f"{each.field} ({each.manager}; tried again at {each.until})" for each in yielded)
            text = f"{entry.kind} {entry.name}: another manager keeps changing fields, which are left alone: {fields}"
            found.append(cause("FieldConflict", text, resource=entry.resource))
    return tuple(found)


def causes_of_errors(outcomes: tuple[Outcome, ...], *, repeats: bool) -> tuple[Cause, ...]:
    """Return what a claim says of the steps that failed by an error that time may heal."""
    return tuple(
        cause("RequestFailed", in_words(each.error), resource=each.entry.resource if each.entry else "")
        for each in outcomes
        if repeats and each.error and not isinstance(each.error, NotLeading)
    )


def in_words(error: Exception) -> str:
    """Return what a claim says of an error that ends its passes in a row."""
    return f"passes over this claim fail in a row, the last by: {str(error) or type(error).__name__}"[:_TEXT_LIMIT]
