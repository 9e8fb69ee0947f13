"""Flux at work beside a control plane: its CRDs, its accounts, its processes."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from devcloud import daemons, programs
from devcloud.controlplane.plane import Plane
from devcloud.daemons import Command, Daemon, Lifetime
from devcloud.errors import DevcloudError
from devcloud.gitops import components
from devcloud.gitops.binaries import FluxPrograms
from devcloud.gitops.components import FLUX_NAMESPACE, Controller
from devcloud.install import apply_objects, until_served
from devcloud.paths import private_folder

_READY_LIMIT_S = 180.0
_POLL_S = 0.2
_TOKEN_LIFETIME_S = 365 * 86_400


async def start_flux(folder: Path, plane: Plane, built: FluxPrograms) -> tuple[Daemon, ...]:
    """Install Flux's CRDs and start its two controllers; return them when they are ready.

    They are administrators, as Flux's own manifests have them, and end with this process.

    Raises:
        DevcloudError: One ended, or was not ready in time; the end of its log is in the text.
    """
    await _install(plane, built.crds)
    ports = programs.free_ports(components.PORTS)
    (private_folder(folder) / "artifacts").mkdir(exist_ok=True)
    return await _start(folder, plane, FLUX_NAMESPACE, components.flux(built, folder, ports))


async def _install(plane: Plane, crds: Sequence[Path]) -> None:
    for path in crds:
        await plane.kubectl.run("apply", "--server-side", f"--filename={path}")
    await until_served(plane.kubectl, *crds)


async def _start(folder: Path, plane: Plane, namespace: str, controllers: tuple[Controller, ...]) -> tuple[Daemon, ...]:
    await _add_accounts(plane, namespace, [controller.name for controller in controllers])
    started: list[Daemon] = []
    for controller in controllers:
        kubeconfig = await plane.service_account_kubeconfig(namespace, controller.name, lifetime_s=_TOKEN_LIFETIME_S)
        environment = {
            "HOME": str(folder),
            "PATH": "/usr/local/bin:/usr/bin:/bin",
            **controller.environment,
            "KUBECONFIG": str(kubeconfig),
        }
        command = Command(
            name=controller.name,
            arguments=controller.arguments,
            log=folder / f"{controller.name}.log",
            environment=environment,
        )
        started.append(daemons.launch(command, Lifetime.WITH_PARENT))
        await _until_ready(controller, started[-1])
    return tuple(started)


async def _add_accounts(plane: Plane, namespace: str, names: Sequence[str]) -> None:
    """Make a namespace with ServiceAccounts that are administrators of the cluster."""
    subjects = [{"kind": "ServiceAccount", "namespace": namespace, "name": name} for name in names]
    objects: list[dict[str, Any]] = [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}]
    objects += [
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"namespace": namespace, "name": name}}
        for name in names
    ]
    if subjects:
        rbac = "rbac.authorization.k8s.io"
        objects.append(
            {
                "apiVersion": f"{rbac}/v1",
                "kind": "ClusterRoleBinding",
                "metadata": {"name": f"{namespace}-administrators"},
                "roleRef": {"apiGroup": rbac, "kind": "ClusterRole", "name": "cluster-admin"},
                "subjects": subjects,
            }
        )
    for made in objects:
        await apply_objects(plane.kubectl, [made])


async def _until_ready(controller: Controller, daemon: Daemon) -> None:
    loop = asyncio.get_running_loop()
    deadline = loop.time() + _READY_LIMIT_S
    while controller.port and not await programs.answers_well(controller.port, controller.path):
        if not daemons.is_alive(daemon.identity):
            raise DevcloudError(f"{controller.name} ended: {daemons.log_tail(daemon.log)}; see {daemon.log}")
        if loop.time() > deadline:
            raise DevcloudError(f"{controller.name} is not ready after {_READY_LIMIT_S:g} s: see {daemon.log}")
        await asyncio.sleep(_POLL_S)
