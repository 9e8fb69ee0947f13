"""The API server in memory of `devcloud.apiserver` as tests of controllers use it: objects put there, faults on order.

A kind and a namespace of which a test says nothing are there: such a kind has a status, and fields that nobody checks.
"""

import asyncio
import itertools
from collections import deque
from collections.abc import AsyncIterator, Iterator, MutableMapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from enum import Enum, auto
from typing import Any, Final

from devcloud.apiserver.api_server import ApiServer
from devcloud.apiserver.objects.built_in import BUILT_IN
from devcloud.apiserver.objects.changes import id_of
from devcloud.apiserver.objects.kinds import ANYTHING, Kind, custom
from devcloud.apiserver.watching import Change
from runtime.errors import ApiError, Forbidden, Gone, NoAnswer, TooManyRequests, Unavailable
from runtime.kube import Page, Selection, WatchEvent
from runtime.objects import CRDS, NAMESPACES, Key, Object, Resource, copied, dumps, key_of

WIDGETS = Resource("example.dev", "v1", "Widget", "widgets")
_ANY_VERSION: Final = dumps({"schema": {"openAPIV3Schema": ANYTHING}, "subresources": {"status": {}}})


class Fault(Enum):
    """What the next watch or list does instead of its duty."""

    GONE = auto()  # 410 as HTTP status
    GONE_EVENT = auto()  # 410 inside the stream
    ODD_EVENT = auto()  # an ERROR event of another kind
    CLOSED = auto()  # ends at once, a clean end
    SILENT = auto()  # open, but nothing comes any more
    CUT_LINE = auto()  # half an event
    GARBAGE = auto()  # not JSON
    NO_ANSWER = auto()  # the connection breaks
    UNAVAILABLE = auto()  # 503
    BUSY = auto()  # 429, to be asked again after 100 s
    TOKEN_EXPIRED = auto()  # lists only: 410 on the second page
    OLD = auto()  # lists only: an older state than was listed before


_ERRORS: Final[dict[Fault, ApiError]] = {
    Fault.GONE: Gone("too old resource version", status=410, reason="Expired"),
    Fault.CUT_LINE: ApiError("unreadable watch event", status=200, reason="Unreadable"),
    Fault.NO_ANSWER: NoAnswer("connection reset"),
    Fault.UNAVAILABLE: Unavailable("try later", status=503),
    Fault.BUSY: TooManyRequests("too many", status=429, retry_after=timedelta(seconds=100)),
}
_EVENTS: Final = {
    Fault.GONE_EVENT: ("ERROR", dumps({"kind": "Status", "code": 410, "reason": "Expired", "message": "old"})),
    Fault.ODD_EVENT: ("ERROR", dumps({"kind": "Status", "code": 500, "message": "unable to decode"})),
    Fault.GARBAGE: ("ADDED", b"<html>"),
}


@dataclass(slots=True)
class Dial:
    """One list or watch, as seen by the server."""

    verb: str
    at: float
    version: str = ""
    resource: str = ""


def _is_whole(crd: Object) -> bool:
    return "versions" in (crd.get("spec") or {})


class _Server(ApiServer):
    def kind(self, resource: Resource) -> Kind:
        self.refuse_unserved(resource)
        crd = self.find(CRDS, Key("", f"{resource.plural}.{resource.group}"))
        if id_of(resource) not in BUILT_IN and (crd is None or not _is_whole(crd)):
            return custom(resource, _ANY_VERSION)
        return super().kind(resource)

    def refuse_unserved(self, resource: Resource) -> None:
        self.resources.setdefault(id_of(resource), resource)

    def _admit(self, resource: Resource, namespace: str, name: str) -> None:
        if self.find(NAMESPACES, Key("", namespace)) is not None:
            super()._admit(resource, namespace, name)

    def _serve(self, change: Change) -> None:
        if _is_whole(change.after or change.before or {}):
            super()._serve(change)


@dataclass(eq=False)
class Objects(MutableMapping[tuple[Resource, Key], Object]):
    """What a server holds; what is changed here is shown to no watch."""

    server: ApiServer

    def __getitem__(self, place: tuple[Resource, Key]) -> Object:
        return self.server.objects[(*id_of(place[0]), place[1])]

    def __setitem__(self, place: tuple[Resource, Key], obj: Object) -> None:
        self.server.refuse_unserved(place[0])
        self.server.objects[(*id_of(place[0]), place[1])] = obj

    def __delitem__(self, place: tuple[Resource, Key]) -> None:
        del self.server.objects[(*id_of(place[0]), place[1])]

    def __iter__(self) -> Iterator[tuple[Resource, Key]]:
        return iter([(self.server.resources[group, plural], key) for group, plural, key in self.server.objects])

    def __len__(self) -> int:
        return len(self.server.objects)


@dataclass
class MemoryKube:
    """Implements runtime.kube.Kube for the tests of one server."""

    version: int = 100
    watch_faults: deque[Fault] = field(default_factory=deque)
    list_faults: deque[Fault] = field(default_factory=deque)
    always: Fault | None = None
    dials: list[Dial] = field(default_factory=list)
    writes: list[tuple[str, str]] = field(default_factory=list)
    refuse_writes: ApiError | None = None
    reviews: list[Object] = field(default_factory=list)
    denied: set[tuple[str, str]] = field(default_factory=set)
    # Who made each of `writes`; the kinds served beside those of the objects; what is forbidden: `list secrets`.
    managers: list[str] = field(default_factory=list)
    served: set[Resource] = field(default_factory=set)
    forbidden: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self._uids = itertools.count(1)
        self.server = _Server(
            now=lambda: datetime(2026, 1, 1, tzinfo=UTC), uid=lambda: f"uid-{next(self._uids)}", version=self.version
        )
        for resource in self.served:
            self.server.refuse_unserved(resource)

    @property
    def objects(self) -> Objects:
        """All that is stored, by kind and key."""
        return Objects(self.server)

    # What a test does to the cluster, without any controller.

    def put(self, resource: Resource, name: str, *, namespace: str = "ns", **body: Any) -> Object:
        """Create or replace an object as somebody else would; returns it as stored."""
        stored = self.server.find(resource, Key(namespace, name))
        meta: Object = stored["metadata"] if stored else {"generation": 0}
        is_new_spec = stored is None or stored.get("spec") != body.get("spec", stored.get("spec"))
        named = {"name": name, "namespace": namespace, "generation": meta.get("generation", 0) + is_new_spec}
        entries = {"managedFields": [{"manager": "somebody"}]}
        return self.store(resource, {**body, "metadata": {**meta, **named, **entries, **body.pop("metadata", {})}})

    def store(self, resource: Resource, obj: Object) -> Object:
        """Create or replace an object whole, as somebody else would; returns it as stored."""
        stored = self.server.find(resource, key_of(obj))
        obj = {"apiVersion": resource.api_version, "kind": resource.kind, **copied(obj)}
        obj["metadata"].setdefault("uid", stored["metadata"]["uid"] if stored else self.server.uid())
        self.server.refuse_unserved(resource)
        if "deletionTimestamp" in obj["metadata"] and not obj["metadata"].get("finalizers"):
            self.server.drop(resource, obj)
            obj["metadata"]["resourceVersion"] = str(self.server.version)
            return obj
        return self.server.store(resource, stored, obj)

    def remove(self, resource: Resource, name: str, *, namespace: str = "ns") -> None:
        """Delete an object as somebody else would."""
        self.server.remove(resource, Key(namespace, name))

    def compact(self) -> None:
        """Forget the history: open watches end, and those from an older version get 410."""
        self.server.compact()
        self.server.end_watches()

    def state(self, resource: Resource) -> dict[Key, str]:
        """Return the uid of every object, by key: what a converged store must hold."""
        return {key: obj["metadata"]["uid"] for key, obj in self.server.all_of(resource).items()}

    # The port.

    async def get(self, resource: Resource, key: Key, *, metadata_only: bool = False) -> Object:
        self._allow("get", resource)
        await asyncio.sleep(0)
        return await self.server.get(resource, key, metadata_only=metadata_only)

    async def create(self, resource: Resource, obj: Object, *, manager: str) -> Object:
        await self._written("create", resource, manager)
        return await self.server.create(resource, obj, manager=manager)

    async def review(self, resource: Resource, spec: Object) -> Object:  # noqa: ARG002 - the port has it
        await asyncio.sleep(0)
        self.reviews.append(spec)
        wanted = spec["resourceAttributes"]
        return {"status": {"allowed": (wanted["resource"], wanted["verb"]) not in self.denied}}

    async def apply(
        self, resource: Resource, obj: Object, *, manager: str, force: bool = False, subresource: str = ""
    ) -> Object:
        await self._written("apply", resource, manager, subresource)
        return await self.server.apply(resource, obj, manager=manager, force=force, subresource=subresource)

    async def replace(self, resource: Resource, obj: Object, *, manager: str) -> Object:
        await self._written("replace", resource, manager)
        return await self.server.replace(resource, obj, manager=manager)

    async def json_patch(
        self, resource: Resource, key: Key, operations: list[dict[str, Any]], *, manager: str, subresource: str = ""
    ) -> Object:
        await self._written("patch", resource, manager, subresource)
        return await self.server.json_patch(resource, key, operations, manager=manager, subresource=subresource)

    async def delete(
        self, resource: Resource, key: Key, *, uid: str, resource_version: str, propagation: str = "Background"
    ) -> Object | None:
        await self._written("delete", resource, "")
        return await self.server.delete(
            resource, key, uid=uid, resource_version=resource_version, propagation=propagation
        )

    async def list_page(
        self, resource: Resource, selection: Selection, *, limit: int = 500, next_page: str = ""
    ) -> Page:
        await asyncio.sleep(0)
        self.dials.append(Dial("list", asyncio.get_running_loop().time(), resource=resource.plural))
        self._allow("list", resource)
        fault = self.list_faults.popleft() if self.list_faults and not next_page else None
        if fault is Fault.TOKEN_EXPIRED:
            # This page comes, the next one is too late.
            self.list_faults.appendleft(Fault.GONE)
        elif next_page and self.list_faults and self.list_faults[0] is Fault.GONE:
            raise _ERRORS[self.list_faults.popleft()]
        elif fault in _ERRORS:
            raise _ERRORS[fault]
        page = await self.server.list_page(resource, selection, limit=limit, next_page=next_page)
        return replace(page, resource_version=str(self.server.version - 50)) if fault is Fault.OLD else page

    async def watch(
        self,
        resource: Resource,
        selection: Selection,
        *,
        resource_version: str,
        timeout: timedelta,  # noqa: ASYNC109  # the port's
    ) -> AsyncIterator[WatchEvent]:
        await asyncio.sleep(0)
        self.dials.append(Dial("watch", asyncio.get_running_loop().time(), resource_version, resource.plural))
        self._allow("watch", resource)
        fault = self.watch_faults.popleft() if self.watch_faults else self.always
        if fault in _ERRORS:
            raise _ERRORS[fault]
        if fault in _EVENTS:
            yield WatchEvent(*_EVENTS[fault])
        elif fault is Fault.SILENT:
            await asyncio.Event().wait()
        elif fault is not Fault.CLOSED:
            async for event in self.server.watch(
                resource, selection, resource_version=resource_version, timeout=timeout
            ):
                yield event

    async def raw(self, method: str, path: str, body: bytes | None = None) -> bytes:
        return await self.server.raw(method, path, body)

    def _allow(self, verb: str, resource: Resource) -> None:
        if f"{verb} {resource.plural}" in self.forbidden:
            raise Forbidden(f"{resource.plural} is forbidden", status=403, reason="Forbidden")

    async def _written(self, verb: str, resource: Resource, manager: str, subresource: str = "") -> None:
        await asyncio.sleep(0)
        self.writes.append((verb, f"{resource.plural}/{subresource}" if subresource else resource.plural))
        self.managers.append(manager)
        if self.refuse_writes:
            raise self.refuse_writes
