"""Watches Secrets in namespaces of claims where a RoleBinding to `fairlead-composer-secrets` allows it.

Of all Secrets it has the metadata, and of providers' credentials the data, from which new connection Secrets are made.
Who may list Secrets may read them all, so that the right is granted namespace by namespace. Without it an edited or
deleted connection Secret is found at the resync of its claim, and credentials are read by name.

Source: Kubernetes reference, SelfSubjectAccessReview (authorization.k8s.io/v1).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from composer.kinds.cluster import Cluster
from composer.kinds.rights import REVIEWS
from runtime.cache import Informer
from runtime.changes import Change
from runtime.controller import Controller, ControllerSettings, Source
from runtime.errors import Forbidden
from runtime.objects import Key, Object
from runtime.results import SETTLED, Result

Keys = Callable[[Change], Iterable[Key]]

NAMESPACE_INDEX: Final = "namespace"
MOST: Final = 50
"""So many namespaces are watched: each takes two connections to the API server."""
_REVIEW_AGAIN: Final = timedelta(minutes=5)


@dataclass(frozen=True, slots=True)
class _User:
    """The claims of a kind, by the index `namespace`, and how their controller maps a changed Secret to claims."""

    claims: Informer
    keys: Keys


class SecretWatches:
    """Starts a watch with the first claim of a namespace, and ends it with the last one, or with the right to it.

    `controller` makes a pass over each namespace in which the first or last claim of a kind came or went, and again
    each few minutes while it has claims.
    """

    def __init__(self, cluster: Cluster, settings: ControllerSettings) -> None:
        self._cluster = cluster
        self._again = min(settings.resync, _REVIEW_AGAIN)
        self._monotonic = settings.monotonic
        self._users: dict[Controller, _User] = {}
        self._watched: dict[str, Informer] = {}
        self._credentials: dict[str, Informer] = {}
        self._review_at: dict[str, float] = {}
        self.controller = Controller("secret-watch", self.reconcile, settings=settings)

    def subscribe(self, controller: Controller, claims: Informer, keys: Keys) -> None:
        """Add a controller of claims, which changes of Secrets wake by `keys`."""
        self._users[controller] = _User(claims, keys)
        self.controller.source(Source(claims, keys=_namespace_of, urgent=_never))
        for informer in self._watched.values():
            controller.source(Source(informer, keys=keys))

    def unsubscribe(self, controller: Controller) -> None:
        """Remove a controller of claims."""
        self.controller.unsource(self._users.pop(controller).claims)

    def credentials(self, key: Key) -> Object | None:
        """Return a provider's Secret as the watch of its namespace has it; None where it has none."""
        informer = self._credentials.get(key.namespace)
        return informer.store.get(key) if informer is not None and informer.synced.is_set() else None

    def version(self, key: Key) -> str | None:
        """Return the resourceVersion of a Secret as the watch of its namespace has it; None where it has none."""
        informer = self._watched.get(key.namespace)
        return informer.store.version(key) if informer is not None and informer.synced.is_set() else None

    async def reconcile(self, key: Key) -> Result:
        """Start or end the watch of one namespace. Raises ApiError."""
        namespace = key.name
        if not any(user.claims.store.by_index(NAMESPACE_INDEX, namespace) for user in self._users.values()):
            self._review_at.pop(namespace, None)
            self._end(namespace)
            return SETTLED
        now = self._monotonic()
        if now < self._review_at.get(namespace, now):
            return Result(timedelta(seconds=self._review_at[namespace] - now))
        if await self._may_watch(namespace):
            self._begin(namespace)
        else:
            self._end(namespace)
        self._review_at[namespace] = now + self._again.total_seconds()
        return Result(self._again)

    def _begin(self, namespace: str) -> None:
        if namespace in self._watched or len(self._watched) >= MOST:
            return
        informer = self._watched[namespace] = self._cluster.secrets(namespace)
        self._credentials[namespace] = self._cluster.credentials(namespace)
        for controller, user in self._users.items():
            controller.source(Source(informer, keys=user.keys))

    def _end(self, namespace: str) -> None:
        informer = self._watched.pop(namespace, None)
        self._credentials.pop(namespace, None)
        if informer is None:
            return
        for controller in self._users:
            controller.unsource(informer)
        self._cluster.drop_secrets(namespace)

    async def _may_watch(self, namespace: str) -> bool:
        for verb in ("list", "watch"):
            wanted = {"group": "", "resource": "secrets", "verb": verb, "namespace": namespace}
            try:
                answer = await self._cluster.kube.review(REVIEWS, {"resourceAttributes": wanted})
            except Forbidden:
                return False
            if not (answer.get("status") or {}).get("allowed", False):
                return False
        return True


def _namespace_of(change: Change) -> Iterable[Key]:
    """Return the namespace of a claim that is new or gone."""
    return (Key("", change.key.namespace),) if change.before is None or change.after is None else ()


def _never(_change: Change) -> bool:
    return False
