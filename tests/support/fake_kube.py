"""A small API server in memory: versions, uids, preconditions, paged lists, watches with a history; faults on order.

It keeps the contract of the real one (tests/runtime/contract.py). An apply takes back the annotations and finalizers
that the same manager applied before; of other fields it knows no managers. Lists know namespaces, no labels.
"""

import asyncio
import itertools
from collections import deque
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from datetime import timedelta
from enum import Enum, auto
from typing import Any

import msgspec

from runtime.errors import (
    AlreadyExists,
    ApiError,
    Forbidden,
    Gone,
    NoAnswer,
    NotFound,
    TooManyRequests,
    Unavailable,
    WriteConflict,
)
from runtime.kube import Page, Selection, WatchEvent
from runtime.objects import Key, Object, Resource, copied, dumps, key_of

WIDGETS = Resource("example.dev", "v1", "Widget", "widgets")


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


@dataclass(slots=True)
class Dial:
    """One request of a reflector, as seen by the server."""

    verb: str
    at: float
    version: str = ""
    resource: str = ""


@dataclass
class FakeKube:
    """Implements runtime.kube.Kube for one resource or several, in one version space."""

    clock: Callable[[], float] = lambda: 0.0
    version: int = 100
    objects: dict[tuple[Resource, Key], Object] = field(default_factory=dict)
    history: list[tuple[int, Resource, str, Object]] = field(default_factory=list)
    watch_faults: deque[Fault] = field(default_factory=deque)
    list_faults: deque[Fault] = field(default_factory=deque)
    always: Fault | None = None
    dials: list[Dial] = field(default_factory=list)
    writes: list[tuple[str, str]] = field(default_factory=list)
    refuse_writes: ApiError | None = None
    reviews: list[Object] = field(default_factory=list)
    denied: set[tuple[str, str]] = field(default_factory=set)
    compacted: int = 0
    # Who made each of `writes`; the kinds served beside those of the objects; what is forbidden: `list secrets`.
    managers: list[str] = field(default_factory=list)
    served: set[Resource] = field(default_factory=set)
    forbidden: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self._uids = itertools.count(1)
        self._changed = asyncio.Event()
        self._old_pages: dict[str, tuple[list[bytes], str]] = {}
        self._applied: dict[tuple[Resource, Key, str], Object] = {}

    # What a test does to the cluster, without any controller.

    def put(self, resource: Resource, name: str, *, namespace: str = "ns", **body: Any) -> Object:
        """Create or replace an object as somebody else would; returns it as stored."""
        key = Key(namespace, name)
        stored = self.objects.get((resource, key))
        meta: Object = stored["metadata"] if stored else {"uid": f"uid-{next(self._uids)}", "generation": 0}
        spec_changed = stored is None or stored.get("spec") != body.get("spec", stored.get("spec"))
        obj = {
            "apiVersion": resource.api_version,
            "kind": resource.kind,
            "metadata": {
                **meta,
                "name": name,
                "namespace": namespace,
                "generation": meta.get("generation", 0) + spec_changed,
                "managedFields": [{"manager": "somebody"}],
                **body.pop("metadata", {}),
            },
            **body,
        }
        return self._store(resource, obj, "MODIFIED" if stored else "ADDED")

    def store(self, resource: Resource, obj: Object) -> Object:
        """Create or replace an object whole, as somebody else would; returns it as stored."""
        stored = self.objects.get((resource, key_of(obj)))
        obj = copied(obj)
        obj["metadata"].setdefault("uid", stored["metadata"]["uid"] if stored else f"uid-{next(self._uids)}")
        return self._store(resource, obj, "MODIFIED" if stored else "ADDED")

    def remove(self, resource: Resource, name: str, *, namespace: str = "ns") -> None:
        """Delete an object as somebody else would."""
        self._remove(resource, self.objects[resource, Key(namespace, name)])

    def bookmark(self, resource: Resource) -> None:
        """Let every watch know of the present version."""
        obj = {"metadata": {"resourceVersion": str(self.version)}}
        self.history.append((self.version, resource, "BOOKMARK", obj))
        self._notify()

    def compact(self) -> None:
        """Forget the history: watches from an older version get 410."""
        self.compacted = self.version
        self.history.clear()

    def state(self, resource: Resource) -> dict[Key, str]:
        """Return the uid of every object, by key: what a converged store must hold."""
        return {key: obj["metadata"]["uid"] for (of, key), obj in self.objects.items() if of == resource}

    # The port.

    async def get(self, resource: Resource, key: Key, *, metadata_only: bool = False) -> Object:  # noqa: ARG002 - the port has it
        self._allow("get", resource)
        await asyncio.sleep(0)
        return copied(self._existing(resource, key))

    async def create(self, resource: Resource, obj: Object, *, manager: str) -> Object:
        await self._written("create", resource, manager)
        key = key_of(obj)
        if (resource, key) in self.objects:
            raise AlreadyExists(f"{resource.plural} {key} exists", status=409, reason="AlreadyExists")
        fresh = {**obj["metadata"], "uid": f"uid-{next(self._uids)}", "generation": 1}
        return self._store(resource, {**copied(obj), "metadata": fresh}, "ADDED")

    async def review(self, resource: Resource, spec: Object) -> Object:  # noqa: ARG002 - the port has it
        await asyncio.sleep(0)
        self.reviews.append(spec)
        wanted = spec["resourceAttributes"]
        return {"status": {"allowed": (wanted["resource"], wanted["verb"]) not in self.denied}}

    async def apply(
        self, resource: Resource, obj: Object, *, manager: str, force: bool = False, subresource: str = ""
    ) -> Object:
        await self._written("apply", resource, manager, subresource)
        assert force, "a controller applies with force"
        key, sent = key_of(obj), obj["metadata"]
        stored = copied(self._existing(resource, key))
        meta = stored["metadata"]
        for name in ("uid", "resourceVersion"):
            if sent.get(name, meta[name]) != meta[name]:
                raise WriteConflict(name, status=409, reason="Conflict")
        if subresource:
            stored[subresource] = copied(obj[subresource])
            return self._store(resource, stored, "MODIFIED")
        before = self._applied.get((resource, key, manager), {})
        self._applied[resource, key, manager] = copied(sent)
        gone = before.get("annotations", {}).keys() - sent.get("annotations", {}).keys()
        kept = {name: value for name, value in meta.get("annotations", {}).items() if name not in gone}
        meta["annotations"] = {**kept, **sent.get("annotations", {})}
        former, wanted = before.get("finalizers", []), sent.get("finalizers", [])
        others = [name for name in meta.get("finalizers", []) if name not in (*former, *wanted)]
        meta["finalizers"] = [*others, *wanted]
        return self._store(resource, stored, "MODIFIED")

    async def replace(self, resource: Resource, obj: Object, *, manager: str) -> Object:
        await self._written("replace", resource, manager)
        stored = self._existing(resource, key_of(obj))
        if obj["metadata"]["resourceVersion"] != stored["metadata"]["resourceVersion"]:
            raise WriteConflict("the object has been modified", status=409, reason="Conflict")
        return self._store(resource, copied(obj), "MODIFIED")

    async def json_patch(
        self, resource: Resource, key: Key, operations: list[dict[str, Any]], *, manager: str, subresource: str = ""
    ) -> Object:
        await self._written("patch", resource, manager, subresource)
        stored = copied(self._existing(resource, key))
        for operation in operations:
            _patch(stored, operation)
        return self._store(resource, stored, "MODIFIED")

    async def delete(
        self, resource: Resource, key: Key, *, uid: str, resource_version: str, propagation: str = "Background"
    ) -> Object | None:
        del propagation
        await self._written("delete", resource, "")
        stored = self._existing(resource, key)
        if (stored["metadata"]["uid"], stored["metadata"]["resourceVersion"]) != (uid, resource_version):
            raise WriteConflict("precondition", status=409, reason="Conflict")
        if stored["metadata"].get("finalizers"):
            meta = {"deletionTimestamp": "2026-01-01T00:00:00Z", **stored["metadata"]}
            return self._store(resource, {**copied(stored), "metadata": copied(meta)}, "MODIFIED")
        self._remove(resource, stored)
        return None

    async def list_page(
        self, resource: Resource, selection: Selection, *, limit: int = 500, next_page: str = ""
    ) -> Page:
        await asyncio.sleep(0)
        self.dials.append(Dial("list", self.clock(), resource=resource.plural))
        self._allow("list", resource)
        fault = self.list_faults.popleft() if self.list_faults and not next_page else None
        if fault is Fault.TOKEN_EXPIRED:
            # This page comes, the next one is too late.
            self.list_faults.appendleft(Fault.GONE)
        elif next_page and self.list_faults and self.list_faults[0] is Fault.GONE:
            self.list_faults.popleft()
            raise Gone("the continue token is too old", status=410, reason="Expired")
        elif fault and fault is not Fault.OLD:
            _raise(fault)
        if next_page:
            start, at = next_page.split("@")
            items, version = self._old_pages[at]
        else:
            items = [
                dumps(obj)
                for (of, key), obj in sorted(self.objects.items(), key=_by_key)
                if of == resource and selection.namespace in ("", key.namespace)
            ]
            version = str(self.version - 50) if fault is Fault.OLD else str(self.version)
            start, at = "0", f"{version}/{resource.plural}/{selection.namespace}"
            self._old_pages[at] = (items, version)
        first, last = int(start), (int(start) + limit if limit else len(items))
        token = f"{last}@{at}" if last < len(items) else ""
        return Page(tuple(items[first:last]), version, token)

    async def watch(
        self,
        resource: Resource,
        selection: Selection,
        *,
        resource_version: str,
        timeout: timedelta,  # noqa: ASYNC109  # the port's
    ) -> AsyncIterator[WatchEvent]:
        del selection, timeout
        await asyncio.sleep(0)
        self.dials.append(Dial("watch", self.clock(), resource_version, resource.plural))
        self._allow("watch", resource)
        fault = self.watch_faults.popleft() if self.watch_faults else self.always
        if fault in (Fault.GONE, Fault.NO_ANSWER, Fault.UNAVAILABLE, Fault.BUSY):
            _raise(fault)
        if int(resource_version) < self.compacted:
            raise Gone("too old resource version", status=410, reason="Expired")
        match fault:
            case Fault.CLOSED:
                return
            case Fault.SILENT:
                await asyncio.Event().wait()
            case Fault.GONE_EVENT:
                yield WatchEvent("ERROR", dumps({"kind": "Status", "code": 410, "reason": "Expired", "message": "old"}))
                return
            case Fault.ODD_EVENT:
                yield WatchEvent("ERROR", dumps({"kind": "Status", "code": 500, "message": "unable to decode"}))
                return
            case Fault.GARBAGE:
                yield WatchEvent("ADDED", b"<html>")
                return
            case Fault.CUT_LINE:
                raise ApiError("unreadable watch event", status=200, reason="Unreadable")
            case _:
                pass
        async for event in self._events(resource, int(resource_version)):
            yield event

    async def raw(self, method: str, path: str, body: bytes | None = None) -> bytes:
        """Answer discovery: the groups, and the kinds of one version."""
        del method, body
        kinds = self.served | {resource for resource, _ in self.objects}
        if path == "/apis":
            groups = sorted({(kind.group, kind.api_version) for kind in kinds if kind.group})
            return dumps(
                {"groups": [{"name": name, "preferredVersion": {"groupVersion": version}} for name, version in groups]}
            )
        api_version = path.removeprefix("/apis/").removeprefix("/api/")
        there = [kind for kind in kinds if kind.api_version == api_version]
        if not there:
            raise NotFound(f"{path} not found", status=404, reason="NotFound")
        listed = [
            {"name": kind.plural, "kind": kind.kind, "namespaced": kind.namespaced, "singularName": kind.kind.lower()}
            for kind in there
        ]
        return dumps({"resources": listed})

    async def _events(self, resource: Resource, after: int) -> AsyncIterator[WatchEvent]:
        compacted = self.compacted
        position = next((index for index, entry in enumerate(self.history) if entry[0] > after), len(self.history))
        while True:
            if self.compacted != compacted:
                return  # compacted under an open watch: this server ends it
            while position < len(self.history):
                _, of, kind, obj = self.history[position]
                position += 1
                if of == resource:
                    yield WatchEvent(kind, dumps(obj))
            await self._changed.wait()

    def _existing(self, resource: Resource, key: Key) -> Object:
        obj = self.objects.get((resource, key))
        if obj is None:
            raise NotFound(f"{resource.plural} {key} not found", status=404, reason="NotFound")
        return obj

    def _allow(self, verb: str, resource: Resource) -> None:
        if f"{verb} {resource.plural}" in self.forbidden:
            raise Forbidden(f"{resource.plural} is forbidden", status=403, reason="Forbidden")

    def _remove(self, resource: Resource, obj: Object) -> Object:
        gone = copied(obj)
        self.objects.pop((resource, key_of(obj)), None)
        self.version += 1
        gone["metadata"]["resourceVersion"] = str(self.version)
        self.history.append((self.version, resource, "DELETED", gone))
        self._notify()
        return copied(gone)

    def _store(self, resource: Resource, obj: Object, kind: str) -> Object:
        if "deletionTimestamp" in obj["metadata"] and not obj["metadata"].get("finalizers"):
            return self._remove(resource, obj)
        self.version += 1
        obj["metadata"]["resourceVersion"] = str(self.version)
        self.objects[resource, key_of(obj)] = obj
        self.history.append((self.version, resource, kind, copied(obj)))
        self._notify()
        return copied(obj)

    async def _written(self, verb: str, resource: Resource, manager: str, subresource: str = "") -> None:
        await asyncio.sleep(0)
        self.writes.append((verb, f"{resource.plural}/{subresource}" if subresource else resource.plural))
        self.managers.append(manager)
        if self.refuse_writes:
            raise self.refuse_writes

    def _notify(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()


def _patch(obj: Object, operation: Object) -> None:
    """Carry out one operation of a JSON patch (RFC 6902): test, add, replace or remove."""
    *parents, last = [part.replace("~1", "/").replace("~0", "~") for part in operation["path"].split("/")[1:]]
    place: Any = obj
    for part in parents:
        place = place[int(part)] if isinstance(place, list) else place[part]
    index: Any = int(last) if isinstance(place, list) and last != "-" else last
    match operation["op"]:
        case "test":
            present = place[index] if isinstance(place, list) else place.get(index)
            if present != operation["value"]:
                raise WriteConflict(operation["path"], status=409, reason="Conflict")
        case "remove":
            del place[index]
        case "add" if isinstance(place, list):
            place.insert(len(place) if last == "-" else index, msgspec.to_builtins(operation["value"]))
        case _:
            place[index] = msgspec.to_builtins(operation["value"])


def _raise(fault: Fault) -> None:
    match fault:
        case Fault.GONE:
            raise Gone("too old resource version", status=410, reason="Expired")
        case Fault.NO_ANSWER:
            raise NoAnswer("connection reset")
        case Fault.BUSY:
            raise TooManyRequests("too many", status=429, retry_after=timedelta(seconds=100))
        case _:
            raise Unavailable("try later", status=503)


def _by_key(entry: tuple[tuple[Resource, Key], Object]) -> Key:
    return entry[0][1]
