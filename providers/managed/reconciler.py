"""The one reconciler of all clouds: gather, decide, act, report, one status write."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Generic

import structlog

from providers.accounts.connections import Accounts
from providers.credentials.passwords import Await, Keep, Missing
from providers.credentials.secrets import SecretsDenied
from providers.external.credential import Credential, Login
from providers.external.observation import Present, SpecT, Unknown, digest, unknown_of
from providers.external.ownership import identity_of
from providers.external.provider import ConfigT, Provider
from providers.managed import record
from providers.managed.act import Effects, write_audit
from providers.managed.attempts import Looks, Repeats
from providers.managed.decide import decide
from providers.managed.failures import Failures, cause_of, is_told, status_of_failure
from providers.managed.gather import Gatherer
from providers.managed.outcome import Outcome, mutates, unreported_rotation
from providers.managed.plan import Adopt, Create, Destroy, Ignore, Plan, Refuse, Settled, Update, Wait
from providers.managed.report import Verdict, status_after, verdict_of
from providers.managed.requeue import follow_after, requeue_after
from providers.managed.snapshot import Snapshot, differences
from providers.reasons import Kind, kind_of
from providers.settings import Settings
from runtime.conditions import find
from runtime.errors import Blocked, Failure, Invalid, NamespaceTerminating, Terminal
from runtime.events import EventRecorder
from runtime.in_time import in_time
from runtime.kube import Kube
from runtime.objects import Key, Object, deleting, key_of, status_of
from runtime.results import SETTLED, Result
from runtime.secret_rights import look_again
from runtime.status import write_status
from runtime.store import Store

_log = structlog.get_logger("providers.managed.reconciler")

_SOON = timedelta(seconds=2)
_WHILE_IN_DOUBT = timedelta(seconds=30)


class Reconciler(Generic[SpecT, ConfigT]):
    """Reconciles one kind of one cloud; called with keys by runtime.controller."""

    def __init__(
        self,
        provider: Provider[SpecT, ConfigT],
        kube: Kube,
        accounts: Accounts[SpecT, ConfigT],
        settings: Settings,
        around: Around[SpecT, ConfigT],
    ) -> None:
        self._provider = provider
        self._kube = kube
        self._accounts = accounts
        self._settings = settings
        self._store = around.store
        self._events = around.events
        self._gatherer = around.gatherer
        self._effects = around.effects
        self._failures = Failures()
        self._looks = Looks()
        self._repeats = Repeats(settings, provider.slow)

    async def __call__(self, key: Key) -> Result:
        """Make one pass over one resource; raises the Failure or ApiError that says when the next one is to be."""
        try:
            result = await in_time(self._pass(key), self._settings.pass_limit)
        except Exception as error:  # whatever ends a pass is said on its resource, and goes on
            await self._tell_failure(key, error)
            raise
        self._failures.forget(key)
        if isinstance(result, Failure):
            raise result
        return result

    async def _pass(self, key: Key) -> Result | Failure:
        """Make one pass; return when the next one is to be, or the failure, which was reported, that says so."""
        obj = self._store.get(key)
        if obj is None:
            self._forget(key)
            return SETTLED
        if identity_of(obj).doubtful:
            # Its labels and annotations were taken away; they are put back by who composed it.
            return Result(_WHILE_IN_DOUBT)
        snapshot, plan = await self._decided(obj)
        acts = mutates(snapshot, plan)
        if acts:
            # What is about to be changed is decided on what is true now, not on what a cache remembers.
            snapshot, plan = await self._decided(await self._live(key))
            acts = mutates(snapshot, plan)
        if isinstance(plan, Ignore):
            return SETTLED
        if not isinstance(plan, Wait):
            self._looks.forget(key)
        elif self._is_quiet(key, snapshot, plan) and not acts:
            return Result(self._looks.next_after(key, plan.after))
        outcome: Outcome[SpecT] = Outcome(
            snapshot.obj, snapshot.stored, rotated_from=unreported_rotation(snapshot) or None
        )
        failure = await self._act(snapshot, plan, outcome) if acts else None
        if outcome.gone:
            self._tell(snapshot, outcome)
            self._forget(key)
            return SETTLED
        return await self._publish(snapshot, plan, outcome, failure)

    async def _tell_failure(self, key: Key, error: Exception) -> None:
        """Say on the resource that its passes fail, as far as it can be written."""
        why, obj = cause_of(error, self._failures.add(key)), self._store.get(key)
        if why is None or obj is None:
            return
        outcome: Outcome[SpecT] = Outcome(obj, None)
        try:
            await self._write(outcome, status_of_failure(obj, why, self._settings.now()))
        except Exception as second:  # noqa: BLE001 - the first error goes on, and says more
            _log.warning("a failure is not told on its resource", key=str(key), error=type(second).__name__)

    async def _decided(self, obj: Object) -> tuple[Snapshot[SpecT], Plan]:
        snapshot = await self._gatherer.gather(obj)
        plan = decide(snapshot.scene)
        if isinstance(plan, Create) and snapshot.trouble is not None:
            # A database whose password cannot be what was asked for is not begun.
            plan = Refuse(*snapshot.trouble)
        snapshot, plan = self._repeats.sift(snapshot, plan)
        if isinstance(plan, Wait):
            follow = follow_after(snapshot, status_of(obj), snapshot.scene.now)
            plan = plan if follow is None else replace(plan, after=min(plan.after, follow))
        return snapshot, plan

    async def _live(self, key: Key) -> Object:
        obj = await self._kube.get(self._provider.resource, key)
        self._store.remember(obj)
        return obj

    def _is_quiet(self, key: Key, snapshot: Snapshot[SpecT], plan: Wait) -> bool:
        """Say nothing of what is over in a moment: a wait that changes nothing, the first two failed looks."""
        if is_told(snapshot.obj):
            # The first good pass takes back that passes fail.
            return False
        if plan.quiet:
            return True
        if kind_of(plan.reason) is not Kind.AS_KNOWN:
            self._looks.forget(key)
            return False
        early = self._looks.note(key, failed=isinstance(snapshot.scene.observation, Unknown))
        return early and find(snapshot.obj, "Ready") is not None

    async def _act(self, snapshot: Snapshot[SpecT], plan: Plan, outcome: Outcome[SpecT]) -> Failure | None:
        try:
            if isinstance(plan, Create) and snapshot.account is not None:
                await self._hold_config(snapshot.account.config_object)
            await self._carried_out(snapshot, plan, outcome)
            self._repeats.accepted(snapshot, plan)
        except NamespaceTerminating:
            return Blocked("ResourcePending", "its namespace is being deleted; nothing is made in it any more")
        except (Terminal, Blocked) as failure:
            return failure
        except Failure as failure:
            if not outcome.acted:
                raise
            return failure
        return None

    async def _carried_out(self, snapshot: Snapshot[SpecT], plan: Plan, outcome: Outcome[SpecT]) -> None:
        """Carry a plan out, and put on record what was begun in the cloud, however it ended."""
        try:
            await self._effects.act(snapshot, plan, outcome, self._gatherer.limiter)
        except BaseException as stopped:
            if outcome.acted:
                write_audit(snapshot, plan, stopped)
            raise
        write_audit(snapshot, plan, None)

    async def _hold_config(self, config: Object) -> None:
        """Keep the ProviderConfig from being deleted; of the passes that run side by side one writes."""
        store = self._accounts.configs.store
        async with self._accounts.bookkeeping:
            held = await self._effects.writing.hold_config(store.get(key_of(config)) or config)
            store.remember(held)

    async def _publish(
        self, snapshot: Snapshot[SpecT], plan: Plan, outcome: Outcome[SpecT], failure: Failure | None
    ) -> Result | Failure:
        now, adopted, again = self._settings.now(), isinstance(plan, Adopt), None
        if failure is None:
            snapshot, plan = self._after(snapshot, plan, outcome)
            await self._prove(snapshot, outcome)
            observed, key = snapshot.observed, key_of(snapshot.obj)
            busy_for = self._looks.busy_for(key, observed.state, now) if observed and isinstance(plan, Wait) else None
            verdict = verdict_of(snapshot, plan, busy_for=busy_for)
        else:
            again = self._repeats.refused(snapshot, plan, failure)
            unknown = unknown_of(failure)
            verdict = Verdict(unknown.reason, unknown.message)
        if isinstance(plan, Destroy) and failure is None:
            verdict = Verdict("Deleting", f"the {snapshot.noun} is taken away")
        status = status_after(snapshot, verdict, outcome, self._settings, now)
        self._tell_stalled(snapshot, outcome.obj, verdict, status)
        await self._write(outcome, status)
        self._tell(snapshot, outcome)
        if failure is not None:
            return Result(again) if again is not None else _after_failure(failure, status, now)
        if outcome.operation is not None or (self._provider.slow and outcome.acted):
            return Result(follow_after(snapshot, status, now) or _SOON)
        if isinstance(plan, Destroy):
            return await self._finished(snapshot, outcome)
        if adopted or (outcome.acted and isinstance(plan, Update)):
            # Whether its password is known is asked only of one that is ours.
            return Result(_SOON)
        if isinstance(plan, Wait) and self._looks.failing(key_of(snapshot.obj)):
            return Result(self._looks.next_after(key_of(snapshot.obj), plan.after))
        return Result(self._sooner(key_of(snapshot.obj), requeue_after(snapshot, plan, status, now)))

    async def _finished(self, snapshot: Snapshot[SpecT], outcome: Outcome[SpecT]) -> Result:
        try:
            await self._effects.ending.finish_deletion(snapshot, outcome)
        except SecretsDenied:
            # The next pass, which finds the database gone, says so.
            return Result(_SOON)
        self._forget(key_of(snapshot.obj))
        return SETTLED

    def _sooner(self, key: Key, after: timedelta | None) -> timedelta | None:
        """Look again once what was sent last has settled, if nothing else asks for an earlier look."""
        left = self._repeats.look_again(key)
        if left is None:
            return after
        return left + _SOON if after is None else min(after, left + _SOON)

    async def _write(self, outcome: Outcome[SpecT], status: Object) -> None:
        manager = f"{self._settings.manager}/status"
        try:
            written = await write_status(self._kube, self._provider.resource, outcome.obj, status, manager=manager)
        except Invalid as error:
            if not deleting(outcome.obj):
                raise
            # A schema that has changed since must not keep what goes.
            _log.warning(
                "a deletion goes on untold: its status is refused", key=str(key_of(outcome.obj)), error=error.message
            )
            return
        if written is not None:
            self._store.remember(written, is_status=True)
            outcome.obj = written

    def _after(self, snapshot: Snapshot[SpecT], plan: Plan, outcome: Outcome[SpecT]) -> tuple[Snapshot[SpecT], Plan]:
        """Decide once more on what was seen after the last call, for the report alone."""
        snapshot = replace(snapshot, obj=outcome.obj, stored=outcome.stored)
        if not isinstance(outcome.fresh, Present) or isinstance(plan, Destroy):
            return snapshot, plan
        target = snapshot.target
        if outcome.stored is not None and outcome.stored.kept.username:
            target = replace(target, active=outcome.stored.kept.username)
        if outcome.rotated_from is not None:
            target = replace(target, retiring=outcome.rotated_from)
        if outcome.retired:
            target = replace(target, retiring="")
        observed = outcome.fresh.observed
        marks = record.marks_of(outcome.obj, absent_since=None)
        changes = differences(self._provider, snapshot.envelope, target, observed, marks.applied_keys)
        scene = replace(
            snapshot.scene,
            observation=outcome.fresh,
            marks=marks,
            changes=changes,
            observed_hash=digest(observed.spec),
        )
        # What was refused is not decided anew: beside it, only the password's step was made.
        after = plan if isinstance(plan, Refuse) else decide(scene)
        if self._provider.slow:
            # It carries the change out after its answer; what it sent is remembered, and looked at again.
            sent = Await(closely=outcome.resent) if outcome.sent else Keep()
            step = snapshot.step if isinstance(snapshot.step, Await) else sent
            after = self._repeats.without_futile(snapshot, after)
            return replace(snapshot, scene=scene, target=target, step=step), after
        if isinstance(after, Update) and isinstance(plan, Update) and after.changes == plan.changes:
            self._repeats.without_effect(snapshot, plan)
        elif isinstance(after, Settled):
            self._repeats.settled(key_of(snapshot.obj))
        left = snapshot.step if isinstance(snapshot.step, Missing) else Keep()
        return replace(snapshot, scene=scene, target=target, step=left, trouble=snapshot.trouble), after

    async def _prove(self, snapshot: Snapshot[SpecT], outcome: Outcome[SpecT]) -> None:
        """Record at which version of its row the published login was proven; try it where the row is new."""
        observed, stored, account = snapshot.observed, outcome.stored, snapshot.account
        if observed is None or stored is None or account is None or not stored.kept.current:
            return
        name, versions = stored.kept.username, self._provider.login_versions(observed)
        proven = name in outcome.proven or snapshot.login is Login.OK
        if outcome.acted and name not in outcome.proven:
            credential = Credential(name, stored.kept.current)
            proven = False
            # What was done is reported first; the next pass tells what is wrong.
            with suppress(Terminal):
                proven = await account.cloud.login(snapshot.target, credential) is Login.OK
        outcome.proven.pop(name, None)
        if proven and name in versions:
            outcome.proven[name] = versions[name]

    def _tell(self, snapshot: Snapshot[SpecT], outcome: Outcome[SpecT]) -> None:
        for said in outcome.events:
            self._events.emit(snapshot.obj, type_=said.type, reason=said.reason, message=said.message)

    def _tell_stalled(self, snapshot: Snapshot[SpecT], obj: Object, verdict: Verdict, status: Object) -> None:
        stalled = find({"status": status}, "Stalled")
        before = find(obj, "Stalled")
        if stalled is not None and (before is None or before.get("reason") != stalled["reason"]):
            self._events.emit(snapshot.obj, type_="Warning", reason=stalled["reason"], message=stalled["message"])
        known = {entry["path"] for entry in (obj.get("status") or {}).get("drift") or ()}
        for change in verdict.held[:8]:
            if change.shown not in known and verdict.reason in {"DriftHeld", "ObserveOnly"}:
                self._events.emit(snapshot.obj, type_="Warning", reason="DriftFound", message=verdict.message)
                return

    def _forget(self, key: Key) -> None:
        self._gatherer.forget(key)
        self._failures.forget(key)
        self._looks.forget(key)
        self._repeats.forget(key)


def _after_failure(failure: Failure, status: Object, now: datetime) -> Result | Failure:
    """Return when to look again after what a report has said; the failure itself where its class says when."""
    return Result(look_again({"status": status}, now)) if isinstance(failure, SecretsDenied) else failure


@dataclass(frozen=True, slots=True)
class Around(Generic[SpecT, ConfigT]):
    """What a reconciler works with, made once."""

    store: Store
    events: EventRecorder
    gatherer: Gatherer[SpecT, ConfigT]
    effects: Effects[SpecT, ConfigT]
