"""Objects of a few kinds in a namespace, listed once and followed by one watch each, not read again and again."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager, suppress
from datetime import timedelta
from typing import Final

from runtime.errors import ApiError
from runtime.kube import Kube, Selection
from runtime.objects import Key, Object, Resource, key_of, loads

_WATCH: Final = timedelta(minutes=5)
_PAUSE_SECONDS: Final = 1.0
_GONE: Final = "ERROR"
_DELETED: Final = "DELETED"
_BOOKMARK: Final = "BOOKMARK"
Place = tuple[Resource, str]
"""A kind, and a namespace."""
NO_LABELS: Final[Mapping[Resource, str]] = {}


class Followed:
    """The objects of some kinds and namespaces as they are now."""

    def __init__(self, kube: Kube, places: Iterable[Place], labels: Mapping[Resource, str] = NO_LABELS) -> None:
        self.kube = kube
        self._labels = labels
        self._objects: dict[Place, dict[Key, Object]] = {place: {} for place in places}
        self._waiting: dict[tuple[Resource, Key], asyncio.Event] = {}
        self._changed = asyncio.Event()

    @classmethod
    @asynccontextmanager
    async def begin(
        cls, kube: Kube, places: Iterable[Place], labels: Mapping[Resource, str] = NO_LABELS
    ) -> AsyncIterator[Followed]:
        """List all, then follow them for the length of a block; `labels` select what of a kind is meant.

        Raises ApiError where a list is refused.
        """
        followed = cls(kube, dict.fromkeys(places), labels)
        versions = {place: await followed._list(place) for place in followed._objects}
        tasks = [asyncio.create_task(followed._follow(place, version)) for place, version in versions.items()]
        try:
            yield followed
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    def present(self, resource: Resource, key: Key) -> Object | None:
        """Return an object as it is, None where there is none."""
        return self._objects[resource, key.namespace].get(key)

    def all_of(self, resource: Resource, namespace: str = "") -> list[Object]:
        """Return the objects of one place as they are."""
        about = {"apiVersion": resource.api_version, "kind": resource.kind}
        return [about | obj for obj in self._objects[resource, namespace].values()]

    async def until(
        self, resource: Resource, key: Key, is_enough: Callable[[Object], bool], seconds: float
    ) -> Object | None:
        """Return an object once it is as wanted, or as it is after a time; None where it is not there by then."""
        changed = self._waiting.setdefault((resource, key), asyncio.Event())
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while (obj := self.present(resource, key)) is None or not is_enough(obj):
                    changed.clear()
                    await changed.wait()
        return self.present(resource, key)

    async def change(self) -> None:
        """Wait until any object is another than when this was awaited last."""
        await self._changed.wait()
        self._changed.clear()

    def _selection(self, place: Place) -> Selection:
        return Selection(namespace=place[1], labels=self._labels.get(place[0], ""))

    async def _list(self, place: Place) -> str:
        """List one place; return the version of the list."""
        resource = place[0]
        selection, listed = self._selection(place), dict[Key, Object]()
        page = await self.kube.list_page(resource, selection)
        while True:
            for item in page.items:
                obj = loads(item)
                listed[key_of(obj)] = obj
            if not page.next_page:
                break
            page = await self.kube.list_page(resource, selection, next_page=page.next_page)
        self._objects[place].clear()
        self._objects[place].update(listed)
        self._changed.set()
        return page.resource_version

    async def _follow(self, place: Place, version: str) -> None:
        """Watch one place from a version on; what breaks or ends is listed again."""
        resource, selection = place[0], self._selection(place)
        while True:
            with suppress(ApiError):
                async for event in self.kube.watch(resource, selection, resource_version=version, timeout=_WATCH):
                    if event.kind == _GONE:
                        break
                    if event.kind != _BOOKMARK:
                        self._note(place, loads(event.raw), is_deleted=event.kind == _DELETED)
            await asyncio.sleep(_PAUSE_SECONDS)
            with suppress(ApiError):
                version = await self._list(place)
                for (of, key), changed in self._waiting.items():
                    if (of, key.namespace) == place:
                        changed.set()

    def _note(self, place: Place, obj: Object, *, is_deleted: bool) -> None:
        key = key_of(obj)
        if is_deleted:
            self._objects[place].pop(key, None)
        else:
            self._objects[place][key] = obj
        self._changed.set()
        if changed := self._waiting.get((place[0], key)):
            changed.set()
