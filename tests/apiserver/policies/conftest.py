"""The installed base on a real API server, people to act on it, and its policies in force."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from devcloud.controlplane.plane import Plane
from tests.apiserver.policies.actors import CHILD, CLAIM, DEVELOPER, As, body_of, paths
from tests.support.api import Api, ApiError
from tests.support.waiting import eventually

BASE = Path(__file__).resolve().parents[3] / "deploy" / "kustomize" / "base"
# A developer who may do everything that RBAC can give to our kinds, so that what refuses him is the policy alone.
_PEOPLE = """
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: test-all-of-our-kinds}
rules:
- apiGroups: [database.fairlead.dev, onprem.fairlead.dev, fairlead.dev]
  resources: [postgresqlinstances, postgresqlinstances/status, postgresdatabases, postgresdatabases/status,
    providerconfigs, providerconfigs/status, compositions, compositions/status, compositionrevisions]
  verbs: ["*"]
- apiGroups: [""]
  resources: [namespaces, namespaces/status, namespaces/finalize, secrets]
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


@pytest.fixture(scope="session")
def base(plane: Plane) -> Plane:
    """Return a plane with `deploy/kustomize/base` applied, once for the session."""
    asyncio.run(plane.kubectl.run("apply", "--server-side", "--kustomize", str(BASE)))
    return plane


@pytest.fixture(scope="module")
def people(base: Plane) -> Iterator[Plane]:
    """Yield the base with test people of wide rights for one module, unseen by the tests of the accounts' roles."""
    asyncio.run(base.kubectl.run("apply", "--server-side", "--filename", "-", standard_input=_PEOPLE))
    yield base
    asyncio.run(base.kubectl.run("delete", "--filename", "-", standard_input=_PEOPLE))


@pytest.fixture
async def policed(people: Plane, api: Api, namespace: str) -> str:  # noqa: ARG001 - a fixture cannot use usefixtures
    """Return a namespace on a plane whose policies are in force; the API server takes a moment to compile them."""

    async def refuses() -> bool:
        tries = (
            (CLAIM, {"identity": "x"}),
            (CHILD, {"external-name": "x"}),
        )
        for on, forged in tries:
            try:
                await As(api, DEVELOPER).request(
                    "POST", f"{paths(on, namespace)[0]}?dryRun=All", body_of(on, namespace, forged)
                )
            except ApiError as error:
                if error.status == 403 and "ValidatingAdmissionPolicy" in str(error):
                    continue
            return False
        return True

    await eventually(refuses, "the admission policies are in force")
    return namespace
