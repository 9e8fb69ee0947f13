"""An API server in memory: implements `runtime.kube.Kube` with server-side apply, schemas, finalizers and watches.

Simulated: field managers with list maps and sets, conflicts, defaulting and pruning by the CRDs' schemas, generations,
the status subresource, finalizers, preconditions, owner references with both ways of the garbage collector, namespaces
that end, paged lists, watches with bookmarks and 410, selectors by label and field, metadata-only reads. Not simulated:
validation and CEL, admission, RBAC, conversion, CRDs that change.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final

from runtime.errors import (
    AlreadyExists,
    ApplyConflict,
    Forbidden,
    Gone,
    Invalid,
    NotFound,
    WriteConflict,
)
from runtime.kube import Page, Selection, WatchEvent
from runtime.objects import CRDS, NAMESPACES, Key, Object, Resource, dumps, key_of
from tests.simulation import fields, json_patches, schemas
from tests.simulation.schemas import Schema
from tests.simulation.selections import selected
from tests.simulation.watching import Change, Pages, Watched, bookmark, event, only_metadata

Place = tuple[str, str, Key]
_FOREGROUND: Final = "foregroundDeletion"
_ROOTS: Final = frozenset({"apiVersion", "kind", "metadata", "status"})


@dataclass
class ApiServer:
    """One cluster; `now` is its wall clock, `uid` makes names that no other object has."""

    now: Callable[[], datetime]
    uid: Callable[[], str]
    version: int = 100
    compacted: int = 0
    objects: dict[Place, Object] = field(default_factory=dict)
    resources: dict[tuple[str, str], Resource] = field(default_factory=dict)
    listeners: list[Callable[[Resource, Change], None]] = field(default_factory=list)
    _histories: dict[tuple[str, str], Watched] = field(default_factory=dict)
    _schemas: dict[tuple[str, str], tuple[Schema, bool]] = field(default_factory=dict)
    _pages: Pages = field(default_factory=Pages)

    # The port.

    async def get(self, resource: Resource, key: Key, *, metadata_only: bool = False) -> Object:
        obj = self._existing(resource, key)
        return only_metadata(obj) if metadata_only else schemas.copied(obj)

    async def create(self, resource: Resource, obj: Object, *, manager: str) -> Object:
        key, sent = key_of(obj), schemas.copied(obj)
        if self.find(resource, key):
            raise AlreadyExists(f"{resource.plural} {key} exists", status=409, reason="AlreadyExists")
        self._refuse_ended_namespace(resource, key)
        if resource == CRDS or resource.group_kind not in {of.group_kind for of in self.resources.values()}:
            self.resources.setdefault(_id(resource), resource)
        schema, has_status = self.schema(resource)
        made = schemas.completed(schema, sent)
        if has_status:
            made.pop("status", None)
        made["metadata"] |= {"uid": self.uid(), "generation": 1, "creationTimestamp": _text(self.now())}
        managers = fields.Managers({}, self._writer(resource, manager, "Update", ""))
        managers.give(frozenset(fields.owned_by(schema, made)))
        made["metadata"]["managedFields"] = managers.entries()
        return self._store(resource, None, made)

    async def review(self, resource: Resource, spec: Object) -> Object:
        del resource, spec
        return {"status": {"allowed": True}}

    async def apply(
        self, resource: Resource, obj: Object, *, manager: str, force: bool = False, subresource: str = ""
    ) -> Object:
        live = self._existing(resource, key_of(obj))
        self._refuse_other(live, obj.get("metadata") or {})
        schema, _ = self.schema(resource)
        sent = schemas.copied(obj)
        sent["metadata"].pop("managedFields", None)
        applied = fields.owned_by(schema, self._within(resource, sent, subresource))
        managers = fields.Managers(live, self._writer(resource, manager, "Apply", subresource))
        present = fields.owned_by(schema, live)
        met = fields.conflicts(managers, present, applied)
        if met and not force:
            raise ApplyConflict(f"{met[0][0]['manager']}: {'/'.join(met[0][1])}", status=409, reason="Conflict")
        managers.take(path for _, path in met)
        gone = fields.dropped(managers, applied)
        bare = dict(self._within(resource, sent, subresource))
        bare["metadata"] = {
            name: part for name, part in (bare.get("metadata") or {}).items() if name not in {"uid", "resourceVersion"}
        }
        result = fields.merged(schema, live, bare)
        result = fields.without(schema, result, gone) if gone else result
        managers.give(frozenset(applied))
        return self._written(resource, live, result, managers.entries())

    async def replace(self, resource: Resource, obj: Object, *, manager: str) -> Object:
        live = self._existing(resource, key_of(obj))
        sent = schemas.copied(obj)
        self._refuse_other(live, sent["metadata"], required=True)
        return self._updated(resource, live, sent, manager, "")

    async def json_patch(
        self, resource: Resource, key: Key, operations: list[dict[str, Any]], *, manager: str, subresource: str = ""
    ) -> Object:
        live = self._existing(resource, key)
        patched = schemas.copied(live)
        for operation in operations:
            json_patches.carry_out(patched, operation)
        return self._updated(resource, live, patched, manager, subresource)

    async def delete(
        self, resource: Resource, key: Key, *, uid: str, resource_version: str, propagation: str = "Background"
    ) -> Object | None:
        live = self._existing(resource, key)
        self._refuse_other(live, {"uid": uid, "resourceVersion": resource_version})
        return self.end(resource, live, propagation)

    async def list_page(
        self, resource: Resource, selection: Selection, *, limit: int = 500, next_page: str = ""
    ) -> Page:
        self._refuse_unserved(resource)
        if next_page:
            return self._pages.next(next_page, limit)
        return self._pages.first(self.all_of(resource), selection, self.version, limit)

    async def watch(
        self,
        resource: Resource,
        selection: Selection,
        *,
        resource_version: str,
        timeout: timedelta,  # noqa: ASYNC109 - the port's
    ) -> AsyncIterator[WatchEvent]:
        self._refuse_unserved(resource)
        after = int(resource_version)
        if after < self.compacted:
            raise Gone("too old resource version", status=410, reason="Expired")
        chosen = selected(selection)
        async for change in self._history(resource).since(after, timeout):
            if change is None:
                yield bookmark(self.version)
            elif (shown := event(change, chosen, metadata_only=selection.metadata_only)) is not None:
                yield shown

    async def raw(self, method: str, path: str, body: bytes | None = None) -> bytes:
        """Answer discovery: the groups, and the kinds of one version."""
        del method, body
        kinds = list(self.resources.values())
        if path == "/apis":
            versions = sorted({(kind.group, kind.api_version) for kind in kinds if kind.group})
            groups = [{"name": name, "preferredVersion": {"groupVersion": version}} for name, version in versions]
            return dumps({"groups": groups})
        api_version = path.removeprefix("/apis/").removeprefix("/api/")
        there = [kind for kind in kinds if kind.api_version == api_version]
        if not there:
            raise NotFound(f"{path} not found", status=404, reason="NotFound")
        return dumps(
            {
                "resources": [
                    {"name": of.plural, "kind": of.kind, "namespaced": of.namespaced, "singularName": of.kind.lower()}
                    for of in there
                ]
            }
        )

    # What others see and do.

    def all_of(self, resource: Resource) -> dict[Key, Object]:
        """Return all objects of a kind by their keys."""
        return {place[2]: obj for place, obj in self.objects.items() if place[:2] == _id(resource)}

    def find(self, resource: Resource, key: Key) -> Object | None:
        """Return an object, None where there is none."""
        return self.objects.get((*_id(resource), key))

    def end(self, resource: Resource, live: Object, propagation: str = "Background") -> Object | None:
        """Delete an object as its finalizers and its propagation allow."""
        meta = dict(live["metadata"])
        if propagation == "Foreground" and _FOREGROUND not in meta.get("finalizers", ()):
            meta["finalizers"] = [*meta.get("finalizers", ()), _FOREGROUND]
        if not meta.get("finalizers") and resource != NAMESPACES:
            self._remove(resource, live)
            return None
        if "deletionTimestamp" in meta:
            return schemas.copied(live)
        meta |= {"deletionTimestamp": _text(self.now()), "deletionGracePeriodSeconds": 0}
        meta["generation"] = meta.get("generation", 0) + 1
        ending = {**live, "metadata": meta}
        if resource == NAMESPACES:
            ending["status"] = {"phase": "Terminating"}
        return self._store(resource, live, schemas.copied(ending))

    def put(self, resource: Resource, obj: Object) -> Object:
        """Write an object as the server's own controllers do: as it is."""
        live = self.find(resource, key_of(obj))
        if live is None:
            obj["metadata"].setdefault("uid", self.uid())
            obj["metadata"].setdefault("creationTimestamp", _text(self.now()))
            obj["metadata"].setdefault("generation", 1)
            self.resources.setdefault(_id(resource), resource)
            return self._store(resource, None, schemas.completed(self.schema(resource)[0], obj))
        return self._written(resource, live, obj, obj["metadata"].get("managedFields", []))

    def remove(self, resource: Resource, key: Key) -> None:
        """Have an object no more."""
        self._remove(resource, self._existing(resource, key))

    def compact(self) -> None:
        """Forget the history: watches and pages from before get 410."""
        self.compacted = self.version
        self._pages.kept.clear()

    def schema(self, resource: Resource) -> tuple[Schema, bool]:
        """Return a kind's schema, and whether it has a status of its own."""
        known = self._schemas.get(_id(resource))
        if known is None:
            known = self._schemas[_id(resource)] = self._read_schema(resource)
        return known

    # Its parts.

    def _read_schema(self, resource: Resource) -> tuple[Schema, bool]:
        crd = self.find(CRDS, Key("", f"{resource.plural}.{resource.group}"))
        if crd is None:
            return schemas.BUILT_IN, False
        version = next(item for item in crd["spec"]["versions"] if item["name"] == resource.version)
        return schemas.of_crd(version["schema"]["openAPIV3Schema"]), "status" in (version.get("subresources") or {})

    def _existing(self, resource: Resource, key: Key) -> Object:
        obj = self.find(resource, key)
        if obj is None:
            raise NotFound(f"{resource.plural} {key} not found", status=404, reason="NotFound")
        return obj

    def _refuse_unserved(self, resource: Resource) -> None:
        if _id(resource) not in self.resources:
            raise NotFound(f"{resource.plural} is not served", status=404, reason="NotFound")

    def _refuse_ended_namespace(self, resource: Resource, key: Key) -> None:
        if not resource.namespaced:
            return
        namespace = self.find(NAMESPACES, Key("", key.namespace))
        if namespace is None:
            raise NotFound(f"namespaces {key.namespace} not found", status=404, reason="NotFound")
        if "deletionTimestamp" in namespace["metadata"]:
            raise Forbidden(f"namespace {key.namespace} is being terminated", status=403, reason="Forbidden")

    def _refuse_other(self, live: Object, sent: Object, *, required: bool = False) -> None:
        for name in ("uid", "resourceVersion"):
            if required and name == "resourceVersion" and not sent.get(name):
                raise Invalid("metadata.resourceVersion: must be specified for an update", status=422)
            if sent.get(name, live["metadata"][name]) != live["metadata"][name]:
                raise WriteConflict(f"the object has another {name}", status=409, reason="Conflict")

    def _writer(self, resource: Resource, manager: str, operation: str, subresource: str) -> Object:
        entry = {
            "manager": manager,
            "operation": operation,
            "apiVersion": resource.api_version,
            "time": _text(self.now()),
            "fieldsType": "FieldsV1",
        }
        return {**entry, "subresource": subresource} if subresource else entry

    def _within(self, resource: Resource, obj: Object, subresource: str) -> Object:
        """Return what a write may change: the status alone, or all but it."""
        schema, has_status = self.schema(resource)
        known = schemas.completed({**schema, "properties": schemas.undefaulted(schema)}, obj)
        if subresource == "status":
            return {name: known[name] for name in ("apiVersion", "kind", "status") if name in known}
        return {name: part for name, part in known.items() if name != "status" or not has_status}

    def _updated(self, resource: Resource, live: Object, sent: Object, manager: str, subresource: str) -> Object:
        schema, has_status = self.schema(resource)
        if subresource == "status":
            meta = {**live["metadata"], "managedFields": sent["metadata"].get("managedFields", [])}
            sent = {**live, "status": sent.get("status"), "metadata": meta}
        elif has_status:
            sent = {**{name: part for name, part in sent.items() if name != "status"}}
            sent |= {"status": live["status"]} if "status" in live else {}
        sent = schemas.completed(schema, sent)
        before, after = fields.owned_by(schema, live), fields.owned_by(schema, sent)
        source = sent if "managedFields" in sent["metadata"] else live
        managers = fields.Managers(source, self._writer(resource, manager, "Update", subresource))
        written = fields.changed(before, after)
        managers.take({*written, *(before.keys() - after.keys())})
        managers.give((managers.of_writer() | written) & frozenset(after))
        return self._written(resource, live, sent, managers.entries())

    def _written(self, resource: Resource, live: Object, result: Object, managers: list[Object]) -> Object:
        schema, _ = self.schema(resource)
        completed: Object = schemas.copied(schemas.completed(schema, result))
        own = {
            name: live["metadata"][name]
            for name in ("uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "generation")
            if name in live["metadata"]
        }
        meta = completed["metadata"] = {**completed["metadata"], **own, "managedFields": managers}
        meta["resourceVersion"] = live["metadata"]["resourceVersion"]
        intent = {name: part for name, part in completed.items() if name not in _ROOTS}
        if intent != {name: part for name, part in live.items() if name not in _ROOTS}:
            meta["generation"] = meta.get("generation", 0) + 1
        if completed == live:
            return schemas.copied(live)
        if "deletionTimestamp" in meta and not meta.get("finalizers") and resource != NAMESPACES:
            self._remove(resource, completed)
            return completed
        return self._store(resource, live, completed)

    def _store(self, resource: Resource, before: Object | None, obj: Object) -> Object:
        self.version += 1
        obj["metadata"]["resourceVersion"] = str(self.version)
        self.objects[(*_id(resource), key_of(obj))] = obj
        if resource == CRDS:
            self._serve(obj)
        self._emit(resource, Change(self.version, before, obj))
        return schemas.copied(obj)

    def _remove(self, resource: Resource, obj: Object) -> None:
        self.objects.pop((*_id(resource), key_of(obj)), None)
        self.version += 1
        gone = schemas.copied(obj)
        gone["metadata"]["resourceVersion"] = str(self.version)
        self._emit(resource, Change(self.version, gone, None))

    def _history(self, resource: Resource) -> Watched:
        return self._histories.setdefault(_id(resource), Watched())

    def _serve(self, crd: Object) -> None:
        spec, names = crd["spec"], crd["spec"]["names"]
        stored = next(version["name"] for version in spec["versions"] if version["storage"])
        served = Resource(spec["group"], stored, names["kind"], names["plural"], spec["scope"] == "Namespaced")
        self.resources[_id(served)] = served
        self._schemas.pop(_id(served), None)

    def _emit(self, resource: Resource, change: Change) -> None:
        self._history(resource).add(change)
        for listen in self.listeners:
            listen(resource, change)


def _id(resource: Resource) -> tuple[str, str]:
    return resource.group, resource.plural


def _text(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")
