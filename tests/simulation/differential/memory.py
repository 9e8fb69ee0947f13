"""The one side: the API server in memory, asked as over HTTP."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from typing import Any

from devcloud.apiserver import housekeeping, json_patches, schemas
from devcloud.apiserver.api_server import ApiServer
from devcloud.apiserver.objects import deletions
from devcloud.apiserver.objects.deletions import Deletion
from devcloud.apiserver.objects.refusals import RefusedError
from devcloud.apiserver.selections import selected
from devcloud.apiserver.watching import event
from fairlead.simulation import virtual_time
from runtime.kube import Page, Selection
from runtime.objects import CONFIG_MAPS, CRDS, LEASES, NAMESPACES, SECRETS, Key, Object, Resource, loads
from tests.simulation.differential.requests import Answer, Request, Seen


class Memory:
    """One server for one sequence."""

    def __init__(self, namespace: str, crds: Iterable[Object], resources: dict[str, Resource]) -> None:
        self.server = ApiServer(now=lambda: datetime(2026, 11, 21, tzinfo=UTC), uid=virtual_time.uids("differential"))
        for resource in (NAMESPACES, CONFIG_MAPS, SECRETS, LEASES, CRDS):
            self.server.resources[resource.group, resource.plural] = resource
        self.server.put(NAMESPACES, {"metadata": {"name": namespace}})
        for crd in crds:
            self.server.put(CRDS, crd)
        self.seen = Seen(namespace, resources)
        self._start = self.server.version

    def send(self, request: Request) -> Answer:
        """Return the answer to a request."""
        try:
            code, body = self._answered(request)
        except RefusedError as error:
            return error.code, error.status
        if request.verb != "list":
            self.seen.note(request.kind, body)
        return code, body

    def _answered(self, request: Request) -> Answer:  # noqa: PLR0911 - a table of verbs
        server, resource = self.server, self.seen.resources[request.kind]
        namespace, body = self.seen.namespace, self.seen.body(request)
        key = Key(namespace, request.name)
        match request.verb:
            case "create":
                strict = request.strict
                return 201, server.created(resource, body, request.manager, namespace=namespace, is_strict=strict)
            case "update":
                is_new = server.find(resource, key) is None
                return (201 if is_new else 200), server.updated(
                    resource, key, body, request.manager, request.subresource, is_strict=request.strict
                )
            case "apply":
                answer, is_new = server.applied(
                    resource, key, body, request.manager, force=request.force, subresource=request.subresource
                )
                return (201 if is_new else 200), answer
            case "merge":
                return 200, self._patched(request, lambda live: json_patches.merged(live, body))
            case "json":
                return 200, self._patched(request, json_patches.carried_out(body))
            case "delete":
                return 200, deletions.deleted(server, resource, key, _deletion(body))
            case "get":
                return 200, schemas.copied(server.existing(resource, key))
            case _:
                return 200, self._listed(resource, request.selection)

    def _patched(self, request: Request, change: Callable[[Object], Any]) -> Object:
        key = Key(self.seen.namespace, request.name)
        resource = self.seen.resources[request.kind]
        return self.server.patched(
            resource, key, change, request.manager, request.subresource, is_strict=request.strict
        )

    def _listed(self, resource: Resource, selection: dict[str, Any]) -> Object:
        chosen = Selection(
            namespace=self.seen.namespace,
            labels=selection.get("labels", ""),
            fields=selection.get("fields", ""),
            metadata_only=selection.get("metadata_only", False),
        )
        pages: list[Page] = []
        while not pages or pages[-1].next_page:
            token = pages[-1].next_page if pages else ""
            pages.append(self.server.page(resource, chosen, selection.get("limit", 0), token))
        return {"pages": [[loads(item) for item in page.items] for page in pages]}

    def settle(self) -> None:
        """Have the cluster's controllers do what is due."""
        housekeeping.settle(self.server)

    def objects(self, kind: str) -> list[Object]:
        """Return all objects of a kind."""
        objects = self.server.all_of(self.seen.resources[kind])
        return [schemas.copied(obj) for _, obj in sorted(objects.items())]

    def events(self, kind: str, labels: str) -> list[Object]:
        """Return what a watch from the start has seen."""
        resource = self.seen.resources[kind]
        chosen = selected(Selection(namespace=self.seen.namespace, labels=labels))
        changes = (change for change in self.server.history(resource).changes if change.version > self._start)
        shown = (event(change, chosen, metadata_only=False) for change in changes)
        return [{"type": line.kind, "object": loads(line.raw)} for line in shown if line is not None]


def _deletion(options: Object) -> Deletion:
    preconditions = options.get("preconditions") or {}
    return Deletion(
        preconditions.get("uid", ""), preconditions.get("resourceVersion", ""), options.get("propagationPolicy", "")
    )
