"""What a pass writes to Kubernetes besides its report: external reference, intent, credentials, finalizers."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from typing import Any, Generic

from apis.names import ACCOUNT, EXTERNAL_NAME, IN_USE_FINALIZER, INCARNATION, TEARDOWN_FINALIZER
from providers.credentials import secrets
from providers.credentials.passwords import Kept
from providers.external.client import Fence, Logins
from providers.external.observation import Observed, SpecT
from providers.external.ownership import held
from providers.external.provider import ConfigT, Kind
from providers.managed.decisions.plan import Plan
from providers.managed.inputs import Inputs
from providers.managed.outcome import Outcome
from providers.managed.report import status_with_intent
from providers.settings import Settings
from runtime import clock
from runtime.errors import Blocked, Conflict, NotFound
from runtime.finalizers import removal
from runtime.kube import Kube
from runtime.objects import Object, Resource, annotations_of, deleting, finalizers_of, key_of, uid_of
from runtime.preconditions import apply_metadata, patch_tests
from runtime.status import write_status
from runtime.store import Store

_LEADERSHIP_LEFT = timedelta(seconds=1)


class Writer(Generic[SpecT, ConfigT]):
    """The writes of one kind's passes; each adds what it wrote to the outcome."""

    def __init__(
        self,
        kind: Kind[SpecT, Any],
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

    async def write_external_ref(self, inputs: Inputs[SpecT], outcome: Outcome[SpecT], *, incarnation: str) -> None:
        """Write the external reference and the finalizer by one apply; nothing is sent when all are there already."""
        key, account = key_of(outcome.obj), account_of(inputs)
        annotations = {EXTERNAL_NAME: inputs.target.name, ACCOUNT: account.id}
        present = annotations_of(outcome.obj)
        if incarnation or INCARNATION in present:
            # Emptied, not left out: a field manager that set it before a re-creation would keep it there.
            annotations[INCARNATION] = incarnation
        if held(outcome.obj) and all(present.get(name) == value for name, value in annotations.items()):
            return
        body: Object = {
            "apiVersion": self._kind.resource.api_version,
            "kind": self._kind.resource.kind,
            "metadata": {
                "name": key.name,
                "namespace": key.namespace,
                **apply_metadata(outcome.obj),
                "annotations": annotations,
                "finalizers": [TEARDOWN_FINALIZER],
            },
        }
        applied = await self._kube.apply(self._kind.resource, body, manager=self._settings.manager, force=True)
        self._remember(outcome, applied)

    async def write_intent(self, inputs: Inputs[SpecT], plan: Plan, outcome: Outcome[SpecT]) -> Fence:
        """Write the intent of every call of this pass, on exactly the version that was decided on."""
        settings, key = self._settings, key_of(outcome.obj)
        until = clock.monotonic() + settings.call_budget.total_seconds()
        leads = self._leads()
        status = status_with_intent(inputs, plan, outcome.obj, settings, settings.now())
        operations = [*patch_tests(outcome.obj), {"op": "add", "path": "/status", "value": status}]
        applied = await self._kube.json_patch(
            self._kind.resource, key, operations, manager=f"{settings.manager}/status", subresource="status"
        )
        self._store.remember(applied, is_status=True)
        outcome.obj, outcome.acted = applied, True
        return Fence(until, lambda: leads(_LEADERSHIP_LEFT), clock.monotonic)

    def _remember(self, outcome: Outcome[SpecT], obj: Object) -> None:
        self._store.remember(obj)
        outcome.obj = obj

    async def store_secret(self, inputs: Inputs[SpecT], kept: Kept, outcome: Outcome[SpecT]) -> None:
        """Write the credentials Secret, on exactly the version that was read."""
        outcome.stored = await secrets.write(
            self._kube, inputs.obj, kept, outcome.stored, manager=self._settings.manager
        )

    async def remove_finalizer(self, inputs: Inputs[SpecT], outcome: Outcome[SpecT]) -> None:
        """Remove our finalizer, by which the API server may delete the object."""
        operations = removal(outcome.obj, TEARDOWN_FINALIZER)
        if operations:
            key = key_of(inputs.obj)
            with suppress(NotFound):
                await self._kube.json_patch(self._kind.resource, key, operations, manager=self._settings.manager)
            if finalizers_of(outcome.obj) == (TEARDOWN_FINALIZER,):
                self._store.forget(key, uid_of(inputs.obj))
        outcome.gone = True

    async def remember_destroy(self, resource: Resource, config: Object, status: Object) -> Object | None:
        """Write that one is destroyed, before it is; what holds no data is not worth a write."""
        if not self._kind.stateful:
            return None
        manager = f"{self._settings.manager}/status"
        return await write_status(self._kube, resource, config, status, manager=manager)

    async def add_in_use_finalizer(self, resource: Resource, config: Object) -> Object:
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


def logins_of(inputs: Inputs[SpecT]) -> Logins[SpecT, Any]:
    """Return the logins of the kind; a step about a password is decided only where there are some."""
    logins: Logins[SpecT, Any] | None = account_of(inputs).clients.logins
    if logins is None:
        raise TypeError("a step about a password, and nobody logs in")
    return logins


def observed_of(inputs: Inputs[SpecT]) -> Observed[SpecT, Any]:
    """Return the database as this pass saw it; raises Conflict where it did not."""
    if inputs.observed is None:
        raise Conflict("the database was not seen; looking again")
    return inputs.observed
