"""Who may use a ProviderConfig, how much, and how fast: allow-list, limits, brake."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import msgspec

from providers import reading
from providers.accounts import Accounts
from providers.cloud import Account
from providers.plan import Bounds
from runtime.cache import Informer
from runtime.objects import Key, Object, annotations_of, finalizers_of, key_of, labels_of

HOUR = timedelta(hours=1)
_FEWEST_DESTROYS = 3
_SHARE_OF_DESTROYS = 0.02


class Common(msgspec.Struct, frozen=True, rename="camel"):
    """The limits that every cloud's ProviderConfig has; a cloud adds its own beside them."""

    instances: int | None = None
    per_namespace: int | None = None
    creates_per_hour: int | None = None
    destroys_per_hour: int | None = None


class Limiter:
    """Counts what is there and what was done within the last hour by this process."""

    def __init__(self, resources: Informer, accounts: Accounts[Any, Any], now: Callable[[], datetime]) -> None:
        self._resources = resources
        self._accounts = accounts
        self._now = now
        self._created: defaultdict[str, deque[datetime]] = defaultdict(deque)
        self._destroyed: defaultdict[str, deque[datetime]] = defaultdict(deque)
        resources.store.add_index("users", users_of)

    def count_create(self, config: str) -> None:
        """Count one create."""
        self._created[config].append(self._now())

    def count_destroy(self, config: str) -> None:
        """Count one destroy."""
        self._destroyed[config].append(self._now())

    def users(self, config: str) -> int:
        """Return how many resources hold on to a ProviderConfig."""
        return len(self._resources.store.by_index("users", config))

    def bounds(self, bounds: Bounds, obj: Object, account: Account[Any, Any], namespace: Object) -> Bounds:
        """Return the bounds with what the ProviderConfig says about this object."""
        config, name = account.config_object, key_of(account.config_object).name
        spec = config.get("spec") or {}
        limits = msgspec.convert(spec.get("limits") or {}, Common)
        return replace(
            bounds,
            not_allowed="" if allowed(spec, key_of(obj).namespace, labels_of(namespace)) else _not_allowed(name),
            adoption=bool(spec.get("allowAdoption", False)),
            limit_reached=self._limit(name, key_of(obj).namespace, limits),
            brake="" if _is_ephemeral(namespace) else self._brake(config, name, limits),
        )

    def _limit(self, config: str, namespace: str, limits: Common) -> str:
        here = len(self._resources.store.by_index("users", f"{config}/{namespace}"))
        rules = (
            (limits.instances, self.users(config), f"databases by ProviderConfig {config}"),
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
        most = limits.destroys_per_hour
        if most is None:
            most = max(_FEWEST_DESTROYS, int(self.users(name) * _SHARE_OF_DESTROYS))
        done = self._recent(self._destroyed[name])
        if done < most:
            return ""
        return f"{done} databases were taken away within an hour, at most {most} may; release with: fairlead resume"

    def _recent(self, times: deque[datetime]) -> int:
        while times and self._now() - times[0] > HOUR:
            times.popleft()
        return len(times)


def users_of(obj: Object) -> tuple[str, ...]:
    """Index a resource that holds on to its ProviderConfig by it, and by it and its namespace."""
    if reading.FINALIZER not in finalizers_of(obj):
        return ()
    config = ((obj.get("spec") or {}).get("providerConfigRef") or {}).get("name", "default")
    return config, f"{config}/{key_of(obj).namespace}"


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
