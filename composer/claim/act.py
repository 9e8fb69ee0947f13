"""Carries out the steps of a plan, each child by itself: one that fails leaves the others to go on.

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
    token_steps,
)
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
from composer.hashes import has_fields_of, is_sent, sent_hash
from composer.inventory import Entry
from composer.kinds.catalog import KindFacts
from runtime import finalizers, managed_fields
from runtime.errors import (
    AlreadyExists,
    ApiError,
    ApplyConflict,
    Forbidden,
    Invalid,
    NamespaceTerminating,
    NotFound,
    WriteConflict,
)
from runtime.kube import Kube
from runtime.managed_fields import Applier
from runtime.objects import Object, annotations_of, key_of, labels_of, metadata, uid_of, version_of
from runtime.preconditions import apply_metadata, patch_tests

_log = structlog.get_logger("composer.claim.act")


class Actor:
    """Writes children."""

    def __init__(
        self, kube: Kube, *, now: Callable[[], datetime], remember: Callable[[KindFacts, Object], None]
    ) -> None:
        self._kube = kube
        self._now = now
        self._remember = remember
        self.memory = Memory()
        self.refusals = Refusals()

    async def act(self, snapshot: Snapshot, steps: Sequence[Step]) -> tuple[Outcome, ...]:
        """Carry out all steps at once; what goes although the claim lives goes last, and only if nothing failed."""
        last = {
            index for index, step in enumerate(steps) if isinstance(step, Delete | Orphan) and not snapshot.deleting
        }
        found = dict[int, Outcome]()

        async def carry_out(chosen: Collection[int]) -> None:
            outcomes = await asyncio.gather(*(self._one(snapshot, steps[index]) for index in chosen))
            found.update(zip(chosen, outcomes, strict=True))

        await carry_out([index for index in range(len(steps)) if index not in last])
        if any(each.cause or each.error for each in found.values()):
            found |= {index: Outcome(steps[index].entry) for index in last}
        else:
            await carry_out(sorted(last))
        return tuple(found[index] for index in range(len(steps)))

    async def propagate_request(self, snapshot: Snapshot) -> Snapshot:
        """Tell the children that a person asked for a pass, before the claim says that it was seen to.

        A child that is gone or cannot be told is passed over. Raises ApiError, and the claim has not answered.
        """
        made = dict[str, Object]()
        for step in token_steps(snapshot):
            try:
                outcome = await self._annotate(snapshot, step)
            except (NotFound, Invalid, Forbidden) as error:
                _log.info("a child is not told of a request", child=step.entry.name, error=str(error))
                continue
            if outcome.written:
                self._remember(step.facts, outcome.written)
                metadata(outcome.written).pop("managedFields", None)
                made[uid_of(outcome.written)] = outcome.written
        known = (
            replace(each, live=made.get(uid_of(each.live), each.live) if each.live else None) for each in snapshot.known
        )
        return replace(snapshot, known=tuple(known)) if made else snapshot

    async def _one(self, snapshot: Snapshot, step: Step) -> Outcome:
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
            self._remember(outcome.facts, outcome.written)
        if isinstance(step, Create | Apply):
            self.refusals.forget(step)
        return outcome

    async def _carry_out(self, snapshot: Snapshot, step: Effect) -> Outcome:
        match step:
            case Create():
                return await self._create(snapshot, step)
            case Apply():
                return await self._apply(snapshot, step)
            case Annotate():
                return await self._annotate(snapshot, step)
            case Delete():
                return await self._remove(snapshot, step)
            case RemoveFinalizer():
                operations = finalizers.removal(step.live, names.TEARDOWN_FINALIZER)
                await self._kube.json_patch(
                    step.facts.resource, key_of(step.live), operations, manager=snapshot.manager
                )
                return Outcome(step.entry, notes=_recorded(step, finalizer_note(snapshot, step)))
            case Orphan():
                await self._kube.json_patch(
                    step.facts.resource, key_of(step.live), finalizer_patch(step.live), manager=snapshot.manager
                )
                return Outcome(None, notes=_recorded(step, finalizer_note(snapshot, step)))
            case _:
                assert_never(step)

    async def _create(self, snapshot: Snapshot, step: Create) -> Outcome:
        what = f"{step.entry.kind} {step.entry.name}"
        try:
            resource = step.facts.written_as(step.object["apiVersion"])
            made = await self._kube.create(resource, step.object, manager=snapshot.manager)
        except AlreadyExists:
            live = await self._kube.get(step.facts.resource, key_of(step.object))
            if labels_of(live).get(names.CLAIM_LABEL) != snapshot.identity.uid:
                return Outcome(None, cause=not_owned(step.entry.resource, live))
            # An earlier pass made it and could not say so: the next one applies.
            entry = msgspec.structs.replace(step.entry, uid=uid_of(live), applied=False, desired="", live="")
            return Outcome(entry, written=live, facts=step.facts)
        entry = msgspec.structs.replace(
            step.entry,
            uid=uid_of(made),
            desired=sent_hash(_unmarked(step)),
            live=stored_hash(made, _unmarked(step), step.facts.schema),
            applied=False,
            yielded=(),
            floors=step.floors,
        )
        return Outcome(entry, written=made, facts=step.facts, notes=(Note("ChildCreated", f"created {what}"),))

    async def _apply(self, snapshot: Snapshot, step: Apply) -> Outcome:
        entry, uid = step.entry, uid_of(step.live)
        # Who removed a field of ours is a rival; who changed something else is none.
        was_sent = (
            entry.applied
            and is_sent(step.object, entry.desired)
            and not holds_fields(step.live, step.object, step.facts.schema, entry.live)
        )
        if was_sent and not snapshot.is_requested and is_endless(self.memory.conflicts_before(uid), self._now()):
            text = (
                f"{entry.kind} {entry.name}: somebody keeps removing fields that are set here; they are set again later"
            )
            return Outcome(entry, cause=cause("FieldConflict", text, resource=entry.resource))
        # Who owns a newborn's fields matters first when one is left out.
        is_whole = not entry.applied and has_fields_of(step.object, entry.desired)
        if not entry.applied and not is_whole:
            step = replace(step, live=await self._take_over(snapshot, step))
        body, yielded = step.object, remembered(entry.yielded, self._now())
        notes: tuple[Note, ...] = ()
        try:
            made = await self._send(snapshot, step, body, force=False)
            if was_sent:
                self.memory.took_back(uid, (REMOVED,), self._now())
        except ApplyConflict as error:
            conflicts_before = self.memory.conflicts_before(uid)
            # What the birth left to ourselves by an Update is no conflict.
            rivals = [each for each in conflicts(error.causes) if each.manager != snapshot.manager]
            settled = settle(rivals, conflicts_before, self._now(), yielded_before=yielded)
            yielded = joined(yielded, settled.yielded)
            body = without(step.object, settled.yielded)
            made = await self._send(snapshot, step, body, force=True)
            notes = self._taken_back(uid, entry, settled.taken_back)
        if not entry.applied and not is_whole:
            made = await self._hold_alone(snapshot, step, made)
        entry = msgspec.structs.replace(
            entry,
            uid=uid_of(made),
            desired=sent_hash(body),
            live=stored_hash(made, body, step.facts.schema),
            applied=not is_whole,
            yielded=yielded,
            floors=step.floors,
        )
        return Outcome(entry, written=made, facts=step.facts, notes=notes)

    async def _take_over(self, snapshot: Snapshot, step: Apply) -> Object:
        """Make us the applier of what we created; return the child as it is then."""
        resource, key = step.facts.resource, key_of(step.live)
        current = await self._kube.get(resource, key)
        if uid_of(current) != uid_of(step.live):
            raise WriteConflict(f"{step.entry.kind} {key} is another object now")
        keeps = names.TEARDOWN_FINALIZER in step.object["metadata"].get("finalizers", ())
        operations = managed_fields.upgrade(current, applier(snapshot.manager), keeps_finalizer=keeps)
        if not operations:
            return current
        return await self._kube.json_patch(resource, key, operations, manager=snapshot.manager)

    async def _hold_alone(self, snapshot: Snapshot, step: Apply, made: Object) -> Object:
        operations = managed_fields.shed(made, applier(snapshot.manager))
        if not operations:
            return made
        return await self._kube.json_patch(step.facts.resource, key_of(step.live), operations, manager=snapshot.manager)

    async def _send(self, snapshot: Snapshot, step: Apply, body: Object, *, force: bool) -> Object:
        named = {**body, "metadata": {**body["metadata"], **apply_metadata(step.live)}}
        resource = step.facts.written_as(body["apiVersion"])
        return await self._kube.apply(resource, named, manager=snapshot.manager, force=force)

    async def _annotate(self, snapshot: Snapshot, step: Annotate) -> Outcome:
        operations = [*annotation_patch(step.live, step.annotations), *policy_patch(step.policy)]
        made = await self._kube.json_patch(step.facts.resource, key_of(step.live), operations, manager=snapshot.manager)
        return Outcome(
            step.entry, written=made, facts=step.facts, notes=_recorded(step, instruction_note(snapshot, step))
        )

    async def _remove(self, snapshot: Snapshot, step: Delete) -> Outcome:
        """Delete an object and give it its teardown instruction.

        Where the claim goes, too, the instruction comes first: its provider sees both at once. Where the claim lives it
        comes last: on an object that lives on, because we were stopped in between, it would be a trap.
        """
        key, uid = key_of(step.live), uid_of(step.live)
        note = Note("ChildDeleted", f"deleted {step.entry.kind} {step.entry.name}: {step.why}")
        try:
            # The instruction is for this very object, as the API server has it now.
            current = await self._kube.get(step.facts.resource, key)
            if uid_of(current) != uid:
                raise WriteConflict(f"{step.entry.kind} {key} is another object now")
            if step.instruction and snapshot.deleting:
                current = await self._speak(snapshot, step, current)
            left = await self._kube.delete(step.facts.resource, key, uid=uid, resource_version=version_of(current))
            if step.instruction and left and not snapshot.deleting:
                await self._speak(snapshot, step, left)
        except NotFound:
            return Outcome(None, notes=_recorded(step, note))
        return Outcome(step.entry, notes=_recorded(step, note))

    async def _speak(self, snapshot: Snapshot, step: Delete, current: Object) -> Object:
        if annotations_of(current).get(names.TEARDOWN) == step.instruction and not step.policy:
            return current
        operations = [*annotation_patch(current, {names.TEARDOWN: step.instruction}), *policy_patch(step.policy)]
        return await self._kube.json_patch(step.facts.resource, key_of(current), operations, manager=snapshot.manager)

    def _taken_back(self, uid: str, entry: Entry, taken: Sequence[Conflict]) -> tuple[Note, ...]:
        self.memory.took_back(uid, taken, self._now())
        return tuple(
            Note(
                "FieldTakenBack",
                f"{entry.kind} {entry.name}: {each.field} was taken back from {each.manager}",
                is_warning=True,
            )
            for each in taken
        )

    def _refusal(self, step: Effect, error: Invalid | Forbidden) -> Outcome:
        reason = "KindNotAllowed" if isinstance(error, Forbidden) else _reason(error)
        why = cause(reason, f"{step.entry.kind} {step.entry.name}: {error.message}"[:400], resource=step.entry.resource)
        if isinstance(step, Create | Apply) and isinstance(error, Invalid):
            self.refusals.add(step, why, self._now())
        # A child that was never made has no place in the inventory.
        return Outcome(None if isinstance(step, Create) and not step.entry.uid else step.entry, cause=why)


def applier(manager: str) -> Applier:
    """Return the field manager of a claim: a provider keeps the external reference and the finalizer of its object."""
    return Applier(
        manager,
        is_former=names.is_claim_manager,
        lent_annotations=(*names.EXTERNAL_REFERENCE, names.RECONCILE_REQUESTED_AT),
        lent_finalizer=names.TEARDOWN_FINALIZER,
        owner_label=names.CLAIM_LABEL,
    )


def _recorded(step: Annotate | Delete | RemoveFinalizer | Orphan, note: Note | None) -> tuple[Note, ...]:
    """Put the end of a child on record, with its reason: an event may be lost, this line is the audit."""
    if note is None:
        return ()
    entry, uid = step.entry, uid_of(step.live)
    _log.info("audit", action=note.reason, kind=entry.kind, child=entry.name, uid=uid, why=note.message)
    return (note,)


def _reason(error: Invalid) -> str:
    """Tell the template's shape (400, and what the typed patch could not be made of) from a value (422)."""
    unprocessable = 422
    return "InvalidValue" if error.status == unprocessable else "SchemaMismatch"


def _unmarked(step: Create) -> Object:
    """Return what later applies will send: without the marks and the finalizer that a rebirth lends."""
    meta = step.object["metadata"]
    lent = {names.PREFIX + mark for mark in step.entry.marks}
    annotations = {name: value for name, value in meta["annotations"].items() if name not in lent}
    kept = {**meta, "annotations": annotations}
    if step.entry.marks and "ownerReferences" in meta:
        kept.pop("finalizers", None)
    return {**step.object, "metadata": kept}


def annotation_patch(live: Object, wanted: Any) -> list[dict[str, Any]]:
    """Return the JSON patch that sets annotations, and removes those that are None, of exactly this object."""
    present = annotations_of(live)
    operations = patch_tests(live)
    if not present:
        operations.append({"op": "add", "path": "/metadata/annotations", "value": {}})
    for name, value in wanted.items():
        path = "/metadata/annotations/" + name.replace("~", "~0").replace("/", "~1")
        if value is not None:
            operations.append({"op": "add", "path": path, "value": value})
        elif name in present:
            operations.append({"op": "remove", "path": path})
    return operations


def policy_patch(policy: str) -> list[dict[str, Any]]:
    """Return the part of a JSON patch that sets `spec.deletionPolicy`; nothing for an empty one."""
    return [{"op": "add", "path": "/spec/deletionPolicy", "value": policy}] if policy else []


def finalizer_patch(live: Object) -> list[dict[str, Any]]:
    """Return the JSON patch that lets go of a foreign object that lives on: our finalizer and our label go."""
    operations = finalizers.removal(live, names.TEARDOWN_FINALIZER) or patch_tests(live)
    if names.CLAIM_LABEL not in labels_of(live):
        return operations
    label = names.CLAIM_LABEL.replace("/", "~1")
    return [*operations, {"op": "remove", "path": f"/metadata/labels/{label}"}]
