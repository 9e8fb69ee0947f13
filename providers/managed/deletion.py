"""The side effects that let a resource go: its database released, destroyed, kept as a backup, or gone already."""

from __future__ import annotations

from typing import Generic

from apis.teardown import Policy
from providers.accounts.limits import Limiter
from providers.credentials import secrets
from providers.external.observation import Absent, Present, SpecT
from providers.external.provider import ConfigT, Kind
from providers.managed.inputs import Inputs
from providers.managed.outcome import Outcome, Said
from providers.managed.plan import Destroy, Release
from providers.managed.writes import Writing, account_of
from runtime.errors import Blocked, Transient
from runtime.kube import Kube


class Ending(Generic[SpecT, ConfigT]):
    """Carries out the plans of a deletion."""

    def __init__(self, kind: Kind[SpecT], kube: Kube, writing: Writing[SpecT, ConfigT]) -> None:
        self._kind = kind
        self._kube = kube
        self._writing = writing

    async def release(self, inputs: Inputs[SpecT], plan: Release, out: Outcome[SpecT], limiter: Limiter) -> None:
        """Let the database live on, its tags saying so where the plan wants that."""
        observed = inputs.observed
        if plan.mark and observed is not None:
            fence = await self._writing.intend(inputs, plan, out)
            await account_of(inputs).clients.external.release(inputs.target, observed, fence)
        how = "marked released" if plan.mark else "untouched"
        out.events.append(Said("Normal", "LetGo", f"{inputs.noun} {inputs.target.name} stays and works, {how}"))
        limiter.orphans.let_go(_config_of(inputs), inputs.target.name, inputs.target.owner)
        await self._finish(inputs, out, keep_secret=True)

    async def destroy(self, inputs: Inputs[SpecT], plan: Destroy, out: Outcome[SpecT], limiter: Limiter) -> None:
        """Take the database away as the policy says, and see that it is gone."""
        clients, target = account_of(inputs).clients, inputs.target
        if inputs.observed is not None and not inputs.delete_intended:
            await limiter.count_destroy(
                account_of(inputs), inputs.obj, inputs.namespace, self._writing.remember_destroy
            )
        fence = await self._writing.intend(inputs, plan, out)
        if inputs.observed is not None:
            # Of what holds no data nothing is kept.
            how = plan.policy.value if self._kind.stateful else Policy.DELETE.value
            out.events.append(Said("Normal", "DeleteRequested", f"{how} of {inputs.noun} {target.name}"))
        out.operation = await clients.external.delete(target, inputs.observed, plan.policy, fence)
        if out.operation is not None or (self._kind.asynchronous and self._kind.stateful):
            return
        known = inputs.observed is not None or inputs.marks.incarnation
        if plan.policy is Policy.SNAPSHOT and self._kind.stateful and known:
            kept = await clients.backups.backup_of(target) if clients.backups is not None else ""
            if not kept:
                raise Blocked("BackupImpossible", f"database {target.name} was to be kept and is not seen; not let go")
            out.events.append(Said("Normal", "BackupTaken", f"kept as {kept}"))
        for _ in range(2):
            out.fresh = await clients.external.observe(target)
            if isinstance(out.fresh, Present) or (isinstance(out.fresh, Absent) and out.fresh.remains):
                raise Transient(f"{inputs.noun} {target.name} is still there after its deletion")
        limiter.orphans.gone(_config_of(inputs), target.name)

    async def finish(self, inputs: Inputs[SpecT], out: Outcome[SpecT], limiter: Limiter) -> None:
        """Let an object go whose database is gone, or never was; its backup is named."""
        limiter.orphans.gone(_config_of(inputs), inputs.target.name)
        if inputs.backup:
            out.events.append(Said("Normal", "BackupTaken", f"kept as {inputs.backup}"))
        await self._finish(inputs, out, keep_secret=inputs.lifecycle.policy is Policy.ORPHAN)

    async def _finish(self, inputs: Inputs[SpecT], out: Outcome[SpecT], *, keep_secret: bool) -> None:
        """Let the object go; the Secret goes first, since afterwards nobody remembers it."""
        if not keep_secret:
            await secrets.delete(self._kube, inputs.obj, inputs.namespace)
        await self._writing.unhold(inputs, out)

    async def finish_deletion(self, inputs: Inputs[SpecT], out: Outcome[SpecT]) -> None:
        """The last steps after the report of a deletion: Secret, then finalizer."""
        await self._finish(inputs, out, keep_secret=False)


def _config_of(inputs: Inputs[SpecT]) -> str:
    return inputs.envelope.provider_config_ref.name
