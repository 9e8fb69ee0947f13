"""The installed base on a real API server, people to act on it, and its policies in force."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Iterator

import pytest

from devcloud.controlplane.plane import Plane
from tests.apiserver.policies.actors import CHILD, DEVELOPER, As, body_of
from tests.support.api import connect
from tests.support.kinds import CLAIM, NAMESPACE
from tests.support.system import System
from tests.support.waiting import eventually

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
- {kind: ServiceAccount, name: fairlead-provider-ev-il, namespace: fairlead-ev-il}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: test-platform}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: fairlead-platform}
subjects:
- {apiGroup: rbac.authorization.k8s.io, kind: User, name: platform}
"""


@pytest.fixture(scope="module")
def base(plane: Plane, alone: System) -> Plane:
    """Return a plane with `deploy/kustomize/base` applied, on which no process of ours answers a request."""
    del alone
    return plane


@pytest.fixture(scope="module")
def people(base: Plane) -> Iterator[Plane]:
    """Yield the base with test people of wide rights for one module, unseen by the tests of the accounts' roles."""
    asyncio.run(base.kubectl.run("apply", "--server-side", "--filename", "-", standard_input=_PEOPLE))
    yield base
    asyncio.run(base.kubectl.run("delete", "--filename", "-", standard_input=_PEOPLE))


@pytest.fixture(scope="module")
def policed(people: Plane) -> Iterator[str]:
    """Yield a namespace on a plane whose policies are in force; the API server takes a moment to compile them."""
    name = f"test-{secrets.token_hex(4)}"
    asyncio.run(_until_in_force(people, name))
    yield name
    asyncio.run(people.kubectl.run("delete", "namespace", name, "--wait=false"))


async def _until_in_force(plane: Plane, namespace: str) -> None:
    async with connect(plane.kubeconfig) as api:
        await api.create(NAMESPACE.path(), NAMESPACE.new("", namespace))
        developer = As(api, DEVELOPER)

        async def refuses() -> bool:
            answers = [
                await developer.refusal("POST", on.path(namespace), body_of(on, namespace, forged))
                for on, forged in ((CLAIM, {"identity": "x"}), (CHILD, {"external-name": "x"}))
            ]
            return all("403" in answer and "ValidatingAdmissionPolicy" in answer for answer in answers)

        await eventually(refuses, "the admission policies are in force")
