"""What a pass did: the outcomes of its steps, and the findings that its report is made of. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

import msgspec

from apis import names
from apis.reasons import ReasonClass
from composer.causes import Cause, cause
from composer.claim.compose import Prepared
from composer.claim.decide import (
    Annotate,
    Create,
    Delete,
    Keep,
    Orphan,
    Plan,
    RemoveFinalizer,
    Step,
    with_instruction,
)
from composer.claim.deletion import effective_policy
from composer.claim.field_conflicts import still_yielded
from composer.claim.readiness import broken, child_cause, live_of, of_broken
from composer.claim.report import Findings
from composer.claim.snapshot import Snapshot
from composer.connection.passwords import KeptPasswords
from composer.inventory import Entry
from composer.kinds.catalog import KindFacts
from composer.render.render import Rendered
from runtime.conditions import timestamp
from runtime.errors import ApiError, Conflict, NotFound, NotLeading, WriteConflict
from runtime.objects import Object, annotations_of, generation_of, observed_generation_of
from runtime.results import Result

_TEXT_LIMIT = 400
# So soon a provider that creates at once has answered.
_PROMPT = timedelta(milliseconds=500)


@dataclass(frozen=True, slots=True)
class Note:
    """Something that happened, for an event."""

    reason: str
    message: str
    is_warning: bool = False


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of one step: the entry as it is now (None when it is gone), the object if it was written.

    `over`: the version of the object, as it was seen, that the one write was bound to; empty where there were more.
    """

    entry: Entry | None
    written: Object | None = None
    facts: KindFacts | None = None
    cause: Cause | None = None
    error: ApiError | None = None
    notes: tuple[Note, ...] = ()
    over: str = ""


@dataclass(frozen=True, slots=True)
class Connected:
    """The connection Secret and the hash of what it is made from, both empty until it was complete once.

    `causes`: why it is not as it should be. `is_denied`: the namespace does not let us use its Secrets. `again`: when
    to check the Secret next; None where that is left to the resync. `is_seen`: it is as it should be. `is_lost`: the
    one that the claim names is gone, or is not the claim's any more.
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
        delays = [after for after in (result.requeue_after, self.again) if after is not None]
        return Result(min(delays, default=None))


def after(
    snapshot: Snapshot, rendered: Rendered, steps: tuple[Step, ...], outcomes: tuple[Outcome, ...]
) -> tuple[Snapshot, Rendered]:
    """Return claim and render as the writes left them: a status from before a write proves nothing about its spec."""
    written = {outcome.entry.place: outcome.written for outcome in outcomes if outcome.entry and outcome.written}
    created = {step.entry.place for step in steps if isinstance(step, Create)}
    if not written:
        return snapshot, rendered
    observed = tuple(
        replace(child, live=written.get(child.entry.place, child.live)) if child.entry.place not in created else child
        for child in snapshot.children
    )
    children = tuple(
        msgspec.structs.replace(child, ready=child.ready and _is_observed(written.get(child.place)))
        for child in rendered.children
    )
    return replace(snapshot, children=observed), msgspec.structs.replace(rendered, children=children)


def without_gone(snapshot: Snapshot, steps: tuple[Step, ...], outcomes: tuple[Outcome, ...]) -> Snapshot:
    """Return the snapshot without the objects that the answers to these steps prove to be gone, or orphaned."""
    gone = {
        (step.entry.place, step.entry.name)
        for step, outcome in zip(steps, outcomes, strict=True)
        if isinstance(step, Delete | Orphan) and outcome.entry is None and not (outcome.cause or outcome.error)
    }
    children = (
        replace(child, live=None) if (child.entry.place, child.entry.name) in gone else child
        for child in snapshot.children
    )
    return replace(snapshot, children=tuple(children))


def _is_observed(live: Object | None) -> bool:
    """Return whether the operator of a written object has seen this generation of it; nothing written is seen."""
    if live is None:
        return True
    observed = observed_generation_of(live)
    return observed is None or observed == generation_of(live)


def causes_of_children(snapshot: Snapshot, rendered: Rendered, plan: Plan) -> tuple[Cause, ...]:
    """Return what the conditions of the children say, without those that the plan has a cause for."""
    in_plan = {why.resource for why in plan.causes}
    child_causes = (
        child_cause(child.resource, live_of(snapshot, child.place), ready=child.ready)
        for child in rendered.children
        if child.resource not in in_plan
    )
    return tuple(why for why in child_causes if why is not None)


@dataclass(frozen=True, slots=True)
class Acted:
    """What a pass did: the plan, the outcomes of its steps and of the connection Secret.

    `snapshot` and `rendered` are the claim, its children and its render as the writes of the pass left them.
    """

    prepared: Prepared
    plan: Plan
    outcomes: tuple[Outcome, ...]
    snapshot: Snapshot
    rendered: Rendered
    connected: Connected
    passwords: KeptPasswords = field(default_factory=KeptPasswords)

    @property
    def notes(self) -> tuple[Note, ...]:
        """What happened in the pass, for events."""
        return (*notes_of(self.outcomes), *self.connected.notes)

    @property
    def is_new_reference(self) -> bool:
        """Whether the pass recorded an external reference that a child's instruction waits for."""
        return has_new_reference(self.snapshot, self.plan)


@dataclass(frozen=True, slots=True)
class PassResult:
    """How a pass ended: when to make the next one, and the outcomes of its steps, of which one may have failed."""

    result: Result
    outcomes: tuple[Outcome, ...] = ()


def findings_of(acted: Acted, now: datetime, *, repeats: bool) -> Findings:
    """Return the findings of a pass that composed a claim; `repeats`: passes fail in a row, so errors are reported."""
    prepared, plan, outcomes, connected = acted.prepared, acted.plan, acted.outcomes, acted.connected
    snapshot, rendered = acted.snapshot, acted.rendered
    entries = entries_of(rendered, outcomes)
    causes = (
        *plan.causes,
        *causes_of(outcomes),
        *causes_of_errors(outcomes, repeats=repeats),
        *causes_of_conflicts(entries, timestamp(now)),
        *causes_of_children(snapshot, rendered, plan),
        *causes_of_floors(rendered),
        *acted.passwords.causes,
        *connected.causes,
        *prepared.remarks,
    )
    return Findings(
        causes=in_order(causes, rendered),
        early=_early(acted, causes),
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
        passwords=acted.passwords.records,
    )


def _early(acted: Acted, causes: tuple[Cause, ...]) -> timedelta:
    """Return how long the first status of a claim may wait for what it made, whose providers answer at once."""
    children = acted.snapshot.children
    made = [outcome.facts for outcome in acted.outcomes if outcome.written]
    is_new_claim = (
        not acted.snapshot.status.get("conditions")
        and all(isinstance(step, Create | Keep) for step in acted.plan.steps)
        and not acted.rendered.waiting
        and not acted.passwords.records
        and not any(outcome.cause or outcome.error for outcome in acted.outcomes)
        and all(why.reason_class is ReasonClass.PROGRESS for why in causes)
    )
    kinds = [*made, *(child.facts for child in children)]
    is_prompt = bool(kinds) and all(facts is not None and facts.prompt for facts in kinds)
    is_ready = acted.connected.is_usable or all(child.ready for child in acted.rendered.children)
    return _PROMPT if is_new_claim and is_prompt and not is_ready else timedelta()


def with_broken(snapshot: Snapshot, findings: Findings) -> Findings:
    """Return the findings, first the causes of unusable children that are wanted and not rendered in this pass."""
    rendered = findings.rendered
    waiting = {pending.resource for pending in rendered.waiting} if rendered else set()
    if rendered and not waiting:
        return findings
    unusable = broken(snapshot, rendered, findings.judged)
    more = tuple(
        of_broken(snapshot, child) for child in unusable if rendered is None or child.entry.resource in waiting
    )
    return replace(findings, causes=tuple(dict.fromkeys((*more, *findings.causes)))) if more else findings


def in_order(causes: tuple[Cause, ...], rendered: Rendered) -> tuple[Cause, ...]:
    """Return the causes in the order of the composition; those about no child come last."""
    position = {child.resource: index for index, child in enumerate(rendered.children)}
    return tuple(sorted(causes, key=lambda why: position.get(why.resource, len(position))))


def causes_of(outcomes: tuple[Outcome, ...]) -> tuple[Cause, ...]:
    """Return the causes of steps that were not carried out."""
    return tuple(outcome.cause for outcome in outcomes if outcome.cause)


def notes_of(outcomes: tuple[Outcome, ...]) -> tuple[Note, ...]:
    """Return the notes of all steps."""
    return tuple(note for outcome in outcomes for note in outcome.notes)


def instruction_note(snapshot: Snapshot, step: Annotate) -> Note | None:
    """Return the note of a teardown instruction; None where the annotations hold none."""
    teardown = (step.annotations.get(names.TEARDOWN) or "").partition("/")[2]
    subject = f"{step.entry.kind} {step.entry.name}"
    if not teardown:
        return None
    if snapshot.deleting:
        how = "let go of, untouched" if teardown == "Detach" else f"told {teardown}"
        reason = "LetGo" if teardown == "Detach" else "ChildDeleted"
        return Note(reason, f"{subject} is {how}: the claim is being deleted")
    return Note("LetGo", f"{subject} was deleted by somebody else: it is let go of, untouched, and made again")


def finalizer_note(snapshot: Snapshot, step: RemoveFinalizer | Orphan) -> Note | None:
    """Return the note of a foreign child that loses our finalizer; None where its deletion has a note already."""
    subject = f"{step.entry.kind} {step.entry.name}"
    if isinstance(step, Orphan):
        return Note("LetGo", f"{subject} lives on by itself: the deletion policy is {snapshot.spec.deletion_policy}")
    if snapshot.deleting:
        return None
    return Note("ChildDeleted", f"{subject} was deleted by somebody else: it is let go of and made again")


def gathered(notes: Iterable[Note]) -> tuple[Note, ...]:
    """Return one note for each reason, in the order in which the reasons came."""
    messages: dict[tuple[str, bool], list[str]] = {}
    for note in notes:
        messages.setdefault((note.reason, note.is_warning), []).append(note.message)
    return tuple(Note(reason, "; ".join(texts), is_warning) for (reason, is_warning), texts in messages.items())


def entries_of(rendered: Rendered, outcomes: tuple[Outcome, ...]) -> tuple[Entry, ...]:
    """Return the inventory after a pass, in the order of creation."""
    position = {child.slot: index for index, child in enumerate(rendered.children)}
    entries = [outcome.entry for outcome in outcomes if outcome.entry]
    return tuple(sorted(entries, key=lambda entry: (position.get(entry.slot, len(position)), entry.name)))


def instructed_entries(outcomes: tuple[Outcome, ...]) -> tuple[Entry, ...]:
    """Return the entries of the objects that now carry a teardown instruction, with the instruction."""
    return tuple(
        with_instruction(
            outcome.entry, outcome.written, annotations_of(outcome.written)[names.TEARDOWN].rpartition("/")[2]
        )
        for outcome in outcomes
        if outcome.entry and outcome.written and names.TEARDOWN in annotations_of(outcome.written)
    )


def has_new_reference(snapshot: Snapshot, plan: Plan) -> bool:
    """Return whether a dying child's external reference is new in this pass: its instruction follows in the next."""
    before = {child.entry.place: child.entry.external_reference for child in snapshot.children}
    return any(
        isinstance(step, Keep)
        and step.entry.place in before
        and step.entry.external_reference != before[step.entry.place]
        for step in plan.steps
        if step.entry.external_reference and _is_dying(snapshot, step)
    )


def _is_dying(snapshot: Snapshot, step: Step) -> bool:
    live = live_of(snapshot, step.entry.place)
    return live is not None and "deletionTimestamp" in live["metadata"]


def raise_first(outcomes: tuple[Outcome, ...]) -> None:
    """Raise the first error that time may heal, after everything else was done and reported."""
    errors: list[ApiError] = [outcome.error for outcome in outcomes if outcome.error]
    for error in errors:
        if isinstance(error, WriteConflict | NotFound):
            raise Conflict(str(error)) from error
    if errors:
        raise errors[0]


def causes_of_floors(rendered: Rendered) -> tuple[Cause, ...]:
    """Return a cause for each field that keeps a larger value than the composition asks for now."""
    causes: list[Cause] = []
    for child in rendered.children:
        for kept in child.kept:
            asks = "leaves it out" if kept.wanted is None else f"asks for {kept.wanted}"
            subject = f"{child.object['kind']} {child.object['metadata']['name']}: {kept.path} stays {kept.value}"
            text = f"{subject}, which it never falls below; the composition {asks} now"
            causes.append(cause("KeptLarger", text, resource=child.resource))
    return tuple(causes)


def causes_of_conflicts(entries: tuple[Entry, ...], now: str) -> tuple[Cause, ...]:
    """Return the causes of fields that are yielded at `now` (RFC 3339 in UTC), since another manager takes them."""
    causes: list[Cause] = []
    for entry in entries:
        yielded = still_yielded(entry.yielded, now)
        if yielded:
            fields = ", ".join(f"{field.field} ({field.manager}; tried again at {field.until})" for field in yielded)
            text = f"{entry.kind} {entry.name}: another manager keeps changing fields, which are left alone: {fields}"
            causes.append(cause("FieldConflict", text, resource=entry.resource))
    return tuple(causes)


def causes_of_errors(outcomes: tuple[Outcome, ...], *, repeats: bool) -> tuple[Cause, ...]:
    """Return what a claim says of the steps that failed by an error that time may heal."""
    return tuple(
        cause("RequestFailed", in_words(outcome.error), resource=outcome.entry.resource if outcome.entry else "")
        for outcome in outcomes
        if repeats and outcome.error and not isinstance(outcome.error, NotLeading)
    )


def in_words(error: Exception) -> str:
    """Return what a claim says of an error that ends its passes in a row."""
    return f"passes over this claim fail in a row, the last by: {str(error) or type(error).__name__}"[:_TEXT_LIMIT]
