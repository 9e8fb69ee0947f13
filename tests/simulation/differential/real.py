"""The other side: a real kube-apiserver, asked over HTTP."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any, Final

from runtime.objects import Object, Resource
from tests.simulation.differential.requests import Answer, Request, Seen
from tests.support.api import APPLY, JSON_PATCH, MERGE, Api, ApiError

_METHODS: Final = {"create": "POST", "update": "PUT", "delete": "DELETE"}
_TYPES: Final = {"merge": MERGE, "json": JSON_PATCH, "apply": APPLY}
_METADATA: Final = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"
END: Final = "zz-end"
"""The object whose creation shows a watch that it has seen all before."""


@dataclass(frozen=True)
class _Exchange:
    """An HTTP request."""

    method: str
    path: str
    query: dict[str, str]
    body: Any = None
    content_type: str = "application/json"
    accept: str = ""


@dataclass
class Real:
    """A namespace of a real cluster; it serves one sequence after another."""

    api: Api
    namespace: str
    resources: dict[str, Resource]
    seen: Seen = field(init=False)
    _versions: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.seen = Seen(self.namespace, self.resources)

    async def begin(self, watched: str) -> None:
        """Forget what was seen, and remember from where on a kind is watched."""
        self.seen = Seen(self.namespace, self.resources)
        if watched:
            listed = await self.api.get(self.path(watched), limit="1")
            self._versions[watched] = listed["metadata"]["resourceVersion"]

    def path(self, kind: str, name: str = "", subresource: str = "") -> str:
        """Return the path of a kind, or of an object."""
        resource = self.resources[kind]
        return Api.path(resource.api_version, resource.plural, self.namespace, name, subresource)

    async def send(self, request: Request) -> Answer:
        """Return the answer to a request."""
        if request.verb == "list":
            return await self._listed(request)
        name = "" if request.verb == "create" else request.name
        path = self.path(request.kind, name, request.subresource)
        query = {"fieldManager": request.manager} if request.verb not in ("get", "delete") else {}
        if request.verb == "apply":
            query["force"] = str(request.force).lower()
        if request.strict:
            query["fieldValidation"] = "Strict"
        content_type = _TYPES.get(request.verb, "application/json")
        method = _METHODS.get(request.verb, "PATCH" if request.verb in _TYPES else "GET")
        exchange = _Exchange(method, path, query, self.seen.body(request), content_type)
        code, body = await self._exchange(exchange)
        self.seen.note(request.kind, body)
        return code, body

    async def _exchange(self, sent: _Exchange) -> Answer:
        headers = {"Content-Type": sent.content_type} | ({"Accept": sent.accept} if sent.accept else {})
        data = None if sent.body is None else json.dumps(sent.body).encode()
        url = self.api.server + sent.path
        async with self.api.session.request(sent.method, url, data=data, headers=headers, params=sent.query) as answer:
            return answer.status, json.loads(await answer.read())

    async def _listed(self, request: Request) -> Answer:
        selection, pages = request.selection, []
        query = {"labelSelector": selection.get("labels", ""), "fieldSelector": selection.get("fields", "")}
        query = {name: text for name, text in query.items() if text}
        if selection.get("limit"):
            query["limit"] = str(selection["limit"])
        accept = _METADATA if selection.get("metadata_only") else ""
        while True:
            code, body = await self._exchange(_Exchange("GET", self.path(request.kind), query, accept=accept))
            if code >= 400:
                return code, body
            pages.append(body["items"] or [])
            if not body["metadata"].get("continue"):
                return code, {"pages": pages}
            query["continue"] = body["metadata"]["continue"]

    async def objects(self, kind: str) -> list[Object]:
        """Return all objects of a kind."""
        resource = self.resources[kind]
        items = await self.api.items(self.path(kind))
        return [{"apiVersion": resource.api_version, "kind": resource.kind, **item} for item in items]

    async def events(self, kind: str, labels: str, marker: Object) -> list[Object]:
        """Return what a watch from the start has seen, until it sees the marker, which is made for that."""
        await self.api.create(self.path(kind), marker)
        query = {"watch": "true", "resourceVersion": self._versions[kind], "timeoutSeconds": "30"}
        if labels:
            query["labelSelector"] = labels
        seen: list[Object] = []
        async with self.api.session.get(self.api.server + self.path(kind), params=query) as answer:
            async for line in answer.content:
                shown = json.loads(line)
                if shown["object"]["metadata"].get("name") == END:
                    return seen
                seen.append(shown)
        raise AssertionError(f"the watch of {kind} ended before its marker came")

    async def clear(self, kinds: set[str]) -> None:
        """Have no objects of these kinds."""
        for kind in kinds:
            held = [obj for obj in await self.api.items(self.path(kind)) if obj["metadata"].get("finalizers")]
            for obj in held:
                await self._release(self.path(kind, obj["metadata"]["name"]))
            await self.api.delete(self.path(kind))

    async def _release(self, path: str) -> None:
        try:
            await self.api.merge(path, {"metadata": {"finalizers": None}})
        except ApiError as error:
            if error.status != 404:
                raise
