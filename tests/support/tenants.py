"""People with accounts of their own and no right beyond their role: how attacks reach a running platform."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support.api import MERGE, Api, ApiError, JsonObject, connect
from tests.support.kinds import (
    CLAIM,
    CLUSTER_ROLE,
    CLUSTER_ROLE_BINDING,
    COMPOSITION,
    NAMESPACE,
    ROLE_BINDING,
    SECRET,
    Kind,
)
from tests.support.kinds import claim as new_claim
from tests.support.system import System
from tests.support.waiting import eventually

SERVICE_ACCOUNT = Kind("", "v1", "ServiceAccount", "serviceaccounts")
_REVIEW = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
PLATFORM_ROLES = ("fairlead-platform", "fairlead-platform-onprem")


@dataclass(frozen=True, slots=True)
class Person:
    """Somebody who reaches the API server by a ServiceAccount of their own.

    Attributes:
        namespace: Where the account lives; a tenant owns it.
        api: A client with the account's token.
        kubeconfig: For programs that the person runs.
    """

    namespace: str
    api: Api
    kubeconfig: Path

    async def create(self, kind: Kind, obj: JsonObject) -> JsonObject:
        """POST as kubectl does: with strict field validation."""
        path = kind.path(obj["metadata"].get("namespace", ""))
        return await self.api.create(path, obj, fieldValidation="Strict", fieldManager="kubectl-create")

    async def claim(self, name: str, **spec: Any) -> JsonObject:
        """Create a claim in the person's own namespace."""
        return await self.create(CLAIM, new_claim(self.namespace, name, **spec))

    async def annotate(self, name: str, **annotations: str | None) -> None:
        """Set annotations of a claim of one's own; `_` stands for `-`, None takes one away."""
        values = {f"fairlead.dev/{key.replace('_', '-')}": value for key, value in annotations.items()}
        await self.edit(CLAIM, name, {"metadata": {"annotations": values}})

    async def edit(self, kind: Kind, name: str, patch: JsonObject) -> JsonObject:
        """Merge a patch as `kubectl edit` does, in the person's own namespace."""
        query = {"fieldManager": "kubectl-edit"}
        path = kind.path(self.namespace if kind.namespaced else "", name)
        return await self.api.request("PATCH", path, patch, content_type=MERGE, query=query)

    async def secret(self, name: str, *, type_: str = "Opaque", **data: str) -> None:
        """Put a Secret into the person's own namespace."""
        await self.create(SECRET, SECRET.new(self.namespace, name, type=type_, stringData=data))

    async def is_accepted(self, method: str, path: str, body: object = None) -> bool:
        """Send a request; return whether it was carried out or refused by a right, a policy or a schema."""
        try:
            await self.api.request(method, path, body, content_type=MERGE if method == "PATCH" else "application/json")
        except ApiError as error:
            if error.status in {403, 422}:
                return False
            raise
        return True

    async def is_refused(self, method: str, path: str, body: object = None, **query: str) -> bool:
        """Return whether the API server forbids a request for want of a right."""
        kind = MERGE if method == "PATCH" else "application/json"
        try:
            await self.api.request(method, path, body, content_type=kind, query=query)
        except ApiError as error:
            return error.status == 403
        return False


@asynccontextmanager
async def tenant(system: System, namespace: str) -> AsyncIterator[Person]:
    """Make a namespace and a person who holds the cluster's `edit` in it, and nothing else."""
    if await system.api.find(NAMESPACE.path("", namespace)) is None:
        await system.namespaced(namespace)
    async with member(system, namespace, "tenant", "edit") as person:
        yield person


@asynccontextmanager
async def member(system: System, namespace: str, name: str, *roles: str) -> AsyncIterator[Person]:
    """Make a person who holds ClusterRoles in a namespace that is there, `edit` or more among them."""
    kubeconfig = await _account(system, namespace, name)
    subjects = [{"kind": "ServiceAccount", "namespace": namespace, "name": name}]
    for role in roles:
        reference = {"apiGroup": CLUSTER_ROLE.group, "kind": CLUSTER_ROLE.kind, "name": role}
        binding = ROLE_BINDING.new(namespace, f"{name}-{role}", roleRef=reference, subjects=subjects)
        await system.apply(ROLE_BINDING, binding)
    async with connect(kubeconfig) as api:
        await _until_allowed(api, CLAIM, namespace)
        yield Person(namespace, api, kubeconfig)


@asynccontextmanager
async def platform_team(system: System, *, roles: Sequence[str] = PLATFORM_ROLES) -> AsyncIterator[Person]:
    """Make a person of the platform team: the shipped ClusterRoles, so no right to read Secrets."""
    namespace = "platform-team"
    if await system.api.find(NAMESPACE.path("", namespace)) is None:
        await system.namespaced(namespace)
    kubeconfig = await _account(system, namespace, "engineer")
    subjects = [{"kind": "ServiceAccount", "namespace": namespace, "name": "engineer"}]
    for name in roles:
        role = {"apiGroup": CLUSTER_ROLE.group, "kind": CLUSTER_ROLE.kind, "name": name}
        binding = CLUSTER_ROLE_BINDING.new("", f"engineer-{name}", roleRef=role, subjects=subjects)
        await system.apply(CLUSTER_ROLE_BINDING, binding)
    async with connect(kubeconfig) as api:
        await _until_allowed(api, COMPOSITION, "")
        yield Person(namespace, api, kubeconfig)


async def _account(system: System, namespace: str, name: str) -> Path:
    await system.apply(SERVICE_ACCOUNT, SERVICE_ACCOUNT.new(namespace, name))
    return await system.plane.service_account_kubeconfig(namespace, name)


async def _until_allowed(api: Api, kind: Kind, namespace: str) -> None:
    """Wait for the controller that adds our rules to the cluster's own roles, and for the authorizer's cache."""
    attributes = {"group": kind.group, "resource": kind.plural, "verb": "create", "namespace": namespace}
    review = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": attributes},
    }

    async def allowed() -> bool:
        return bool((await api.create(_REVIEW, review))["status"]["allowed"])

    await eventually(allowed, f"may create {kind.plural} in {namespace or 'the cluster'}")
