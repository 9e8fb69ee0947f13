"""Passes of the reconciler of claims over a fake API server that takes every write down."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

import msgspec

from composer.claim.act import Actor
from composer.claim.compose import Choice, Chosen, Prepared, untouched
from composer.claim.reconciler import ClaimReconciler, Tools
from composer.claim.report import Findings
from composer.claim.snapshot import ObservedChild, Snapshot
from composer.composition.revision import Revision
from composer.models import CompositionSpec
from composer.render.render import Rendered
from runtime.cache import Cache
from runtime.errors import ApiError, WriteConflict
from runtime.events import EventRecorder
from runtime.objects import Key, Object, Resource, annotations_of, key_of, uid_of, version_of
from tests.composer.factories import (
    CLAIMS,
    CONFIG_MAPS,
    DATABASES,
    claim,
)
from tests.support.memory_kube import MemoryKube


@dataclass
class LoggedKube(MemoryKube):
    """Takes every write down; refuses creates where `refusal` is given.

    `is_held`: a finalizer holds what is deleted.
    """

    written: list[tuple[str, str, Any]] = field(default_factory=list)
    is_held: bool = True
    refusal: ApiError | None = None
    reads: list[str] = field(default_factory=list)

    def there(self, *objects: Object) -> None:
        for obj in objects:
            resource = DATABASES if obj["kind"] == DATABASES.kind else CONFIG_MAPS
            self.objects[resource, key_of(obj)] = obj

    async def get(self, resource: Resource, key: Key, *, metadata_only: bool = False) -> Object:
        self.reads.append(resource.kind)
        return await super().get(resource, key, metadata_only=metadata_only)

    async def create(self, resource: Resource, obj: Object, *, manager: str) -> Object:
        self.written.append(("create", resource.kind, obj))
        if self.refusal:
            raise self.refusal
        return await super().create(resource, obj, manager=manager)

    async def apply(
        self,
        resource: Resource,
        obj: Object,
        *,
        manager: str,  # noqa: ARG002 - the port has it
        force: bool = False,  # noqa: ARG002 - as above
        subresource: str = "",  # noqa: ARG002 - as above
    ) -> Object:
        self.written.append(("apply", resource.kind, obj))
        stored = self.objects[resource, key_of(obj)]
        annotations = {**annotations_of(stored), **annotations_of(obj)}
        return {**stored, "metadata": {**stored["metadata"], "annotations": annotations}}

    async def json_patch(
        self,
        resource: Resource,
        key: Key,
        operations: list[dict[str, Any]],
        *,
        manager: str,  # noqa: ARG002 - the port has it
        subresource: str = "",
    ) -> Object:
        stored = self.objects.get((resource, key)) or claim()
        for operation in operations:
            field_name = operation["path"].removeprefix("/metadata/")
            is_test = operation["op"] == "test" and field_name in ("uid", "resourceVersion")
            if is_test and stored["metadata"].get(field_name, "") != operation["value"]:
                raise WriteConflict(operation["path"], status=422)
        self.written.append((subresource or "patch", resource.kind, operations))
        return stored

    async def delete(
        self, resource: Resource, key: Key, *, uid: str, resource_version: str, propagation: str = "Background"
    ) -> Object | None:
        """Delete as the API server does: what a finalizer holds is in the answer."""
        del propagation
        stored = self.objects[resource, key]
        if (uid_of(stored), version_of(stored)) != (uid, resource_version):
            raise WriteConflict("precondition", status=409)
        self.written.append(("delete", resource.kind, None))
        return stored if self.is_held else None

    def instructions(self) -> list[str]:
        """Return the teardown instructions that were written."""
        path = "/metadata/annotations/fairlead.dev~1teardown"
        patches = (operations for verb, _, operations in self.written if verb == "patch")
        return [operation["value"] for operations in patches for operation in operations if operation["path"] == path]

    def verbs(self) -> list[str]:
        return [f"{verb} {kind}" for verb, kind, _ in self.written]


@dataclass
class Reads:
    """What the caches have, and what the API server says."""

    claims: Any
    cached: Snapshot
    is_requested: Snapshot | None

    async def gather(self, _key: Key, *, more_kinds: Any) -> Snapshot:  # noqa: ARG002 - the port has it
        return self.cached

    async def gather_live(self, _view: Snapshot) -> Snapshot | None:
        return self.is_requested

    async def gather_around(self, _view: Snapshot) -> Snapshot:
        """Return the cached claim, and what else the API server says."""
        if self.is_requested is None:
            return self.cached
        return replace(self.is_requested, claim=self.cached.claim)

    async def check_version(self, view: Snapshot) -> None:
        if self.is_requested is None or version_of(self.is_requested.claim) != version_of(view.claim):
            raise WriteConflict("changed")

    async def abandoned(self, _key: Key) -> tuple[ObservedChild, ...]:
        return ()

    async def with_predecessors(self, seen: Snapshot) -> Snapshot:
        return seen

    async def unseen(self, _view: Snapshot) -> tuple[str, ...]:
        return ()


@dataclass
class Prepares:
    """Returns what it was made with as rendered."""

    composed: Rendered

    def kinds(self, _claim: Object) -> frozenset[str]:
        return frozenset()

    def is_chosen_by_namespace(self, _seen: Snapshot) -> bool:
        return False

    def supported_policies(self, _view: Snapshot) -> tuple[str, ...]:
        return ("Orphan", "Snapshot", "Delete")

    def spec_in_use(self, _view: Snapshot) -> CompositionSpec | None:
        return None

    async def prepare(self, seen: Snapshot) -> Prepared | Findings:
        return await self.render(self.choose(seen))

    def choose(self, seen: Snapshot) -> Choice:
        spec: dict[str, Any] = {
            "compositeTypeRef": {"apiVersion": CLAIMS.api_version, "kind": CLAIMS.kind},
            "deletionPolicies": ["Orphan", "Snapshot", "Delete"],
            "resources": [],
        }
        read = msgspec.convert(spec, CompositionSpec)
        revision = Revision("c-1", 1, "c", spec, None)
        return Choice(Chosen("c", revision, read, is_rollback=False, outside=None), seen, untouched(seen))

    async def taken_out(self, _choice: Choice) -> tuple[ObservedChild, ...]:
        return ()

    async def render(self, choice: Choice) -> Prepared | Findings:
        chosen = choice.chosen
        return Prepared(chosen.composition, chosen.revision, chosen.spec, self.composed, choice.snapshot)


async def make_pass(cached: Snapshot, is_requested: Snapshot | None, composed: Rendered, kube: LoggedKube) -> None:
    reads = Reads(Cache(kube).informer(CLAIMS), cached, is_requested)
    kube.objects[CLAIMS, cached.key] = cached.claim
    await reconciler(reads, composed, kube, lambda: 0.0).reconcile(cached.key)


def reconciler(
    reads: Reads,
    composed: Rendered,
    kube: MemoryKube,
    monotonic: Callable[[], float],
    *,
    preparer: Prepares | None = None,
) -> ClaimReconciler:
    return ClaimReconciler(tools_of(reads, preparer or Prepares(composed), kube, monotonic))


def tools_of(reads: Reads, preparer: Prepares, kube: MemoryKube, monotonic: Callable[[], float]) -> Tools:
    def now() -> datetime:
        return datetime(2026, 11, 21, 12, tzinfo=UTC)

    tools: dict[str, Any] = {
        "kube": kube,
        "gatherer": reads,
        "preparer": preparer,
        "actor": Actor(kube, now=now, remember=lambda _facts, _obj, _over: None),
        "publisher": None,
        "passwords": None,
        "events": EventRecorder(kube, controller="c", instance="i"),
        "now": now,
        "monotonic": monotonic,
    }
    return Tools(**tools)
