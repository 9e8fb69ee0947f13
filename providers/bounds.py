"""Who may use a ProviderConfig, how much, and how fast: allow-list, limits, brake."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, TypeAlias

import msgspec

from providers import reading
from providers.accounts import Accounts
from providers.cloud import Account
from providers.destroys import destroys_within_the_hour, with_one_more
from providers.plan import Bounds
from runtime.cache import Informer
from runtime.errors import Terminal
from runtime.objects import Key, Object, annotations_of, finalizers_of, key_of, labels_of

Write: TypeAlias = Callable[[Object, Object], Awaitable[Object | None]]
"""Gives a ProviderConfig (the first) a status (the second); returns it as it is then, None where nothing is written."""

HOUR = timedelta(hours=1)
BY_CONFIG = "config"
_FEWEST_DESTROYS = 3
_SHARE_OF_DESTROYS = 0.02


class Common(msgspec.Struct, frozen=True, rename="camel"):
    """The limits that every cloud's ProviderConfig has; a cloud adds its own beside them."""

    instances: int | None = None
    per_namespace: int | None = None
    creates_per_hour: int | None = None
    destroys_per_hour: int | None = None


class Limiter:
    """Counts what is there and what was done within the last hour, by this process or by those before it.

    Creates are told again from the birth of what is there, destroys from the status of their ProviderConfig.
    """

    def __init__(self, resources: Informer, accounts: Accounts[Any, Any], now: Callable[[], datetime]) -> None:
        self._resources = resources
        self._accounts = accounts
        self._now = now
        self._created: defaultdict[str, deque[datetime]] = defaultdict(deque)
        self._destroyed: defaultdict[str, deque[datetime]] = defaultdict(deque)
        self._reserved: dict[Key, str] = {}
        self._recalled: set[str] = set()
        self._kind = resources.resource.kind
        resources.store.add_index("users", users_of)
        resources.store.add_index(BY_CONFIG, config_of)

    @contextmanager
    def reserved(self, obj: Object, account: Account[Any, Any]) -> Iterator[None]:
        """Hold a place under the limits until the object's finalizer holds it.

        Workers decide side by side: the place is taken between two awaits. Raises Terminal LimitReached.
        """
        config, key = key_of(account.config_object).name, key_of(obj)
        limits = msgspec.convert((account.config_object.get("spec") or {}).get("limits") or {}, Common)
        text = "" if reading.held(obj) else self._limit(config, key, limits)
        if text:
            raise Terminal("LimitReached", text)
        self._reserved[key] = config
        self._created[config].append(self._now())
        try:
            yield
        finally:
            del self._reserved[key]

    async def count_destroy(self, account: Account[Any, Any], namespace: Object, write: Write) -> None:
        """Count one destroy or interruption, in the ProviderConfig's status too, before it is begun.

        Raises Terminal Brake when it is one too many, ApiError when it cannot be written down: then nothing is counted.
        """
        if _is_ephemeral(namespace):
            return
        name = key_of(account.config_object).name
        async with self._accounts.bookkeeping:
            config = self._accounts.configs.store.get(key_of_config(name)) or account.config_object
            limits = msgspec.convert((config.get("spec") or {}).get("limits") or {}, Common)
            text = self._brake(config, name, limits)
            if text:
                raise Terminal("Brake", text)
            written = await write(config, with_one_more(reading.status_of(config), self._kind, self._now()))
            if written is not None:
                self._accounts.configs.store.remember(written)
            self._destroyed[name].append(self._now())

    def users(self, config: str) -> int:
        """Return how many resources hold on to a ProviderConfig."""
        return len(self._resources.store.by_index("users", config))

    def is_named(self, config: str) -> bool:
        """Tell whether any resource names a ProviderConfig, with or without a database."""
        return bool(self._resources.store.by_index(BY_CONFIG, config))

    def bounds(self, bounds: Bounds, obj: Object, account: Account[Any, Any], namespace: Object) -> Bounds:
        """Return the bounds with what the ProviderConfig says about this object."""
        config, name = account.config_object, key_of(account.config_object).name
        spec = config.get("spec") or {}
        limits = msgspec.convert(spec.get("limits") or {}, Common)
        return replace(
            bounds,
            not_allowed="" if allowed(spec, key_of(obj).namespace, labels_of(namespace)) else _not_allowed(name),
            adoption=bool(spec.get("allowAdoption", False)),
            limit_reached=self._limit(name, key_of(obj), limits),
            # A deletion that was begun was counted then, and is finished.
            brake="" if _is_ephemeral(namespace) or bounds.delete_intended else self._brake(config, name, limits),
        )

    def _limit(self, config: str, key: Key, limits: Common) -> str:
        namespace = key.namespace
        if limits == Common():
            return ""
        if limits.creates_per_hour is not None and config not in self._recalled:
            self._recall_creates(config)
        coming = {one for one, of in self._reserved.items() if of == config and one != key}
        everywhere = {*self._resources.store.by_index("users", config), *coming} - {key}
        here = sum(1 for one in everywhere if one.namespace == namespace)
        rules = (
            (limits.instances, len(everywhere), f"databases by ProviderConfig {config}"),
            (limits.per_namespace, here, f"databases of namespace {namespace}"),
            (limits.creates_per_hour, self._recent(self._created[config]), "new databases within an hour"),
        )
        for most, present, what in rules:
            if most is not None and present >= most:
                return f"at most {most} {what} are allowed and {present} are there; ask the platform team"
        return ""

    def _brake(self, config: Object, name: str, limits: Common) -> str:
        until = reading.instant(annotations_of(config).get(reading.BRAKE_RELEASED, ""))
        if until is not None and self._now() < until:
            return ""
        known = destroys_within_the_hour(reading.status_of(config), self._kind, self._now())
        most, done = limits.destroys_per_hour, max(known, self._recent(self._destroyed[name]))
        if most is None and done >= _FEWEST_DESTROYS:
            most = max(_FEWEST_DESTROYS, int(self.users(name) * _SHARE_OF_DESTROYS))
        if most is None or done < most:
            return ""
        return (
            f"{done} databases were taken away or interrupted within an hour, at most {most} may; to go on sooner,"
            f" annotate ProviderConfig {name} with fairlead.dev/brake-released=<RFC 3339 time until when>"
        )

    def _recall_creates(self, config: str) -> None:
        """Take what is there and was born within the hour for made within it, once in the life of this process."""
        self._recalled.add(config)
        births = []
        for key in self._resources.store.by_index("users", config):
            obj = self._resources.store.get(key) or {"metadata": {}}
            born = reading.instant(str(obj["metadata"].get("creationTimestamp", "")))
            births += [born] if born is not None and self._now() - born <= HOUR else []
        self._created[config].extendleft(sorted(births, reverse=True))

    def _recent(self, times: deque[datetime]) -> int:
        while times and self._now() - times[0] > HOUR:
            times.popleft()
        return len(times)


def users_of(obj: Object) -> tuple[str, ...]:
    """Index a resource that holds on to its ProviderConfig by it."""
    if reading.FINALIZER not in finalizers_of(obj):
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


def _is_ephemeral(namespace: Object) -> bool:
    return labels_of(namespace).get(reading.EPHEMERAL) == "true"


def _not_allowed(name: str) -> str:
    return f"there is no ProviderConfig {name} that this namespace may use"


def key_of_config(name: str) -> Key:
    """Return the key of a ProviderConfig."""
    return Key("", name)
