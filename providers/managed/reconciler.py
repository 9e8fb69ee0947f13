"""The one reconciler of all clouds: gather, decide, act, report, one status write."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Generic

import structlog

from apis.reasons import ReasonClass, class_of_managed
from providers.accounts.connections import Accounts
from providers.credentials.secrets import SecretsDenied
from providers.external.observation import Present, SpecT, Unknown, unknown_of
from providers.external.ownership import identity_of
from providers.external.provider import ConfigT, Kind
from providers.managed.act import Effects, write_audit
from providers.managed.attempts import NOTHING_TRIED, Attempts, Memory
from providers.managed.decide import decide
from providers.managed.gather import Gatherer
from providers.managed.inputs import Inputs
from providers.managed.outcome import Outcome, Said, mutates, seen_after, unreported_rotation, work_of
from providers.managed.plan import Adopt, Create, Destroy, Ignore, Plan, Refuse, Settled, Update, Wait
from providers.managed.report import report, status_of_failure
from providers.managed.requeue import follow_after, requeue_after
from providers.managed.summary import Summary, cause_of, says_passes_fail, summary_of
from providers.settings import Settings
from runtime.conditions import find
from runtime.errors import Blocked, Failure, Invalid, NamespaceTerminating, Terminal
from runtime.events import EventRecorder
from runtime.in_time import in_time
from runtime.kube import Kube
from runtime.objects import Key, Object, deleting, key_of, uid_of
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
        kind: Kind[SpecT],
        kube: Kube,
        accounts: Accounts[SpecT, ConfigT],
        settings: Settings,
        around: Around[SpecT, ConfigT],
    ) -> None:
        self._kind = kind
        self._kube = kube
        self._accounts = accounts
        self._settings = settings
        self._store = around.store
        self._events = around.events
        self._gatherer = around.gatherer
        self._effects = around.effects
        self._memory = Memory()

    async def __call__(self, key: Key) -> Result:
        """Make one pass over one resource; raises the Failure or ApiError that says when the next one is to be."""
        try:
            result = await in_time(self._pass(key), self._settings.pass_limit)
        except Exception as error:  # whatever ends a pass is reported on its resource, and goes on
            await self._report_error(key, error)
            raise
        self._memory.passed(key)
        if isinstance(result, Failure):
            raise result
        return result

    async def _pass(self, key: Key) -> Result | Failure:
        """Make one pass; return when the next one is to be, or the failure, which was reported, that says so."""
        obj = self._store.get(key)
        if obj is None:
            return self._gone(key)
        if identity_of(obj).doubtful:
            # Its labels and annotations were taken away; they are put back by who composed it.
            return Result(_WHILE_IN_DOUBT)
        inputs, plan = await self._decide(obj)
        if mutates(inputs, plan):
            # What is about to be changed is decided on what is true now, not on what a cache remembers.
            inputs, plan = await self._decide(await self._live(key))
        acts, quiet_for = mutates(inputs, plan), self._quiet_for(key, inputs, plan)
        if isinstance(plan, Ignore) or (quiet_for is not None and not acts):
            return Result(quiet_for)
        outcome: Outcome[SpecT] = Outcome(inputs.obj, inputs.stored, rotated_from=unreported_rotation(inputs) or None)
        failure = await self._act(inputs, plan, outcome) if acts else None
        if outcome.gone:
            self._emit(inputs, outcome.events)
            return self._gone(key)
        if failure is None:
            return await self._report(inputs, plan, outcome)
        return await self._report_failure(inputs, plan, outcome, failure)

    async def _decide(self, obj: Object) -> tuple[Inputs[SpecT], Plan]:
        """Gather and decide."""
        key = key_of(obj)
        inputs = await self._gatherer.gather(obj, self._memory.of(key))
        decision = decide(inputs)
        self._memory.keep(key, decision.attempts)
        return replace(inputs, step=decision.step, attempts=decision.attempts), decision.plan

    async def _live(self, key: Key) -> Object:
        obj = await self._kube.get(self._kind.resource, key)
        self._store.remember(obj)
        return obj

    def _quiet_for(self, key: Key, inputs: Inputs[SpecT], plan: Plan) -> timedelta | None:
        """Say nothing for so long of what is over in a moment: a wait that changes nothing, the first failed looks."""
        attempts = self._memory.of(key)
        is_look = isinstance(plan, Wait) and (plan.quiet or class_of_managed(plan.reason) is ReasonClass.WAITING)
        if isinstance(plan, Wait) and says_passes_fail(inputs.obj):
            # The first good pass takes back that passes fail.
            return None
        if not isinstance(plan, Wait) or not is_look:
            self._memory.keep(key, attempts.without_looks())
            return None
        if not plan.quiet:
            attempts = attempts.after_look(failed=isinstance(inputs.observation, Unknown))
            self._memory.keep(key, attempts)
            if not attempts.is_early or find(inputs.obj, "Ready") is None:
                return None
        return attempts.next_look(plan.after)

    async def _act(self, inputs: Inputs[SpecT], plan: Plan, outcome: Outcome[SpecT]) -> Failure | None:
        try:
            if isinstance(plan, Create) and inputs.account is not None:
                await self._hold_config(inputs.account.config_object)
            await self._carried_out(inputs, plan, outcome)
        except NamespaceTerminating:
            return Blocked("ResourcePending", "its namespace is being deleted; nothing is made in it any more")
        except (Terminal, Blocked) as failure:
            return failure
        except Failure as failure:
            if not outcome.acted:
                raise
            return failure
        key = key_of(inputs.obj)
        accepted = self._memory.of(key).after_accepted(plan, uid_of(inputs.obj), self._settings.now())
        self._memory.keep(key, accepted)
        return None

    async def _carried_out(self, inputs: Inputs[SpecT], plan: Plan, outcome: Outcome[SpecT]) -> None:
        """Carry a plan out, and put on record what was begun in the cloud, however it ended."""
        try:
            await self._effects.act(inputs, plan, outcome, self._gatherer.limiter)
        except BaseException as stopped:
            if outcome.acted:
                write_audit(inputs, plan, stopped)
            raise
        write_audit(inputs, plan, None)

    async def _hold_config(self, config: Object) -> None:
        """Keep the ProviderConfig from being deleted; of the passes that run side by side one writes."""
        store = self._accounts.configs.store
        async with self._accounts.bookkeeping:
            latest = store.get(key_of(config)) or config
            held = await self._effects.writing.hold_config(self._accounts.configs.resource, latest)
            store.remember(held)

    async def _report(self, inputs: Inputs[SpecT], acted: Plan, outcome: Outcome[SpecT]) -> Result:
        """Report what is true after a pass, and say when the next one is to be."""
        key, now = key_of(inputs.obj), self._settings.now()
        inputs, plan = self._decide_again(inputs, acted, outcome)
        await self._effects.prove(inputs, outcome)
        attempts = self._memory.of(key)
        if inputs.observed is not None and isinstance(plan, Wait):
            attempts = attempts.after_busy(inputs.observed.state, now)
            self._memory.keep(key, attempts)
        inputs = replace(inputs, attempts=attempts, now=now)
        status = await self._write(inputs, summary_of(inputs, plan), outcome)
        if outcome.operation is not None or (self._kind.asynchronous and outcome.acted):
            return Result(follow_after(inputs, status, now) or _SOON)
        if isinstance(plan, Destroy):
            return await self._finished(inputs, outcome)
        if isinstance(acted, Adopt) or (outcome.acted and isinstance(plan, Update)):
            # Whether its password is known is asked only of one that is ours.
            return Result(_SOON)
        if isinstance(plan, Wait) and attempts.failing:
            return Result(attempts.next_look(plan.after))
        return Result(self._sooner(attempts, requeue_after(inputs, plan, status, now), now))

    async def _report_failure(
        self, inputs: Inputs[SpecT], plan: Plan, outcome: Outcome[SpecT], failure: Failure
    ) -> Result | Failure:
        """Report what was refused, and say when it is tried again."""
        key, now, unknown = key_of(inputs.obj), self._settings.now(), unknown_of(failure)
        attempts = self._memory.of(key).after_refused(work_of(inputs, plan), plan, failure, now)
        self._memory.keep(key, attempts)
        status = await self._write(replace(inputs, now=now), Summary(unknown.reason, unknown.message), outcome)
        again = attempts.retry_after(failure)
        if again is not None:
            return Result(again)
        return Result(look_again({"status": status}, now)) if isinstance(failure, SecretsDenied) else failure

    async def _report_error(self, key: Key, error: Exception) -> None:
        """Say on the resource that its passes fail, as far as it can be written."""
        why, obj = cause_of(error, self._memory.count_failed_pass(key)), self._store.get(key)
        if why is None or obj is None:
            return
        outcome: Outcome[SpecT] = Outcome(obj, None)
        try:
            await self._write_status(outcome, status_of_failure(obj, why, self._settings.now()))
        except Exception as second:  # noqa: BLE001 - the first error goes on, and says more
            _log.warning("a failure is not told on its resource", key=str(key), error=type(second).__name__)

    def _decide_again(self, inputs: Inputs[SpecT], plan: Plan, outcome: Outcome[SpecT]) -> tuple[Inputs[SpecT], Plan]:
        """Decide once more on what was seen after the last call, for the report alone."""
        key, before = key_of(inputs.obj), replace(inputs, obj=outcome.obj)
        inputs = seen_after(self._kind, inputs, plan, outcome)
        if not isinstance(outcome.fresh, Present) or isinstance(plan, Destroy | Refuse):
            # What was refused is not decided anew: beside it, only the password's step was made.
            return inputs, plan
        attempts = self._memory.of(key)
        inputs = replace(inputs, attempts=attempts if inputs.eventual else NOTHING_TRIED)
        after = decide(inputs).plan
        if not inputs.eventual and isinstance(after, Update) and isinstance(plan, Update):
            if after.changes == plan.changes:
                self._memory.keep(key, attempts.after_no_effect(work_of(before, plan), inputs.now))
        elif not inputs.eventual and isinstance(after, Settled):
            self._memory.keep(key, replace(attempts, rejected=None))
        return inputs, after

    async def _finished(self, inputs: Inputs[SpecT], outcome: Outcome[SpecT]) -> Result:
        try:
            await self._effects.ending.finish_deletion(inputs, outcome)
        except SecretsDenied:
            # The next pass, which finds the database gone, says so.
            return Result(_SOON)
        return self._gone(key_of(inputs.obj))

    def _sooner(self, attempts: Attempts, after: timedelta | None, now: datetime) -> timedelta | None:
        """Look again once what was sent last has settled, if nothing else asks for an earlier look."""
        left = attempts.in_flight.settles_in(now, self._settings.settle) if self._kind.asynchronous else None
        if left is None:
            return after
        return left + _SOON if after is None else min(after, left + _SOON)

    async def _write(self, inputs: Inputs[SpecT], summary: Summary, outcome: Outcome[SpecT]) -> Object:
        """Write the status of a pass and emit its events; return the status."""
        left = report(inputs, summary, outcome, self._settings, inputs.now)
        self._emit(inputs, left.events)
        await self._write_status(outcome, left.status)
        self._emit(inputs, outcome.events)
        return left.status

    async def _write_status(self, outcome: Outcome[SpecT], status: Object) -> None:
        manager = f"{self._settings.manager}/status"
        try:
            written = await write_status(self._kube, self._kind.resource, outcome.obj, status, manager=manager)
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

    def _emit(self, inputs: Inputs[SpecT], events: Iterable[Said]) -> None:
        for event in events:
            self._events.emit(inputs.obj, type_=event.type, reason=event.reason, message=event.message)

    def _gone(self, key: Key) -> Result:
        self._gatherer.forget(key)
        self._memory.forget(key)
        return SETTLED


@dataclass(frozen=True, slots=True)
class Around(Generic[SpecT, ConfigT]):
    """What a reconciler works with, made once."""

    store: Store
    events: EventRecorder
    gatherer: Gatherer[SpecT, ConfigT]
    effects: Effects[SpecT, ConfigT]
