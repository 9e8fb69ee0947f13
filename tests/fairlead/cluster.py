"""An API server in memory for commands: objects, discovery, lists of one namespace, and reads that are refused."""

from __future__ import annotations

from dataclasses import dataclass, field

from runtime.errors import Forbidden, NotFound
from runtime.kube import Page, Selection
from runtime.objects import Key, Object, Resource, dumps
from tests.runtime.fake_kube import FakeKube


@dataclass
class Cluster(FakeKube):
    """The fake that serves the kinds of its objects and those of `served`; `refused`: as `list secrets`."""

    refused: set[str] = field(default_factory=set)
    served: set[Resource] = field(default_factory=set)

    async def raw(self, method: str, path: str, body: bytes | None = None) -> bytes:
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

    async def get(self, resource: Resource, key: Key, *, metadata_only: bool = False) -> Object:
        self._allow("get", resource)
        return await super().get(resource, key, metadata_only=metadata_only)

    async def list_page(
        self, resource: Resource, selection: Selection, *, limit: int = 500, next_page: str = ""
    ) -> Page:
        self._allow("list", resource)
        page = await super().list_page(resource, selection, limit=limit, next_page=next_page)
        of = f'"namespace":"{selection.namespace}"'.encode()
        items = tuple(each for each in page.items if not selection.namespace or of in each)
        return Page(items, page.resource_version, page.next_page)

    def _allow(self, verb: str, resource: Resource) -> None:
        if f"{verb} {resource.plural}" in self.refused:
            raise Forbidden(f"{resource.plural} is forbidden", status=403, reason="Forbidden")
