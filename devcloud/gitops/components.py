"""The command lines of Flux's and Argo CD's controllers, from where their files and ports are (pure)."""

from dataclasses import dataclass
from pathlib import Path

from devcloud.gitops.binaries import ArgoCDPrograms, FluxPrograms

HOST = "127.0.0.1"
FLUX_NAMESPACE = "flux-system"
ARGOCD_NAMESPACE = "argocd"


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
ARGOCD_PORTS = ("redis", "repo", "repo-metrics", "controller-metrics")


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


def argocd(programs: ArgoCDPrograms, folder: Path, ports: dict[str, int]) -> tuple[Controller, ...]:
    """Return Argo CD's application controller, its repository server and their Redis, in the order of starting.

    `ports` has a number for each of `ARGOCD_PORTS`.
    """
    program = str(programs.argocd)
    redis, repo = f"{HOST}:{ports['redis']}", f"{HOST}:{ports['repo']}"
    environment = {
        # https://kubernetes.default.svc is the cluster of KUBECONFIG, as in Argo CD's own Procfile.
        "ARGOCD_FAKE_IN_CLUSTER": "true",
        "ARGOCD_GPG_ENABLED": "false",
        **{
            f"ARGOCD_{name}": str(folder / path)
            for name, path in (
                ("TLS_DATA_PATH", "tls"),
                ("SSH_DATA_PATH", "ssh"),
                ("GNUPGHOME", "gpg"),
                ("PLUGINSOCKFILEPATH", "plugins"),
                ("ASK_PASS_SOCK", "ask-pass.sock"),
            )
        },
        "TMPDIR": str(folder / "tmp"),
        # It runs kustomize and git.
        "PATH": f"{programs.kustomize.parent}:/usr/local/bin:/usr/bin:/bin",
    }
    server = (
        *(program, "argocd-repo-server", "--disable-tls", f"--redis={redis}"),
        *(f"--address={HOST}", f"--port={ports['repo']}"),
        *(f"--metrics-address={HOST}", f"--metrics-port={ports['repo-metrics']}"),
    )
    controller = (
        # Of each object its health with its words, which is otherwise in Redis alone, for the web page.
        *(program, "argocd-application-controller", "--repo-server-plaintext", f"--repo-server={repo}"),
        *(f"--redis={redis}", f"--metrics-port={ports['controller-metrics']}", f"--namespace={ARGOCD_NAMESPACE}"),
        "--persist-resource-health",
    )
    return (
        Controller("argocd-redis", ARGOCD_NAMESPACE, (program, "redis", redis), 0, "", environment),
        Controller("argocd-repo-server", ARGOCD_NAMESPACE, server, ports["repo-metrics"], "/healthz", environment),
        Controller(
            "argocd-application-controller",
            ARGOCD_NAMESPACE,
            controller,
            ports["controller-metrics"],
            "/healthz",
            environment,
        ),
    )
