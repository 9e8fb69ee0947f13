"""`fairlead takeover` and `fairlead adopt`: the two decisions after a cluster was restored, copied or made anew.

A restored cluster has another uid than the one that the installation recorded: providers read and change nothing until
somebody says that the former one runs no longer. A cluster that was made anew has new claims for the old databases:
each waits with `PredecessorFound` until somebody says that it shall have its own again.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Any, Final

from apis import names
from fairlead.annotate import MANAGER, annotate
from fairlead.cluster import connected, every_object
from fairlead.discovery import Discovery
from fairlead.exits import CommandError, Exit
from fairlead.kube_options import Server
from fairlead.pausing import Outcome
from runtime.conditions import find, is_true
from runtime.errors import ApiError, NotFound
from runtime.kube import Kube
from runtime.objects import CONFIG_MAPS, NAMESPACES, Key, Object, Resource, key_of, uid_of
from runtime.preconditions import patch_tests

INSTALLATION: Final = Key("fairlead-system", "fairlead-installation")
_DEPLOYMENTS = Resource("apps", "v1", "Deployment", "deployments")
_RESTARTED = "/spec/template/metadata/annotations/kubectl.kubernetes.io~1restartedAt"
# The provider's sentence names the incarnation in its command; it adopts none that it does not find by that itself.
_INCARNATION = re.compile(rf"{re.escape(names.ADOPT)}=([^\s`;,']+)")


async def takeover(server: Server, *, from_cluster: str) -> Outcome:
    """Record this cluster as the installation's, and restart the providers, which then change databases again.

    `from_cluster` repeats the uid that is recorded: whoever types it has made sure that Fairlead runs there no longer.

    Raises CommandError (refused) where it is not that uid, and ApiError where the person lacks a right.
    """
    async with connected(server) as kube:
        config_map = await _installation(kube)
        recorded = str((config_map.get("data") or {}).get("clusterUid") or "")
        actual = uid_of(await kube.get(NAMESPACES, Key("", "kube-system"), metadata_only=True))
        if recorded == actual:
            return Outcome((f"this cluster ({actual}) is recorded already; {_restart_by_hand()}",))
        if recorded and from_cluster != recorded:
            raise CommandError(
                f"cluster {recorded} is recorded as this installation's, and this is {actual}. Make sure that Fairlead"
                f" runs there no longer, then: fairlead takeover --from-cluster {recorded}",
                exit_code=Exit.REFUSED,
            )
        operations = [{"op": "add", "path": "/data/clusterUid", "value": actual}]
        await kube.json_patch(CONFIG_MAPS, INSTALLATION, [*patch_tests(config_map), *operations], manager=MANAGER)
        instead = f" in place of {recorded}" if recorded else ""
        return Outcome((f"cluster {actual} is recorded{instead}", *await _restarted(kube)))


async def _installation(kube: Kube) -> Object:
    try:
        return await kube.get(CONFIG_MAPS, INSTALLATION)
    except NotFound as error:
        text = f"there is no ConfigMap {INSTALLATION}: is Fairlead installed in this cluster?"
        raise CommandError(text) from error


async def _restarted(kube: Kube) -> list[str]:
    """Restart the providers' Deployments, as `kubectl rollout restart` does; return a line for each."""
    now = datetime.now(UTC).replace(microsecond=0).isoformat()
    lines = []
    try:
        async for deployment in every_object(kube, _DEPLOYMENTS):
            if is_provider(key_of(deployment)):
                operations = restart(deployment, now)
                await kube.json_patch(_DEPLOYMENTS, key_of(deployment), operations, manager=MANAGER)
                lines.append(f"Deployment {key_of(deployment)} restarts")
    except ApiError as error:
        lines.append(f"not every provider was restarted ({error}); {_restart_by_hand()}")
    return lines or [f"no provider runs as a Deployment here; {_restart_by_hand()}"]


def _restart_by_hand() -> str:
    return "a provider that still says AwaitingTakeover has to be restarted"


def is_provider(key: Key) -> bool:
    """Return whether a Deployment of this name is a provider of ours. Pure."""
    cloud = key.namespace.removeprefix("fairlead-")
    return key == Key(f"fairlead-{cloud}", f"fairlead-provider-{cloud}")


def restart(deployment: Object, now: str) -> list[dict[str, Any]]:
    """Return the operations that begin a rollout with the same pods. Pure."""
    template = deployment["spec"]["template"].get("metadata") or {}
    operations = list(patch_tests(deployment))
    if not template.get("annotations"):
        operations.append({"op": "add", "path": _RESTARTED.rpartition("/")[0], "value": {}})
    return [*operations, {"op": "add", "path": _RESTARTED, "value": now}]


async def adopt(server: Server, *, installation: str, dry_run: bool) -> Outcome:
    """Let every managed resource that waits with PredecessorFound take over the database of its claim's earlier life.

    `installation` repeats the installation's id. Raises CommandError (refused) for another id, and ApiError.
    """
    lines = []
    async with connected(server) as kube:
        actual = str(((await _installation(kube)).get("data") or {}).get("id") or "")
        if installation != actual:
            text = f"this cluster's installation is {actual}, and not {installation}: its databases are another's"
            raise CommandError(text, exit_code=Exit.REFUSED)
        for resource in await Discovery(kube).managed_kinds():
            async for obj in every_object(kube, resource):
                incarnation = predecessor_of(obj)
                if not incarnation:
                    continue
                if not dry_run:
                    await _adopt(kube, resource, key_of(obj), incarnation)
                verb = "would take over" if dry_run else "takes over"
                lines.append(f"{resource.kind} {key_of(obj)} {verb} the database of incarnation {incarnation}")
    return Outcome(tuple(lines) or ("no managed resource waits with PredecessorFound",))


async def _adopt(kube: Kube, resource: Resource, key: Key, incarnation: str) -> None:
    def decide(obj: Object) -> dict[str, str | None]:
        # It may have been decided otherwise since it was listed.
        return {names.ADOPT: incarnation} if predecessor_of(obj) == incarnation else {}

    await annotate(kube, resource, key, decide)


def predecessor_of(obj: Object) -> str:
    """Return the incarnation that a managed resource may take over, empty unless it waits for that. Pure."""
    stalled = find(obj, "Stalled")
    if stalled is None or not is_true(obj, "Stalled") or stalled.get("reason") != "PredecessorFound":
        return ""
    named = _INCARNATION.search(str(stalled.get("message") or ""))
    return named[1] if named and named[1] != "none" else ""
