"""The side effects of one pass, in the one order in which a crash between any two of them leaks and doubles nothing.

Marks and finalizer, then the intent that names every call, then the password as pending, then the calls behind their
fence, then the proof, then the password as current, then the incarnation. The report follows in `reconcile`.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import Any, Generic, assert_never

import structlog

from apis import names
from providers.accounts.limits import Limiter
from providers.credentials.passwords import Introduce
from providers.external.client import Target
from providers.external.credential import Credential, Login
from providers.external.observation import Present, SpecT, describe, unknown_of
from providers.external.provider import ConfigT, Kind
from providers.managed.decide_update import INTERRUPTING, differences
from providers.managed.deletion import Ending
from providers.managed.delivery import Delivering, with_password
from providers.managed.inputs import Inputs
from providers.managed.outcome import Outcome, Said, calls_of, marks_missing
from providers.managed.plan import (
    Adopt,
    Create,
    Destroy,
    Finish,
    Ignore,
    Plan,
    Refuse,
    Release,
    Rest,
    Settled,
    Update,
    Wait,
)
from providers.managed.writes import Writing, account_of, observed_of
from runtime.errors import Blocked, Failure, Terminal, Transient
from runtime.kube import Kube
from runtime.objects import annotations_of, key_of, status_of, uid_of

_log = structlog.get_logger("providers.managed.act")


class Effects(Generic[SpecT, ConfigT]):
    """Carries plans out. Raises Failure or ApiError; what was done until then is in the outcome it was given."""

    def __init__(self, kind: Kind[SpecT], kube: Kube, writing: Writing[SpecT, ConfigT]) -> None:
        self._kind = kind
        self.writing = writing
        self._delivering = Delivering(kind, self.writing)
        self.ending = Ending(kind, kube, self.writing)

    async def act(self, inputs: Inputs[SpecT], plan: Plan, out: Outcome[SpecT], limiter: Limiter) -> None:
        """Carry out one plan and the password's step beside it."""
        match plan:
            case Create():
                await self._create(inputs, plan, out, limiter)
            case Update() | Settled() | Rest() | Wait() | Refuse():
                await self._update(inputs, plan, out, limiter)
            case Adopt():
                await self._adopt(inputs, plan, out)
            case Release():
                await self.ending.release(inputs, plan, out, limiter)
            case Destroy():
                await self.ending.destroy(inputs, plan, out, limiter)
            case Finish():
                await self.ending.finish(inputs, out, limiter)
            case Ignore():
                return
            case never:
                assert_never(never)

    async def _create(self, inputs: Inputs[SpecT], plan: Create, out: Outcome[SpecT], limiter: Limiter) -> None:
        account = account_of(inputs)
        if self._kind.logins is None:
            await self._make(inputs, plan, out, limiter)
            return
        step = inputs.step
        if not isinstance(step, Introduce):
            step = Introduce(inputs.target.active or inputs.logins[0], _current(inputs))
        inputs = with_password(inputs, step)
        with limiter.reserved(inputs.obj, account, inputs.namespace):
            # What was lost stays on record until the restored one is seen, so that a lost status begins nothing empty.
            await self.writing.mark(inputs, out, incarnation=_recorded(inputs) if plan.restore else "")
        fence = await self.writing.intend(inputs, plan, out)
        credential = await self._delivering.pending(inputs, out)
        how = f"restoring database {inputs.target.name} from {plan.restore}" if plan.restore else ""
        out.events.append(Said("Normal", "CreateRequested", how or f"creating database {inputs.target.name}"))
        target = replace(inputs.target, active=credential.username, restore=plan.restore)
        out.operation = await account.clients.external.create(target, credential, fence)
        if self._kind.asynchronous and not plan.restore and _sets_login(self._kind, target):
            out.sent = credential.password
        if self._kind.asynchronous or out.operation is not None:
            # It takes its time; the password is proven and the incarnation known once it is done.
            return
        await self._delivering.prove(replace(inputs, target=target), credential, out)
        out.rotated_from = ""
        await self._see(replace(inputs, target=target), out)
        if isinstance(out.fresh, Present):
            await self.writing.mark(inputs, out, incarnation=out.fresh.observed.incarnation)

    async def _make(self, inputs: Inputs[SpecT], plan: Create, out: Outcome[SpecT], limiter: Limiter) -> None:
        """Create what nobody logs in to."""
        account, target = account_of(inputs), inputs.target
        with limiter.reserved(inputs.obj, account, inputs.namespace):
            await self.writing.mark(inputs, out, incarnation="")
        fence = await self.writing.intend(inputs, plan, out)
        out.events.append(Said("Normal", "CreateRequested", f"creating {self._kind.resource.kind} {target.name}"))
        await account.clients.external.create(target, Credential("", ""), fence)
        await self._see(inputs, out)
        if isinstance(out.fresh, Present):
            await self.writing.mark(inputs, out, incarnation=out.fresh.observed.incarnation)

    async def _update(self, inputs: Inputs[SpecT], plan: Plan, out: Outcome[SpecT], limiter: Limiter) -> None:
        account, observed = account_of(inputs), observed_of(inputs)
        if isinstance(plan, Update) and any(change.kind in INTERRUPTING for change in plan.changes):
            await limiter.count_destroy(account, inputs.obj, inputs.namespace, self.writing.remember_destroy)
        inputs = with_password(inputs, inputs.step)
        if calls_of(inputs, plan):
            fence = await self.writing.intend(inputs, plan, out)
            refusal: Failure | None = None
            if isinstance(plan, Update):
                deferred = (replace(change, deferred=True) for change in plan.queued)
                changes = (*plan.changes, *deferred)
                try:
                    out.operation = await account.clients.external.update(inputs.target, observed, changes, fence)
                    self._tell_changes(plan, out)
                except (Terminal, Blocked, Transient) as failure:
                    # The password does not wait for it: an application may be locked out.
                    refusal = failure
            await self._delivering.step(inputs, observed, out, fence)
            if refusal is not None:
                raise refusal
            await self._see(inputs, out)
        await self._delivering.publish_kept(inputs, out)
        if marks_missing(inputs):
            await self.writing.mark(inputs, out, incarnation=observed.incarnation)

    def _tell_changes(self, plan: Update, out: Outcome[SpecT]) -> None:
        if not plan.drift:
            paths = ", ".join(change.shown for change in (*plan.changes, *plan.queued))
            out.events.append(Said("Normal", "UpdateRequested", f"changed {paths}"[:400]))
            return
        out.corrected += plan.changes
        for change in plan.changes[:8]:
            text = f"{change.shown}: found {describe(change.have)}, set {describe(change.want)}"
            out.events.append(Said("Normal", "DriftCorrected", text))

    async def _adopt(self, inputs: Inputs[SpecT], plan: Adopt, out: Outcome[SpecT]) -> None:
        observed = observed_of(inputs)
        await self.writing.mark(inputs, out, incarnation=observed.incarnation)
        fence = await self.writing.intend(inputs, plan, out)
        await account_of(inputs).clients.external.adopt(inputs.target, observed, fence)
        differs = differences(inputs.changes)
        text = f"took over {observed.name}, incarnation {plan.incarnation}; {differs}"
        out.events.append(Said("Normal", "Adopted", text[:1024]))
        await self._see(inputs, out)

    async def prove(self, inputs: Inputs[SpecT], outcome: Outcome[SpecT]) -> None:
        """Record at which version of its row the published login was proven; try it where the row is new."""
        observed, stored, rules = inputs.observed, outcome.stored, self._kind.logins
        logins = inputs.account.clients.logins if inputs.account is not None else None
        if rules is None or logins is None or observed is None or stored is None or not stored.kept.current:
            return
        name, versions = stored.kept.username, rules.versions(observed)
        proven = name in outcome.proven or inputs.login is Login.OK
        if outcome.acted and name not in outcome.proven:
            credential = Credential(name, stored.kept.current)
            proven = False
            # What was done is reported first; the next pass tells what is wrong.
            with suppress(Terminal):
                proven = await logins.login(inputs.target, credential) is Login.OK
        outcome.proven.pop(name, None)
        if proven and name in versions:
            outcome.proven[name] = versions[name]

    async def _see(self, inputs: Inputs[SpecT], out: Outcome[SpecT]) -> None:
        out.fresh = await account_of(inputs).clients.external.observe(inputs.target)


def _recorded(inputs: Inputs[SpecT]) -> str:
    return annotations_of(inputs.obj).get(names.INCARNATION) or status_of(inputs.obj).get("incarnation", "")


def _current(inputs: Inputs[SpecT]) -> str:
    return inputs.stored.kept.current if inputs.stored is not None else ""


def write_audit(inputs: Inputs[Any], plan: Plan, failure: BaseException | None) -> None:
    """Write down each call of a pass and what came of it: `done`, or the reason or type of what stopped the pass."""
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
            target=call.target,
            incarnation=call.incarnation,
            account=inputs.account.id if inputs.account is not None else "",
            result=result,
        )


def _sets_login(kind: Kind[SpecT], target: Target[SpecT]) -> bool:
    return kind.logins is not None and kind.logins.set_by_create(target)
