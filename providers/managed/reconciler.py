"""The one reconciler of all clouds: gather, decide, act, report, write."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Generic

import structlog

from apis.reasons import ReasonClass, class_of_managed
from providers.accounts.connections import Accounts
from providers.accounts.turns import Holder
from providers.credentials.secrets import SecretsDenied
from providers.external.metering import end_routine, routine
from providers.external.observation import Present, SpecT, Unknown
from providers.external.ownership import held
from providers.external.provider import ConfigT, Kind
from providers.managed.act import Executor, write_audit
from providers.managed.decisions.attempts import NOTHING_TRIED, Attempts, Memory
from providers.managed.decisions.decide import decide
from providers.managed.decisions.plan import Adopt, Create, Delete, Ignore, Plan, Refuse, Settled, Update, Wait
from providers.managed.decisions.requeue import follow_after, is_followed, requeue_after, until_window
from providers.managed.gather import Gatherer
from providers.managed.inputs import Inputs
from providers.managed.outcome import (
    Event,
    Outcome,
    calls_of,
    inputs_after,
    mutates,
    publishes_ca_alone,
    unreported_rotation,
    work_digest,
)
from providers.managed.record import is_doubtful, is_routine
from providers.managed.report import Report, report, report_doubt, report_failed_pass
from providers.managed.requests import Requests
from providers.managed.summary import cause_of, has_failing_passes
from providers.settings import Settings
from runtime.conditions import find
from runtime.errors import Blocked, Failure, Invalid, NamespaceTerminating, Terminal
from runtime.events import EventRecorder
from runtime.in_time import in_time
from runtime.kube import Kube
from runtime.objects import Key, Object, deleting, key_of, uid_of, version_of
from runtime.replaced import replace
from runtime.results import SETTLED, Result
from runtime.secret_rights import look_again
from runtime.status import write_status
from runtime.store import Store

_log = structlog.get_logger("providers.managed.reconciler")

_SOON = timedelta(seconds=2)
_WHILE_IN_DOUBT = timedelta(seconds=30)
_WHILE_EARLY = timedelta(seconds=5)


@dataclass(frozen=True, slots=True)
class Dependencies(Generic[SpecT, ConfigT]):
    """What a reconciler works with, made once."""

    store: Store
    events: EventRecorder
    gatherer: Gatherer[SpecT, ConfigT]
    executor: Executor[SpecT, ConfigT]


class Reconciler(Generic[SpecT, ConfigT]):
    """Reconciles one kind of one cloud; called with keys by runtime.controller."""

    def __init__(
        self,
        kind: Kind[SpecT, Any],
        kube: Kube,
        accounts: Accounts[SpecT, ConfigT],
        settings: Settings,
        dependencies: Dependencies[SpecT, ConfigT],
    ) -> None:
        self._kind = kind
        self._kube = kube
        self._accounts = accounts
        self._settings = settings
        self._store = dependencies.store
        self._events = dependencies.events
        self._gatherer = dependencies.gatherer
        self._executor = dependencies.executor
        self._memory = Memory()
        self._requests = Requests()

    async def __call__(self, key: Key) -> Result:
        """Make one pass over one resource; raises the Failure or ApiError by which the next one is queued."""
        obj = self._store.get(key)
        try:
            with routine(is_routine=obj is not None and is_routine(obj)):
                result = await in_time(self._pass(key), self._settings.pass_limit)
        except Exception as error:  # whatever ends a pass is reported on its resource, and raised
            await self._report_error(key, error)
            raise
        self._memory.passed(key)
        if isinstance(result, Failure):
            raise result
        return result

    async def _pass(self, key: Key) -> Result | Failure:
        """Gather, decide, act, report, write; return when the next pass is due, or the reported failure."""
        obj, now = self._store.get(key), self._settings.now()
        if obj is None:
            return self._forget(key)
        if is_doubtful(obj):
            # Its labels and annotations were removed; whoever composed it puts them back, or has it detached.
            if held(obj):
                await self._write(Outcome(obj, None), report_doubt(obj, now))
            return Result(_WHILE_IN_DOUBT)
        if (wait := self._requests.wait(obj, now)) is not None:
            return Result(wait)
        inputs, plan = self._decide(await self._gather(obj))
        if mutates(inputs, plan):
            end_routine()
            inputs, plan = await self._decide_live(obj, inputs, plan)
        if not mutates(inputs, plan):
            self._follow(inputs, plan)
        quiet_for = self._quiet_for(inputs, plan)
        if isinstance(plan, Ignore) or (quiet_for is not None and not mutates(inputs, plan)):
            return Result(quiet_for)
        with self._turn(inputs, plan) as holder:
            # Another pass took the turn meanwhile: the next one reports it.
            return Result(_SOON) if holder is not None else await self._act_and_report(inputs, plan)

    async def _decide_live(self, obj: Object, inputs: Inputs[SpecT], plan: Plan) -> tuple[Inputs[SpecT], Plan]:
        """Decide what is to be changed again on live reads, never on what a cache or a list holds.

        Certificates of the ProviderConfig are the exception: what is published of them no look at the cloud shows.
        """
        live = await self._live(key_of(obj))
        if _is_decided_live(inputs, plan) and version_of(live) == version_of(obj):
            return inputs, plan
        if self._kind.verified_by_config and publishes_ca_alone(inputs, plan):
            inputs, plan = self._decide(await self._gather(live))
            if not mutates(inputs, plan) or publishes_ca_alone(inputs, plan):
                return inputs, plan
        return self._decide(await self._gather(live, live=True))

    def _turn(self, inputs: Inputs[SpecT], plan: Plan) -> AbstractContextManager[Holder | None]:
        """Take the server's turn for a pass that calls the cloud, where it gives turns."""
        if not inputs.server or inputs.account is None or not calls_of(inputs, plan):
            return nullcontext()
        turns, holder = self._gatherer.turns, self._gatherer.holder_of(inputs.obj)
        return turns.turn(inputs.account.id, inputs.server, holder)

    async def _act_and_report(self, inputs: Inputs[SpecT], plan: Plan) -> Result | Failure:
        """Carry out the plan, report what is true afterwards; return as `_pass` does."""
        key = key_of(inputs.obj)
        outcome = await self._act(inputs, plan)
        if outcome.gone:
            self._emit(inputs.obj, outcome.events)
            return self._forget(key)
        after, remaining = self._decide_after(inputs, plan, outcome)
        if mutates(inputs, plan):
            self._follow(after, remaining if outcome.failure is None else Settled())
        status = await self._write(outcome, report(after, remaining, outcome, self._settings))
        return await self._conclude(after, plan, remaining, outcome, status)

    async def _gather(self, obj: Object, *, live: bool = False) -> Inputs[SpecT]:
        return await self._gatherer.gather(obj, self._memory.of(key_of(obj)), live=live)

    def _follow(self, inputs: Inputs[SpecT], plan: Plan) -> None:
        """Have lists show what becomes of a resource at which the cloud is at work."""
        answers, key, observed = self._gatherer.answers, key_of(inputs.obj), inputs.observed
        if inputs.account is None or not is_followed(inputs, plan):
            answers.unfollow(key)
            return
        # What was only just asked for may take as long to be shown.
        usual = 2 * self._settings.settle
        expected = usual if observed is None else observed.expected or usual
        answers.follow(inputs.account, key, "" if observed is None else observed.state, expected)

    def _record_calls(self, inputs: Inputs[SpecT], outcome: Outcome[SpecT]) -> None:
        """Let no answer of before the calls of a pass count any more."""
        if not outcome.acted or inputs.account is None:
            return
        answers, name = self._gatherer.answers, inputs.target.name
        now = answers.now()
        answers.of(inputs.account).record_call(name, now)
        if isinstance(outcome.observation, Present) and outcome.observation.observed.answer:
            answers.of(inputs.account).record(name, outcome.observation.observed.answer, now)

    def _decide(self, inputs: Inputs[SpecT]) -> tuple[Inputs[SpecT], Plan]:
        """Choose the plan; return it with the inputs as the decision left them."""
        decision = decide(inputs)
        self._memory.keep(key_of(inputs.obj), decision.attempts)
        return replace(inputs, step=decision.step, attempts=decision.attempts), decision.plan

    async def _live(self, key: Key) -> Object:
        obj = await self._kube.get(self._kind.resource, key)
        self._store.remember(obj)
        return obj

    def _quiet_for(self, inputs: Inputs[SpecT], plan: Plan) -> timedelta | None:
        """Return for how long nothing is reported: of a wait that changes nothing, of the first failed observations."""
        key = key_of(inputs.obj)
        attempts = self._memory.of(key)
        is_waiting = isinstance(plan, Wait) and (plan.quiet or class_of_managed(plan.reason) is ReasonClass.WAITING)
        if isinstance(plan, Wait) and has_failing_passes(inputs.obj):
            # The first good pass ends the report that passes fail.
            return None
        if not isinstance(plan, Wait) or not is_waiting:
            self._memory.keep(key, attempts.without_streak())
            return None
        if not plan.quiet:
            attempts = attempts.after_observation(failed=isinstance(inputs.observation, Unknown))
            self._memory.keep(key, attempts)
            if not attempts.is_early or find(inputs.obj, "Ready") is None:
                return None
        # A list shows only what changes: that it lasts is found by passes that need no look.
        usual = plan.after if plan.by_list is None or not inputs.listed else min(plan.after, _WHILE_EARLY)
        return attempts.observe_after(usual)

    async def _act(self, inputs: Inputs[SpecT], plan: Plan) -> Outcome[SpecT]:
        """Carry out the plan where it mutates anything, then prove the published login."""
        outcome: Outcome[SpecT] = Outcome(inputs.obj, inputs.stored, rotated_from=unreported_rotation(inputs) or None)
        if mutates(inputs, plan):
            outcome.failure = await self._carry_out(inputs, plan, outcome)
        if outcome.failure is None and not outcome.gone:
            await self._executor.prove(inputs_after(self._kind, inputs, plan, outcome), outcome)
        return outcome

    async def _carry_out(self, inputs: Inputs[SpecT], plan: Plan, outcome: Outcome[SpecT]) -> Failure | None:
        """Carry out a plan; return the failure that is to be reported, raise any other."""
        try:
            if isinstance(plan, Create) and inputs.account is not None:
                await self._add_in_use_finalizer(inputs.account.config_object)
            await self._execute(inputs, plan, outcome)
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

    async def _execute(self, inputs: Inputs[SpecT], plan: Plan, outcome: Outcome[SpecT]) -> None:
        """Execute a plan, and write to the audit log what was begun in the cloud, however it ended."""
        try:
            await self._executor.act(inputs, plan, outcome, self._gatherer.limiter)
        except BaseException as error:
            if outcome.acted:
                write_audit(inputs, plan, error)
            raise
        finally:
            self._record_calls(inputs, outcome)
        write_audit(inputs, plan, None)

    async def _add_in_use_finalizer(self, config: Object) -> None:
        """Keep the ProviderConfig from being deleted; of passes that run side by side one writes."""
        store = self._accounts.configs.store
        async with self._accounts.status_lock:
            latest = store.get(key_of(config)) or config
            written = await self._executor.writer.add_in_use_finalizer(self._accounts.configs.resource, latest)
            store.remember(written)

    def _decide_after(self, inputs: Inputs[SpecT], plan: Plan, outcome: Outcome[SpecT]) -> tuple[Inputs[SpecT], Plan]:
        """Return the inputs and the plan to report: those after the calls, or those that were refused."""
        key, now = key_of(inputs.obj), self._settings.now()
        if outcome.failure is not None:
            attempts = self._memory.of(key).after_refused(work_digest(inputs, plan), plan, outcome.failure, now)
            self._memory.keep(key, attempts)
            return replace(inputs, attempts=attempts, now=now), plan
        inputs, plan = self._decide_again(inputs, plan, outcome)
        attempts = self._memory.of(key)
        if inputs.observed is not None:
            attempts = attempts.after_reading(incomplete=inputs.observed.incomplete)
            if isinstance(plan, Wait):
                attempts = attempts.after_busy(inputs.observed.state, now)
            self._memory.keep(key, attempts)
        return replace(inputs, attempts=attempts, now=now), plan

    def _decide_again(self, inputs: Inputs[SpecT], plan: Plan, outcome: Outcome[SpecT]) -> tuple[Inputs[SpecT], Plan]:
        """Decide on what was observed after the last call, for the report alone."""
        key, before = key_of(inputs.obj), replace(inputs, obj=outcome.obj)
        inputs = inputs_after(self._kind, inputs, plan, outcome)
        if not isinstance(outcome.observation, Present) or isinstance(plan, Delete | Refuse):
            # A refusal is not decided again: of the pass only the password's step was carried out.
            return inputs, plan
        attempts = self._memory.of(key)
        inputs = replace(inputs, attempts=attempts if inputs.eventual else NOTHING_TRIED)
        remaining = decide(inputs).plan
        if not inputs.eventual and isinstance(remaining, Update) and isinstance(plan, Update):
            if remaining.changes == plan.changes:
                self._memory.keep(key, attempts.after_no_effect(work_digest(before, plan), inputs.now))
        elif not inputs.eventual and isinstance(remaining, Settled):
            self._memory.keep(key, replace(attempts, rejected=None))
        return inputs, remaining

    async def _conclude(
        self, inputs: Inputs[SpecT], acted: Plan, remaining: Plan, outcome: Outcome[SpecT], status: Object
    ) -> Result | Failure:
        """Return when the next pass is due, or the failure by which it is queued; finish a reported deletion."""
        attempts, now = inputs.attempts, inputs.now
        if outcome.failure is not None:
            return _after_failure(attempts, outcome.failure, status, now)
        if outcome.operation is not None or (self._kind.asynchronous and outcome.acted):
            is_listed = isinstance(acted, Create | Delete) and is_followed(inputs, acted)
            usual = max(_SOON, self._settings.settle) if is_listed else _SOON
            return Result(follow_after(inputs, status, now) or usual)
        if isinstance(remaining, Delete):
            return await self._finish_deletion(inputs, outcome)
        if isinstance(acted, Adopt) or outcome.restored or (outcome.acted and isinstance(remaining, Update)):
            # Whether its password is known is read only once it is ours, and whether it counts once it is stored.
            return Result(_SOON)
        if isinstance(remaining, Wait) and attempts.failing:
            return Result(attempts.observe_after(remaining.after))
        after, until = requeue_after(inputs, remaining, status, now), until_window(inputs, remaining)
        if until is not None and until < self._settings.resync:
            after = until if after is None else min(after, until)
        return Result(self._sooner(attempts, after, now))

    async def _finish_deletion(self, inputs: Inputs[SpecT], outcome: Outcome[SpecT]) -> Result:
        try:
            await self._executor.deleter.finish_deletion(inputs, outcome)
        except SecretsDenied:
            # The next pass, which observes that the database is gone, reports it.
            return Result(_SOON)
        return self._forget(key_of(inputs.obj))

    def _sooner(self, attempts: Attempts, after: timedelta | None, now: datetime) -> timedelta | None:
        """Requeue once what was sent last has settled, or to read what was not read; sooner where more is due."""
        settles_in = attempts.in_flight.settles_in(now, self._settings.settle) if self._kind.asynchronous else None
        settled = None if settles_in is None else settles_in + _SOON
        return min((due for due in (after, settled, attempts.read_again_after()) if due is not None), default=None)

    async def _report_error(self, key: Key, error: Exception) -> None:
        """Report on the resource that its passes fail, as far as it can be written."""
        cause, obj = cause_of(error, self._memory.count_failed_pass(key)), self._store.get(key)
        if cause is None or obj is None:
            return
        outcome: Outcome[SpecT] = Outcome(obj, None)
        try:
            await self._write(outcome, report_failed_pass(obj, cause, self._settings.now()))
        except Exception as second:  # noqa: BLE001 - the first error is raised, and shows more
            _log.warning("a failure is not reported on its resource", key=str(key), error=type(second).__name__)

    async def _write(self, outcome: Outcome[SpecT], written: Report) -> Object:
        """Write the status of a pass and emit its events; return the status."""
        obj = outcome.obj
        self._emit(obj, written.events)
        await self._write_status(outcome, written.status)
        self._emit(obj, outcome.events)
        return written.status

    async def _write_status(self, outcome: Outcome[SpecT], status: Object) -> None:
        manager = f"{self._settings.manager}/status"
        try:
            written = await write_status(self._kube, self._kind.resource, outcome.obj, status, manager=manager)
        except Invalid as error:
            if not deleting(outcome.obj):
                raise
            # A schema that has changed since must not keep what goes.
            _log.warning(
                "a deletion goes on unreported: its status is refused",
                key=str(key_of(outcome.obj)),
                error=error.message,
            )
            return
        if written is not None:
            self._store.remember(written, is_status=True)
            outcome.obj = written

    def _emit(self, obj: Object, events: Iterable[Event]) -> None:
        for event in events:
            self._events.emit(obj, type_=event.type, reason=event.reason, message=event.message)

    def _forget(self, key: Key) -> Result:
        """Forget an object that is gone."""
        self._gatherer.forget(key)
        self._gatherer.answers.unfollow(key)
        self._memory.forget(key)
        self._requests.forget(key)
        return SETTLED


def _is_decided_live(inputs: Inputs[Any], plan: Plan) -> bool:
    """Return whether what was just not found need not be asked again: to be created, or missing in a list as well."""
    return inputs.live and ((isinstance(plan, Create) and inputs.listed) or inputs.unlisted)


def _after_failure(attempts: Attempts, failure: Failure, status: Object, now: datetime) -> Result | Failure:
    """Return when a refused plan is tried again, or the failure by which the queue decides."""
    after = attempts.retry_after(failure)
    if after is not None:
        return Result(after)
    return Result(look_again({"status": status}, now)) if isinstance(failure, SecretsDenied) else failure
