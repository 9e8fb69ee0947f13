"""The side effects of a deletion: the database is orphaned, deleted, kept as a backup, or gone already."""

from __future__ import annotations

from typing import Any, Generic

from apis.teardown import Policy
from providers.accounts.limits import Limiter
from providers.credentials import secrets
from providers.external.observation import Absent, Present, SpecT
from providers.external.provider import ConfigT, Kind
from providers.managed.decisions.plan import Delete, Orphan
from providers.managed.inputs import Inputs
from providers.managed.outcome import Event, Outcome
from providers.managed.revival import how_to_revive
from providers.managed.writes import Writer, account_of
from runtime.conditions import find
from runtime.errors import Blocked, Transient
from runtime.kube import Kube


class Deleter(Generic[SpecT, ConfigT]):
    """Executes the plans of a deletion."""

    def __init__(self, kind: Kind[SpecT, Any], kube: Kube, writer: Writer[SpecT, ConfigT]) -> None:
        self._kind = kind
        self._kube = kube
        self._writer = writer

    async def orphan(self, inputs: Inputs[SpecT], plan: Orphan, outcome: Outcome[SpecT], limiter: Limiter) -> None:
        """Let the database live on, and write that into its tags where the plan is to."""
        observed = inputs.observed
        if plan.tagged and observed is not None:
            fence = await self._writer.write_intent(inputs, plan, outcome)
            await account_of(inputs).clients.external.release(inputs.target, observed, fence)
        how = "marked released" if plan.tagged else f"untouched{_why_untagged(inputs)}"
        text = f"{inputs.noun} {inputs.target.name} stays and works, {how}"
        is_in_doubt = inputs.lifecycle.policy is Policy.DELETE and inputs.target.unanswered is not None
        if is_in_doubt and observed is not None:
            text += (
                "; a create of ours had no answer, and nothing proves that this made it: drop it if it is not needed"
            )
        outcome.events.append(Event("Warning" if is_in_doubt else "Normal", "LetGo", text))
        limiter.orphans.add(_config_of(inputs), inputs.target.name, inputs.target.owner)
        await self._finish(inputs, outcome, keep_secret=True)

    async def delete(self, inputs: Inputs[SpecT], plan: Delete, outcome: Outcome[SpecT], limiter: Limiter) -> None:
        """Delete the database as the policy says, and observe that it is gone."""
        clients, target = account_of(inputs).clients, inputs.target
        if inputs.observed is not None and not inputs.delete_intended:
            await limiter.count_destroy(account_of(inputs), inputs.obj, inputs.namespace, self._writer.remember_destroy)
        fence = await self._writer.write_intent(inputs, plan, outcome)
        if inputs.observed is not None:
            # Of what holds no data nothing is kept.
            how = plan.policy.value if self._kind.stateful else Policy.DELETE.value
            revival = how_to_revive(inputs, plan)
            text = f"{how} of {inputs.noun} {target.name}{'; ' if revival else ''}{revival}"
            outcome.events.append(Event("Normal", "DeleteRequested", text))
        outcome.operation = await clients.external.delete(target, inputs.observed, plan.policy, fence)
        if outcome.operation is not None or (self._kind.asynchronous and self._kind.stateful):
            return
        known = inputs.observed is not None or inputs.external_ref.incarnation
        if plan.policy is Policy.SNAPSHOT and self._kind.stateful and known:
            kept = await clients.backups.latest(target) if clients.backups is not None else ""
            if not kept:
                raise Blocked("BackupImpossible", f"database {target.name} was to be kept and is not seen; not let go")
            outcome.events.append(Event("Normal", "BackupTaken", f"kept as {kept}"))
        for _ in range(2):
            outcome.observation = await clients.external.observe(target)
            if isinstance(outcome.observation, Present) or (
                isinstance(outcome.observation, Absent) and outcome.observation.remains
            ):
                raise Transient(f"{inputs.noun} {target.name} is still there after its deletion")
        limiter.orphans.remove(_config_of(inputs), target.name)

    async def remove_finalizer(self, inputs: Inputs[SpecT], outcome: Outcome[SpecT], limiter: Limiter) -> None:
        """Remove the finalizer of an object whose database is gone, or never was; its backup is named."""
        limiter.orphans.remove(_config_of(inputs), inputs.target.name)
        if inputs.backup:
            outcome.events.append(Event("Normal", "BackupTaken", f"kept as {inputs.backup}"))
        await self._finish(inputs, outcome, keep_secret=inputs.lifecycle.policy is Policy.ORPHAN)

    async def _finish(self, inputs: Inputs[SpecT], outcome: Outcome[SpecT], *, keep_secret: bool) -> None:
        """Remove the finalizer; the Secret is deleted first, since afterwards it is not known any more."""
        if not keep_secret:
            await secrets.delete(self._kube, inputs.obj, inputs.namespace)
        await self._writer.remove_finalizer(inputs, outcome)

    async def finish_deletion(self, inputs: Inputs[SpecT], outcome: Outcome[SpecT]) -> None:
        """Delete the Secret, then remove the finalizer, after the report of a deletion."""
        await self._finish(inputs, outcome, keep_secret=False)


def _why_untagged(inputs: Inputs[SpecT]) -> str:
    """Return why an orphan keeps the tags of its owner; empty where it has none, or another policy."""
    if not inputs.tagged or inputs.observed is None or inputs.lifecycle.policy is not Policy.ORPHAN:
        return ""
    refusal = (find(inputs.obj, "Synced") or {}).get("message", "")
    return f"; its tags still name its owner: {refusal}"


def _config_of(inputs: Inputs[SpecT]) -> str:
    return inputs.envelope.provider_config_ref.name
