"""Writes a claim: what is recorded on it before anything is created, its status, and the end of its finalizer.

A status that cannot be written says so by an exception; only a claim that is being deleted goes on without it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Final, TypeAlias

import msgspec
import structlog

from apis import names
from apis.reasons import MISSING_PATIENCE, ReasonClass
from composer.causes import Cause, cause, most_severe
from composer.claim.compose import untouched
from composer.claim.connection import with_unusable
from composer.claim.debounce import Debounce, UnwrittenEntries
from composer.claim.field_conflicts import next_try
from composer.claim.gather import Gatherer
from composer.claim.outcomes import Note, gathered
from composer.claim.report import Findings, report, report_deletion
from composer.claim.snapshot import Snapshot, kept_kinds
from composer.composition.revision import Revision, kinds_of
from composer.connection.publisher import Publisher
from composer.models import CompositionSpec
from runtime import finalizers
from runtime.conditions import find
from runtime.errors import Conflict, Invalid, NotFound
from runtime.events import EventRecorder, EventType
from runtime.kube import Kube
from runtime.objects import Key, Object, finalizers_of
from runtime.preconditions import apply_metadata
from runtime.results import SETTLED, Result
from runtime.status import record_status, write_status

_log = structlog.get_logger("composer.claim.write")

_Write: TypeAlias = Callable[..., Awaitable[Object | None]]

_AFTER_LIMIT: Final = timedelta(minutes=1)
_UNLISTED_RETRY: Final = timedelta(seconds=5)
_CREATED: Final = "ChildCreated"


class EventEmitter:
    """Emits the events of claims; what it holds back between passes may be lost, as any event may."""

    def __init__(self, events: EventRecorder) -> None:
        self._events = events
        self._creations: dict[Key, tuple[Note, ...]] = {}

    def emit(
        self, snapshot: Snapshot, causes: tuple[Cause, ...], notes: Iterable[Note], *, is_whole: bool = True
    ) -> None:
        """Emit what happened in a pass, and a warning for a claim that became Stalled.

        Creations are emitted together once all children are there (`is_whole`), not wave by wave.
        """
        happened = (*self._creations.pop(snapshot.key, ()), *notes)
        if not is_whole:
            self._creations[snapshot.key] = tuple(note for note in happened if note.reason == _CREATED)
            happened = tuple(note for note in happened if note.reason != _CREATED)
        for note in gathered(happened):
            kind: EventType = "Warning" if note.is_warning else "Normal"
            self._events.emit(snapshot.claim, type_=kind, reason=note.reason, message=note.message)
        first = most_severe(causes)
        before = find(snapshot.claim, "Stalled")
        if (
            first
            and first.reason_class is ReasonClass.STALLED
            and (before is None or before.get("reason") != first.reason)
        ):
            self._events.emit(snapshot.claim, type_="Warning", reason=first.reason, message=first.message)

    def forget(self, key: Key) -> None:
        """Drop what is held back of a claim that is gone."""
        self._creations.pop(key, None)


@dataclass(frozen=True, slots=True)
class ClaimWriter:
    """Writes claims of one kind; each write names the version of the claim that was read.

    `spec_in_use` gives the Composition's spec by which a claim was composed last.
    """

    kube: Kube
    gatherer: Gatherer
    publisher: Publisher
    events: EventEmitter
    now: Callable[[], datetime]
    monotonic: Callable[[], float]
    spec_in_use: Callable[[Snapshot], CompositionSpec | None]
    debounce: Debounce = field(default_factory=Debounce)
    unwritten: UnwrittenEntries = field(default_factory=UnwrittenEntries)

    async def record(self, snapshot: Snapshot, composition: str, revision: Revision) -> Snapshot | Cause:
        """Record finalizer, identity, choice and kinds on a claim, before anything is created.

        Returns the claim as it is recorded, or the cause for which the API server refused it.
        """
        annotations = _recorded_annotations(snapshot, composition, revision)
        if snapshot.has_finalizer and all(snapshot.annotations.get(name) == text for name, text in annotations.items()):
            return snapshot
        body: Object = {
            "apiVersion": snapshot.resource.api_version,
            "kind": snapshot.resource.kind,
            "metadata": {
                "name": snapshot.key.name,
                "namespace": snapshot.key.namespace,
                **apply_metadata(snapshot.claim),
                "annotations": annotations,
                "finalizers": [names.TEARDOWN_FINALIZER],
            },
        }
        try:
            claim = await self.kube.apply(snapshot.resource, body, manager=snapshot.manager, force=True)
        except NotFound as error:
            raise Conflict(f"claim {snapshot.key} is gone") from error
        except Invalid as error:
            text = f"the claim has no room for what Fairlead records on it: {error.message}"
            return cause("InvalidValue", text[:400])
        self.gatherer.claims.store.remember(claim)
        claim["metadata"].pop("managedFields", None)
        return await self.gatherer.with_predecessors(replace(snapshot, claim=claim))

    async def publish(self, snapshot: Snapshot, findings: Findings, notes: Iterable[Note] = ()) -> Result:
        """Report findings: write the status when it differs and emit the events; return when to make the next pass."""
        findings, more = await with_unusable(self.publisher, snapshot, findings, self.spec_in_use(snapshot))
        first = most_severe(findings.causes)
        waited = self.debounce.held(snapshot.key, first.reason if first else "", self.monotonic())
        findings = replace(findings, waited=waited)
        early = self.debounce.hold_back(snapshot.key, findings.early, self.monotonic())
        is_whole = findings.rendered is None or not findings.rendered.waiting
        self.events.emit(snapshot, findings.causes, (*notes, *more), is_whole=is_whole)
        if early is not None:
            self.unwritten.note(snapshot.key, findings.entries)
            return Result(requeue_after=early)
        status = report(snapshot, findings, self.now())
        delay = self.delay(snapshot, status)
        if delay is not None:
            return Result(requeue_after=delay)
        try:
            await self.write(snapshot, status)
        except Invalid as error:
            await self.write(snapshot, report(snapshot, _without_extras(findings, error), self.now()))
        self.unwritten.forget(snapshot.key)
        return self._next_pass(findings, first)

    def _next_pass(self, findings: Findings, first: Cause | None) -> Result:
        """Return when to make the next pass after a status was written, by its most severe cause and yielded fields."""
        if first and first.reason in ("RenderLimit", "RenderRefused"):
            return Result(requeue_after=_AFTER_LIMIT)
        if first and first.reason_class is ReasonClass.MISSING and findings.waited < MISSING_PATIENCE:
            return Result(requeue_after=MISSING_PATIENCE - findings.waited)
        delay = next_try(findings.entries, self.now())
        return Result(requeue_after=delay) if delay else SETTLED

    async def publish_cause(self, snapshot: Snapshot, why: Cause) -> None:
        """Report one cause of a claim of which nothing else was changed, alive or being deleted."""
        if snapshot.deleting:
            await self.publish_deletion(snapshot, (why,))
        else:
            await self.publish(snapshot, untouched(snapshot, why))

    async def publish_unlisted(self, snapshot: Snapshot, kinds: Iterable[str]) -> Result:
        """Report that children of some kinds cannot be listed: everything stays as it is meanwhile."""
        text = (
            f"{', '.join(kinds)} cannot be listed: install the kind, or let the composer read it by a ClusterRole with"
            f' label {names.AGGREGATE_LABEL}: "true"; it is listed again by itself, after some minutes'
        )
        await self.publish_cause(snapshot, cause("KindNotAllowed", text, shown_as=ReasonClass.WAITING))
        return Result(requeue_after=_UNLISTED_RETRY)

    async def publish_deletion(self, snapshot: Snapshot, causes: tuple[Cause, ...]) -> Snapshot:
        """Report a claim that is being deleted; return it as it is then."""
        return await self.write_deletion(snapshot, report_deletion(snapshot, causes, self.now()))

    async def write_deletion(self, snapshot: Snapshot, status: Object) -> Snapshot:
        """Write the status of a claim that is being deleted; a schema that refuses it must not keep the claim."""
        try:
            return await self.write(snapshot, status)
        except Invalid as error:
            _log_refused(snapshot, error)
            return snapshot

    async def record_deletion(self, snapshot: Snapshot, status: Object) -> Snapshot | None:
        """Write what a deletion is about to do over the claim that it was decided on; return the claim as it is then.

        None where nothing was written: the status is the same, or the schema refuses it. Raises WriteConflict.
        """
        try:
            return await self._written(snapshot, status, record_status)
        except Invalid as error:
            _log_refused(snapshot, error)
            return None

    def delay(self, snapshot: Snapshot, status: Object) -> timedelta | None:
        """Return how long a status must wait that differs in messages alone; None when it need not wait."""
        return self.debounce.delay(snapshot.key, snapshot.status, status, self.monotonic())

    async def write(self, snapshot: Snapshot, status: Object) -> Snapshot:
        """Write the status when it differs; return the claim as it is then."""
        return await self._written(snapshot, status, write_status) or snapshot

    async def _written(self, snapshot: Snapshot, status: Object, write: _Write) -> Snapshot | None:
        """Write the status when it differs; return the claim as it is then, None where nothing was written."""
        try:
            made = await write(
                self.kube, snapshot.resource, snapshot.claim, status, manager=f"{snapshot.manager}/status"
            )
        except NotFound as error:
            raise Conflict(f"claim {snapshot.key} is gone") from error
        if made is None:
            return None
        self.debounce.wrote(snapshot.key, self.monotonic())
        self.gatherer.claims.store.remember(made, is_status=True)
        return replace(snapshot, claim=made)

    async def remove_finalizer(self, snapshot: Snapshot) -> None:
        """Remove our finalizer of a claim that is being deleted: it is gone then, unless another finalizer holds it."""
        operations = finalizers.removal(snapshot.claim, names.TEARDOWN_FINALIZER)
        with suppress(NotFound):
            left = await self.kube.json_patch(snapshot.resource, snapshot.key, operations, manager=snapshot.manager)
            if finalizers_of(left):
                self.gatherer.claims.store.remember(left)
                return
        self.gatherer.claims.store.forget(snapshot.key, snapshot.uid)

    def forget(self, key: Key) -> None:
        """Drop what is remembered of a claim that is gone."""
        self.debounce.forget(key)
        self.unwritten.forget(key)
        self.events.forget(key)
        self.publisher.forget_claim(key)


def _recorded_annotations(snapshot: Snapshot, composition: str, revision: Revision) -> dict[str, str]:
    """Return the annotations that a claim of this revision carries: by them all that it composed is found again."""
    kinds = kept_kinds(snapshot) | kinds_of(revision.composition)
    return {
        names.IDENTITY: str(snapshot.identity),
        names.COMPOSITION: composition,
        names.KINDS: ",".join(sorted(kinds)),
    }


def _log_refused(snapshot: Snapshot, error: Invalid) -> None:
    claim = str(snapshot.key)
    _log.warning("a deletion goes on unreported: its status is refused", claim=claim, error=error.message)


def _without_extras(findings: Findings, error: Invalid) -> Findings:
    """Return the findings without what the composition adds to the status, which the claim's schema refused."""
    why = cause("SchemaMismatch", f"what the composition puts into the status is refused: {error.message}"[:400])
    rendered = findings.rendered and msgspec.structs.replace(findings.rendered, status={})
    return replace(findings, causes=(*findings.causes, why), rendered=rendered)
