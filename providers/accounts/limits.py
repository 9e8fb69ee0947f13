"""Who may use a ProviderConfig, how much, and how fast: allow-list, limits, destroy rate limit."""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, TypeAlias

import msgspec

from apis.names import DESTROY_LIMIT_LIFTED, EPHEMERAL_LABEL, TEARDOWN_FINALIZER
from providers.accounts import destroy_rate
from providers.accounts.connections import Accounts
from providers.accounts.destroys import destroys_within_the_hour, made_at, with_one_more
from providers.accounts.orphans import Orphans, WithoutResource
from providers.external.client import ExternalList, KeptBackup
from providers.external.config import Limits, refuse_namespace
from providers.external.ownership import held
from providers.external.provider import ConnectedAccount
from runtime import kubectl
from runtime.cache import Informer
from runtime.conditions import instant
from runtime.errors import Terminal
from runtime.objects import (
    Key,
    Object,
    Resource,
    annotations_of,
    deleting,
    finalizers_of,
    key_of,
    labels_of,
    status_of,
    uid_of,
)

Write: TypeAlias = Callable[[Resource, Object, Object], Awaitable[Object | None]]
"""Writes the status of a ProviderConfig (a resource, an object); returns the object then, None for nothing written."""

HOUR = timedelta(hours=1)
BY_CONFIG = "config"


@dataclass(frozen=True, slots=True)
class Allowance:
    """What a ProviderConfig allows one object; each text is empty when nothing is refused."""

    not_allowed: str = ""
    adoption: bool = False
    limit_reached: str = ""
    destroy_limit_reached: str = ""


class Limiter:
    """Counts what is there and what was done within the last hour, by this process or by those before it.

    Creates are known again from the creation times of what is there, destroys from the status of their ProviderConfig.
    What is there and has no resource any more (orphaned) is known from the lists of its account, but for what is
    `inside` a server: its account lists servers, and the server counts. A kind that is not `stateful` makes neither
    server nor database, and has no limits.
    """

    def __init__(  # noqa: PLR0913 - what its kind is, beside what it reads
        self,
        resources: Informer,
        accounts: Accounts[Any, Any],
        now: Callable[[], datetime],
        *,
        stateful: bool = True,
        inside: bool = False,
        installation: str = "",
    ) -> None:
        self._resources = resources
        self._accounts = accounts
        self._now = now
        self._stateful = stateful
        self._inside = inside
        self._created: defaultdict[str, deque[datetime]] = defaultdict(deque)
        self._destroyed: defaultdict[str, deque[tuple[datetime, str]]] = defaultdict(deque)
        self.orphans = Orphans(resources, installation)
        self._reserved: dict[Key, str] = {}
        self._counted: set[str] = set()
        self._kind = resources.resource.kind
        resources.store.add_index("users", users_of)
        resources.store.add_index(BY_CONFIG, config_of)

    @contextmanager
    def reserved(self, obj: Object, account: ConnectedAccount[Any, Any], namespace: Object) -> Iterator[None]:
        """Hold a place under the limits until the object's finalizer holds it.

        Workers decide side by side: the place is taken between two awaits. Raises Terminal LimitReached.
        """
        config, key = key_of(account.config_object).name, key_of(obj)
        limits = limits_of(account.config_object)
        text = "" if held(obj) else self._limit(config, key, limits, uid_of(namespace))
        if text:
            raise Terminal("LimitReached", text)
        self._reserved[key] = config
        self._created[config].append(self._now())
        try:
            yield
        finally:
            del self._reserved[key]

    async def count_destroy(
        self, account: ConnectedAccount[Any, Any], obj: Object, namespace: Object, write: Write
    ) -> None:
        """Count one destroy or interruption, in the ProviderConfig's status too, before it is begun.

        Raises Terminal over the destroy rate limit, ApiError when it cannot be written: then nothing is counted.
        """
        if self._is_exempt(obj, namespace):
            return
        where = key_of(obj).namespace
        name = key_of(account.config_object).name
        async with self._accounts.status_lock:
            config = self._accounts.configs.store.get(key_of_config(name)) or account.config_object
            limits = limits_of(config)
            text = self._destroy_limit(config, where, limits)
            if text:
                raise Terminal("Brake", text)
            written = await write(
                self._accounts.configs.resource,
                config,
                with_one_more(status_of(config), self._kind, where, self._now()),
            )
            if written is not None:
                self._accounts.configs.store.remember(written)
            self._destroyed[name].append((self._now(), where))

    def users(self, config: str) -> int:
        """Return how many resources with our finalizer use a ProviderConfig."""
        return len(self._resources.store.by_index("users", config))

    def is_named(self, config: str) -> bool:
        """Return whether any resource names a ProviderConfig, with or without a database."""
        return bool(self._resources.store.by_index(BY_CONFIG, config))

    def allowance(
        self, obj: Object, account: ConnectedAccount[Any, Any], namespace: Object, *, delete_intended: bool = False
    ) -> Allowance:
        """Return what the ProviderConfig allows this object."""
        config, name = account.config_object, key_of(account.config_object).name
        spec = config.get("spec") or {}
        limits = limits_of(config)
        return Allowance(
            not_allowed=refuse_namespace(config, key_of(obj).namespace, labels_of(namespace)),
            adoption=bool(spec.get("allowAdoption", False)),
            limit_reached="" if held(obj) else self._limit(name, key_of(obj), limits, uid_of(namespace)),
            # A deletion that was begun was counted then, and is finished.
            destroy_limit_reached=""
            if delete_intended or self._is_exempt(obj, namespace)
            else self._destroy_limit(config, key_of(obj).namespace, limits),
        )

    def needs_list(self, obj: Object, account: ConnectedAccount[Any, Any]) -> bool:
        """Return whether a limit cannot be checked before the account was listed once."""
        name = key_of(account.config_object).name
        unlisted = not held(obj) and not self.orphans.is_listed(name, account.id)
        return unlisted and self._counts_orphans(account.config_object)

    def listed(self, name: str, account: str, listing: ExternalList) -> None:
        """Record what a list of an account shows, where a limit of its ProviderConfig needs it."""
        config = self._accounts.configs.store.get(key_of_config(name))
        if config is not None and self._counts_orphans(config):
            self.orphans.listed(name, account, listing)

    @property
    def kind(self) -> str:
        """The kind whose resources are counted."""
        return self._kind

    async def list_without_resource(self, config: str, within: str = "") -> WithoutResource:
        """List the account of a ProviderConfig now, or what is inside one server; return what of it has no resource.

        What is inside a server is not missing from the account's list: the server is. Where nothing may be adopted
        nobody looks into a server. Raises Failure.
        """
        if self._inside != bool(within):
            return WithoutResource({}, (), complete=True)
        account = await self._accounts.connect(config)
        if within:
            may_look = bool((account.config_object.get("spec") or {}).get("allowAdoption"))
            contents = account.clients.contents if may_look else None
            return await self.orphans.without_resource_in(contents, within, complete=may_look)
        return await self.orphans.without_resource(account.clients, stateful=self._stateful)

    async def list_backups(self, config: str) -> tuple[KeptBackup, ...]:
        """List what the account of a ProviderConfig keeps of this installation's databases. Raises Failure."""
        keeps = (await self._accounts.connect(config)).clients.keeps
        kept = await keeps.kept() if keeps is not None else ()
        return tuple(backup for backup in kept if backup.owner.installation == self.orphans.installation)

    def _counts_orphans(self, config: Object) -> bool:
        limits = limits_of(config)
        return self._stateful and (limits.instances is not None or limits.per_namespace is not None)

    def _is_exempt(self, obj: Object, namespace: Object) -> bool:
        """Return whether the destroy rate limit does not count it.

        That holds in an ephemeral namespace, and for a deletion of what was made within the hour.
        """
        if labels_of(namespace).get(EPHEMERAL_LABEL) == "true":
            return True
        made = made_at(obj)
        return deleting(obj) and made is not None and timedelta(0) <= self._now() - made < HOUR

    def _limit(self, config: str, key: Key, limits: Limits, namespace_uid: str) -> str:
        namespace = key.namespace
        if limits == Limits() or not self._stateful:
            return ""
        if limits.creates_per_hour is not None and config not in self._counted:
            self._count_earlier_creates(config)
        coming = {resource for resource, name in self._reserved.items() if name == config and resource != key}
        everywhere = {*self._resources.store.by_index("users", config), *coming} - {key}
        here = sum(1 for resource in everywhere if resource.namespace == namespace)
        orphans = self.orphans.of(config)
        orphans_here = sum(owner.is_of(namespace, namespace_uid) for owner in orphans)
        rules = (
            (limits.instances, len(everywhere) + len(orphans), f"databases by ProviderConfig {config}"),
            (limits.per_namespace, here + orphans_here, f"databases of namespace {namespace}"),
            (limits.creates_per_hour, self._recent(self._created[config]), "new databases within an hour"),
        )
        for most, present, subject in rules:
            if most is not None and present >= most:
                return f"at most {most} {subject} are allowed and {present} are there; ask the platform team"
        return ""

    def _destroy_limit(self, config: Object, namespace: str, limits: Limits) -> str:
        until = instant(annotations_of(config).get(DESTROY_LIMIT_LIFTED, ""))
        if until is not None and self._now() < until:
            return ""
        name = key_of(config).name
        written = destroys_within_the_hour(status_of(config), self._kind, self._now())
        done = written | self._destroyed_within_the_hour(name)
        if done.total() < destroy_rate.fewest_of(limits.destroys_per_hour):
            # Whatever is there: nothing is counted for it in every pass.
            return ""
        present = Counter(key.namespace for key in self._resources.store.by_index("users", name))
        share = destroy_rate.share_of(limits.destroys_per_hour, present, namespace)
        return destroy_rate.refusal(done, share, namespace, self._lift_command(config))

    def _lift_command(self, config: Object) -> str:
        """Return the command that lifts the destroy rate limit of a ProviderConfig; the same at any time."""
        address = kubectl.address_of(self._accounts.configs.resource.group_kind, key_of(config))
        is_set = DESTROY_LIMIT_LIFTED in annotations_of(config)
        return kubectl.annotate_until_next_hour(address, DESTROY_LIMIT_LIFTED, overwrites=is_set)

    def _destroyed_within_the_hour(self, config: str) -> Counter[str]:
        times = self._destroyed[config]
        while times and self._now() - times[0][0] > HOUR:
            times.popleft()
        return Counter(namespace for _, namespace in times)

    def _count_earlier_creates(self, config: str) -> None:
        """Count what is there and was created within the hour, once in the life of this process."""
        self._counted.add(config)
        creations = []
        for key in self._resources.store.by_index("users", config):
            obj = self._resources.store.get(key) or {"metadata": {}}
            created = instant(str(obj["metadata"].get("creationTimestamp", "")))
            creations += [created] if created is not None and self._now() - created <= HOUR else []
        self._created[config].extendleft(sorted(creations, reverse=True))

    def _recent(self, times: deque[datetime]) -> int:
        while times and self._now() - times[0] > HOUR:
            times.popleft()
        return len(times)


def users_of(obj: Object) -> tuple[str, ...]:
    """Index a resource with our finalizer by its ProviderConfig."""
    if TEARDOWN_FINALIZER not in finalizers_of(obj):
        return ()
    return config_of(obj)


def config_of(obj: Object) -> tuple[str, ...]:
    """Index a resource by the ProviderConfig that it names."""
    return (((obj.get("spec") or {}).get("providerConfigRef") or {}).get("name", "default"),)


def limits_of(config: Object) -> Limits:
    """Return the limits of a ProviderConfig that every cloud has."""
    return msgspec.convert((config.get("spec") or {}).get("limits") or {}, Limits)


def key_of_config(name: str) -> Key:
    """Return the key of a ProviderConfig."""
    return Key("", name)
