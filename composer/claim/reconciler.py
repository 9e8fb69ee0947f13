"""Reconciles claims: gather -> choose and render -> decide -> act -> report -> one status write."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

import msgspec
import structlog

from apis import names
from apis.pause import is_paused, pause_end
from apis.reasons import MISSING_PATIENCE, ReasonClass
from apis.teardown import Policy, instruction
from composer.causes import Cause, cause, gravest
from composer.claim.act import Actor, annotation_patch
from composer.claim.compose import Prepared, Preparer, untouched
from composer.claim.connection import connect, denied, lost_secret, with_unusable
from composer.claim.debounce import Debounce
from composer.claim.decide import Plan, decide, has_instruction, mirrored_pause
from composer.claim.deletion import UnwrittenInstructions, effective_policy, has_vanished, recorded, tear_down
from composer.claim.events import EventEmitter
from composer.claim.failures import Failures, cause_of
from composer.claim.field_conflicts import next_try
from composer.claim.gather import Gatherer
from composer.claim.outcomes import (
    Acted,
    Note,
    Outcome,
    after,
    causes_of,
    causes_of_errors,
    findings_of,
    instructed_entries,
    marks_moved,
    notes_of,
    raise_first,
)
from composer.claim.pause import NOBODY, Pauser, pauser
from composer.claim.report import Findings, paused_status, report, teardown_status
from composer.claim.rollback import held_back
from composer.claim.snapshot import Snapshot, kept_kinds
from composer.composition.revision import kinds_of
from composer.connection.publisher import Publisher
from composer.render.render import Child
from runtime import finalizers
from runtime.conditions import timestamp
from runtime.errors import Conflict, Forbidden, Invalid, NotFound
from runtime.events import EventRecorder
from runtime.in_time import PASS, in_time
from runtime.kube import Kube
from runtime.objects import Key, Object, annotations_of, finalizers_of, is_name, key_of, uid_of
from runtime.preconditions import apply_metadata
from runtime.results import SETTLED, Result
from runtime.secret_rights import look_again
from runtime.status import write_status

_log = structlog.get_logger("composer.claim.reconciler")

_EARLY = timedelta(seconds=1)
_READ_AGAIN = timedelta(seconds=5)
_LIMIT_PACE = timedelta(minutes=1)
_BLIND_PACE = timedelta(seconds=5)
_SOON = Result(requeue_after=timedelta(milliseconds=200))
_AT_ONCE = Result(requeue_after=timedelta())


@dataclass(frozen=True, slots=True)
class Tools:
    """What the reconciler works with."""

    kube: Kube
    gatherer: Gatherer
    preparer: Preparer
    actor: Actor
    publisher: Publisher
    events: EventRecorder
    now: Callable[[], datetime]
    monotonic: Callable[[], float]
    pass_limit: timedelta = PASS


@dataclass(frozen=True, slots=True)
class _End:
    """How a pass ended: when to look again unless a step failed, and what became of the steps, which is told."""

    result: Result
    outcomes: tuple[Outcome, ...]


class ClaimReconciler:
    """One pass over one claim of one kind."""

    def __init__(self, tools: Tools) -> None:
        self._tools = tools
        self._events = EventEmitter(tools.events)
        self._debounce = Debounce()
        self._failures = Failures()
        self._unwritten = UnwrittenInstructions()

    async def reconcile(self, key: Key) -> Result:
        """Bring a claim one pass nearer to what it says. Raises ApiError or Failure to be called again."""
        try:
            end = await in_time(self._pass(key), self._tools.pass_limit)
        except Exception as error:  # whatever ends a pass is said on its claim, and goes on
            await self._report_failure(key, error)
            self._failures.add(key)
            raise
        result, outcomes = (end.result, end.outcomes) if isinstance(end, _End) else (end, ())
        if any(each.error for each in outcomes):
            self._failures.add(key)
        else:
            self._failures.forget(key)
        raise_first(outcomes)
        return result

    async def _pass(self, key: Key) -> Result | _End:
        await self._release_abandoned(key)
        snapshot = await self._tools.gatherer.gather(key, more_kinds=self._tools.preparer.kinds)
        if snapshot is None:
            for memory in (self._debounce, self._events, self._failures, self._unwritten):
                memory.forget(key)
            self._tools.publisher.forget_claim(key)
            return SETTLED
        if is_paused(snapshot.annotations, self._tools.now()):
            return await self._paused(snapshot)
        unseen = await self._tools.gatherer.unseen(snapshot) if snapshot.unlisted or snapshot.deleting else ()
        if unseen:
            return await self._blind(snapshot, unseen)
        snapshot = await self._tools.actor.propagate_request(snapshot)
        if snapshot.deleting:
            return await self._tear_down(snapshot)
        return await self._compose(snapshot)

    async def _report_failure(self, key: Key, error: Exception) -> None:
        """Say on the claim that its passes fail, as far as it can be read and written."""
        why = cause_of(error, repeats=self._failures.repeats(key))
        claim = self._tools.gatherer.claims.store.get(key)
        if why is None or claim is None or is_paused(annotations_of(claim), self._tools.now()):
            return
        try:
            snapshot = await self._seen(key, claim)
            if snapshot.deleting:
                await self._write_deletion(snapshot, teardown_status(snapshot, (why,), self._tools.now()))
            else:
                await self._publish(snapshot, untouched(snapshot, why), ())
        except Exception as second:  # noqa: BLE001 - the first error goes on, and says more
            _log.warning("a failure is not told on its claim", claim=str(key), error=type(second).__name__)

    async def _seen(self, key: Key, claim: Object) -> Snapshot:
        """Read a claim's surroundings; where that fails, the snapshot has the claim alone, and nothing is known."""
        try:
            snapshot = await in_time(self._tools.gatherer.gather(key, more_kinds=lambda _: frozenset()), _READ_AGAIN)
        except Exception:  # noqa: BLE001 - reading may be what fails
            snapshot = None
        resource = self._tools.gatherer.claims.resource
        return snapshot or Snapshot(claim, resource, None, kind_deleting=False, catalog={}, known=())

    async def _release_abandoned(self, key: Key) -> None:
        """Let go of what a claim left behind whose finalizer was removed by force: nothing is destroyed."""
        resource = self._tools.gatherer.claims.resource
        manager = names.claim_manager(resource.group, resource.kind, key)
        for each in await self._tools.gatherer.abandoned(key):
            if each.live is None or each.facts is None:
                continue
            operations = annotation_patch(each.live, {names.TEARDOWN: instruction(uid_of(each.live), Policy.DETACH)})
            await self._tools.kube.json_patch(each.facts.resource, key_of(each.live), operations, manager=manager)

    async def _blind(self, snapshot: Snapshot, kinds: Iterable[str]) -> Result:
        """Leave everything as it is while the children of some kinds cannot be seen."""
        text = f"{', '.join(kinds)} cannot be listed: is it served, and may the composer read it?"
        why = cause("KindNotAllowed", text, shown_as=ReasonClass.WAITING)
        if snapshot.deleting:
            await self._write_deletion(snapshot, teardown_status(snapshot, (why,), self._tools.now()))
        else:
            await self._publish(snapshot, untouched(snapshot, why), ())
        return Result(requeue_after=_BLIND_PACE)

    async def _paused(self, snapshot: Snapshot) -> _End:
        outcomes = await self._tools.actor.act(snapshot, mirrored_pause(snapshot))
        now = self._tools.now()
        lost = await lost_secret(self._tools.publisher, snapshot)
        await self._write(snapshot, paused_status(snapshot, await self._who_paused(snapshot), now, lost))
        end = pause_end(snapshot.annotations)
        return _End(Result(requeue_after=max(end - now, timedelta(seconds=1))) if end else SETTLED, outcomes)

    async def _who_paused(self, snapshot: Snapshot) -> Pauser:
        """Ask the API server: the cache keeps no managedFields."""
        try:
            return pauser(await self._tools.kube.get(snapshot.resource, snapshot.key))
        except NotFound:
            return NOBODY

    async def _compose(self, snapshot: Snapshot) -> Result | _End:
        prepared = await self._prepare(snapshot)
        if not isinstance(prepared, Prepared):
            return prepared
        planned = await self._decide(prepared)
        if planned is None:
            # The cache will know in a moment, and then the claim's own deletion decides.
            return _SOON
        acted = await self._act(*planned)
        findings = findings_of(acted, self._tools.now(), repeats=self._failures.repeats(snapshot.key))
        notes = (*notes_of(acted.outcomes), *acted.connected.notes)
        result = await self._publish(acted.prepared.snapshot, findings, notes)
        return _End(self._next_look(acted, result), acted.outcomes)

    async def _prepare(self, snapshot: Snapshot) -> Prepared | Result:
        """Choose, render and record the choice on the claim; where that ends the pass, say why."""
        prepared = await self._tools.preparer.prepare(snapshot)
        if isinstance(prepared, Findings):
            return await self._publish(snapshot, prepared, ())
        snapshot = prepared.snapshot
        unseen = frozenset(snapshot.unlisted) & kinds_of(prepared.revision.composition)
        if unseen:
            return await self._blind(snapshot, sorted(unseen))
        if prepared.is_new_intent:
            self._tools.actor.memory.forget_conflicts({uid_of(each.live) for each in snapshot.known if each.live})
        held = held_back(snapshot, prepared)
        if held is not None:
            return await self._publish(snapshot, held, ())
        marked = await self._mark_claim(snapshot, prepared)
        if isinstance(marked, Cause):
            findings = replace(untouched(snapshot, marked), composition=prepared.composition)
            return await self._publish(snapshot, replace(findings, revision=prepared.revision.name), ())
        return replace(prepared, snapshot=marked)

    async def _decide(self, prepared: Prepared) -> tuple[Prepared, Plan] | None:
        """Decide the steps, those with a teardown instruction from live reads; None while these say another thing."""
        plan = decide(prepared.snapshot, prepared.rendered, now=timestamp(self._tools.now()))
        if not has_instruction(plan):
            return prepared, plan
        live = await self._tools.gatherer.gather_live(prepared.snapshot)
        if live is None or live.deleting or await self._tools.gatherer.unseen(live):
            return None
        snapshot = replace(prepared.snapshot, namespace=live.namespace, kind_deleting=live.kind_deleting)
        prepared = replace(prepared, snapshot=snapshot)
        return prepared, decide(snapshot, prepared.rendered, now=timestamp(self._tools.now()))

    async def _act(self, prepared: Prepared, plan: Plan) -> Acted:
        outcomes = await self._tools.actor.act(prepared.snapshot, plan.steps)
        snapshot, rendered = after(prepared.snapshot, prepared.rendered, plan.steps, outcomes)
        prepared = replace(prepared, snapshot=snapshot, rendered=rendered)
        return Acted(prepared, plan, outcomes, await connect(self._tools.publisher, snapshot, prepared))

    def _next_look(self, acted: Acted, result: Result) -> Result:
        if acted.connected.is_denied:
            return Result(look_again(acted.prepared.snapshot.claim, self._tools.now()))
        if marks_moved(acted.prepared.snapshot, acted.plan):
            return _AT_ONCE
        return acted.connected.next_look(result)

    async def _mark_claim(self, snapshot: Snapshot, prepared: Prepared) -> Snapshot | Cause:
        """Record finalizer, identity, choice and kinds, before anything is created."""
        kinds = kept_kinds(snapshot) | kinds_of(prepared.revision.composition)
        wanted_annotations = {
            names.IDENTITY: str(snapshot.identity),
            names.COMPOSITION: prepared.composition,
            names.KINDS: ",".join(sorted(kinds)),
        }
        if snapshot.has_finalizer and all(
            snapshot.annotations.get(name) == text for name, text in wanted_annotations.items()
        ):
            return snapshot
        body: Object = {
            "apiVersion": snapshot.resource.api_version,
            "kind": snapshot.resource.kind,
            "metadata": {
                "name": snapshot.key.name,
                "namespace": snapshot.key.namespace,
                **apply_metadata(snapshot.claim),
                "annotations": wanted_annotations,
                "finalizers": [names.TEARDOWN_FINALIZER],
            },
        }
        try:
            claim = await self._tools.kube.apply(snapshot.resource, body, manager=snapshot.manager, force=True)
        except NotFound as error:
            raise Conflict(f"claim {snapshot.key} is gone") from error
        except Invalid as error:
            return cause(
                "InvalidValue", f"the claim has no room for what Fairlead records on it: {error.message}"[:400]
            )
        self._tools.gatherer.claims.store.remember(claim)
        claim["metadata"].pop("managedFields", None)
        return await self._tools.gatherer.with_predecessors(replace(snapshot, claim=claim))

    async def _tear_down(self, snapshot: Snapshot) -> Result | _End:
        if not snapshot.has_finalizer:
            return SETTLED
        live = await self._tools.gatherer.gather_live(snapshot)
        if live is None or not live.deleting or not live.has_finalizer:
            return SETTLED
        unseen = await self._tools.gatherer.unseen(live)
        if unseen:
            return await self._blind(live, unseen)
        live = self._unwritten.over(live)
        policy = effective_policy(live, self._tools.preparer.supported_policies(live))
        plan = tear_down(live, policy, await self._rendered(live) if has_vanished(live, policy) else ())
        if plan.done:
            return await self._let_go(live, keep_secret=plan.keeps_secret)
        live = recorded(live, (step.entry for step in plan.steps))
        status = teardown_status(live, plan.causes, self._tools.now())
        pause = self._debounce.delay(live.key, live.status, status, self._tools.monotonic())
        # What is about to be done is written down first; that it is the same in other words, or tried again, is not.
        repeats = self._failures.repeats(snapshot.key)
        is_recorded = status.get("inventory") == live.status.get("inventory")
        live = live if is_recorded and (pause or repeats) else await self._write_deletion(live, status)
        self._unwritten.note(snapshot.key, (child.entry for child in live.known))
        outcomes = await self._tools.actor.act(live, plan.steps)
        causes = (*plan.causes, *causes_of(outcomes), *causes_of_errors(outcomes, repeats=repeats))
        instructed = recorded(live, instructed_entries(outcomes))
        if repeats or len(causes) > len(plan.causes) or instructed != live:
            live = instructed
            self._unwritten.note(snapshot.key, (child.entry for child in live.known))
            await self._write_deletion(live, teardown_status(live, causes, self._tools.now()))
        self._events.emit(live, causes, notes_of(outcomes))
        return _End(Result(requeue_after=pause), outcomes)

    async def _rendered(self, snapshot: Snapshot) -> tuple[Child, ...]:
        """Render the children of a claim that goes; none where that is impossible."""
        prepared = await self._tools.preparer.prepare(snapshot)
        return () if isinstance(prepared, Findings) else prepared.rendered.children

    async def _let_go(self, snapshot: Snapshot, *, keep_secret: bool) -> Result:
        name = (snapshot.status.get("binding") or {}).get("name")
        if name and is_name(name):
            # Under propagation Orphan the collector lets the Secret live, whatever the claim's policy says.
            owner = "" if "orphan" in finalizers_of(snapshot.claim) else snapshot.uid
            secret, identity = Key(snapshot.key.namespace, name), snapshot.identity.uid
            try:
                await self._tools.publisher.disown(secret, identity, keep=keep_secret, collected_with=owner)
            except Forbidden as error:
                # A namespace that ends takes its RoleBindings before us, and its Secrets as well.
                if snapshot.namespace and not snapshot.namespace_deleting:
                    now, why = self._tools.now(), denied(snapshot, error)
                    snapshot = await self._write_deletion(snapshot, teardown_status(snapshot, (why,), now))
                    return Result(look_again(snapshot.claim, now))
        operations = finalizers.removal(snapshot.claim, names.TEARDOWN_FINALIZER)
        with suppress(NotFound):
            await self._tools.kube.json_patch(snapshot.resource, snapshot.key, operations, manager=snapshot.manager)
        return SETTLED

    async def _publish(self, snapshot: Snapshot, findings: Findings, notes: Iterable[Note]) -> Result:
        """Write the status when it differs, say what happened, and tell when to look again."""
        findings = await with_unusable(self._tools.publisher, snapshot, findings)
        first = gravest(findings.causes)
        waited = self._debounce.held(snapshot.key, first.reason if first else "", self._tools.monotonic())
        findings = replace(findings, waited=waited)
        if findings.is_early and findings.waited < _EARLY:
            return Result(requeue_after=_EARLY)
        status = report(snapshot, findings, self._tools.now())
        whole = findings.rendered is None or not findings.rendered.waiting
        self._events.emit(snapshot, findings.causes, notes, is_whole=whole)
        pause = self._debounce.delay(snapshot.key, snapshot.status, status, self._tools.monotonic())
        if pause is not None:
            return Result(requeue_after=pause)
        try:
            await self._write(snapshot, status)
        except Invalid as error:
            await self._write(snapshot, report(snapshot, _without_extras(findings, error), self._tools.now()))
        if first and first.reason in ("RenderLimit", "RenderRefused"):
            return Result(requeue_after=_LIMIT_PACE)
        if first and first.reason_class is ReasonClass.MISSING and findings.waited < MISSING_PATIENCE:
            return Result(requeue_after=MISSING_PATIENCE - findings.waited)
        pause = next_try(findings.entries, self._tools.now())
        return Result(requeue_after=pause) if pause else SETTLED

    async def _write_deletion(self, snapshot: Snapshot, status: Object) -> Snapshot:
        """Write the status of a claim that goes; a schema that refuses it, changed since, must not keep the claim."""
        try:
            return await self._write(snapshot, status)
        except Invalid as error:
            _log.warning(
                "a deletion goes on untold: its status is refused", claim=str(snapshot.key), error=error.message
            )
            return snapshot

    async def _write(self, snapshot: Snapshot, status: Object) -> Snapshot:
        """Write the status when it differs; return the claim as it is then."""
        try:
            made = await write_status(
                self._tools.kube, snapshot.resource, snapshot.claim, status, manager=f"{snapshot.manager}/status"
            )
        except NotFound as error:
            raise Conflict(f"claim {snapshot.key} is gone") from error
        if made is None:
            return snapshot
        self._debounce.wrote(snapshot.key, self._tools.monotonic())
        self._tools.gatherer.claims.store.remember(made, is_status=True)
        return replace(snapshot, claim=made)


def _without_extras(findings: Findings, error: Invalid) -> Findings:
    """Leave out what the composition adds to the status, which the schema of the claim refused."""
    why = cause("SchemaMismatch", f"what the composition puts into the status is refused: {error.message}"[:400])
    rendered = findings.rendered and msgspec.structs.replace(findings.rendered, status={})
    return replace(findings, causes=(*findings.causes, why), rendered=rendered)
