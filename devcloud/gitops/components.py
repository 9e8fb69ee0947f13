"""The command lines of Flux's controllers, from where their files and ports are (pure)."""

from dataclasses import dataclass
from pathlib import Path

from devcloud.gitops.binaries import FluxPrograms

HOST = "127.0.0.1"
FLUX_NAMESPACE = "flux-system"


@dataclass(frozen=True, slots=True)
class Controller:
    """A controller as a process.

    Attributes:
        name: What people call it, and its ServiceAccount where it has one.
        namespace: The namespace of its ServiceAccount.
        arguments: Its command line.
        port: The port where it answers once it is at work; 0 when it is at work at once.
        path: The path of that answer.
        environment: Variables of its own.
    """

    name: str
    namespace: str
    arguments: tuple[str, ...]
    port: int
    path: str
    environment: dict[str, str]


PORTS = ("health", "metrics", "artifacts", "kustomize-health", "kustomize-metrics")


def flux(programs: FluxPrograms, folder: Path, ports: dict[str, int]) -> tuple[Controller, ...]:
    """Return Flux's two controllers, none of which elects a leader; `ports` has a number for each of `PORTS`."""
    environment = {"RUNTIME_NAMESPACE": FLUX_NAMESPACE}
    artifacts = f"{HOST}:{ports['artifacts']}"
    common = ("--enable-leader-election=false", "--events-addr=", "--log-level=info")
    source = (
        str(programs.source_controller),
        *common,
        f"--health-addr={HOST}:{ports['health']}",
        f"--metrics-addr={HOST}:{ports['metrics']}",
        f"--storage-path={folder / 'artifacts'}",
        f"--storage-addr={artifacts}",
        f"--storage-adv-addr={artifacts}",
    )
    kustomize = (
        str(programs.kustomize_controller),
        *common,
        f"--health-addr={HOST}:{ports['kustomize-health']}",
        f"--metrics-addr={HOST}:{ports['kustomize-metrics']}",
        # A stage that waits for the one before it: half a minute unless it is said.
        "--requeue-dependency=2s",
    )
    return (
        Controller("source-controller", FLUX_NAMESPACE, source, ports["health"], "/readyz", environment),
        Controller(
            "kustomize-controller", FLUX_NAMESPACE, kustomize, ports["kustomize-health"], "/readyz", environment
        ),
    )
