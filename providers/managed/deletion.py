"""The side effects that let a resource go: its database released, destroyed, kept as a backup, or gone already."""

from __future__ import annotations

from typing import Generic

from apis.teardown import Policy
from providers.accounts.limits import Limiter
from providers.credentials import secrets
from providers.external.observation import Absent, Present, SpecT
from providers.external.provider import ConfigT, Provider
from providers.managed.outcome import Outcome, Said
from providers.managed.plan import Destroy, Release
from providers.managed.snapshot import Snapshot
from providers.managed.writes import Writing, account_of
from runtime.errors import Blocked, Transient
from runtime.kube import Kube


class Ending(Generic[SpecT, ConfigT]):
    """Carries out the plans of a deletion."""

    def __init__(self, provider: Provider[SpecT, ConfigT], kube: Kube, writing: Writing[SpecT, ConfigT]) -> None:
        self._provider = provider
        self._kube = kube
        self._writing = writing

    async def release(self, snapshot: Snapshot[SpecT], plan: Release, out: Outcome[SpecT], limiter: Limiter) -> None:
        """Let the database live on, its tags saying so where the plan wants that."""
        observed = snapshot.observed
        if plan.mark and observed is not None:
            fence = await self._writing.intend(snapshot, plan, out)
            await account_of(snapshot).cloud.release(snapshot.target, observed, fence)
        how = "marked released" if plan.mark else "untouched"
        out.events.append(Said("Normal", "LetGo", f"{snapshot.noun} {snapshot.target.name} stays and works, {how}"))
        limiter.orphans.let_go(_config_of(snapshot), snapshot.target.name, snapshot.target.owner)
        await self._finish(snapshot, out, keep_secret=True)

    async def destroy(self, snapshot: Snapshot[SpecT], plan: Destroy, out: Outcome[SpecT], limiter: Limiter) -> None:
        """Take the database away as the policy says, and see that it is gone."""
        cloud, target = account_of(snapshot).cloud, snapshot.target
        if snapshot.observed is not None and not snapshot.scene.bounds.delete_intended:
            await limiter.count_destroy(
                account_of(snapshot), snapshot.obj, snapshot.namespace, self._writing.remember_destroy
            )
        fence = await self._writing.intend(snapshot, plan, out)
        if snapshot.observed is not None:
            # Of what holds no data nothing is kept.
            how = plan.policy.value if self._provider.stateful else Policy.DELETE.value
            out.events.append(Said("Normal", "DeleteRequested", f"{how} of {snapshot.noun} {target.name}"))
        out.operation = await cloud.delete(target, snapshot.observed, plan.policy, fence)
        if out.operation is not None or (self._provider.slow and self._provider.stateful):
            return
        known = snapshot.observed is not None or snapshot.scene.marks.incarnation
        if plan.policy is Policy.SNAPSHOT and self._provider.stateful and known:
            kept = await cloud.backup_of(target)
            if not kept:
                raise Blocked("BackupImpossible", f"database {target.name} was to be kept and is not seen; not let go")
            out.events.append(Said("Normal", "BackupTaken", f"kept as {kept}"))
        for _ in range(2):
            out.fresh = await cloud.observe(target)
            if isinstance(out.fresh, Present) or (isinstance(out.fresh, Absent) and out.fresh.remains):
                raise Transient(f"{snapshot.noun} {target.name} is still there after its deletion")
        limiter.orphans.gone(_config_of(snapshot), target.name)

    async def finish(self, snapshot: Snapshot[SpecT], out: Outcome[SpecT], limiter: Limiter) -> None:
        """Let an object go whose database is gone, or never was; its backup is named."""
        limiter.orphans.gone(_config_of(snapshot), snapshot.target.name)
        if snapshot.scene.bounds.backup:
            out.events.append(Said("Normal", "BackupTaken", f"kept as {snapshot.scene.bounds.backup}"))
        await self._finish(snapshot, out, keep_secret=snapshot.scene.desired.lifecycle.policy is Policy.ORPHAN)

    async def _finish(self, snapshot: Snapshot[SpecT], out: Outcome[SpecT], *, keep_secret: bool) -> None:
        """Let the object go; the Secret goes first, since afterwards nobody remembers it."""
        if not keep_secret:
            await secrets.delete(self._kube, snapshot.obj, snapshot.namespace)
        await self._writing.unhold(snapshot, out)

    async def finish_deletion(self, snapshot: Snapshot[SpecT], out: Outcome[SpecT]) -> None:
        """The last steps after the report of a deletion: Secret, then finalizer."""
        await self._finish(snapshot, out, keep_secret=False)


def _config_of(snapshot: Snapshot[SpecT]) -> str:
    return snapshot.envelope.provider_config_ref.name
