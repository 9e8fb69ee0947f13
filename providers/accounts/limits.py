"""Who may use a ProviderConfig, how much, and how fast: allow-list, limits, brake."""

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
from providers.accounts.orphans import Orphans
from providers.external.client import Sweep
from providers.external.ownership import held
from providers.external.provider import Account
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
"""Gives a ProviderConfig (of a resource, an object) a status; returns it as it is then, None for nothing written."""

HOUR = timedelta(hours=1)
BY_CONFIG = "config"


class Common(msgspec.Struct, frozen=True, rename="camel"):
    """The limits that every cloud's ProviderConfig has; a cloud adds its own beside them."""

    instances: int | None = None
    per_namespace: int | None = None
    creates_per_hour: int | None = None
    destroys_per_hour: int | None = None


@dataclass(frozen=True, slots=True)
class Allowance:
    """What a ProviderConfig allows one object; each text is empty when there is nothing to object."""

    not_allowed: str = ""
    adoption: bool = False
    limit_reached: str = ""
    brake: str = ""


class Limiter:
    """Counts what is there and what was done within the last hour, by this process or by those before it.

    Creates are told again from the birth of what is there, destroys from the status of their ProviderConfig. What is
    there and has no resource any more (let go under Orphan) is known from the lists of its account. A kind that is not
    `stateful` makes neither server nor database, and has no limits.
    """

    def __init__(
        self,
        resources: Informer,
        accounts: Accounts[Any, Any],
        now: Callable[[], datetime],
        *,
        stateful: bool = True,
        installation: str = "",
    ) -> None:
        self._resources = resources
        self._accounts = accounts
        self._now = now
        self._stateful = stateful
        self._created: defaultdict[str, deque[datetime]] = defaultdict(deque)
        self._destroyed: defaultdict[str, deque[tuple[datetime, str]]] = defaultdict(deque)
        self.orphans = Orphans(resources, installation)
        self._reserved: dict[Key, str] = {}
        self._recalled: set[str] = set()
        self._kind = resources.resource.kind
        resources.store.add_index("users", users_of)
        resources.store.add_index(BY_CONFIG, config_of)

    @contextmanager
    def reserved(self, obj: Object, account: Account[Any, Any], namespace: Object) -> Iterator[None]:
        """Hold a place under the limits until the object's finalizer holds it.

        Workers decide side by side: the place is taken between two awaits. Raises Terminal LimitReached.
        """
        config, key = key_of(account.config_object).name, key_of(obj)
        limits = msgspec.convert((account.config_object.get("spec") or {}).get("limits") or {}, Common)
        text = "" if held(obj) else self._limit(config, key, limits, uid_of(namespace))
        if text:
            raise Terminal("LimitReached", text)
        self._reserved[key] = config
        self._created[config].append(self._now())
        try:
            yield
        finally:
            del self._reserved[key]

    async def count_destroy(self, account: Account[Any, Any], obj: Object, namespace: Object, write: Write) -> None:
        """Count one destroy or interruption, in the ProviderConfig's status too, before it is begun.

        Raises Terminal Brake when it is one too many, ApiError when it cannot be written down: then nothing is counted.
        """
        if self._is_exempt(obj, namespace):
            return
        where = key_of(obj).namespace
        name = key_of(account.config_object).name
        async with self._accounts.bookkeeping:
            config = self._accounts.configs.store.get(key_of_config(name)) or account.config_object
            limits = msgspec.convert((config.get("spec") or {}).get("limits") or {}, Common)
            text = self._brake(config, where, limits)
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
        """Return how many resources hold on to a ProviderConfig."""
        return len(self._resources.store.by_index("users", config))

    def is_named(self, config: str) -> bool:
        """Tell whether any resource names a ProviderConfig, with or without a database."""
        return bool(self._resources.store.by_index(BY_CONFIG, config))

    def allowance(
        self, obj: Object, account: Account[Any, Any], namespace: Object, *, delete_intended: bool = False
    ) -> Allowance:
        """Return what the ProviderConfig allows this object."""
        config, name = account.config_object, key_of(account.config_object).name
        spec = config.get("spec") or {}
        limits = msgspec.convert(spec.get("limits") or {}, Common)
        return Allowance(
            not_allowed=refuse_namespace(config, key_of(obj).namespace, labels_of(namespace)),
            adoption=bool(spec.get("allowAdoption", False)),
            limit_reached="" if held(obj) else self._limit(name, key_of(obj), limits, uid_of(namespace)),
            # A deletion that was begun was counted then, and is finished.
            brake=""
            if delete_intended or self._is_exempt(obj, namespace)
            else self._brake(config, key_of(obj).namespace, limits),
        )

    def wants_list(self, obj: Object, account: Account[Any, Any]) -> bool:
        """Tell whether a limit cannot be kept before the account was listed once."""
        name = key_of(account.config_object).name
        unlisted = not held(obj) and not self.orphans.is_listed(name, account.id)
        return unlisted and self._counts_orphans(account.config_object)

    def listed(self, name: str, account: str, sweep: Sweep) -> None:
        """Take in what a list of an account shows, where a limit of its ProviderConfig asks for it."""
        config = self._accounts.configs.store.get(key_of_config(name))
        if config is not None and self._counts_orphans(config):
            self.orphans.listed(name, account, sweep)

    def _counts_orphans(self, config: Object) -> bool:
        limits = msgspec.convert((config.get("spec") or {}).get("limits") or {}, Common)
        return self._stateful and (limits.instances is not None or limits.per_namespace is not None)

    def _is_exempt(self, obj: Object, namespace: Object) -> bool:
        """Tell whether no brake holds it: an ephemeral namespace's, or a deletion of what was made within the hour."""
        if labels_of(namespace).get(EPHEMERAL_LABEL) == "true":
            return True
        made = made_at(obj)
        return deleting(obj) and made is not None and timedelta(0) <= self._now() - made < HOUR

    def _limit(self, config: str, key: Key, limits: Common, namespace_uid: str) -> str:
        namespace = key.namespace
        if limits == Common() or not self._stateful:
            return ""
        if limits.creates_per_hour is not None and config not in self._recalled:
            self._recall_creates(config)
        coming = {one for one, of in self._reserved.items() if of == config and one != key}
        everywhere = {*self._resources.store.by_index("users", config), *coming} - {key}
        here = sum(1 for one in everywhere if one.namespace == namespace)
        orphans = self.orphans.of(config)
        orphans_here = sum(one.is_of(namespace, namespace_uid) for one in orphans)
        rules = (
            (limits.instances, len(everywhere) + len(orphans), f"databases by ProviderConfig {config}"),
            (limits.per_namespace, here + orphans_here, f"databases of namespace {namespace}"),
            (limits.creates_per_hour, self._recent(self._created[config]), "new databases within an hour"),
        )
        for most, present, what in rules:
            if most is not None and present >= most:
                return f"at most {most} {what} are allowed and {present} are there; ask the platform team"
        return ""

    def _brake(self, config: Object, namespace: str, limits: Common) -> str:
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
        return destroy_rate.refusal(done, share, namespace, name)

    def _destroyed_within_the_hour(self, config: str) -> Counter[str]:
        times = self._destroyed[config]
        while times and self._now() - times[0][0] > HOUR:
            times.popleft()
        return Counter(namespace for _, namespace in times)

    def _recall_creates(self, config: str) -> None:
        """Take what is there and was born within the hour for made within it, once in the life of this process."""
        self._recalled.add(config)
        births = []
        for key in self._resources.store.by_index("users", config):
            obj = self._resources.store.get(key) or {"metadata": {}}
            born = instant(str(obj["metadata"].get("creationTimestamp", "")))
            births += [born] if born is not None and self._now() - born <= HOUR else []
        self._created[config].extendleft(sorted(births, reverse=True))

    def _recent(self, times: deque[datetime]) -> int:
        while times and self._now() - times[0] > HOUR:
            times.popleft()
        return len(times)


def users_of(obj: Object) -> tuple[str, ...]:
    """Index a resource that holds on to its ProviderConfig by it."""
    if TEARDOWN_FINALIZER not in finalizers_of(obj):
        return ()
    return config_of(obj)


def config_of(obj: Object) -> tuple[str, ...]:
    """Index a resource by the ProviderConfig that it names."""
    return (((obj.get("spec") or {}).get("providerConfigRef") or {}).get("name", "default"),)


def allowed(spec: Object, namespace: str, labels: dict[str, str]) -> bool:
    """Tell whether a ProviderConfig's allowedNamespaces holds this namespace; nothing said allows nobody."""
    rule = spec.get("allowedNamespaces") or {}
    if namespace in (rule.get("names") or ()):
        return True
    selector = rule.get("selector")
    if selector is None:
        return False
    return all(labels.get(key) == value for key, value in (selector.get("matchLabels") or {}).items())


def refuse_namespace(config: Object, namespace: str, labels: dict[str, str]) -> str:
    """Return why a namespace may not use a ProviderConfig, as if there were none; empty when it may."""
    if allowed(config.get("spec") or {}, namespace, labels):
        return ""
    return f"there is no ProviderConfig {key_of(config).name} that this namespace may use"


def key_of_config(name: str) -> Key:
    """Return the key of a ProviderConfig."""
    return Key("", name)
