"""The pass over a claim that is being deleted: read live, decide, report, act, report, and remove the finalizer last.

What is about to be done is written on the claim before it is done: a pass that was cut off goes on from there. That
write is bound to the version of the claim that was decided on, so it proves what a live read of the claim would; where
nothing is to be written, the claim is read before anything is done. Namespace and CRD are read live in each pass.
"""

from __future__ import annotations

from dataclasses import dataclass

from apis import names
from apis.kept import called, lists_it
from apis.teardown import DeletionPolicy, Policy, instruction
from composer.claim.act import Actor
from composer.claim.compose import Preparer
from composer.claim.connection import denied
from composer.claim.decide import Keep
from composer.claim.deletion import Teardown, effective_policy, has_vanished, tear_down
from composer.claim.failures import Failures
from composer.claim.gather import Gatherer
from composer.claim.outcomes import (
    Note,
    PassResult,
    causes_of,
    causes_of_errors,
    instructed_entries,
    notes_of,
    without_gone,
)
from composer.claim.report import Findings, report_deletion
from composer.claim.snapshot import Snapshot, with_entries
from composer.claim.write import ClaimWriter
from composer.connection.passwords import PasswordKeeper, recorded
from composer.render.render import Child
from runtime.errors import Forbidden, WriteConflict
from runtime.kube import Kube
from runtime.objects import Key, finalizers_of, is_name, key_of, uid_of
from runtime.preconditions import annotation_patch
from runtime.results import SETTLED, Result
from runtime.secret_rights import look_again


@dataclass(frozen=True, slots=True)
class DeletionPass:
    """Deletes claims of one kind, by live reads alone."""

    kube: Kube
    gatherer: Gatherer
    preparer: Preparer
    actor: Actor
    writer: ClaimWriter
    failures: Failures
    passwords: PasswordKeeper

    async def run(self, snapshot: Snapshot) -> PassResult:
        """Carry out one pass over a claim that is being deleted. Raises ApiError."""
        if not snapshot.has_finalizer:
            return PassResult(SETTLED)
        try:
            return await self._attempt(await self.gatherer.gather_around(snapshot), is_live=False)
        except WriteConflict:
            # The cache is behind.
            live = await self.gatherer.gather_live(snapshot)
        if live is None or not live.deleting or not live.has_finalizer:
            return PassResult(SETTLED)
        return await self._attempt(live, is_live=True)

    async def _attempt(self, snapshot: Snapshot, *, is_live: bool) -> PassResult:
        """Decide on a snapshot and act; `is_live`: its claim was read live. Raises WriteConflict where it is behind."""
        unlisted = await self.gatherer.unseen(snapshot)
        if unlisted:
            return PassResult(await self.writer.publish_unlisted(snapshot, unlisted))
        snapshot = self.writer.unwritten.added_to(snapshot)
        policy = effective_policy(snapshot, self.preparer.supported_policies(snapshot))
        rendered = await self._render(snapshot) if has_vanished(snapshot, policy) else ()
        plan = tear_down(snapshot, policy, rendered)
        if not plan.done:
            return await self._carry_out(snapshot, plan, policy, is_live=is_live)
        if not (is_live or plan.keeps_secret):
            await self.gatherer.check_version(snapshot)
        return PassResult(await self._remove_finalizer(snapshot, policy, keep_secret=plan.keeps_secret))

    async def _carry_out(
        self, snapshot: Snapshot, plan: Teardown, policy: DeletionPolicy, *, is_live: bool
    ) -> PassResult:
        """Record what is about to be done, do it, and report what was done; remove the finalizer where all is gone."""
        repeats = self.failures.repeats(snapshot.key)
        snapshot = with_entries(snapshot, (step.entry for step in plan.steps))
        status = report_deletion(snapshot, plan.causes, self.writer.now())
        delay = self.writer.delay(snapshot, status)
        # A status that differs in messages alone may wait, and so may one after a failed pass.
        is_recorded = status.get("inventory") == snapshot.status.get("inventory")
        recorded = None if is_recorded and (delay or repeats) else await self.writer.record_deletion(snapshot, status)
        if recorded is None and not is_live and any(not isinstance(step, Keep) for step in plan.steps):
            await self.gatherer.check_version(snapshot)
        snapshot = recorded or snapshot
        self._note(snapshot)
        outcomes = await self.actor.act(snapshot, plan.steps)
        causes = (*plan.causes, *causes_of(outcomes), *causes_of_errors(outcomes, repeats=repeats))
        instructed = with_entries(snapshot, instructed_entries(outcomes))
        self.writer.events.emit(snapshot, causes, notes_of(outcomes))
        end = tear_down(without_gone(snapshot, plan.steps, outcomes), policy)
        if end.done:
            return PassResult(await self._remove_finalizer(snapshot, policy, keep_secret=end.keeps_secret), outcomes)
        if repeats or len(causes) > len(plan.causes) or instructed != snapshot:
            snapshot = instructed
            self._note(snapshot)
            await self.writer.publish_deletion(snapshot, causes)
        return PassResult(Result(requeue_after=delay), outcomes)

    def _note(self, snapshot: Snapshot) -> None:
        """Note the instructions of a claim's children, which a status may not have yet."""
        instructed = (child.entry for child in snapshot.children if child.entry.outcome)
        self.writer.unwritten.note(snapshot.key, instructed)

    async def _render(self, snapshot: Snapshot) -> tuple[Child, ...]:
        """Return the rendered children of a claim that is being deleted; none where it cannot be rendered."""
        prepared = await self.preparer.prepare(snapshot)
        return () if isinstance(prepared, Findings) else prepared.rendered.children

    async def _remove_finalizer(self, snapshot: Snapshot, policy: DeletionPolicy, *, keep_secret: bool) -> Result:
        """Delete or keep the claim's Secrets, then remove the finalizer: no child is left. What is kept is named."""
        try:
            await self._release_secrets(snapshot, keep=keep_secret)
        except Forbidden as error:
            # A namespace that ends takes its RoleBindings before us, and its Secrets as well.
            if snapshot.namespace and not snapshot.namespace_deleting:
                snapshot = await self.writer.publish_deletion(snapshot, (denied(snapshot, error),))
                return Result(look_again(snapshot.claim, self.writer.now()))
        await self.writer.remove_finalizer(snapshot)
        note = kept_note(snapshot, policy)
        self.writer.events.emit(snapshot, (), (note,) if note else ())
        return SETTLED

    async def _release_secrets(self, snapshot: Snapshot, *, keep: bool) -> None:
        """Keep or delete the connection Secret and the passwords that the composer made. Raises Forbidden."""
        namespace, identity = snapshot.key.namespace, snapshot.identity.uid
        name = (snapshot.status.get("binding") or {}).get("name")
        if name and is_name(name):
            # Under propagation Orphan the garbage collector keeps the Secret, whatever the claim's policy is.
            owner = "" if "orphan" in finalizers_of(snapshot.claim) else snapshot.uid
            await self.writer.publisher.disown(Key(namespace, name), identity, keep=keep, collected_with=owner)
        for record in recorded(snapshot.status):
            for secret in (record.secret, record.former):
                if secret and not keep:
                    await self.passwords.drop(Key(namespace, secret), identity)

    async def detach_abandoned(self, key: Key) -> None:
        """Give instruction Detach to the children of a claim whose finalizer was removed by force: no data is lost."""
        resource = self.gatherer.claims.resource
        manager = names.claim_manager(resource.group, resource.kind, key)
        for child in await self.gatherer.abandoned(key):
            if child.live is None or child.facts is None:
                continue
            operations = annotation_patch(child.live, {names.TEARDOWN: instruction(uid_of(child.live), Policy.DETACH)})
            await self.kube.json_patch(child.facts.resource, key_of(child.live), operations, manager=manager)


def kept_note(snapshot: Snapshot, policy: DeletionPolicy) -> Note | None:
    """Return the last note of a claim: what its deletion keeps in a cloud, and the command that lists it.

    None where nothing is kept. What its provider was instructed to do goes before the claim's policy.
    """
    kept: dict[str, list[str]] = {}
    for child in snapshot.children:
        entry, (uid, slash, instructed) = child.entry, child.entry.outcome.partition("/")
        name = entry.external_reference.get(names.EXTERNAL_NAME.removeprefix(names.PREFIX), "")
        how = instructed if uid and slash else policy
        if entry.stateful and name and names.is_managed(entry.group) and how in ("Orphan", "Snapshot"):
            kept.setdefault(how, []).append(called(entry.kind, name, snapshot.key.namespace, snapshot.key.name))
    if not kept:
        return None
    how = min(kept)
    texts = "; ".join(f"{', '.join(things)}: kept ({how})" for how, things in kept.items())
    command = lists_it(snapshot.key.namespace, snapshot.key.name)
    return Note("LetGo" if how == "Orphan" else "BackupTaken", f"{texts}; `{command}` says how it comes back")
