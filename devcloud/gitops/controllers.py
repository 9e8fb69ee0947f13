"""Flux and Argo CD at work beside a control plane: their CRDs, their accounts, their processes."""

import asyncio
import secrets
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from devcloud import daemons, programs
from devcloud.controlplane.plane import Plane
from devcloud.daemons import Command, Daemon, Lifetime
from devcloud.errors import DevcloudError
from devcloud.gitops import components
from devcloud.gitops.binaries import ArgoCDPrograms, FluxPrograms
from devcloud.gitops.components import ARGOCD_NAMESPACE, FLUX_NAMESPACE, Controller
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


async def start_argocd(
    folder: Path, plane: Plane, built: ArgoCDPrograms, settings: dict[str, str]
) -> tuple[Daemon, ...]:
    """Install Argo CD's CRDs and start its controller, its repository server and their Redis; return them when ready.

    There is neither its API server nor its web page. The controller serves metrics at all addresses of this machine.

    Args:
        folder: Gets their files.
        plane: The control plane, which is the cluster `https://kubernetes.default.svc` too.
        built: The programs.
        settings: The data of the ConfigMap `argocd-cm`.

    Raises:
        DevcloudError: One ended, or was not ready in time; the end of its log is in the text.
    """
    await _install(plane, built.crds)
    ports = programs.free_ports(components.ARGOCD_PORTS)
    for name in ("tls", "ssh", "gpg", "plugins", "tmp"):
        (private_folder(folder) / name).mkdir(exist_ok=True)
    await _add_accounts(plane, ARGOCD_NAMESPACE, ())
    await apply_objects(plane.kubectl, _argocd_objects(settings))
    return await _start(folder, plane, ARGOCD_NAMESPACE, components.argocd(built, folder, ports))


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


def _argocd_objects(settings: dict[str, str]) -> list[dict[str, Any]]:
    """Return what Argo CD reads at its start; the project `default` is otherwise made by its API server."""
    labels = {"app.kubernetes.io/part-of": "argocd"}
    in_argocd = {"namespace": ARGOCD_NAMESPACE}
    anything = {"group": "*", "kind": "*"}
    return [
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "argocd-cm", **in_argocd, "labels": labels},
            "data": settings,
        },
        {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": "argocd-secret", **in_argocd, "labels": labels},
            # Otherwise made by its API server; without it the controller reads no cluster.
            "stringData": {"server.secretkey": secrets.token_urlsafe(32)},
        },
        {
            "apiVersion": "argoproj.io/v1alpha1",
            "kind": "AppProject",
            "metadata": {"name": "default", **in_argocd},
            "spec": {
                "sourceRepos": ["*"],
                "destinations": [{"namespace": "*", "server": "*"}],
                "clusterResourceWhitelist": [anything],
            },
        },
    ]


async def _until_ready(controller: Controller, daemon: Daemon) -> None:
    loop = asyncio.get_running_loop()
    deadline = loop.time() + _READY_LIMIT_S
    while controller.port and not await programs.answers_well(controller.port, controller.path):
        if not daemons.is_alive(daemon.identity):
            raise DevcloudError(f"{controller.name} ended: {daemons.log_tail(daemon.log)}; see {daemon.log}")
        if loop.time() > deadline:
            raise DevcloudError(f"{controller.name} is not ready after {_READY_LIMIT_S:g} s: see {daemon.log}")
        await asyncio.sleep(_POLL_S)
