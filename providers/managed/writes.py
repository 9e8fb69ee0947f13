"""What a pass writes to Kubernetes beside its report: marks, intent, credentials, finalizers."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from typing import Any, Generic

from apis.names import ACCOUNT, EXTERNAL_NAME, IN_USE_FINALIZER, INCARNATION, TEARDOWN_FINALIZER
from providers.accounts.destroys import MADE_AT
from providers.credentials import secrets
from providers.credentials.passwords import Introduce, Kept
from providers.credentials.secret_check import coming_hash
from providers.external.client import Fence, Logins
from providers.external.consent import USED_CONSENTS, consents_given, written_consents
from providers.external.diff import joined_keys, shared_keys
from providers.external.observation import Observed, SpecT
from providers.external.ownership import held
from providers.external.provider import ConfigT, Kind
from providers.managed import record
from providers.managed.inputs import Inputs
from providers.managed.outcome import Outcome, calls_of, used_by_create
from providers.managed.plan import Adopt, Create, Plan, Update
from providers.managed.record import Intent
from providers.managed.report import announced
from providers.settings import Settings
from runtime.conditions import timestamp
from runtime.errors import Blocked, Conflict, NotFound
from runtime.finalizers import removal
from runtime.kube import Kube
from runtime.objects import Object, Resource, annotations_of, deleting, finalizers_of, key_of, status_of, uid_of
from runtime.preconditions import apply_metadata, patch_tests
from runtime.status import write_status
from runtime.store import Store

_LEADERSHIP_LEFT = timedelta(seconds=1)


class Writing(Generic[SpecT, ConfigT]):
    """The writes of one kind's passes; what was written is in the outcome that each is given."""

    def __init__(
        self,
        kind: Kind[SpecT],
        kube: Kube,
        settings: Settings,
        store: Store,
        leads: Callable[[], Callable[[timedelta], bool]],
    ) -> None:
        self._kind = kind
        self._kube = kube
        self._settings = settings
        self._store = store
        self._leads = leads

    async def mark(self, inputs: Inputs[SpecT], out: Outcome[SpecT], *, incarnation: str) -> None:
        """Write marks and finalizer by one apply; nothing is sent when all are there already."""
        key, account = key_of(out.obj), account_of(inputs)
        annotations = {EXTERNAL_NAME: inputs.target.name, ACCOUNT: account.id}
        present = annotations_of(out.obj)
        if incarnation or INCARNATION in present:
            # Emptied, not left out: whoever wrote it before at a rebirth would keep it there.
            annotations[INCARNATION] = incarnation
        if held(out.obj) and all(present.get(name) == value for name, value in annotations.items()):
            return
        body: Object = {
            "apiVersion": self._kind.resource.api_version,
            "kind": self._kind.resource.kind,
            "metadata": {
                "name": key.name,
                "namespace": key.namespace,
                **apply_metadata(out.obj),
                "annotations": annotations,
                "finalizers": [TEARDOWN_FINALIZER],
            },
        }
        applied = await self._kube.apply(self._kind.resource, body, manager=self._settings.manager, force=True)
        self._remember(out, applied)

    async def intend(self, inputs: Inputs[SpecT], plan: Plan, out: Outcome[SpecT]) -> Fence:
        """Write down every call of this pass, on exactly the version that was decided on."""
        settings, key = self._settings, key_of(out.obj)
        until = time.monotonic() + settings.call_budget.total_seconds()
        leads = self._leads()
        not_after = settings.now() + settings.call_budget + settings.skew
        intent = Intent(record.INTENT_FORMAT, settings.process, not_after, calls_of(inputs, plan))
        status = {**status_of(out.obj), "intent": record.written(intent)}
        if isinstance(plan, Create | Update | Adopt):
            # Before any of them is set: what a crash keeps from being reported is taken away later none the less.
            keys = joined_keys(inputs.marks.applied_keys, shared_keys(inputs.target.spec))
            status |= {record.APPLIED_KEYS: record.written_keys(keys)} if keys else {}
        if isinstance(plan, Adopt):
            status.pop(MADE_AT, None)
            # What will be changed about it is there to be read before anything is written to it.
            status |= {"drift": announced(inputs.changes, status, settings.now())}
        if isinstance(inputs.step, Introduce) and not isinstance(plan, Adopt):
            # Before it is in the Secret, which others may write: after a crash it is known again by this.
            coming = coming_hash(settings.hash_key, inputs.step.username, inputs.step.password)
            status["rotation"] = {**(status.get("rotation") or {}), "coming": coming}
        if isinstance(plan, Create):
            marks = record.marks_of(out.obj, absent_since=None)
            status.pop(record.RESTORING, None)
            if plan.restore:
                # Whatever becomes of the consent: after a crash the restore goes on, and nothing empty is made.
                status[record.RESTORING] = {"backup": plan.restore, "lost": marks.incarnation or marks.lost}
            else:
                # It was given up: what is made now must not be taken for a replacement of it after a crash.
                status.pop("incarnation", None)
            used = used_by_create(consents_given(out.obj))
            status |= {USED_CONSENTS: written_consents(out.obj, used)} if used else {}
            status.pop(MADE_AT, None)
            # What is restored holds data from its first moment on.
            is_new = self._kind.stateful and not plan.restore
            status |= {MADE_AT: timestamp(settings.now())} if is_new else {}
        operations = [*patch_tests(out.obj), {"op": "add", "path": "/status", "value": status}]
        applied = await self._kube.json_patch(
            self._kind.resource, key, operations, manager=f"{settings.manager}/status", subresource="status"
        )
        self._store.remember(applied, is_status=True)
        out.obj, out.acted = applied, True
        return Fence(until, lambda: leads(_LEADERSHIP_LEFT), time.monotonic)

    def _remember(self, out: Outcome[SpecT], obj: Object) -> None:
        self._store.remember(obj)
        out.obj = obj

    async def store_secret(self, inputs: Inputs[SpecT], kept: Kept, out: Outcome[SpecT]) -> None:
        """Write the credentials Secret, on exactly the version that was read."""
        out.stored = await secrets.write(self._kube, inputs.obj, kept, out.stored, manager=self._settings.manager)

    async def unhold(self, inputs: Inputs[SpecT], out: Outcome[SpecT]) -> None:
        """Take our finalizer away: the object is let go."""
        operations = removal(out.obj, TEARDOWN_FINALIZER)
        if operations:
            key = key_of(inputs.obj)
            with suppress(NotFound):
                await self._kube.json_patch(self._kind.resource, key, operations, manager=self._settings.manager)
            if finalizers_of(out.obj) == (TEARDOWN_FINALIZER,):
                self._store.forget(key, uid_of(inputs.obj))
        out.gone = True

    async def remember_destroy(self, resource: Resource, config: Object, status: Object) -> Object | None:
        """Write down that one is taken away, before it is; what holds no data is not worth a write."""
        if not self._kind.stateful:
            return None
        manager = f"{self._settings.manager}/status"
        return await write_status(self._kube, resource, config, status, manager=manager)

    async def hold_config(self, resource: Resource, config: Object) -> Object:
        """Put the in-use finalizer on a ProviderConfig before its first database is made; return it as it is then."""
        if deleting(config):
            name = key_of(config).name
            raise Blocked("ProviderConfigNotFound", f"ProviderConfig {name} is being deleted and takes no new database")
        if IN_USE_FINALIZER in finalizers_of(config):
            return config
        return await self._kube.apply(
            resource,
            {
                "apiVersion": resource.api_version,
                "kind": resource.kind,
                "metadata": {
                    "name": key_of(config).name,
                    **apply_metadata(config),
                    "finalizers": [IN_USE_FINALIZER],
                },
            },
            manager=self._settings.manager,
            force=True,
        )


def account_of(inputs: Inputs[SpecT]) -> Any:
    """Return the connected account; raises Conflict where there is none any more."""
    if inputs.account is None:
        raise Conflict("the account is not connected any more; looking again")
    return inputs.account


def logins_of(inputs: Inputs[SpecT]) -> Logins[SpecT]:
    """Return the logins of the kind; a step about a password is decided only where there are some."""
    logins: Logins[SpecT] | None = account_of(inputs).clients.logins
    if logins is None:
        raise TypeError("a step about a password, and nobody logs in")
    return logins


def observed_of(inputs: Inputs[SpecT]) -> Observed[SpecT]:
    """Return the database as this pass saw it; raises Conflict where it did not."""
    if inputs.observed is None:
        raise Conflict("the database was not seen; looking again")
    return inputs.observed
