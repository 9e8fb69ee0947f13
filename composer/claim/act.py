"""Carries out the steps of a plan, each child by itself: one that fails does not stop the others.

Every write names the uid it is meant for, so that an object that vanished stays gone.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, assert_never

import msgspec
import structlog

from apis import names
from composer.causes import cause
from composer.claim.decide import (
    Adopt,
    Annotate,
    Apply,
    Create,
    Delete,
    Effect,
    Keep,
    Orphan,
    RemoveFinalizer,
    Step,
    not_owned,
)
from composer.claim.deletion import adoption_patch, finalizer_patch
from composer.claim.failures import Refusals
from composer.claim.field_conflicts import (
    REMOVED,
    Conflict,
    Memory,
    conflicts,
    is_endless,
    joined,
    remembered,
    settle,
    without,
)
from composer.claim.outcomes import Note, Outcome, finalizer_note, instruction_note
from composer.claim.snapshot import Snapshot, holds_fields, stored_hash
from composer.claim.undecided import token_steps
from composer.hashes import has_fields_of, is_sent, sent_hash
from composer.inventory import Entry
from composer.kinds.catalog import KindFacts
from runtime import finalizers, managed_fields
from runtime.errors import (
    AlreadyExists,
    ApiError,
    Forbidden,
    Invalid,
    NamespaceTerminating,
    NotFound,
    WriteConflict,
)
from runtime.kube import Kube
from runtime.managed_fields import Applier
from runtime.objects import Object, annotations_of, key_of, labels_of, uid_of, version_of
from runtime.preconditions import annotation_patch, apply_metadata

_log = structlog.get_logger("composer.claim.act")


class Actor:
    """Writes children."""

    def __init__(
        self, kube: Kube, *, now: Callable[[], datetime], remember: Callable[[KindFacts, Object, str], None]
    ) -> None:
        self._kube = kube
        self._now = now
        self._remember = remember
        self.memory = Memory()
        self.refusals = Refusals()

    async def act(self, snapshot: Snapshot, steps: Sequence[Step]) -> tuple[Outcome, ...]:
        """Carry out all steps at once; deletions under a claim that lives come last, and only if nothing failed.

        What holds neither data nor a login is deleted whatever failed.
        """
        last = {
            index for index, step in enumerate(steps) if isinstance(step, Delete | Orphan) and not snapshot.deleting
        }
        outcomes = dict[int, Outcome]()

        async def carry_out(chosen: Collection[int]) -> None:
            results = await asyncio.gather(*(self._outcome_of(snapshot, steps[index]) for index in chosen))
            outcomes.update(zip(chosen, results, strict=True))

        await carry_out([index for index in range(len(steps)) if index not in last])
        has_failed = any(outcome.cause or outcome.error for outcome in outcomes.values())
        now = {index for index in last if not has_failed or (isinstance(step := steps[index], Delete) and step.is_free)}
        outcomes |= {index: Outcome(steps[index].entry) for index in last - now}
        await carry_out(sorted(now))
        return tuple(outcomes[index] for index in range(len(steps)))

    async def propagate_request(self, snapshot: Snapshot) -> Snapshot:
        """Copy a requested reconcile to the children, before the claim's status answers it; return the claim then.

        Skips a child that is gone or refuses it. Raises ApiError, and the claim has not answered.
        """
        made = dict[str, Object]()
        for step in token_steps(snapshot):
            try:
                outcome = await self._annotate(snapshot, step)
            except (NotFound, Invalid, Forbidden) as error:
                _log.info("a request is not copied to a child", child=step.entry.name, error=str(error))
                continue
            if outcome.written:
                self._remember(step.facts, outcome.written, outcome.over)
                made[uid_of(outcome.written)] = outcome.written
        children = (
            replace(child, live=made.get(uid_of(child.live), child.live) if child.live else None)
            for child in snapshot.children
        )
        return replace(snapshot, children=tuple(children)) if made else snapshot

    async def _outcome_of(self, snapshot: Snapshot, step: Step) -> Outcome:
        """Carry out one step; return its outcome, in which an error is a cause or waits to be raised."""
        if isinstance(step, Keep):
            return Outcome(step.entry)
        refused = (
            self.refusals.of(step, self._now())
            if isinstance(step, Create | Apply) and not snapshot.is_requested
            else None
        )
        if refused:
            return Outcome(step.entry, cause=refused)
        try:
            outcome = await self._carry_out(snapshot, step)
        except (Invalid, Forbidden) as error:
            return self._refusal(step, error)
        except NamespaceTerminating:
            return Outcome(step.entry)
        except ApiError as error:
            return Outcome(step.entry, error=error)
        if outcome.written and outcome.facts:
            self._remember(outcome.facts, outcome.written, outcome.over)
        if isinstance(step, Create | Apply):
            self.refusals.forget(step)
        return outcome

    async def _carry_out(self, snapshot: Snapshot, step: Effect) -> Outcome:
        """Send the writes of one step. Raises ApiError."""
        match step:
            case Adopt():
                return await self._adopt(snapshot, step)
            case Create():
                return await self._create(snapshot, step)
            case Apply():
                return await self._apply(snapshot, step)
            case Annotate():
                return await self._annotate(snapshot, step)
            case Delete():
                return await self._delete(snapshot, step)
            case RemoveFinalizer() | Orphan():
                return await self._release(snapshot, step)
            case _:
                assert_never(step)

    async def _release(self, snapshot: Snapshot, step: RemoveFinalizer | Orphan) -> Outcome:
        """Remove our finalizer of a foreign object; of one that lives on our label, too."""
        is_orphan = isinstance(step, Orphan)
        removal = finalizers.removal(step.live, names.TEARDOWN_FINALIZER)
        operations = finalizer_patch(step.live) if is_orphan else removal
        await self._kube.json_patch(step.facts.resource, key_of(step.live), operations, manager=snapshot.manager)
        notes = _audited(step, finalizer_note(snapshot, step))
        return Outcome(None if is_orphan else step.entry, notes=notes)

    async def _adopt(self, snapshot: Snapshot, step: Adopt) -> Outcome:
        """Put our label and finalizer on an object that an earlier claim left; the next pass applies.

        The watch shows only what has the label, so it shows the object as a new one. That event starts the next pass:
        the answer is not remembered, or the event would be taken for the echo of a creation.
        """
        about = {names.CLAIM_NAME: key_of(snapshot.claim).name, names.RESOURCE: step.entry.resource}
        about |= {names.FOR_EACH_KEY: step.entry.key} if step.entry.key else {}
        operations = adoption_patch(step.live, snapshot.identity.uid, about)
        await self._kube.json_patch(step.facts.resource, key_of(step.live), operations, manager=snapshot.manager)
        note = Note("Adopted", f"{step.entry.kind} {step.entry.name} is taken over")
        return Outcome(step.entry, notes=_audited(step, note))

    async def _create(self, snapshot: Snapshot, step: Create) -> Outcome:
        """Create an object; one that an earlier pass created is taken as it is."""
        subject = f"{step.entry.kind} {step.entry.name}"
        try:
            resource = step.facts.written_as(step.object["apiVersion"])
            made = await self._kube.create(resource, step.object, manager=snapshot.manager)
        except AlreadyExists:
            live = await self._kube.get(step.facts.resource, key_of(step.object))
            if labels_of(live).get(names.CLAIM_LABEL) != snapshot.identity.uid:
                return Outcome(None, cause=not_owned(step.entry.resource, live))
            # An earlier pass created it and could not record that: its event starts the next one, which applies.
            entry = msgspec.structs.replace(step.entry, uid=uid_of(live), applied=False, desired="", live="")
            return Outcome(entry)
        entry = msgspec.structs.replace(
            step.entry,
            uid=uid_of(made),
            desired=sent_hash(_as_applied(step)),
            live=stored_hash(made, step.facts.comparable(_as_applied(step)), step.facts.schema),
            applied=False,
            yielded=(),
            floors=step.floors,
        )
        return Outcome(entry, written=made, facts=step.facts, notes=(Note("ChildCreated", f"created {subject}"),))

    async def _apply(self, snapshot: Snapshot, step: Apply) -> Outcome:
        """Apply our fields; on conflicts take fields back or yield them."""
        entry, uid = step.entry, uid_of(step.live)
        # A manager that removed a field of ours is a rival; one that changed another field is none.
        was_sent = (
            entry.applied
            and is_sent(step.object, entry.desired)
            and not holds_fields(step.live, step.facts.comparable(step.object), step.facts.schema, entry.live)
        )
        if was_sent and not snapshot.is_requested and is_endless(self.memory.conflicts_before(uid), self._now()):
            text = (
                f"{entry.kind} {entry.name}: somebody keeps removing fields that are set here; they are set again later"
            )
            return Outcome(entry, cause=cause("FieldConflict", text, resource=entry.resource))
        over = version_of(step.live)
        # Which manager owns the fields of a created object matters as soon as one is left out.
        is_whole = not entry.applied and has_fields_of(step.object, entry.desired)
        if not entry.applied and not is_whole:
            over, step = "", replace(step, live=await self._take_over(snapshot, step))
        is_converted = step.facts.is_converted(step.object["apiVersion"])
        managed = await self._managed(step, is_converted=is_converted)
        rivals = conflicts(managed, step.object, in_version_alone=is_converted)
        yielded = remembered(entry.yielded, self._now())
        settled = settle(rivals, self.memory.conflicts_before(uid), self._now(), yielded_before=yielded)
        yielded, body = joined(yielded, settled.yielded), without(step.object, settled.yielded)
        made = await self._send(snapshot, step, body)
        if was_sent and not rivals:
            self.memory.took_back(uid, (REMOVED,), self._now())
        notes = self._taken_back(uid, entry, settled.taken_back)
        if not entry.applied and not is_whole:
            made = await self._drop_other_entries(snapshot, step, made)
        entry = msgspec.structs.replace(
            entry,
            uid=uid_of(made),
            desired=sent_hash(body),
            live=stored_hash(made, step.facts.comparable(body), step.facts.schema),
            applied=not is_whole,
            yielded=yielded,
            floors=step.floors,
        )
        return Outcome(entry, written=made, facts=step.facts, notes=notes, over=over)

    async def _take_over(self, snapshot: Snapshot, step: Apply) -> Object:
        """Make this claim the applier of what it created; return the child as it is then."""
        resource, key = step.facts.resource, key_of(step.live)
        current = await self._kube.get(resource, key)
        if uid_of(current) != uid_of(step.live):
            raise WriteConflict(f"{step.entry.kind} {key} is another object now")
        keeps = names.TEARDOWN_FINALIZER in step.object["metadata"].get("finalizers", ())
        operations = managed_fields.upgrade(current, applier(snapshot.manager), keeps_finalizer=keeps)
        if not operations:
            return current
        return await self._kube.json_patch(resource, key, operations, manager=snapshot.manager)

    async def _drop_other_entries(self, snapshot: Snapshot, step: Apply, made: Object) -> Object:
        """Remove what earlier managers of this claim still own; return the child as it is then."""
        operations = managed_fields.shed(made, applier(snapshot.manager))
        if not operations:
            return made
        return await self._kube.json_patch(step.facts.resource, key_of(step.live), operations, manager=snapshot.manager)

    async def _managed(self, step: Apply, *, is_converted: bool) -> Object:
        """Return the child with the managers of its fields: the cached one, unless a webhook converts its kind."""
        if not is_converted and "managedFields" in step.live["metadata"]:
            return step.live
        return await self._kube.get(step.facts.written_as(step.object["apiVersion"]), key_of(step.live))

    async def _send(self, snapshot: Snapshot, step: Apply, body: Object) -> Object:
        """Apply a body to the object and version that the step was decided on, so that no conflict comes unseen."""
        named = {**body, "metadata": {**body["metadata"], **apply_metadata(step.live)}}
        resource = step.facts.written_as(body["apiVersion"])
        return await self._kube.apply(resource, named, manager=snapshot.manager, force=True)

    async def _annotate(self, snapshot: Snapshot, step: Annotate) -> Outcome:
        """Patch annotations of the object and version that the step was decided on."""
        operations = [*annotation_patch(step.live, step.annotations), *policy_patch(step.policy)]
        made = await self._kube.json_patch(step.facts.resource, key_of(step.live), operations, manager=snapshot.manager)
        notes = _audited(step, instruction_note(snapshot, step))
        return Outcome(step.entry, written=made, facts=step.facts, notes=notes)

    async def _delete(self, snapshot: Snapshot, step: Delete) -> Outcome:
        """Delete an object, in the version that was seen, and give it its teardown instruction.

        Where the claim is deleted too, the instruction comes first: the provider sees both at once. Where the claim
        lives it comes last: after a crash in between, an object that lives on would carry an instruction to delete.
        """
        note = Note("ChildDeleted", f"deleted {step.entry.kind} {step.entry.name}: {step.why}")
        resource, key, uid = step.facts.resource, key_of(step.live), uid_of(step.live)
        try:
            current = step.live
            if step.instruction and snapshot.deleting:
                current = await self._instruct(snapshot, step, current)
            left = await self._kube.delete(resource, key, uid=uid, resource_version=version_of(current))
            if step.instruction and left and not snapshot.deleting:
                await self._instruct(snapshot, step, left)
        except NotFound:
            return Outcome(None, notes=_audited(step, note))
        # What nothing holds is gone with the answer. Of a claim that lives the next pass looks for what it stood for.
        is_gone = left is None and snapshot.deleting
        return Outcome(None if is_gone else step.entry, notes=_audited(step, note))

    async def _instruct(self, snapshot: Snapshot, step: Delete, current: Object) -> Object:
        """Give an object its teardown instruction and the policy that goes with it; return it as it is then."""
        if annotations_of(current).get(names.TEARDOWN) == step.instruction and not step.policy:
            return current
        operations = [*annotation_patch(current, {names.TEARDOWN: step.instruction}), *policy_patch(step.policy)]
        return await self._kube.json_patch(step.facts.resource, key_of(current), operations, manager=snapshot.manager)

    def _taken_back(self, uid: str, entry: Entry, taken: Sequence[Conflict]) -> tuple[Note, ...]:
        """Note fields that were taken back; return the warnings."""
        self.memory.took_back(uid, taken, self._now())
        return tuple(
            Note(
                "FieldTakenBack",
                f"{entry.kind} {entry.name}: {conflict.field} was taken back from {conflict.manager}",
                is_warning=True,
            )
            for conflict in taken
        )

    def _refusal(self, step: Effect, error: Invalid | Forbidden) -> Outcome:
        """Return the outcome of a write that the API server refused, and remember a refused value."""
        reason = "KindNotAllowed" if isinstance(error, Forbidden) else _reason(error)
        why = cause(reason, f"{step.entry.kind} {step.entry.name}: {error.message}"[:400], resource=step.entry.resource)
        if isinstance(step, Create | Apply) and isinstance(error, Invalid):
            self.refusals.add(step, why, self._now())
        # A child that was never created is not in the inventory.
        return Outcome(None if isinstance(step, Create) and not step.entry.uid else step.entry, cause=why)


def applier(manager: str) -> Applier:
    """Return the claim as an applier: the external reference and the finalizer of a child are its provider's."""
    return Applier(
        manager,
        is_former=names.is_claim_manager,
        lent_annotations=(*names.EXTERNAL_REFERENCE, names.RECONCILE_REQUESTED_AT),
        lent_finalizer=names.TEARDOWN_FINALIZER,
        owner_label=names.CLAIM_LABEL,
    )


def _audited(step: Adopt | Annotate | Delete | RemoveFinalizer | Orphan, note: Note | None) -> tuple[Note, ...]:
    """Write the audit line of a child's end, with its reason: an event may be lost."""
    if note is None:
        return ()
    entry, uid = step.entry, uid_of(step.live)
    _log.info("audit", action=note.reason, kind=entry.kind, child=entry.name, uid=uid, why=note.message)
    return (note,)


def _reason(error: Invalid) -> str:
    """Return the reason of a refusal: of a value (422), or of the template's shape (400, or no typed patch)."""
    unprocessable = 422
    return "InvalidValue" if error.status == unprocessable else "SchemaMismatch"


def _as_applied(step: Create) -> Object:
    """Return what later applies will send: without the reference and the finalizer that a recreation adds."""
    meta = step.object["metadata"]
    lent = {names.PREFIX + mark for mark in step.entry.external_reference}
    annotations = {name: value for name, value in meta["annotations"].items() if name not in lent}
    kept = {**meta, "annotations": annotations}
    if step.entry.external_reference and "ownerReferences" in meta:
        kept.pop("finalizers", None)
    return {**step.object, "metadata": kept}


def policy_patch(policy: str) -> list[dict[str, Any]]:
    """Return the part of a JSON patch that sets `spec.deletionPolicy`; nothing for an empty one."""
    return [{"op": "add", "path": "/spec/deletionPolicy", "value": policy}] if policy else []
