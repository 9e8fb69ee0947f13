"""An API server in memory: implements `runtime.kube.Kube` as strictly as the real one.

Simulated: server-side apply with field managers, list maps and sets, conflicts and force; defaulting, pruning and
validation by the CRDs' schemas; generations, the status subresource, finalizers, preconditions; owner references with
all three propagations (devcloud.apiserver.housekeeping); namespaces that end, CRDs that come, change and go; paged
lists, watches with bookmarks and 410, selectors by label and field, metadata-only reads. Tests send the same random
requests to it and to kube-apiserver. Not simulated: CEL, admission but for namespaces, RBAC, conversion, strategic
merge patches, fields of Events.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from devcloud.apiserver import json_patches, schemas
from devcloud.apiserver.objects import deletions, kinds, refusals
from devcloud.apiserver.objects.changes import id_of
from devcloud.apiserver.objects.deletions import Deletion
from devcloud.apiserver.objects.refusals import RefusedError
from devcloud.apiserver.objects.registry import Registry
from devcloud.apiserver.selections import selected
from devcloud.apiserver.watching import Change, Chosen, Pages, Watched, bookmark, event, only_metadata
from runtime.errors import Invalid, WriteConflict
from runtime.kube import Page, Selection, WatchEvent
from runtime.kube_errors import from_answer
from runtime.objects import CRDS, Key, Object, Resource, deleting, dumps, key_of


@contextmanager
def as_client() -> Iterator[None]:
    """Raise what the client of the runtime makes of a refusal."""
    try:
        yield
    except RefusedError as error:
        raise from_answer(error.code, dumps(error.status)) from None


@dataclass
class ApiServer(Registry):
    """One cluster as its clients see it."""

    compacted: int = 0
    _histories: dict[tuple[str, str], Watched] = field(default_factory=dict)
    _pages: Pages = field(default_factory=Pages)

    # The port.

    async def get(self, resource: Resource, key: Key, *, metadata_only: bool = False) -> Object:
        """Return an object."""
        with as_client():
            obj = self.existing(resource, key)
        return only_metadata(obj) if metadata_only else schemas.copied(obj)

    async def create(self, resource: Resource, obj: Object, *, manager: str) -> Object:
        """Create an object."""
        with as_client():
            return self.created(resource, obj, manager, namespace=key_of(obj).namespace, is_strict=True)

    async def review(self, resource: Resource, spec: Object) -> Object:
        """Say that everything is allowed."""
        del resource, spec
        return {"status": {"allowed": True}}

    async def apply(
        self, resource: Resource, obj: Object, *, manager: str, force: bool = False, subresource: str = ""
    ) -> Object:
        """Apply an object as a field manager."""
        with as_client():
            answer, _ = self.applied(resource, key_of(obj), obj, manager, force=force, subresource=subresource)
        return answer

    async def replace(self, resource: Resource, obj: Object, *, manager: str) -> Object:
        """Replace an object."""
        with as_client():
            return self.updated(resource, key_of(obj), obj, manager, is_strict=True)

    async def json_patch(
        self, resource: Resource, key: Key, operations: list[dict[str, Any]], *, manager: str, subresource: str = ""
    ) -> Object:
        """Patch an object."""
        try:
            with as_client():
                change = json_patches.carried_out(operations)
                return self.patched(resource, key, change, manager, subresource, is_strict=True)
        except Invalid as error:
            if error.causes or not any(operation["op"] == "test" for operation in operations):
                raise
            raise WriteConflict(error.message, status=error.status, reason=error.reason) from None

    async def delete(
        self, resource: Resource, key: Key, *, uid: str, resource_version: str, propagation: str = "Background"
    ) -> Object | None:
        """Delete an object."""
        with as_client():
            answer = deletions.deleted(self, resource, key, Deletion(uid, resource_version, propagation))
        return answer if answer.get("kind") == resource.kind and deleting(answer) else None

    async def list_page(
        self, resource: Resource, selection: Selection, *, limit: int = 500, next_page: str = ""
    ) -> Page:
        """Return a page of a list."""
        with as_client():
            return self.page(resource, selection, limit, next_page)

    async def watch(
        self,
        resource: Resource,
        selection: Selection,
        *,
        resource_version: str,
        timeout: timedelta,  # noqa: ASYNC109 - the port's
    ) -> AsyncIterator[WatchEvent]:
        """Yield what happens to objects."""
        with as_client():
            self.refuse_unserved(resource)
            after, chosen = int(resource_version), selected(selection, resource)
            if after < self.compacted:
                raise refusals.expired(f"too old resource version: {after} ({self.compacted})")
        async for change in self.history(resource).since(after, timeout):
            if change is None:
                # A watch from a version that is not yet, as after a restore, hears nothing.
                if self.version >= after:
                    yield bookmark(resource, self.version)
            elif (shown := event(change, chosen, metadata_only=selection.metadata_only)) is not None:
                yield shown

    async def raw(self, method: str, path: str, body: bytes | None = None) -> bytes:
        """Answer discovery: the groups, and the kinds of one version."""
        del method, body
        served = list(self.resources.values())
        if path == "/apis":
            versions = sorted({(kind.group, kind.api_version) for kind in served if kind.group})
            groups = [{"name": name, "preferredVersion": {"groupVersion": version}} for name, version in versions]
            return dumps({"groups": groups})
        api_version = path.removeprefix("/apis/").removeprefix("/api/")
        there = [kind for kind in served if kind.api_version == api_version]
        with as_client():
            if not there:
                raise refusals.not_served()
        names = [
            {"name": of.plural, "kind": of.kind, "namespaced": of.namespaced, "singularName": of.kind.lower()}
            | {"shortNames": self._short_names(of)}
            for of in there
        ]
        return dumps({"resources": names})

    def _short_names(self, kind: Resource) -> list[str]:
        crd = self.find(CRDS, Key("", f"{kind.plural}.{kind.group}"))
        return list(((crd or {}).get("spec") or {}).get("names", {}).get("shortNames") or ())

    # What others see and do.

    def page(self, resource: Resource, selection: Selection, limit: int, next_page: str) -> Page:
        """Return one page of a list; raises RefusedError."""
        self.refuse_unserved(resource)
        if next_page:
            return self._pages.next(next_page, limit)
        chosen = Chosen(selected(selection, resource), selection.metadata_only)
        return self._pages.first(self.all_of(resource), chosen, self.version, limit)

    def end(self, resource: Resource, live: Object, propagation: str = "Background") -> Object | None:
        """Delete an object as its finalizers and its propagation allow."""
        return deletions.ended(self, resource, live, propagation)

    def put(self, resource: Resource, obj: Object) -> Object:
        """Write an object as the server's own controllers do: as it is, looked at by nobody."""
        live = self.find(resource, key_of(obj))
        sent = schemas.copied(obj)
        if live is None:
            sent["metadata"] = {"uid": self.uid(), "creationTimestamp": self.moment(), "generation": 1} | sent[
                "metadata"
            ]
            self.resources.setdefault(id_of(resource), resource)
            whole = {"apiVersion": resource.api_version, "kind": resource.kind, **sent}
            return self.store(resource, None, self.kind(resource).stored(self.kind(resource).complete(whole)))
        sent["metadata"] = {**sent["metadata"], "resourceVersion": live["metadata"]["resourceVersion"]}
        return self._store_change(self.kind(resource), live, sent, sent["metadata"].get("managedFields", []), "")

    def remove(self, resource: Resource, key: Key) -> None:
        """Have an object no more."""
        self.drop(resource, self.existing(resource, key))

    def compact(self) -> None:
        """Forget the history: watches and pages from before get 410."""
        self.compacted = self.version
        self._pages.kept.clear()

    def end_watches(self) -> None:
        """End all open watches, as the end of the process that serves them does."""
        for watched in self._histories.values():
            watched.end()
        self._histories.clear()

    def history(self, resource: Resource) -> Watched:
        """Return what happened to objects of a kind."""
        return self._histories.setdefault(id_of(resource), Watched())

    def on_change(self, resource: Resource, change: Change) -> None:
        """Keep what was written for watches."""
        if resource == CRDS:
            self._serve(change)
        self.history(resource).add(change)
        super().on_change(resource, change)

    def _serve(self, change: Change) -> None:
        crd = change.after if change.after is not None else change.before
        if crd is None:
            return
        spec, names = crd["spec"], crd["spec"]["names"]
        stored = next(version["name"] for version in spec["versions"] if version["storage"])
        served = Resource(spec["group"], stored, names["kind"], names["plural"], spec["scope"] == "Namespaced")
        self._kinds.pop(id_of(served), None)
        if change.after is None:
            self.resources.pop(id_of(served), None)
            self._histories.pop(id_of(served), Watched()).end()
        else:
            self.resources[id_of(served)] = served
            kind = self._kinds[id_of(served)] = kinds.of_crd(crd, served)
            if change.before is not None and kind is not kinds.of_crd(change.before, served):
                self.reread(served)
