"""Rights that a platform team gives the composer beyond those it is installed with."""

from __future__ import annotations

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


async def let_watch_secrets(system: System, namespace: str) -> None:
    """Let the composer watch the Secrets of a namespace, as a platform team does."""
    role = {"apiGroup": CLUSTER_ROLE.group, "kind": CLUSTER_ROLE.kind, "name": "fairlead-composer-secrets"}
    subject = {"kind": "ServiceAccount", "namespace": "fairlead-system", "name": "fairlead-composer"}
    await system.apply(
        ROLE_BINDING, ROLE_BINDING.new(namespace, "fairlead-composer-secrets", roleRef=role, subjects=[subject])
    )
