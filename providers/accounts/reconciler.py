"""Reconciles ProviderConfigs: connected or not and why, which account it is, held while databases use it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any, NamedTuple

from apis.names import IN_USE_FINALIZER, RECONCILE_REQUESTED_AT
from apis.reasons import ReasonClass, class_of_managed
from providers.accounts import destroys
from providers.accounts.connections import Accounts
from providers.accounts.limits import Limiter
from providers.accounts.orphan_report import BACKUPS, ORPHANS, UNMANAGED, backups_of, reports_of, search_of
from providers.external.observation import unknown_of
from providers.external.provider import Provider
from providers.settings import Settings
from runtime.conditions import Condition, find, is_true, merge
from runtime.errors import Failure
from runtime.events import EventRecorder
from runtime.finalizers import removal
from runtime.kube import Kube
from runtime.objects import (
    Key,
    Object,
    annotations_of,
    deleting,
    finalizers_of,
    generation_of,
    key_of,
    status_of,
    version_of,
)
from runtime.results import SETTLED, Result
from runtime.status import write_status

_AGAIN = timedelta(seconds=30)


class Dependencies(NamedTuple):
    """What a ConfigReconciler works with: a limiter for each kind; `enqueue` adds every user of a config to a queue."""

    limiters: tuple[Limiter, ...]
    events: EventRecorder
    enqueue: Callable[[str], None]


class ConfigReconciler:
    """One pass over one ProviderConfig."""

    def __init__(
        self,
        provider: Provider[Any],
        kube: Kube,
        accounts: Accounts[Any, Any],
        settings: Settings,
        dependencies: Dependencies,
    ) -> None:
        self._provider = provider
        self._kube = kube
        self._accounts = accounts
        self._limiters, self._events, self._enqueue = dependencies
        self._settings = settings
        # The connection for which each ProviderConfig's users were enqueued last.
        self._connections: dict[str, object] = {}

    async def __call__(self, key: Key) -> Result:
        """Connect, or hold or finish a deletion; then write the status once."""
        config = self._accounts.configs.store.get(key)
        if config is None:
            self._accounts.forget(key.name)
            self._connections.pop(key.name, None)
            return SETTLED
        users = sum(limiter.users(key.name) for limiter in self._limiters)
        if deleting(config) and not users:
            return await self._remove_finalizer(config)
        reason, message, account, warnings = await self._connect(key.name)
        if deleting(config):
            reason, message = "InUse", f"{users} resources still use it; delete or move them first"
        named = any(limiter.is_named(key.name) for limiter in self._limiters)
        reports = await self._reports(config, is_connected=bool(account))
        was_ready, is_renewed = is_true(config, "Ready"), self._is_renewed(key.name)
        async with self._accounts.status_lock:
            # Destroys that were counted meanwhile are kept.
            latest = self._accounts.configs.store.get(key) or config
            meta = {**config["metadata"], "resourceVersion": version_of(latest)}
            config = {**config, "metadata": meta, "status": status_of(latest)}
            status = self._status(config, (reason, message), account or status_of(config).get("account", ""), named)
            status |= reports
            if not reason and warnings:
                status["conditions"][0]["message"] = f"connected; {warnings}"[:1024]
            self._emit_event(config, status)
            written = await write_status(
                self._kube,
                self._provider.config_resource,
                config,
                status,
                manager=f"{self._settings.manager}/status",
            )
            if written is not None:
                self._accounts.configs.store.remember(written)
        if reason:
            return Result(_AGAIN)
        if not was_ready or is_renewed:
            # Whoever waited for the account need not wait for its own next pass, nor for a renewed authority.
            self._enqueue(key.name)
        return SETTLED

    async def _reports(self, config: Object, *, is_connected: bool) -> Object:
        """Return what the account holds without a resource: listed when a reconcile is requested, else as before."""
        requested = annotations_of(config).get(RECONCILE_REQUESTED_AT, "")[:256]
        status = status_of(config)
        if not requested or requested == status.get("lastHandledReconcileAt"):
            return {field: status[field] for field in (ORPHANS, UNMANAGED, BACKUPS) if status.get(field)}
        if not is_connected:
            nothing = {"complete": False, "items": []}
            return {ORPHANS: nothing, UNMANAGED: nothing}
        name, search = key_of(config).name, search_of(config)
        orphans, unmanaged = await reports_of(name, self._limiters, search)
        backups = {BACKUPS: await backups_of(name, self._limiters)} if search.backups else {}
        return {ORPHANS: orphans, UNMANAGED: unmanaged, **backups}

    def _is_renewed(self, name: str) -> bool:
        """Return whether another connection replaced the one of the pass before."""
        account = self._accounts.connected.get(name)
        if account is None:
            return False
        before, self._connections[name] = self._connections.get(name), account.clients
        return before is not None and before is not account.clients

    async def _connect(self, name: str) -> tuple[str, str, str, str]:
        try:
            await self._accounts.probe(name)
            account = await self._accounts.connect(name)
        except Failure as failure:
            unknown = unknown_of(failure)
            return unknown.reason, unknown.message, "", ""
        if account.changed:
            return "AccountChanged", account.changed, "", ""
        return "", "", account.id, "; ".join(account.clients.account.warnings())

    def _status(self, config: Object, summary: tuple[str, str], account: str, in_use: bool) -> Object:  # noqa: FBT001 - one call
        reason, message = summary
        generation, now = generation_of(config), self._settings.now()
        if not reason:
            conditions = [
                Condition("Ready", "True", "Connected", "connected", generation),
                Condition("Synced", "True", "InSync", "nothing is left to do", generation),
            ]
        else:
            stalled = class_of_managed(reason) is ReasonClass.STALLED
            conditions = [
                Condition("Ready", "False", reason, message, generation),
                Condition("Synced", "False", reason, message, generation),
                Condition("Stalled" if stalled else "Reconciling", "True", reason, message, generation),
            ]
        status: Object = {
            "observedGeneration": generation,
            "conditions": merge(status_of(config).get("conditions") or [], conditions, now),
            "inUse": in_use,
        }
        requested = annotations_of(config).get(RECONCILE_REQUESTED_AT, "")[:256]
        kept = status_of(config).get(destroys.FIELD)
        for name, value in (("account", account), ("lastHandledReconcileAt", requested), (destroys.FIELD, kept)):
            if value:
                status[name] = value
        return status

    def _emit_event(self, config: Object, status: Object) -> None:
        """Emit an event when a ProviderConfig becomes Stalled, or for another reason than before."""
        stalled, before = find({"status": status}, "Stalled"), find(config, "Stalled")
        if stalled is not None and (before is None or before.get("reason") != stalled["reason"]):
            self._events.emit(config, type_="Warning", reason=stalled["reason"], message=stalled["message"])

    async def _remove_finalizer(self, config: Object) -> Result:
        if IN_USE_FINALIZER in finalizers_of(config):
            await self._kube.json_patch(
                self._provider.config_resource,
                key_of(config),
                removal(config, IN_USE_FINALIZER),
                manager=self._settings.manager,
            )
        self._accounts.forget(key_of(config).name)
        return SETTLED
