"""The history of an API server: what lists and watches show of it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Final

from devcloud.apiserver import schemas
from devcloud.apiserver.objects import refusals
from devcloud.apiserver.selections import Selected
from runtime.kube import Page, WatchEvent
from runtime.objects import Key, Object, Resource, dumps

_BOOKMARK_SECONDS: Final = 60.0
_TOO_OLD: Final = (
    "The provided continue parameter is too old to display a consistent list result. You can start a new list without "
    "the continue parameter, or use the continue token in this response to retrieve the remainder of the results. "
    "Continuing with the provided token results in an inconsistent list - objects that were created, modified, or "
    "deleted between the time the first chunk was returned and now may show up in the list."
)


@dataclass(frozen=True, slots=True)
class Change:
    """One line of the history: the object before and after, None where there is none."""

    version: int
    before: Object | None
    after: Object | None


@dataclass(slots=True)
class Watched:
    """The history of one kind."""

    changes: list[Change] = field(default_factory=list)
    has_ended: bool = False
    _waker: asyncio.Event = field(default_factory=asyncio.Event)

    def add(self, change: Change) -> None:
        """Write a change down, and wake who watches."""
        self.changes.append(change)
        self._waker.set()
        self._waker = asyncio.Event()

    def end(self) -> None:
        """End all watches: the kind is served no more."""
        self.has_ended = True
        self._waker.set()

    async def since(self, version: int, lasts: timedelta) -> AsyncIterator[Change | None]:
        """Yield what came after a version, and None where a bookmark is due."""
        loop = asyncio.get_running_loop()
        until = loop.time() + lasts.total_seconds()
        position = next((at for at, change in enumerate(self.changes) if change.version > version), len(self.changes))
        while loop.time() < until:
            while position < len(self.changes):
                position += 1
                if self.changes[position - 1].version > version:
                    yield self.changes[position - 1]
            if self.has_ended:
                return
            try:
                async with asyncio.timeout_at(min(until, loop.time() + _BOOKMARK_SECONDS)):
                    await self._waker.wait()
            except TimeoutError:
                # What came in this moment goes before a bookmark that would say it was shown.
                if position == len(self.changes):
                    yield None


@dataclass(frozen=True, slots=True)
class Chosen:
    """What of a list is shown, and how."""

    selected: Selected
    metadata_only: bool


@dataclass(slots=True)
class Pages:
    """The lists of which not all pages were read."""

    kept: dict[str, tuple[list[bytes], str]] = field(default_factory=dict)

    def first(self, objects: dict[Key, Object], chosen: Chosen, version: int, limit: int) -> Page:
        """Return the first page of a list at a version."""
        items = [
            dumps(only_metadata(obj) if chosen.metadata_only else obj)
            for _, obj in sorted(objects.items())
            if chosen.selected.has(obj)
        ]
        token = f"{version}/{len(self.kept)}"
        self.kept[token] = (items, str(version))
        return self._page(token, 0, limit)

    def next(self, token: str, limit: int) -> Page:
        """Return another page; raises RefusedError."""
        start, _, known = token.partition("@")
        if known not in self.kept:
            raise refusals.expired(_TOO_OLD)
        return self._page(known, int(start), limit)

    def _page(self, token: str, first: int, limit: int) -> Page:
        items, version = self.kept[token]
        last = first + limit if limit else len(items)
        if last >= len(items):
            del self.kept[token]
        return Page(tuple(items[first:last]), version, f"{last}@{token}" if last < len(items) else "")


def only_metadata(obj: Object) -> Object:
    """Return what a metadata-only read has of an object."""
    kind = {"apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata"}
    return {**kind, "metadata": schemas.copied(obj["metadata"])}


def event(change: Change, chosen: Selected, *, metadata_only: bool) -> WatchEvent | None:
    """Return what a watch sees of a change, None for nothing."""
    was = change.before is not None and chosen.has(change.before)
    is_there = change.after is not None and chosen.has(change.after)
    # What leaves the selection is shown as it was when it was last in it.
    shown = change.after if is_there else change.before
    if shown is None or not (was or is_there):
        return None
    shown = schemas.copied(shown)
    shown["metadata"]["resourceVersion"] = str(change.version)
    kind = ("MODIFIED" if was else "ADDED") if is_there else "DELETED"
    return WatchEvent(kind, dumps(only_metadata(shown) if metadata_only else shown))


def bookmark(resource: Resource, version: int) -> WatchEvent:
    """Return what shows a watch that it saw everything up to a version."""
    shown = {"apiVersion": resource.api_version, "kind": resource.kind}
    return WatchEvent("BOOKMARK", dumps({**shown, "metadata": {"resourceVersion": str(version)}}))
