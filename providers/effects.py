"""The side effects of one pass, in the one order in which a crash between any two of them leaks and doubles nothing.

Marks and finalizer, then the intent that names every call, then the password as pending, then the calls behind their
fence, then the proof, then the password as current, then the incarnation. The report follows in `reconcile`.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from typing import Any, Generic, assert_never

from providers import credentials, passwords, reading
from providers.bounds import Limiter
from providers.cloud import ConfigT, Credential, Fence, Provider
from providers.converge import INTERRUPTING, differences
from providers.managed import Absent, Change, Observed, Present, SpecT, describe, joined_keys, shared_keys
from providers.outcome import Outcome, Said, calls_of, marks_missing
from providers.passwords import Await, Confirm, Introduce, Keep, Kept, Login, Missing, PutBack, Restore, Retire
from providers.plan import (
    Adopt,
    Create,
    Destroy,
    Finish,
    Ignore,
    Plan,
    Policy,
    Refuse,
    Release,
    Rest,
    Settled,
    Update,
    Wait,
)
from providers.reading import Intent
from providers.report import announced
from providers.settings import Settings
from providers.snapshot import Snapshot
from runtime.errors import Blocked, Conflict, NotFound, Transient
from runtime.finalizers import removal
from runtime.kube import Kube
from runtime.objects import Object, annotations_of, deleting, finalizers_of, key_of, uid_of, version_of
from runtime.status import write_status
from runtime.store import Store

_LEADERSHIP_LEFT = timedelta(seconds=1)


class Effects(Generic[SpecT, ConfigT]):
    """Carries plans out. Raises Failure or ApiError; what was done until then is in the outcome it was given."""

    def __init__(
        self,
        provider: Provider[SpecT, ConfigT],
        kube: Kube,
        settings: Settings,
        store: Store,
        leads: Callable[[], Callable[[timedelta], bool]],
    ) -> None:
        self._provider = provider
        self._kube = kube
        self._settings = settings
        self._store = store
        self._leads = leads

    async def act(self, snapshot: Snapshot[SpecT], plan: Plan, out: Outcome[SpecT], limiter: Limiter) -> None:
        """Carry out one plan and the password's step beside it."""
        match plan:
            case Create():
                await self._create(snapshot, plan, out, limiter)
            case Update() | Settled() | Rest():
                await self._update(snapshot, plan, out, limiter)
            case Adopt():
                await self._adopt(snapshot, plan, out)
            case Release():
                await self._release(snapshot, plan, out)
            case Destroy():
                await self._destroy(snapshot, plan, out, limiter)
            case Finish():
                if snapshot.scene.bounds.backup:
                    out.events.append(Said("Normal", "BackupTaken", f"kept as {snapshot.scene.bounds.backup}"))
                await self._finish(snapshot, out, keep_secret=snapshot.scene.desired.lifecycle.policy is Policy.ORPHAN)
            case Wait() | Refuse() | Ignore():
                return
            case never:
                assert_never(never)

    async def _create(self, snapshot: Snapshot[SpecT], plan: Create, out: Outcome[SpecT], limiter: Limiter) -> None:
        account = _account(snapshot)
        if not self._provider.stateful:
            await self._make(snapshot, plan, out, limiter)
            return
        step = snapshot.step
        if not isinstance(step, Introduce):
            step = Introduce(snapshot.target.active or self._provider.logins(snapshot.target)[0], _current(snapshot))
        with limiter.reserved(snapshot.obj, account):
            await self._mark(snapshot, out, incarnation="")
        fence = await self._intend(snapshot, plan, out)
        credential = await self._pending(snapshot, step, out)
        out.events.append(Said("Normal", "CreateRequested", f"creating database {snapshot.target.name}"))
        target = replace(snapshot.target, active=credential.username)
        out.operation = await account.cloud.create(target, credential, fence)
        if self._provider.slow and self._provider.born_with_login(target.spec):
            out.sent = credential.password
        if self._provider.slow or out.operation is not None:
            # It takes its time; the password is proven and the incarnation known once it is done.
            return
        await self._prove(replace(snapshot, target=target), credential, out)
        out.rotated_from = ""
        await self._see(replace(snapshot, target=target), out)
        if isinstance(out.fresh, Present):
            await self._mark(snapshot, out, incarnation=out.fresh.observed.incarnation)

    async def _make(self, snapshot: Snapshot[SpecT], plan: Create, out: Outcome[SpecT], limiter: Limiter) -> None:
        """Create what has neither data nor login."""
        account, target = _account(snapshot), snapshot.target
        with limiter.reserved(snapshot.obj, account):
            await self._mark(snapshot, out, incarnation="")
        fence = await self._intend(snapshot, plan, out)
        out.events.append(Said("Normal", "CreateRequested", f"creating {self._provider.resource.kind} {target.name}"))
        await account.cloud.create(target, Credential("", ""), fence)
        await self._see(snapshot, out)
        if isinstance(out.fresh, Present):
            await self._mark(snapshot, out, incarnation=out.fresh.observed.incarnation)

    async def _update(self, snapshot: Snapshot[SpecT], plan: Plan, out: Outcome[SpecT], limiter: Limiter) -> None:
        account, observed = _account(snapshot), _observed(snapshot)
        if isinstance(plan, Update) and any(change.kind in INTERRUPTING for change in plan.changes):
            await limiter.count_destroy(account, snapshot.namespace, self._remember_destroy)
        if calls_of(snapshot, plan):
            fence = await self._intend(snapshot, plan, out)
            if isinstance(plan, Update):
                deferred = (replace(change, deferred=True) for change in plan.queued)
                changes = (*plan.changes, *deferred)
                out.operation = await account.cloud.update(snapshot.target, observed, changes, fence)
                self._tell_changes(plan, out)
            await self._password(snapshot, observed, out, fence)
            await self._see(snapshot, out)
        await self._publish_kept(snapshot, out)
        if marks_missing(snapshot):
            await self._mark(snapshot, out, incarnation=observed.incarnation)

    def _tell_changes(self, plan: Update, out: Outcome[SpecT]) -> None:
        if not plan.drift:
            paths = ", ".join(change.path for change in (*plan.changes, *plan.queued))
            out.events.append(Said("Normal", "UpdateRequested", f"changed {paths}"[:400]))
            return
        out.corrected += plan.changes
        for change in plan.changes[:8]:
            text = f"{change.path}: found {describe(change.have)}, set {describe(change.want)}"
            out.events.append(Said("Normal", "DriftCorrected", text))

    async def _password(
        self, snapshot: Snapshot[SpecT], observed: Observed[SpecT], out: Outcome[SpecT], fence: Fence
    ) -> None:
        cloud, step = _account(snapshot).cloud, snapshot.step
        match step:
            case Introduce(replaces=replaces):
                credential = await self._pending(snapshot, step, out)
                await cloud.set_password(snapshot.target, observed, credential, fence)
                if self._provider.slow:
                    out.sent, out.resent = credential.password, True
                    return
                await self._prove(snapshot, credential, out)
                self._rotated(credential.username, replaces, out)
            case PutBack(username=username, password=password):
                credential = Credential(username, password)
                await cloud.set_password(snapshot.target, observed, credential, fence)
                if await cloud.login(snapshot.target, credential) is Login.REFUSED:
                    raise Transient(_refused_text(username))
                change = Change(f"roles.{username}.password", "as published", "another one")
                out.corrected += (change,)
                out.events.append(
                    Said("Normal", "DriftCorrected", f"{change.path}: found another one, set the published one")
                )
            case Retire(username=username):
                await cloud.disable(snapshot.target, username, fence)
                out.retired = True
            case Keep() | Missing() | Restore() | Await() | Confirm():
                return
            case never:
                assert_never(never)

    def _rotated(self, username: str, replaces: str, out: Outcome[SpecT]) -> None:
        """Note for the report that a new password counts; one login that stays the same leaves none to retire."""
        out.rotated_from = replaces if replaces != username else ""
        if replaces:
            how = f"{username} follows {replaces}" if replaces != username else f"a new password of {username} counts"
            out.events.append(Said("Normal", "PasswordRotated", how))

    async def _publish_kept(self, snapshot: Snapshot[SpecT], out: Outcome[SpecT]) -> None:
        """Write what the credentials Secret lacks; nothing is asked of the cloud."""
        step = snapshot.step
        if not isinstance(step, Restore | Confirm):
            return
        ca = _account(snapshot).cloud.endpoint(snapshot.target).ca
        await self._store_secret(snapshot, Kept(step.password, "", step.username, ca), out)
        if isinstance(step, Confirm):
            out.proven[step.username] = ""
            self._rotated(step.username, step.replaces, out)

    async def _adopt(self, snapshot: Snapshot[SpecT], plan: Adopt, out: Outcome[SpecT]) -> None:
        observed = _observed(snapshot)
        await self._mark(snapshot, out, incarnation=observed.incarnation)
        fence = await self._intend(snapshot, plan, out)
        await _account(snapshot).cloud.adopt(snapshot.target, observed, fence)
        differs = differences(snapshot.scene.changes)
        text = f"took over {observed.name}, incarnation {plan.incarnation}; {differs}"
        out.events.append(Said("Normal", "Adopted", text[:1024]))
        await self._see(snapshot, out)

    async def _release(self, snapshot: Snapshot[SpecT], plan: Release, out: Outcome[SpecT]) -> None:
        observed = snapshot.observed
        if plan.mark and observed is not None:
            fence = await self._intend(snapshot, plan, out)
            await _account(snapshot).cloud.release(snapshot.target, observed, fence)
        how = "marked released" if plan.mark else "untouched"
        out.events.append(Said("Normal", "LetGo", f"database {snapshot.target.name} stays and works, {how}"))
        await self._finish(snapshot, out, keep_secret=True)

    async def _destroy(self, snapshot: Snapshot[SpecT], plan: Destroy, out: Outcome[SpecT], limiter: Limiter) -> None:
        cloud, target = _account(snapshot).cloud, snapshot.target
        if snapshot.observed is not None and not snapshot.scene.bounds.delete_intended:
            await limiter.count_destroy(_account(snapshot), snapshot.namespace, self._remember_destroy)
        fence = await self._intend(snapshot, plan, out)
        if snapshot.observed is not None:
            out.events.append(Said("Normal", "DeleteRequested", f"{plan.policy.value} of database {target.name}"))
        out.operation = await cloud.delete(target, snapshot.observed, plan.policy, fence)
        if out.operation is not None or (self._provider.slow and self._provider.stateful):
            return
        if plan.policy is Policy.SNAPSHOT and snapshot.observed is not None:
            kept = await cloud.backup_of(target)
            if not kept:
                raise Blocked("BackupImpossible", f"database {target.name} was to be kept and is not seen; not let go")
            out.events.append(Said("Normal", "BackupTaken", f"kept as {kept}"))
        for _ in range(2):
            await self._see(snapshot, out)
            if isinstance(out.fresh, Present) or (isinstance(out.fresh, Absent) and out.fresh.remains):
                raise Transient(f"database {target.name} is still there after its deletion")

    async def _remember_destroy(self, config: Object, status: Object) -> Object | None:
        """Write down that one is taken away, before it is; what holds no data is not worth a write."""
        if not self._provider.stateful:
            return None
        resource, manager = self._provider.config_resource, f"{self._settings.manager}/status"
        return await write_status(self._kube, resource, config, status, manager=manager)

    async def _finish(self, snapshot: Snapshot[SpecT], out: Outcome[SpecT], *, keep_secret: bool) -> None:
        """Let the object go; the Secret goes first, since afterwards nobody remembers it."""
        if not keep_secret:
            await credentials.delete(self._kube, snapshot.obj)
        await self._unhold(snapshot, out)

    async def finish_deletion(self, snapshot: Snapshot[SpecT], out: Outcome[SpecT]) -> None:
        """The last steps after the report of a deletion: Secret, then finalizer."""
        await self._finish(snapshot, out, keep_secret=False)

    async def _unhold(self, snapshot: Snapshot[SpecT], out: Outcome[SpecT]) -> None:
        operations = removal(out.obj, reading.FINALIZER)
        if operations:
            key = key_of(snapshot.obj)
            with suppress(NotFound):
                await self._kube.json_patch(self._provider.resource, key, operations, manager=self._settings.manager)
            if finalizers_of(out.obj) == (reading.FINALIZER,):
                self._store.forget(key, uid_of(snapshot.obj))
        out.gone = True

    async def _mark(self, snapshot: Snapshot[SpecT], out: Outcome[SpecT], *, incarnation: str) -> None:
        """Write marks and finalizer by one apply; nothing is sent when all are there already."""
        key, account = key_of(out.obj), _account(snapshot)
        annotations = {reading.EXTERNAL_NAME: snapshot.target.name, reading.ACCOUNT: account.id}
        present = annotations_of(out.obj)
        if incarnation or reading.INCARNATION in present:
            # Emptied, not left out: whoever wrote it before at a rebirth would keep it there.
            annotations[reading.INCARNATION] = incarnation
        if reading.held(out.obj) and all(present.get(name) == value for name, value in annotations.items()):
            return
        body: Object = {
            "apiVersion": self._provider.resource.api_version,
            "kind": self._provider.resource.kind,
            "metadata": {
                "name": key.name,
                "namespace": key.namespace,
                "uid": uid_of(out.obj),
                "annotations": annotations,
                "finalizers": [reading.FINALIZER],
            },
        }
        applied = await self._kube.apply(self._provider.resource, body, manager=self._settings.manager, force=True)
        self._remember(out, applied)

    async def _intend(self, snapshot: Snapshot[SpecT], plan: Plan, out: Outcome[SpecT]) -> Fence:
        """Write down every call of this pass, on exactly the version that was decided on."""
        settings, key = self._settings, key_of(out.obj)
        until = time.monotonic() + settings.call_budget.total_seconds()
        leads = self._leads()
        not_after = settings.now() + settings.call_budget + settings.skew
        intent = Intent(reading.INTENT_FORMAT, settings.process, not_after, calls_of(snapshot, plan))
        status = {**reading.status_of(out.obj), "intent": reading.written(intent)}
        if isinstance(plan, Create | Update | Adopt):
            # Before any of them is set: what a crash keeps from being reported is taken away later none the less.
            keys = joined_keys(snapshot.scene.marks.applied_keys, shared_keys(snapshot.target.spec))
            status |= {reading.APPLIED_KEYS: reading.written_keys(keys)} if keys else {}
        if isinstance(plan, Adopt):
            # What will be changed about it is there to be read before anything is written to it.
            status |= {"drift": announced(snapshot.scene.changes, status, settings.now())}
        if isinstance(plan, Create):
            # A lost one was given up: what is made now must not be taken for a replacement of it after a crash.
            status.pop("incarnation", None)
        operations: list[dict[str, Any]] = [
            {"op": "test", "path": "/metadata/uid", "value": uid_of(out.obj)},
            {"op": "test", "path": "/metadata/resourceVersion", "value": version_of(out.obj)},
            {"op": "add", "path": "/status", "value": status},
        ]
        applied = await self._kube.json_patch(
            self._provider.resource, key, operations, manager=f"{settings.manager}/status", subresource="status"
        )
        self._store.remember(applied, is_status=True)
        out.obj, out.acted = applied, True
        return Fence(until, lambda: leads(_LEADERSHIP_LEFT), time.monotonic)

    def _remember(self, out: Outcome[SpecT], obj: Object) -> None:
        self._store.remember(obj)
        out.obj = obj

    async def _pending(self, snapshot: Snapshot[SpecT], step: Introduce, out: Outcome[SpecT]) -> Credential:
        """Write the password down before the cloud sees it."""
        kept = out.stored.kept if out.stored is not None else Kept()
        credential = Credential(step.username, step.password or credentials.new_password())
        if kept.pending != credential.password:
            ca = _account(snapshot).cloud.endpoint(snapshot.target).ca
            username = kept.username if kept.current else credential.username
            await self._store_secret(snapshot, Kept(kept.current, credential.password, username, ca), out)
        return credential

    async def _prove(self, snapshot: Snapshot[SpecT], credential: Credential, out: Outcome[SpecT]) -> None:
        """Publish a password on proof: a login, or, where none can be tried, the call that succeeded."""
        cloud = _account(snapshot).cloud
        answer = await cloud.login(snapshot.target, credential)
        if answer is Login.REFUSED:
            raise Transient(_refused_text(credential.username))
        if answer is not Login.OK and _account(snapshot).login_required:
            raise Transient(passwords.unproven_text(str(cloud.endpoint(snapshot.target))))
        ca = cloud.endpoint(snapshot.target).ca
        await self._store_secret(snapshot, Kept(credential.password, "", credential.username, ca), out)
        out.proven[credential.username] = ""

    async def _store_secret(self, snapshot: Snapshot[SpecT], kept: Kept, out: Outcome[SpecT]) -> None:
        out.stored = await credentials.write(self._kube, snapshot.obj, kept, out.stored, manager=self._settings.manager)

    async def _see(self, snapshot: Snapshot[SpecT], out: Outcome[SpecT]) -> None:
        out.fresh = await _account(snapshot).cloud.observe(snapshot.target)

    async def hold_config(self, config: Object) -> Object:
        """Put the in-use finalizer on a ProviderConfig before its first database is made; return it as it is then."""
        if deleting(config):
            name = key_of(config).name
            raise Blocked("ProviderConfigNotFound", f"ProviderConfig {name} is being deleted and takes no new database")
        if reading.IN_USE in finalizers_of(config):
            return config
        resource = self._provider.config_resource
        return await self._kube.apply(
            resource,
            {
                "apiVersion": resource.api_version,
                "kind": resource.kind,
                "metadata": {"name": key_of(config).name, "uid": uid_of(config), "finalizers": [reading.IN_USE]},
            },
            manager=self._settings.manager,
            force=True,
        )


def _account(snapshot: Snapshot[SpecT]) -> Any:
    if snapshot.account is None:
        raise Conflict("the account is not connected any more; looking again")
    return snapshot.account


def _observed(snapshot: Snapshot[SpecT]) -> Observed[SpecT]:
    if snapshot.observed is None:
        raise Conflict("the database was not seen; looking again")
    return snapshot.observed


def _current(snapshot: Snapshot[SpecT]) -> str:
    return snapshot.stored.kept.current if snapshot.stored is not None else ""


def _refused_text(username: str) -> str:
    """Return what to say when a password that was just set is refused."""
    return (
        f"the server refuses the password that {username} was just given; where it refuses every login from here, set"
        " loginCheck to Off in the ProviderConfig"
    )
