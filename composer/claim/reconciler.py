"""Reconciles claims: gather, compose, decide, act, report and write."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

import structlog

from apis.pause import is_paused, pause_end
from composer.causes import Cause
from composer.claim.act import Actor
from composer.claim.compose import Choice, Prepared, Preparer, held_back, untouched
from composer.claim.connection import connect, drop_former, keep_passwords, lost_secret
from composer.claim.decide import Plan, decide, has_instruction, prune
from composer.claim.deletion_pass import DeletionPass
from composer.claim.failures import Failures, cause_of
from composer.claim.gather import Gatherer
from composer.claim.outcomes import Acted, PassResult, after, findings_of, notes_of, raise_first
from composer.claim.report import NOBODY, Findings, Pauser, pauser, report_pause
from composer.claim.snapshot import ObservedChild, Snapshot
from composer.claim.undecided import mirrored_pause, steps_unrendered, taken_out
from composer.claim.write import ClaimWriter, EventEmitter
from composer.connection.passwords import PasswordKeeper
from composer.connection.publisher import Publisher
from runtime.conditions import timestamp
from runtime.errors import NotFound
from runtime.events import EventRecorder
from runtime.in_time import PASS, in_time
from runtime.kube import Kube
from runtime.objects import Key, Object, annotations_of, uid_of
from runtime.results import SETTLED, Result
from runtime.secret_rights import look_again

_log = structlog.get_logger("composer.claim.reconciler")

_READ_AGAIN = timedelta(seconds=5)
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
    passwords: PasswordKeeper
    events: EventRecorder
    now: Callable[[], datetime]
    monotonic: Callable[[], float]
    pass_limit: timedelta = PASS


class ClaimReconciler:
    """One pass over one claim of one kind."""

    def __init__(self, tools: Tools) -> None:
        self._tools = tools
        self._failures = Failures()
        self._writer = ClaimWriter(
            tools.kube,
            tools.gatherer,
            tools.publisher,
            EventEmitter(tools.events),
            tools.now,
            tools.monotonic,
            tools.preparer.spec_in_use,
        )
        self._deletion = DeletionPass(
            tools.kube, tools.gatherer, tools.preparer, tools.actor, self._writer, self._failures, tools.passwords
        )

    async def reconcile(self, key: Key) -> Result:
        """Reconcile a claim: one pass. Raises ApiError or Failure to be called again."""
        try:
            ended = await in_time(self._pass(key), self._tools.pass_limit)
        except Exception as error:  # whatever ends a pass is reported on its claim, and raised again
            await self._report_failure(key, error)
            self._failures.add(key)
            raise
        if any(outcome.error for outcome in ended.outcomes):
            self._failures.add(key)
        else:
            self._failures.forget(key)
        raise_first(ended.outcomes)
        return ended.result

    async def _pass(self, key: Key) -> PassResult:
        """Gather a claim, then do what its state needs: gone, paused, with unlisted children, being deleted, alive."""
        await self._deletion.detach_abandoned(key)
        snapshot = await self._tools.gatherer.gather(key, more_kinds=self._tools.preparer.kinds)
        if snapshot is None:
            self._forget(key)
            return PassResult(SETTLED)
        snapshot = self._writer.unwritten.added_to(snapshot)
        if is_paused(snapshot.annotations, self._tools.now()):
            return await self._pause(snapshot)
        unlisted = await self._tools.gatherer.unseen(snapshot) if snapshot.unlisted or snapshot.deleting else ()
        if unlisted:
            return PassResult(await self._writer.publish_unlisted(snapshot, unlisted))
        snapshot = await self._tools.actor.propagate_request(snapshot)
        if snapshot.deleting:
            return await self._deletion.run(snapshot)
        return await self._compose(snapshot)

    async def _compose(self, snapshot: Snapshot) -> PassResult:
        """Compose a claim that lives, decide its steps, act, report and write."""
        prepared = await self._prepare(snapshot)
        if not isinstance(prepared, Prepared):
            return await self._release_deleted(snapshot, prepared)
        plan = await self._decide(prepared)
        if plan is None:
            # The cache has it in a moment, and then the claim's own deletion decides.
            return PassResult(_SOON)
        acted = await self._act(prepared, plan)
        findings = findings_of(acted, self._tools.now(), repeats=self._failures.repeats(snapshot.key))
        written = await self._writer.publish(acted.snapshot, findings, acted.notes)
        return PassResult(self._next_pass(acted, written), acted.outcomes)

    async def _release_deleted(self, snapshot: Snapshot, reported: Result) -> PassResult:
        """Release children that somebody else deleted, of a claim of which it is not known what it wants."""
        if not steps_unrendered(snapshot):
            return PassResult(reported)
        live = await self._tools.gatherer.gather_live(snapshot)
        if live is None or live.deleting or await self._tools.gatherer.unseen(live):
            return PassResult(_SOON)
        snapshot = replace(snapshot, namespace=live.namespace, kind_deleting=live.kind_deleting)
        return PassResult(reported, await self._tools.actor.act(snapshot, steps_unrendered(snapshot)))

    async def _prepare(self, snapshot: Snapshot) -> Prepared | Result:
        """Choose, render and record the choice on the claim; where that ends the pass, report why."""
        if self._tools.preparer.is_chosen_by_namespace(snapshot):
            snapshot = await self._tools.gatherer.with_live_namespace(snapshot)
        choice = self._tools.preparer.choose(snapshot)
        if isinstance(choice, Findings):
            return await self._writer.publish(snapshot, choice)
        if choice.is_first and not choice.refusals:
            return await self._prepare_first(choice)
        prepared = await self._tools.preparer.render(choice)
        if isinstance(prepared, Findings):
            return await self._prune_free(choice.snapshot, prepared, await self._tools.preparer.taken_out(choice))
        snapshot = prepared.snapshot
        if choice.unlisted:
            return await self._writer.publish_unlisted(snapshot, choice.unlisted)
        if prepared.is_new_intent:
            self._tools.actor.memory.forget_conflicts({uid_of(child.live) for child in snapshot.children if child.live})
        held = held_back(prepared)
        if held is not None:
            return await self._held(prepared, held)
        return await self._recorded(prepared, await self._record(choice))

    async def _held(self, prepared: Prepared, held: Findings) -> Result:
        """Report an edit that is held whole; the rules and settings that it took out go. Raises ApiError."""
        snapshot = prepared.snapshot
        resources = frozenset(resource.name for resource in prepared.spec.resources)
        gone = () if prepared.is_rollback else taken_out(snapshot, prepared.rendered, resources)
        return await self._prune_free(snapshot, held, gone)

    async def _prune_free(self, snapshot: Snapshot, held: Findings, gone: Sequence[ObservedChild]) -> Result:
        """Report a claim that else stays as it is, and have these of its children go. Raises ApiError."""
        live = await self._tools.gatherer.gather_live(snapshot) if gone else None
        if live is None or live.deleting or await self._tools.gatherer.unseen(live):
            return await self._writer.publish(snapshot, held)
        seen = replace(snapshot, namespace=live.namespace, kind_deleting=live.kind_deleting)
        outcomes = await self._tools.actor.act(
            seen, [step for child in gone for step in prune(seen, child, needed=False)]
        )
        out = {(child.entry.place, child.entry.name) for child in gone}
        entries = [entry for entry in held.entries if (entry.place, entry.name) not in out]
        entries += [outcome.entry for outcome in outcomes if outcome.entry]
        kept = tuple(child for child in snapshot.children if child not in gone)
        held = replace(held, entries=tuple(entries))
        reported = await self._writer.publish(replace(snapshot, children=kept), held, notes_of(outcomes))
        raise_first(outcomes)
        return reported

    async def _prepare_first(self, choice: Choice) -> Prepared | Result:
        """Render a claim that has composed nothing while its finalizer is written: the choice alone decides that.

        A claim that cannot be rendered keeps the finalizer: the first pass over its deletion removes it.
        """
        if choice.unlisted:
            return await self._writer.publish_unlisted(choice.snapshot, choice.unlisted)
        # Both are waited for, so that no write is left behind by a pass that ends.
        recorded, prepared = await asyncio.gather(
            self._record(choice), self._render_behind_a_write(choice), return_exceptions=True
        )
        if isinstance(recorded, BaseException):
            raise recorded
        if isinstance(prepared, BaseException):
            raise prepared
        if isinstance(prepared, Findings):
            return await self._writer.publish(choice.snapshot if isinstance(recorded, Cause) else recorded, prepared)
        return await self._recorded(prepared, recorded)

    async def _record(self, choice: Choice) -> Snapshot | Cause:
        return await self._writer.record(choice.snapshot, choice.chosen.composition, choice.chosen.revision)

    async def _render_behind_a_write(self, choice: Choice) -> Prepared | Findings:
        # The bytes of the write leave in this turn of the loop, before the work that a render is here.
        await asyncio.sleep(0)
        return await self._tools.preparer.render(choice)

    async def _recorded(self, prepared: Prepared, recorded: Snapshot | Cause) -> Prepared | Result:
        """Return what was prepared, of the claim as it is recorded; where the API server refused it, report why."""
        if not isinstance(recorded, Cause):
            return replace(prepared, snapshot=recorded)
        findings = replace(untouched(prepared.snapshot, recorded), composition=prepared.composition)
        return await self._writer.publish(prepared.snapshot, replace(findings, revision=prepared.revision.name))

    async def _decide(self, prepared: Prepared) -> Plan | None:
        """Decide the steps, those with a teardown instruction from live reads; None where these differ too much."""
        snapshot, rendered = prepared.snapshot, prepared.rendered
        plan = decide(snapshot, rendered, now=timestamp(self._tools.now()))
        if not has_instruction(plan):
            return plan
        live = await self._tools.gatherer.gather_live(snapshot)
        if live is None or live.deleting or await self._tools.gatherer.unseen(live):
            return None
        snapshot = replace(snapshot, namespace=live.namespace, kind_deleting=live.kind_deleting)
        return decide(snapshot, rendered, now=timestamp(self._tools.now()))

    async def _act(self, prepared: Prepared, plan: Plan) -> Acted:
        """Make passwords, carry out the plan and publish the connection Secret."""
        kept = await keep_passwords(self._tools.passwords, prepared)
        outcomes = await self._tools.actor.act(prepared.snapshot, plan.steps)
        snapshot, rendered = after(prepared.snapshot, prepared.rendered, plan.steps, outcomes)
        connected = await connect(self._tools.publisher, snapshot, replace(prepared, rendered=rendered))
        kept = await drop_former(self._tools.passwords, snapshot, kept, connected, rendered)
        return Acted(prepared, plan, outcomes, snapshot, rendered, connected, kept)

    def _next_pass(self, acted: Acted, written: Result) -> Result:
        if acted.connected.is_denied or acted.passwords.is_denied:
            return Result(look_again(acted.snapshot.claim, self._tools.now()))
        if acted.is_new_reference or acted.passwords.is_new:
            return _AT_ONCE
        return acted.connected.next_look(written)

    async def _pause(self, snapshot: Snapshot) -> PassResult:
        """Copy the pause to the children, report it, and come back at its end."""
        outcomes = await self._tools.actor.act(snapshot, mirrored_pause(snapshot))
        now = self._tools.now()
        lost = await lost_secret(self._tools.publisher, snapshot)
        await self._writer.write(snapshot, report_pause(snapshot, await self._who_paused(snapshot), now, lost))
        end = pause_end(snapshot.annotations)
        return PassResult(Result(requeue_after=max(end - now, timedelta(seconds=1))) if end else SETTLED, outcomes)

    async def _who_paused(self, snapshot: Snapshot) -> Pauser:
        """Return who set the pause, by a live read: the cache keeps no managedFields."""
        try:
            return pauser(await self._tools.kube.get(snapshot.resource, snapshot.key))
        except NotFound:
            return NOBODY

    async def _report_failure(self, key: Key, error: Exception) -> None:
        """Report on the claim that its passes fail, as far as it can be read and written."""
        why = cause_of(error, repeats=self._failures.repeats(key))
        claim = self._tools.gatherer.claims.store.get(key)
        if why is None or claim is None or is_paused(annotations_of(claim), self._tools.now()):
            return
        try:
            await self._writer.publish_cause(await self._gather_again(key, claim), why)
        except Exception as second:  # noqa: BLE001 - the first error is raised, and says more
            _log.warning("a failure is not reported on its claim", claim=str(key), error=type(second).__name__)

    async def _gather_again(self, key: Key, claim: Object) -> Snapshot:
        """Return the snapshot of a claim after a failed pass; the claim alone where gathering fails."""
        try:
            snapshot = await in_time(self._tools.gatherer.gather(key, more_kinds=lambda _: frozenset()), _READ_AGAIN)
        except Exception:  # noqa: BLE001 - gathering may be what fails
            snapshot = None
        if snapshot is not None:
            return self._writer.unwritten.added_to(snapshot)
        resource = self._tools.gatherer.claims.resource
        return Snapshot(claim, resource, None, kind_deleting=False, catalog={}, children=())

    def _forget(self, key: Key) -> None:
        """Drop what is remembered of a claim that is gone."""
        self._failures.forget(key)
        self._writer.forget(key)
