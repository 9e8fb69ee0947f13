"""Rights that a platform team gives the composer beyond those it is installed with."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from tests.support.kinds import CLUSTER_ROLE, CLUSTER_ROLE_BINDING, ROLE_BINDING
from tests.support.system import System


async def allow_composer(system: System, group: str, resource: str) -> None:
    """Let the composer write one more kind, as a platform team does."""
    name = f"composer-{resource}"
    rules = [
        {
            "apiGroups": [group],
            "resources": [resource],
            "verbs": ["get", "list", "watch", "create", "patch", "delete"],
        }
    ]
    await system.apply(CLUSTER_ROLE, CLUSTER_ROLE.new("", name, rules=rules))
    subject = {"kind": "ServiceAccount", "namespace": "fairlead-system", "name": "fairlead-composer"}
    role = {"apiGroup": CLUSTER_ROLE.group, "kind": CLUSTER_ROLE.kind, "name": name}
    await system.apply(CLUSTER_ROLE_BINDING, CLUSTER_ROLE_BINDING.new("", name, roleRef=role, subjects=[subject]))


@asynccontextmanager
async def as_installed(system: System) -> AsyncIterator[None]:
    """Have the composer without what it was allowed here for the length of a block."""
    bindings = await system.api.items(CLUSTER_ROLE_BINDING.path())
    granted = [binding for binding in bindings if binding["metadata"]["name"].startswith("composer-")]
    for binding in granted:
        await system.api.delete(CLUSTER_ROLE_BINDING.path("", binding["metadata"]["name"]))
    yield
    for binding in granted:
        name = binding["metadata"]["name"]
        again = {"roleRef": binding["roleRef"], "subjects": binding["subjects"]}
        await system.apply(CLUSTER_ROLE_BINDING, CLUSTER_ROLE_BINDING.new("", name, **again))


async def let_watch_secrets(system: System, namespace: str) -> None:
    """Let the composer watch the Secrets of a namespace, as a platform team does."""
    role = {"apiGroup": CLUSTER_ROLE.group, "kind": CLUSTER_ROLE.kind, "name": "fairlead-composer-secrets"}
    subject = {"kind": "ServiceAccount", "namespace": "fairlead-system", "name": "fairlead-composer"}
    await system.apply(
        ROLE_BINDING, ROLE_BINDING.new(namespace, "fairlead-composer-secrets", roleRef=role, subjects=[subject])
    )
