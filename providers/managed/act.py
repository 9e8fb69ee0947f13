"""The side effects of one pass, in the one order in which a crash between any two of them leaks and doubles nothing.

External reference and finalizer, then the intent that names every call, then the password as pending, then the calls
behind their fence, then the proof, then the password as current, then the incarnation. The report follows.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any, Generic, assert_never

import structlog

from apis import names
from providers.accounts.limits import Limiter
from providers.credentials.login import log_in
from providers.credentials.passwords import Introduce
from providers.external.client import Target
from providers.external.credential import Credential, Login
from providers.external.observation import Present, SpecT, describe, unknown_of
from providers.external.provider import ConfigT, Kind
from providers.managed.decisions.decide_update import INTERRUPTING, describe_changes
from providers.managed.decisions.plan import (
    Adopt,
    Create,
    Delete,
    Ignore,
    Orphan,
    Plan,
    Refuse,
    RemoveFinalizer,
    Rest,
    Settled,
    Update,
    Wait,
)
from providers.managed.deletion import Deleter
from providers.managed.delivery import PasswordSetter, with_password
from providers.managed.inputs import Inputs
from providers.managed.outcome import Event, Outcome, calls_of, is_external_ref_missing, step_made
from providers.managed.writes import Writer, account_of, observed_of
from runtime.errors import Blocked, Failure, Terminal, Transient
from runtime.kube import Kube
from runtime.objects import annotations_of, key_of, status_of, uid_of
from runtime.replaced import replace

_log = structlog.get_logger("providers.managed.act")


class Executor(Generic[SpecT, ConfigT]):
    """Executes plans. Raises Failure or ApiError; what was done until then is in the outcome."""

    def __init__(self, kind: Kind[SpecT, Any], kube: Kube, writer: Writer[SpecT, ConfigT]) -> None:
        self._kind = kind
        self.writer = writer
        self._password_setter = PasswordSetter(kind, self.writer)
        self.deleter = Deleter(kind, kube, self.writer)

    async def act(self, inputs: Inputs[SpecT], plan: Plan, outcome: Outcome[SpecT], limiter: Limiter) -> None:
        """Execute one plan, and the step about the password where it has one."""
        match plan:
            case Create():
                await self._create(inputs, plan, outcome, limiter)
            case Update() | Settled() | Rest() | Wait() | Refuse():
                await self._update(replace(inputs, step=step_made(inputs, plan)), plan, outcome, limiter)
            case Adopt():
                await self._adopt(inputs, plan, outcome)
            case Orphan():
                await self.deleter.orphan(inputs, plan, outcome, limiter)
            case Delete():
                await self.deleter.delete(inputs, plan, outcome, limiter)
            case RemoveFinalizer():
                await self.deleter.remove_finalizer(inputs, outcome, limiter)
            case Ignore():
                return
            case never:
                assert_never(never)

    async def _create(self, inputs: Inputs[SpecT], plan: Create, outcome: Outcome[SpecT], limiter: Limiter) -> None:
        account = account_of(inputs)
        if self._kind.logins is None or not self._kind.logins.applies(inputs.target.spec):
            await self._create_without_login(inputs, plan, outcome, limiter)
            return
        step = inputs.step
        if not isinstance(step, Introduce):
            step = Introduce(inputs.target.active or inputs.logins[0], _current_password(inputs))
        inputs = with_password(inputs, step)
        with limiter.reserved(inputs.obj, account, inputs.namespace):
            # The lost incarnation stays on record until the restored one is observed: a lost status creates nothing.
            await self.writer.write_external_ref(
                inputs, outcome, incarnation=_recorded_incarnation(inputs) if plan.restore else ""
            )
        fence = await self.writer.write_intent(inputs, plan, outcome)
        credential = await self._password_setter.pending(inputs, outcome)
        restoring = f"restoring database {inputs.target.name} from {plan.restore}" if plan.restore else ""
        outcome.events.append(
            Event("Normal", "CreateRequested", restoring or f"creating database {inputs.target.name}")
        )
        target = replace(inputs.target, active=credential.username, restore=plan.restore)
        outcome.operation = await account.clients.external.create(target, credential, fence)
        is_under_way = self._kind.asynchronous or outcome.operation is not None
        if is_under_way and not plan.restore and _sets_login(self._kind, target):
            outcome.sent = credential.password
        if is_under_way:
            # The password is proven and the incarnation known once it is done.
            return
        inputs = replace(inputs, target=target)
        await self._observe(inputs, outcome)
        await self._password_setter.prove(_with_observation(inputs, outcome), credential, outcome)
        outcome.rotated_from = ""
        if isinstance(outcome.observation, Present):
            await self.writer.write_external_ref(inputs, outcome, incarnation=outcome.observation.observed.incarnation)

    async def _create_without_login(
        self, inputs: Inputs[SpecT], plan: Create, outcome: Outcome[SpecT], limiter: Limiter
    ) -> None:
        """Create an object of a kind without logins."""
        account, target = account_of(inputs), inputs.target
        with limiter.reserved(inputs.obj, account, inputs.namespace):
            await self.writer.write_external_ref(inputs, outcome, incarnation="")
        fence = await self.writer.write_intent(inputs, plan, outcome)
        outcome.events.append(Event("Normal", "CreateRequested", f"creating {self._kind.resource.kind} {target.name}"))
        outcome.operation = await account.clients.external.create(target, Credential("", ""), fence)
        if outcome.operation is not None:
            return
        await self._observe(inputs, outcome)
        if isinstance(outcome.observation, Present):
            await self.writer.write_external_ref(inputs, outcome, incarnation=outcome.observation.observed.incarnation)

    async def _update(self, inputs: Inputs[SpecT], plan: Plan, outcome: Outcome[SpecT], limiter: Limiter) -> None:
        account, observed = account_of(inputs), observed_of(inputs)
        if isinstance(plan, Update) and any(change.kind in INTERRUPTING for change in plan.changes):
            await limiter.count_destroy(account, inputs.obj, inputs.namespace, self.writer.remember_destroy)
        inputs = with_password(inputs, inputs.step)
        if calls_of(inputs, plan):
            fence = await self.writer.write_intent(inputs, plan, outcome)
            refusal: Failure | None = None
            if isinstance(plan, Update):
                deferred = (replace(change, deferred=True) for change in plan.queued)
                changes = (*plan.changes, *deferred)
                try:
                    outcome.operation = await account.clients.external.update(inputs.target, observed, changes, fence)
                    self._add_change_events(plan, outcome)
                except (Terminal, Blocked, Transient) as failure:
                    # The password does not wait for it: an application may be locked out.
                    refusal = failure
            if outcome.operation is None:
                await self._password_setter.step(inputs, observed, outcome, fence)
            if refusal is not None:
                raise refusal
            await self._observe(inputs, outcome)
        await self._password_setter.publish_kept(inputs, outcome)
        if is_external_ref_missing(inputs):
            await self.writer.write_external_ref(inputs, outcome, incarnation=observed.incarnation)

    def _add_change_events(self, plan: Update, outcome: Outcome[SpecT]) -> None:
        corrected = tuple(change for change in plan.changes if plan.drift and not change.first)
        requested = plan.changes if plan.drift else (*plan.changes, *plan.queued)
        paths = ", ".join(change.shown for change in requested if change not in corrected)
        if paths:
            outcome.events.append(Event("Normal", "UpdateRequested", f"changed {paths}"[:400]))
        outcome.corrected += corrected
        for change in corrected[:8]:
            text = f"{change.shown}: found {describe(change.have)}, set {describe(change.want)}"
            outcome.events.append(Event("Normal", "DriftCorrected", text))

    async def _adopt(self, inputs: Inputs[SpecT], plan: Adopt, outcome: Outcome[SpecT]) -> None:
        observed = observed_of(inputs)
        await self.writer.write_external_ref(inputs, outcome, incarnation=observed.incarnation)
        fence = await self.writer.write_intent(inputs, plan, outcome)
        outcome.operation = await account_of(inputs).clients.external.adopt(inputs.target, observed, fence)
        differs = describe_changes(inputs.changes)
        text = f"took over {observed.name}, incarnation {plan.incarnation}; {differs}"
        outcome.events.append(Event("Normal", "Adopted", text[:1024]))
        await self._observe(inputs, outcome)

    async def prove(self, inputs: Inputs[SpecT], outcome: Outcome[SpecT]) -> None:
        """Record the version of its row at which the published login was proven; try the login where the row is new."""
        observed, stored, rules = inputs.observed, outcome.stored, self._kind.logins
        account = inputs.account
        if rules is None or account is None or observed is None or stored is None or not stored.kept.current:
            return
        name, versions = stored.kept.username, rules.versions(observed)
        proven = name in outcome.proven or inputs.login is Login.OK
        if outcome.acted and name not in outcome.proven:
            credential = Credential(name, stored.kept.current)
            proven = False
            # What was done is reported first; the next pass reports what is wrong.
            with suppress(Terminal):
                proven = await log_in(account, rules, inputs.target, observed.endpoint, credential) is Login.OK
        outcome.proven.pop(name, None)
        if proven and name in versions:
            outcome.proven[name] = versions[name]

    async def _observe(self, inputs: Inputs[SpecT], outcome: Outcome[SpecT]) -> None:
        outcome.observation = await account_of(inputs).clients.external.observe(inputs.target)


def _with_observation(inputs: Inputs[SpecT], outcome: Outcome[SpecT]) -> Inputs[SpecT]:
    """Return the inputs with what was observed after the last call."""
    return inputs if outcome.observation is None else replace(inputs, observation=outcome.observation)


def _recorded_incarnation(inputs: Inputs[SpecT]) -> str:
    return annotations_of(inputs.obj).get(names.INCARNATION) or status_of(inputs.obj).get("incarnation", "")


def _current_password(inputs: Inputs[SpecT]) -> str:
    return inputs.stored.kept.current if inputs.stored is not None else ""


def write_audit(inputs: Inputs[Any], plan: Plan, failure: BaseException | None) -> None:
    """Write each call of a pass to the audit log with its result: `done`, or the reason or type of what stopped it."""
    match failure:
        case None:
            result = "done"
        case Failure():
            result = unknown_of(failure).reason
        case _:
            result = type(failure).__name__
    for call in calls_of(inputs, plan):
        _log.info(
            "audit",
            action=call.kind,
            kind=str(inputs.obj.get("kind", "")),
            object=str(key_of(inputs.obj)),
            uid=uid_of(inputs.obj),
            claim=annotations_of(inputs.obj).get(names.CLAIM_NAME, ""),
            target=call.target,
            incarnation=call.incarnation,
            account=inputs.account.id if inputs.account is not None else "",
            result=result,
        )


def _sets_login(kind: Kind[SpecT, Any], target: Target[SpecT]) -> bool:
    return kind.logins is not None and kind.logins.set_by_create(target)
