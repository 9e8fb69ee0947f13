"""The port to the API server: the one place that speaks HTTP to it.

Guarantees: every request has a time-out; errors arrive as the types of `runtime.errors`; no retries inside (a retry is
the queue's work); no generated models. Only the implementation (`runtime.kube_client`) imports kubernetes_asyncio.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Protocol

from runtime.objects import Key, Object, Resource


@dataclass(frozen=True, slots=True)
class Page:
    """One page of a LIST: raw items, the collection's resourceVersion, the token of the next page (or empty)."""

    items: tuple[bytes, ...]
    resource_version: str
    next_page: str


@dataclass(frozen=True, slots=True)
class WatchEvent:
    """One line of a WATCH: `kind` is ADDED, MODIFIED, DELETED, BOOKMARK or ERROR; `raw` the object's JSON."""

    kind: str
    raw: bytes


@dataclass(frozen=True, slots=True)
class Selection:
    """What of a resource is listed and watched; empty fields select everything.

    `others_than`: the store keeps which field managers set which fields of an object, but for those whose names begin
    so, our own; empty keeps none.
    """

    namespace: str = ""
    labels: str = ""
    fields: str = ""
    metadata_only: bool = False
    others_than: str = ""


class Kube(Protocol):
    """What controllers may ask of an API server. Each method may raise any ApiError."""

    async def get(self, resource: Resource, key: Key, *, metadata_only: bool = False) -> Object:
        """Read one object live; NotFound when absent."""

    async def create(self, resource: Resource, obj: Object, *, manager: str) -> Object:
        """POST with fieldValidation=Strict; AlreadyExists when the name is taken."""

    async def review(self, resource: Resource, spec: Object) -> Object:
        """POST a question that is answered and never stored, such as SelfSubjectAccessReview; return the answer."""

    async def apply(
        self, resource: Resource, obj: Object, *, manager: str, force: bool = False, subresource: str = ""
    ) -> Object:
        """Server-side apply (KEP-555). ApplyConflict without `force` names managers and fields.

        An object without `metadata.uid` would be created when absent, and one without `metadata.resourceVersion` would
        land on whatever is there: a controller's apply has both, see `runtime.preconditions`. WriteConflict when they
        are not the stored ones.
        """

    async def replace(self, resource: Resource, obj: Object, *, manager: str) -> Object:
        """PUT; WriteConflict unless `metadata.resourceVersion` is the stored one."""

    async def json_patch(
        self, resource: Resource, key: Key, operations: list[dict[str, Any]], *, manager: str, subresource: str = ""
    ) -> Object:
        """RFC 6902 patch; WriteConflict when a `test` fails."""

    async def delete(
        self, resource: Resource, key: Key, *, uid: str, resource_version: str, propagation: str = "Background"
    ) -> Object | None:
        """Delete this object at this version; return it as it is while finalizers hold it, else None.

        NotFound when absent, WriteConflict when another object has the name or this one was changed.
        """

    async def list_page(
        self, resource: Resource, selection: Selection, *, limit: int = 500, next_page: str = ""
    ) -> Page:
        """Read one page of a consistent LIST (never resourceVersion=0). Gone when the token expired."""

    def watch(
        self, resource: Resource, selection: Selection, *, resource_version: str, timeout: timedelta
    ) -> AsyncIterator[WatchEvent]:
        """Stream events after `resource_version` with bookmarks; ends after the server's `timeout`."""

    async def raw(self, method: str, path: str, body: bytes | None = None) -> bytes:
        """Any other request (discovery, SelfSubjectAccessReview, TokenRequest), JSON in and out."""
