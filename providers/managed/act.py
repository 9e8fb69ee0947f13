"""The side effects of one pass, in the one order in which a crash between any two of them leaks and doubles nothing.

Marks and finalizer, then the intent that names every call, then the password as pending, then the calls behind their
fence, then the proof, then the password as current, then the incarnation. The report follows in `reconcile`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Generic, assert_never

import structlog

from apis import names
from providers.accounts.limits import Limiter
from providers.credentials.passwords import Introduce
from providers.external.credential import Credential
from providers.external.observation import Present, SpecT, describe, unknown_of
from providers.external.provider import ConfigT, Provider
from providers.managed.decide_update import INTERRUPTING, differences
from providers.managed.deletion import Ending
from providers.managed.delivery import Delivering, with_password
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
from providers.managed.snapshot import Snapshot
from providers.managed.writes import Writing, account_of, observed_of
from runtime.errors import Blocked, Failure, Terminal, Transient
from runtime.kube import Kube
from runtime.objects import annotations_of, key_of, status_of, uid_of

_log = structlog.get_logger("providers.managed.act")


class Effects(Generic[SpecT, ConfigT]):
    """Carries plans out. Raises Failure or ApiError; what was done until then is in the outcome it was given."""

    def __init__(self, provider: Provider[SpecT, ConfigT], kube: Kube, writing: Writing[SpecT, ConfigT]) -> None:
        self._provider = provider
        self.writing = writing
        self._delivering = Delivering(provider, self.writing)
        self.ending = Ending(provider, kube, self.writing)

    async def act(self, snapshot: Snapshot[SpecT], plan: Plan, out: Outcome[SpecT], limiter: Limiter) -> None:
        """Carry out one plan and the password's step beside it."""
        match plan:
            case Create():
                await self._create(snapshot, plan, out, limiter)
            case Update() | Settled() | Rest() | Wait() | Refuse():
                await self._update(snapshot, plan, out, limiter)
            case Adopt():
                await self._adopt(snapshot, plan, out)
            case Release():
                await self.ending.release(snapshot, plan, out, limiter)
            case Destroy():
                await self.ending.destroy(snapshot, plan, out, limiter)
            case Finish():
                await self.ending.finish(snapshot, out, limiter)
            case Ignore():
                return
            case never:
                assert_never(never)

    async def _create(self, snapshot: Snapshot[SpecT], plan: Create, out: Outcome[SpecT], limiter: Limiter) -> None:
        account = account_of(snapshot)
        if not self._provider.stateful:
            await self._make(snapshot, plan, out, limiter)
            return
        step = snapshot.step
        if not isinstance(step, Introduce):
            step = Introduce(snapshot.target.active or snapshot.logins[0], _current(snapshot))
        snapshot = with_password(snapshot, step)
        with limiter.reserved(snapshot.obj, account, snapshot.namespace):
            # What was lost stays on record until the restored one is seen, so that a lost status begins nothing empty.
            await self.writing.mark(snapshot, out, incarnation=_recorded(snapshot) if plan.restore else "")
        fence = await self.writing.intend(snapshot, plan, out)
        credential = await self._delivering.pending(snapshot, out)
        how = f"restoring database {snapshot.target.name} from {plan.restore}" if plan.restore else ""
        out.events.append(Said("Normal", "CreateRequested", how or f"creating database {snapshot.target.name}"))
        target = replace(snapshot.target, active=credential.username, restore=plan.restore)
        out.operation = await account.cloud.create(target, credential, fence)
        if self._provider.slow and not plan.restore and self._provider.born_with_login(target):
            out.sent = credential.password
        if self._provider.slow or out.operation is not None:
            # It takes its time; the password is proven and the incarnation known once it is done.
            return
        await self._delivering.prove(replace(snapshot, target=target), credential, out)
        out.rotated_from = ""
        await self._see(replace(snapshot, target=target), out)
        if isinstance(out.fresh, Present):
            await self.writing.mark(snapshot, out, incarnation=out.fresh.observed.incarnation)

    async def _make(self, snapshot: Snapshot[SpecT], plan: Create, out: Outcome[SpecT], limiter: Limiter) -> None:
        """Create what has neither data nor login."""
        account, target = account_of(snapshot), snapshot.target
        with limiter.reserved(snapshot.obj, account, snapshot.namespace):
            await self.writing.mark(snapshot, out, incarnation="")
        fence = await self.writing.intend(snapshot, plan, out)
        out.events.append(Said("Normal", "CreateRequested", f"creating {self._provider.resource.kind} {target.name}"))
        await account.cloud.create(target, Credential("", ""), fence)
        await self._see(snapshot, out)
        if isinstance(out.fresh, Present):
            await self.writing.mark(snapshot, out, incarnation=out.fresh.observed.incarnation)

    async def _update(self, snapshot: Snapshot[SpecT], plan: Plan, out: Outcome[SpecT], limiter: Limiter) -> None:
        account, observed = account_of(snapshot), observed_of(snapshot)
        if isinstance(plan, Update) and any(change.kind in INTERRUPTING for change in plan.changes):
            await limiter.count_destroy(account, snapshot.obj, snapshot.namespace, self.writing.remember_destroy)
        snapshot = with_password(snapshot, snapshot.step)
        if calls_of(snapshot, plan):
            fence = await self.writing.intend(snapshot, plan, out)
            refusal: Failure | None = None
            if isinstance(plan, Update):
                deferred = (replace(change, deferred=True) for change in plan.queued)
                changes = (*plan.changes, *deferred)
                try:
                    out.operation = await account.cloud.update(snapshot.target, observed, changes, fence)
                    self._tell_changes(plan, out)
                except (Terminal, Blocked, Transient) as failure:
                    # The password does not wait for it: an application may be locked out.
                    refusal = failure
            await self._delivering.step(snapshot, observed, out, fence)
            if refusal is not None:
                raise refusal
            await self._see(snapshot, out)
        await self._delivering.publish_kept(snapshot, out)
        if marks_missing(snapshot):
            await self.writing.mark(snapshot, out, incarnation=observed.incarnation)

    def _tell_changes(self, plan: Update, out: Outcome[SpecT]) -> None:
        if not plan.drift:
            paths = ", ".join(change.shown for change in (*plan.changes, *plan.queued))
            out.events.append(Said("Normal", "UpdateRequested", f"changed {paths}"[:400]))
            return
        out.corrected += plan.changes
        for change in plan.changes[:8]:
            text = f"{change.shown}: found {describe(change.have)}, set {describe(change.want)}"
            out.events.append(Said("Normal", "DriftCorrected", text))

    async def _adopt(self, snapshot: Snapshot[SpecT], plan: Adopt, out: Outcome[SpecT]) -> None:
        observed = observed_of(snapshot)
        await self.writing.mark(snapshot, out, incarnation=observed.incarnation)
        fence = await self.writing.intend(snapshot, plan, out)
        await account_of(snapshot).cloud.adopt(snapshot.target, observed, fence)
        differs = differences(snapshot.scene.changes)
        text = f"took over {observed.name}, incarnation {plan.incarnation}; {differs}"
        out.events.append(Said("Normal", "Adopted", text[:1024]))
        await self._see(snapshot, out)

    async def _see(self, snapshot: Snapshot[SpecT], out: Outcome[SpecT]) -> None:
        out.fresh = await account_of(snapshot).cloud.observe(snapshot.target)


def _recorded(snapshot: Snapshot[SpecT]) -> str:
    return annotations_of(snapshot.obj).get(names.INCARNATION) or status_of(snapshot.obj).get("incarnation", "")


def _current(snapshot: Snapshot[SpecT]) -> str:
    return snapshot.stored.kept.current if snapshot.stored is not None else ""


def write_audit(snapshot: Snapshot[Any], plan: Plan, failure: BaseException | None) -> None:
    """Write down each call of a pass and what came of it: `done`, or the reason or type of what stopped the pass."""
    match failure:
        case None:
            result = "done"
        case Failure():
            result = unknown_of(failure).reason
        case _:
            result = type(failure).__name__
    for call in calls_of(snapshot, plan):
        _log.info(
            "audit",
            action=call.kind,
            kind=str(snapshot.obj.get("kind", "")),
            object=str(key_of(snapshot.obj)),
            uid=uid_of(snapshot.obj),
            target=call.target,
            incarnation=call.incarnation,
            account=snapshot.account.id if snapshot.account is not None else "",
            result=result,
        )
