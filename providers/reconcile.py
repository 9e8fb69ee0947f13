"""The one reconciler of all clouds: gather, decide, act, report, one status write."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Generic

import structlog

from providers import reading
from providers.accounts import Accounts
from providers.cloud import ConfigT, Credential, Provider
from providers.converge import differences as differences_of
from providers.credentials import SecretsDenied
from providers.decide import decide
from providers.effects import Effects
from providers.gather import Gatherer
from providers.identity import identity_of
from providers.managed import Present, SpecT, digest
from providers.outcome import Outcome, mutates, unreported_rotation
from providers.passwords import Await, Keep, Login, Missing
from providers.plan import Adopt, Create, Destroy, Ignore, Plan, Refuse, Settled, Update, Wait
from providers.reasons import Kind, kind_of
from providers.report import Verdict, requeue_after, status_after, verdict_of
from providers.sent import Sent
from providers.settings import Settings
from providers.snapshot import Snapshot, differences, unknown_of
from runtime.conditions import find
from runtime.errors import Blocked, Failure, Invalid, NamespaceTerminating, Terminal
from runtime.events import EventRecorder
from runtime.kube import Kube
from runtime.objects import Key, Object, annotations_of, deleting, generation_of, key_of
from runtime.results import SETTLED, Result
from runtime.secret_rights import look_again
from runtime.status import write_status
from runtime.store import Store

_log = structlog.get_logger("providers.reconcile")

_BEFORE_SAYING = 3
_SOON = timedelta(seconds=2)
_SETTLING = timedelta(seconds=5)
_WHILE_BUSY = timedelta(seconds=10)
_WHILE_IN_DOUBT = timedelta(seconds=30)
_FUTILE_FOR = timedelta(hours=1)
_REFUSALS = frozenset({"InvalidValue", "UnsupportedVersion"})


@dataclass(frozen=True, slots=True)
class _Futile:
    """Work that was refused, or did not take: not sent again before `until` unless something about it changes."""

    work: str
    until: datetime
    refusal: tuple[str, str] | None = None


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
        self._unknowns: dict[Key, int] = {}
        self._futile: dict[Key, _Futile] = {}
        self._sent: dict[Key, Sent] = {}

    async def __call__(self, key: Key) -> Result:
        """Make one pass over one resource."""
        obj = self._store.get(key)
        if obj is None:
            self._forget(key)
            return SETTLED
        if identity_of(obj).doubtful:
            # Its labels and annotations were taken away; they are put back by who composed it.
            return Result(_WHILE_IN_DOUBT)
        snapshot, plan = await self._decided(obj)
        if mutates(snapshot, plan):
            # What is about to be changed is decided on what is true now, not on what a cache remembers.
            snapshot, plan = await self._decided(await self._live(key))
        if isinstance(plan, Ignore) or (isinstance(plan, Wait) and self._is_quiet(key, snapshot, plan)):
            return self._next_look(key, plan) if isinstance(plan, Wait) else SETTLED
        outcome: Outcome[SpecT] = Outcome(
            snapshot.obj, snapshot.stored, rotated_from=unreported_rotation(snapshot) or None
        )
        failure = await self._act(snapshot, plan, outcome) if mutates(snapshot, plan) else None
        if outcome.gone:
            self._tell(snapshot, outcome)
            self._forget(key)
            return SETTLED
        return await self._publish(snapshot, plan, outcome, failure)

    async def _decided(self, obj: Object) -> tuple[Snapshot[SpecT], Plan]:
        snapshot = await self._gatherer.gather(obj)
        plan = decide(snapshot.scene)
        if isinstance(plan, Create) and snapshot.trouble is not None:
            # A database whose password cannot be what was asked for is not begun.
            plan = Refuse(*snapshot.trouble)
        return snapshot, self._without_futile(snapshot, plan)

    async def _live(self, key: Key) -> Object:
        obj = await self._kube.get(self._provider.resource, key)
        self._store.remember(obj)
        return obj

    def _without_futile(self, snapshot: Snapshot[SpecT], plan: Plan) -> Plan:
        """Do not repeat for ever what the cloud refuses, or accepts and does not carry out."""
        if self._provider.slow and isinstance(plan, Update):
            plan = self._not_sent_again(snapshot, plan)
        known = self._futile.get(key_of(snapshot.obj))
        if not isinstance(plan, Create | Update) or known is None or snapshot.scene.now >= known.until:
            return plan
        if known.work != _work(snapshot, plan):
            return plan
        if known.refusal is not None:
            return Refuse(*known.refusal)
        paths = ", ".join(change.shown for change in plan.changes) if isinstance(plan, Update) else ""
        return Refuse(
            "AccessDenied",
            f"these stay as they are although they were put back: {paths[:300]}; who granted them must take them back",
            plan.changes if isinstance(plan, Update) else (),
        )

    def _not_sent_again(self, snapshot: Snapshot[SpecT], plan: Update) -> Plan:
        """Leave out what a slow cloud accepted lately, and what it accepts and never shows."""
        if _asked_anew(snapshot.obj):
            self._sent.pop(key_of(snapshot.obj), None)
        sent = self._sent.setdefault(key_of(snapshot.obj), Sent())
        sifted = sent.sift(plan, snapshot.scene.changes, snapshot.scene.now, self._settings.settle)
        if sifted.plan.changes or sifted.plan.queued:
            return sifted.plan
        if sifted.futile:
            text = (
                f"the cloud accepts these and never shows them: {differences_of(sifted.futile)}; nothing is sent again"
                " until the spec or what is seen changes"
            )
            return Refuse("InvalidValue", text, sifted.futile)
        if plan.held is not None and not isinstance(plan.held, Wait):
            return plan.held
        paths = ", ".join(sifted.waiting)[:300]
        return Wait("CloudBusy", f"the cloud accepted the change and does not show it yet: {paths}", _SETTLING)

    def _is_quiet(self, key: Key, snapshot: Snapshot[SpecT], plan: Wait) -> bool:
        """Say nothing of what is over in a moment: a wait that changes nothing, the first two failed looks."""
        if plan.quiet:
            return True
        if kind_of(plan.reason) is not Kind.AS_KNOWN:
            self._unknowns.pop(key, None)
            return False
        count = self._unknowns[key] = self._unknowns.get(key, 0) + 1
        return count < _BEFORE_SAYING and find(snapshot.obj, "Ready") is not None

    def _next_look(self, key: Key, plan: Wait) -> Result:
        """Look again soon after the first failed looks, then at the plan's own pace."""
        count = self._unknowns.get(key, 0)
        return Result(min(plan.after, _SOON * 2**count) if count else plan.after)

    async def _act(self, snapshot: Snapshot[SpecT], plan: Plan, outcome: Outcome[SpecT]) -> Failure | None:
        self._unknowns.pop(key_of(snapshot.obj), None)
        try:
            if isinstance(plan, Create) and snapshot.account is not None:
                await self._hold_config(snapshot.account.config_object)
            await self._effects.act(snapshot, plan, outcome, self._gatherer.limiter)
            if isinstance(plan, Update):
                self._sent.setdefault(key_of(snapshot.obj), Sent()).note(plan, self._settings.now())
        except NamespaceTerminating:
            return Blocked("ResourcePending", "its namespace is being deleted; nothing is made in it any more")
        except (Terminal, Blocked) as failure:
            return failure
        except Failure as failure:
            if not outcome.acted:
                raise
            return failure
        return None

    async def _hold_config(self, config: Object) -> None:
        """Keep the ProviderConfig from being deleted; of the passes that run side by side one writes."""
        store = self._accounts.configs.store
        async with self._accounts.bookkeeping:
            held = await self._effects.writing.hold_config(store.get(key_of(config)) or config)
            store.remember(held)

    async def _publish(
        self, snapshot: Snapshot[SpecT], plan: Plan, outcome: Outcome[SpecT], failure: Failure | None
    ) -> Result:
        now, adopted = self._settings.now(), isinstance(plan, Adopt)
        if failure is None:
            snapshot, plan = self._after(snapshot, plan, outcome)
            await self._prove(snapshot, outcome)
            verdict = verdict_of(snapshot, plan)
        else:
            verdict = self._failed(snapshot, plan, failure)
        if isinstance(plan, Destroy) and failure is None:
            verdict = Verdict("Deleting", "the database is taken away")
        status = status_after(snapshot, verdict, outcome, self._settings, now)
        self._tell_stalled(snapshot, outcome.obj, verdict, status)
        await self._write(outcome, status)
        self._tell(snapshot, outcome)
        if failure is not None:
            return _after_failure(failure, status, now)
        if outcome.operation is not None or (self._provider.slow and outcome.acted):
            return Result(_SOON)
        if isinstance(plan, Destroy):
            return await self._finished(snapshot, outcome)
        if adopted or (outcome.acted and isinstance(plan, Update)):
            # Whether its password is known is asked only of one that is ours.
            return Result(_SOON)
        if isinstance(plan, Wait) and self._unknowns.get(key_of(snapshot.obj)):
            return self._next_look(key_of(snapshot.obj), plan)
        return Result(self._sooner(key_of(snapshot.obj), requeue_after(snapshot, plan, status, now)))

    async def _finished(self, snapshot: Snapshot[SpecT], outcome: Outcome[SpecT]) -> Result:
        try:
            await self._effects.ending.finish_deletion(snapshot, outcome)
        except SecretsDenied:
            # The next pass, which finds the database gone, says so.
            return Result(_SOON)
        self._forget(key_of(snapshot.obj))
        return SETTLED

    def _failed(self, snapshot: Snapshot[SpecT], plan: Plan, failure: Failure) -> Verdict:
        """Return what a failure says; what the cloud refuses is remembered, so as not to repeat it."""
        unknown = unknown_of(failure)
        if isinstance(plan, Create | Update) and isinstance(failure, Terminal) and failure.reason in _REFUSALS:
            until = self._settings.now() + _FUTILE_FOR
            refusal = (unknown.reason, unknown.message)
            self._futile[key_of(snapshot.obj)] = _Futile(_work(snapshot, plan), until, refusal)
        return Verdict(unknown.reason, unknown.message)

    def _sooner(self, key: Key, after: timedelta | None) -> timedelta | None:
        """Look again once what was sent last has settled, if nothing else asks for an earlier look."""
        sent = self._sent.get(key)
        left = sent.look_again(self._settings.now(), self._settings.settle) if sent is not None else None
        if left is None or not self._provider.slow:
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
        marks = reading.marks_of(outcome.obj, absent_since=None)
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
        key = key_of(snapshot.obj)
        if self._provider.slow:
            # It carries the change out after its answer; what it sent is remembered, and looked at again.
            step = snapshot.step if isinstance(snapshot.step, Await) else Await() if outcome.sent else Keep()
            return replace(snapshot, scene=scene, target=target, step=step), self._without_futile(snapshot, after)
        if isinstance(after, Update) and isinstance(plan, Update) and after.changes == plan.changes:
            self._futile[key] = _Futile(_work(snapshot, plan), scene.now + _FUTILE_FOR)
        elif isinstance(after, Settled):
            self._futile.pop(key, None)
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
        self._unknowns.pop(key, None)
        self._futile.pop(key, None)
        self._sent.pop(key, None)


def _after_failure(failure: Failure, status: Object, now: datetime) -> Result:
    """Return when to look again after what a report has said; raises the failure where its class says when."""
    if isinstance(failure, SecretsDenied):
        return Result(look_again({"status": status}, now))
    if isinstance(failure, Blocked) and failure.reason == "CloudBusy":
        # It took no call between our look and our call: a matter of its next state, not of a slow poll.
        return Result(_WHILE_BUSY)
    raise failure


def _asked_anew(obj: Object) -> bool:
    """Tell whether a person asked for a pass that was not reported yet."""
    asked = annotations_of(obj).get(reading.REQUESTED_AT, "")[:256]
    return bool(asked) and asked != reading.status_of(obj).get("lastHandledReconcileAt", "")


def _work(snapshot: Snapshot[SpecT], plan: Create | Update) -> str:
    """Name what a plan is about to do, and all that a person may change to have it tried again."""
    config = generation_of(snapshot.account.config_object) if snapshot.account is not None else 0
    asked = annotations_of(snapshot.obj).get(reading.REQUESTED_AT, "")
    changes = [repr(change) for change in plan.changes] if isinstance(plan, Update) else ["create"]
    return digest([*changes, snapshot.scene.desired.spec_hash, asked, config])


@dataclass(frozen=True, slots=True)
class Around(Generic[SpecT, ConfigT]):
    """What a reconciler works with, made once."""

    store: Store
    events: EventRecorder
    gatherer: Gatherer[SpecT, ConfigT]
    effects: Effects[SpecT, ConfigT]
