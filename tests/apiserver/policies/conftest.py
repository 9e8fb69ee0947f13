"""The installed base on a real API server, and people to act on it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import msgspec
import pytest

from devcloud.plane import Plane
from tests.support.api import MERGE, Api, ApiError, JsonObject

BASE = Path(__file__).resolve().parents[3] / "deploy" / "kustomize" / "base"
# A developer who may do everything that RBAC can give to our kinds, so that what refuses him is the policy alone.
_PEOPLE = """
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: test-all-of-our-kinds}
rules:
- apiGroups: [database.fairlead.dev, onprem.fairlead.dev, fairlead.dev]
  resources: [postgresqlinstances, postgresqlinstances/status, postgresdatabases, postgresdatabases/status,
    providerconfigs, providerconfigs/status, compositions, compositions/status]
  verbs: ["*"]
- apiGroups: [""]
  resources: [namespaces, secrets]
  verbs: ["*"]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: test-all-of-our-kinds}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: test-all-of-our-kinds}
subjects:
- {apiGroup: rbac.authorization.k8s.io, kind: User, name: developer}
- {apiGroup: rbac.authorization.k8s.io, kind: User, name: platform}
- {kind: ServiceAccount, name: fairlead-composer, namespace: fairlead-system}
- {kind: ServiceAccount, name: fairlead-provider-onprem, namespace: fairlead-onprem}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: test-platform}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: fairlead-platform}
subjects:
- {apiGroup: rbac.authorization.k8s.io, kind: User, name: platform}
"""


@dataclass(frozen=True, slots=True)
class As:
    """Requests in another user's name (Kubernetes, "User impersonation")."""

    api: Api
    user: str

    async def request(
        self, method: str, path: str, body: JsonObject | None = None, *, content_type: str = "application/json"
    ) -> JsonObject:
        headers = {"Impersonate-User": self.user, "Content-Type": content_type}
        data = None if body is None else msgspec.json.encode(body)
        async with self.api.session.request(method, self.api.server + path, data=data, headers=headers) as answer:
            content: JsonObject = msgspec.json.decode(await answer.read())
            if answer.status >= 400:
                raise ApiError(answer.status, content)
            return content

    async def merge(self, path: str, body: JsonObject) -> JsonObject:
        return await self.request("PATCH", path, body, content_type=MERGE)


@pytest.fixture(scope="session")
def base(plane: Plane) -> Plane:
    """A plane with `deploy/kustomize/base` applied, once for the session."""
    asyncio.run(plane.kubectl.run("apply", "--server-side", "--kustomize", str(BASE)))
    return plane


@pytest.fixture(scope="module")
def people(base: Plane) -> Iterator[Plane]:
    """The base, and test people with wide rights for one module, unseen by the tests of the accounts' own roles."""
    asyncio.run(base.kubectl.run("apply", "--server-side", "--filename", "-", standard_input=_PEOPLE))
    yield base
    asyncio.run(base.kubectl.run("delete", "--filename", "-", standard_input=_PEOPLE))
