"""Reconciles claims: gather -> choose and render -> decide -> act -> report -> one status write."""

from __future__ import annotations

from collections.abc import Callable, Iterable
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
from composer.claim.debounce import Pace
from composer.claim.decide import decide, mirrored_pause, speaks
from composer.claim.deletion import NotedWords, effective_policy, has_vanished, recorded, tear_down
from composer.claim.events import Teller
from composer.claim.failures import Failures, cause_of, causes_of_errors
from composer.claim.field_conflicts import next_try
from composer.claim.gather import Gatherer
from composer.claim.outcomes import (
    Note,
    Outcome,
    after,
    causes_of,
    entries_of,
    fights_of,
    heard_words,
    in_order,
    larger_of,
    marks_moved,
    notes_of,
    raise_first,
    told_by,
)
from composer.claim.pause import NOBODY, Pauser, paused_status, pauser
from composer.claim.report import Findings, report, teardown_status
from composer.claim.rollback import held_back
from composer.claim.snapshot import View, kept_kinds
from composer.composition.revision import kinds_of
from composer.connection.publisher import Publisher
from composer.render.render import Child
from runtime import finalizers
from runtime.conditions import timestamp
from runtime.errors import Conflict, Forbidden, Invalid, NotFound
from runtime.events import EventRecorder
from runtime.in_time import PASS, in_time
from runtime.kube import Kube
from runtime.objects import Key, Object, annotations_of, is_name, key_of, uid_of
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
        self._teller = Teller(tools.events)
        self._pace = Pace()
        self._failures = Failures()
        self._noted = NotedWords()

    async def reconcile(self, key: Key) -> Result:
        """Bring a claim one pass nearer to what it says. Raises ApiError or Failure to be called again."""
        try:
            end = await in_time(self._pass(key), self._tools.pass_limit)
        except Exception as error:  # whatever ends a pass is said on its claim, and goes on
            await self._tell_failure(key, error)
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
        view = await self._tools.gatherer.gather(key, more_kinds=self._tools.preparer.kinds)
        if view is None:
            self._pace.forget(key)
            self._teller.forget(key)
            self._failures.forget(key)
            self._noted.forget(key)
            self._tools.publisher.forget_claim(key)
            return SETTLED
        if is_paused(view.annotations, self._tools.now()):
            return await self._paused(view)
        unseen = await self._tools.gatherer.unseen(view) if view.unlisted or view.deleting else ()
        if unseen:
            return await self._blind(view, unseen)
        view = await self._tools.actor.pass_on(view)
        if view.deleting:
            return await self._tear_down(view)
        return await self._compose(view)

    async def _tell_failure(self, key: Key, error: Exception) -> None:
        """Say on the claim that its passes fail, as far as it can be read and written."""
        why = cause_of(error, repeats=self._failures.repeats(key))
        claim = self._tools.gatherer.claims.store.get(key)
        if why is None or claim is None or is_paused(annotations_of(claim), self._tools.now()):
            return
        try:
            view = await self._seen(key, claim)
            if view.deleting:
                await self._tell_end(view, teardown_status(view, (why,), self._tools.now()))
            else:
                await self._publish(view, untouched(view, why), ())
        except Exception as second:  # noqa: BLE001 - the first error goes on, and says more
            _log.warning("a failure is not told on its claim", claim=str(key), error=type(second).__name__)

    async def _seen(self, key: Key, claim: Object) -> View:
        """Read a claim's surroundings; where that fails, the view has the claim alone, and nothing is known."""
        try:
            view = await in_time(self._tools.gatherer.gather(key, more_kinds=lambda _: frozenset()), _READ_AGAIN)
        except Exception:  # noqa: BLE001 - reading may be what fails
            view = None
        resource = self._tools.gatherer.claims.resource
        return view or View(claim, resource, None, kind_deleting=False, catalog={}, known=())

    async def _release_abandoned(self, key: Key) -> None:
        """Let go of what a claim left behind whose finalizer was removed by force: nothing is destroyed."""
        resource = self._tools.gatherer.claims.resource
        manager = names.claim_manager(resource.group, resource.kind, key)
        for each in await self._tools.gatherer.abandoned(key):
            if each.live is None or each.facts is None:
                continue
            operations = annotation_patch(each.live, {names.TEARDOWN: instruction(uid_of(each.live), Policy.DETACH)})
            await self._tools.kube.json_patch(each.facts.resource, key_of(each.live), operations, manager=manager)

    async def _blind(self, view: View, kinds: Iterable[str]) -> Result:
        """Leave everything as it is while the children of some kinds cannot be seen."""
        text = f"{', '.join(kinds)} cannot be listed: is it served, and may the composer read it?"
        why = cause("KindNotAllowed", text, shown_as=ReasonClass.WAITING)
        if view.deleting:
            await self._tell_end(view, teardown_status(view, (why,), self._tools.now()))
        else:
            await self._publish(view, untouched(view, why), ())
        return Result(requeue_after=_BLIND_PACE)

    async def _paused(self, view: View) -> _End:
        outcomes = await self._tools.actor.act(view, mirrored_pause(view))
        now = self._tools.now()
        lost = await lost_secret(self._tools.publisher, view)
        await self._write(view, paused_status(view, await self._who_paused(view), now, lost))
        end = pause_end(view.annotations)
        return _End(Result(requeue_after=max(end - now, timedelta(seconds=1))) if end else SETTLED, outcomes)

    async def _who_paused(self, view: View) -> Pauser:
        """Ask the API server: the cache keeps no managedFields."""
        try:
            return pauser(await self._tools.kube.get(view.resource, view.key))
        except NotFound:
            return NOBODY

    async def _compose(self, view: View) -> Result | _End:  # noqa: PLR0911 - one return for each way a pass ends early
        prepared = await self._tools.preparer.prepare(view)
        if isinstance(prepared, Findings):
            return await self._publish(view, prepared, ())
        view = prepared.view
        unseen = frozenset(view.unlisted) & kinds_of(prepared.revision.composition)
        if unseen:
            return await self._blind(view, sorted(unseen))
        if prepared.is_new_intent:
            self._tools.actor.memory.forget_fights({uid_of(each.live) for each in view.known if each.live})
        held = held_back(view, prepared)
        if held is not None:
            return await self._publish(view, held, ())
        marked = await self._mark_claim(view, prepared)
        if isinstance(marked, Cause):
            findings = replace(untouched(view, marked), composition=prepared.composition)
            return await self._publish(view, replace(findings, revision=prepared.revision.name), ())
        view = marked
        plan = decide(view, prepared.rendered, now=timestamp(self._tools.now()))
        if speaks(plan):
            live = await self._tools.gatherer.gather_live(view)
            if live is None or live.deleting or await self._tools.gatherer.unseen(live):
                # The cache will know in a moment, and then the claim's own deletion decides.
                return _SOON
            view = replace(view, namespace=live.namespace, kind_deleting=live.kind_deleting)
            plan = decide(view, prepared.rendered, now=timestamp(self._tools.now()))
        outcomes = await self._tools.actor.act(view, plan.steps)
        view, rendered = after(view, prepared.rendered, plan.steps, outcomes)
        prepared = replace(prepared, rendered=rendered)
        connected = await connect(self._tools.publisher, view, prepared)
        told = told_by(view, rendered, plan)
        entries, causes = entries_of(rendered, outcomes), (*plan.causes, *causes_of(outcomes))
        causes += causes_of_errors(outcomes, repeats=self._failures.repeats(view.key))
        fights = fights_of(entries, timestamp(self._tools.now()))
        findings = Findings(
            causes=in_order(
                (*causes, *fights, *told, *larger_of(rendered), *connected.causes, *prepared.remarks), rendered
            ),
            entries=entries,
            rendered=rendered,
            judged=frozenset(each.name for each in prepared.spec.resources if each.ready_when),
            composition=prepared.composition,
            revision=prepared.revision.name,
            has_rollout=prepared.revision.has_rollout,
            deletion_policy=effective_policy(view, prepared.spec.deletion_policies),
            secret=connected.secret,
            connection_hash=connected.hash,
            published=connected.is_usable or not rendered.connection,
        )
        result = await self._publish(view, findings, (*notes_of(outcomes), *connected.notes))
        if connected.is_denied:
            return _End(Result(look_again(view.claim, self._tools.now())), outcomes)
        if marks_moved(view, plan):
            return _End(_AT_ONCE, outcomes)
        return _End(connected.next_look(result), outcomes)

    async def _mark_claim(self, view: View, prepared: Prepared) -> View | Cause:
        """Record finalizer, identity, choice and kinds, before anything is created."""
        kinds = kept_kinds(view) | kinds_of(prepared.revision.composition)
        wanted_annotations = {
            names.IDENTITY: str(view.identity),
            names.COMPOSITION: prepared.composition,
            names.KINDS: ",".join(sorted(kinds)),
        }
        if view.has_finalizer and all(view.annotations.get(name) == text for name, text in wanted_annotations.items()):
            return view
        body: Object = {
            "apiVersion": view.resource.api_version,
            "kind": view.resource.kind,
            "metadata": {
                "name": view.key.name,
                "namespace": view.key.namespace,
                **apply_metadata(view.claim),
                "annotations": wanted_annotations,
                "finalizers": [names.TEARDOWN_FINALIZER],
            },
        }
        try:
            claim = await self._tools.kube.apply(view.resource, body, manager=view.manager, force=True)
        except NotFound as error:
            raise Conflict(f"claim {view.key} is gone") from error
        except Invalid as error:
            return cause(
                "InvalidValue", f"the claim has no room for what Fairlead records on it: {error.message}"[:400]
            )
        self._tools.gatherer.claims.store.remember(claim)
        claim["metadata"].pop("managedFields", None)
        return await self._tools.gatherer.with_predecessors(replace(view, claim=claim))

    async def _tear_down(self, view: View) -> Result | _End:
        if not view.has_finalizer:
            return SETTLED
        live = await self._tools.gatherer.gather_live(view)
        if live is None or not live.deleting or not live.has_finalizer:
            return SETTLED
        unseen = await self._tools.gatherer.unseen(live)
        if unseen:
            return await self._blind(live, unseen)
        live = self._noted.over(live)
        policy = effective_policy(live, self._tools.preparer.supported_policies(live))
        plan = tear_down(live, policy, await self._rendered(live) if has_vanished(live, policy) else ())
        if plan.done:
            return await self._let_go(live, keep_secret=plan.keeps_secret)
        live = recorded(live, (step.entry for step in plan.steps))
        status = teardown_status(live, plan.causes, self._tools.now())
        pause = self._pace.words_wait(live.key, live.status, status, self._tools.monotonic())
        # What is about to be done is written down first; that it is the same in other words, or tried again, is not.
        repeats = self._failures.repeats(view.key)
        is_recorded = status.get("inventory") == live.status.get("inventory")
        live = live if is_recorded and (pause or repeats) else await self._tell_end(live, status)
        self._noted.note(view.key, (child.entry for child in live.known))
        outcomes = await self._tools.actor.act(live, plan.steps)
        causes = (*plan.causes, *causes_of(outcomes), *causes_of_errors(outcomes, repeats=repeats))
        heard = recorded(live, heard_words(outcomes))
        if repeats or len(causes) > len(plan.causes) or heard != live:
            live = heard
            self._noted.note(view.key, (child.entry for child in live.known))
            await self._tell_end(live, teardown_status(live, causes, self._tools.now()))
        self._teller.tell(live, causes, notes_of(outcomes))
        return _End(Result(requeue_after=pause), outcomes)

    async def _rendered(self, view: View) -> tuple[Child, ...]:
        """Render the children of a claim that goes; none where that is impossible."""
        prepared = await self._tools.preparer.prepare(view)
        return () if isinstance(prepared, Findings) else prepared.rendered.children

    async def _let_go(self, view: View, *, keep_secret: bool) -> Result:
        name = (view.status.get("binding") or {}).get("name")
        if name and is_name(name):
            # Under propagation Orphan the collector lets the Secret live, whatever the claim's policy says.
            orphaned = "orphan" in view.claim["metadata"].get("finalizers", ())
            collected_with = "" if orphaned else view.uid
            secret = Key(view.key.namespace, name)
            try:
                await self._tools.publisher.disown(
                    secret, view.identity.uid, keep=keep_secret, collected_with=collected_with
                )
            except Forbidden as error:
                # A namespace that ends takes its RoleBindings before us, and its Secrets as well.
                if view.namespace and not view.namespace_deleting:
                    now = self._tools.now()
                    view = await self._tell_end(view, teardown_status(view, (denied(view, error),), now))
                    return Result(look_again(view.claim, now))
        operations = finalizers.removal(view.claim, names.TEARDOWN_FINALIZER)
        try:
            await self._tools.kube.json_patch(view.resource, view.key, operations, manager=view.manager)
        except NotFound:
            return SETTLED
        return SETTLED

    async def _publish(self, view: View, findings: Findings, notes: Iterable[Note]) -> Result:
        """Write the status when it differs, say what happened, and tell when to look again."""
        findings = await with_unusable(self._tools.publisher, view, findings)
        first = gravest(findings.causes)
        waited = self._pace.held(view.key, first.reason if first else "", self._tools.monotonic())
        findings = replace(findings, waited=waited)
        if findings.is_early and findings.waited < _EARLY:
            return Result(requeue_after=_EARLY)
        status = report(view, findings, self._tools.now())
        whole = findings.rendered is None or not findings.rendered.waiting
        self._teller.tell(view, findings.causes, notes, is_whole=whole)
        pause = self._pace.words_wait(view.key, view.status, status, self._tools.monotonic())
        if pause is not None:
            return Result(requeue_after=pause)
        try:
            await self._write(view, status)
        except Invalid as error:
            await self._write(view, report(view, _without_extras(findings, error), self._tools.now()))
        if first and first.reason in ("RenderLimit", "RenderRefused"):
            return Result(requeue_after=_LIMIT_PACE)
        if first and first.reason_class is ReasonClass.MISSING and findings.waited < MISSING_PATIENCE:
            return Result(requeue_after=MISSING_PATIENCE - findings.waited)
        pause = next_try(findings.entries, self._tools.now())
        return Result(requeue_after=pause) if pause else SETTLED

    async def _tell_end(self, view: View, status: Object) -> View:
        """Write the status of a claim that goes; a schema that refuses it, changed since, must not keep the claim."""
        try:
            return await self._write(view, status)
        except Invalid as error:
            _log.warning("a deletion goes on untold: its status is refused", claim=str(view.key), error=error.message)
            return view

    async def _write(self, view: View, status: Object) -> View:
        """Write the status when it differs; return the claim as it is then."""
        try:
            made = await write_status(
                self._tools.kube, view.resource, view.claim, status, manager=f"{view.manager}/status"
            )
        except NotFound as error:
            raise Conflict(f"claim {view.key} is gone") from error
        if made is None:
            return view
        self._pace.wrote(view.key, self._tools.monotonic())
        self._tools.gatherer.claims.store.remember(made, is_status=True)
        return replace(view, claim=made)


def _without_extras(findings: Findings, error: Invalid) -> Findings:
    """Leave out what the composition adds to the status, which the schema of the claim refused."""
    why = cause("SchemaMismatch", f"what the composition puts into the status is refused: {error.message}"[:400])
    rendered = findings.rendered and msgspec.structs.replace(findings.rendered, status={})
    return replace(findings, causes=(*findings.causes, why), rendered=rendered)
