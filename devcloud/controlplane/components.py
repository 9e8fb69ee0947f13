"""The command lines of a control plane's programs, from where their files and ports are (pure)."""

from dataclasses import dataclass
from pathlib import Path

import msgspec

from devcloud.controlplane import Programs

HOST = "127.0.0.1"
SERVER_HOSTS = (HOST, "localhost", "kubernetes.default.svc")
_AUDIT_POLICY = Path(__file__).parent / "audit-policy.yaml"
# What the `kubernetes` Service has as its address: the first one of the range.
_SERVICES, _SERVICE_HOST = "10.0.0.0/24", "10.0.0.1"
# No node, no pod: what keeps objects whole, and nothing that schedules.
_CONTROLLERS = (
    "garbage-collector-controller",
    "namespace-controller",
    "serviceaccount-controller",
    "serviceaccount-token-controller",
    "clusterrole-aggregation-controller",
)


class Ports(msgspec.Struct, frozen=True):
    """The TCP ports of a plane, all on 127.0.0.1 but the API server's where a node may join."""

    apiserver: int
    etcd: int
    etcd_peer: int
    controller_manager: int


@dataclass(frozen=True, slots=True)
class Site:
    """Where a plane's programs, files and ports are.

    Attributes:
        programs: The programs.
        folder: Its files.
        ports: Its ports.
        node_address: The address of this machine at which pods reach the API server; None where no node can join.
    """

    programs: Programs
    folder: Path
    ports: Ports
    node_address: str | None = None

    @property
    def host(self) -> str:
        """The API server's address."""
        return self.node_address or HOST

    @property
    def server_hosts(self) -> tuple[str, ...]:
        """The names and addresses that the API server's certificate names."""
        return SERVER_HOSTS if self.node_address is None else (*SERVER_HOSTS, self.node_address, _SERVICE_HOST)

    @property
    def secrets(self) -> Path:
        """The folder of keys and certificates."""
        return self.folder / "pki"

    @property
    def audit_log(self) -> Path:
        """The API server's audit log."""
        return self.folder / "logs" / "audit.log"

    @property
    def admin_kubeconfig(self) -> Path:
        """The administrator's kubeconfig."""
        return self.folder / "kubeconfigs" / "admin"

    @property
    def controllers_kubeconfig(self) -> Path:
        """The controller manager's kubeconfig."""
        return self.folder / "kubeconfigs" / "controller-manager"


def markers(folder: Path) -> dict[str, str]:
    """Return by program an argument that only this folder's plane has; what runs with it belongs to the folder."""
    site = Site(Programs(folder, folder, folder, folder), folder, Ports(0, 0, 0, 0))
    return {
        "kube-controller-manager": _kubeconfig_argument(site),
        "kube-apiserver": _audit_argument(site),
        "etcd": _data_argument(site),
    }


def _data_argument(site: Site) -> str:
    return f"--data-dir={site.folder / 'etcd'}"


def _audit_argument(site: Site) -> str:
    return f"--audit-log-path={site.audit_log}"


def _kubeconfig_argument(site: Site) -> str:
    return f"--kubeconfig={site.controllers_kubeconfig}"


def etcd(site: Site, *, durable: bool) -> tuple[str, ...]:
    """Return etcd's command line: TLS with client certificates on both ports."""
    secrets = site.secrets
    client, peer = f"https://{HOST}:{site.ports.etcd}", f"https://{HOST}:{site.ports.etcd_peer}"
    arguments = (
        str(site.programs.etcd),
        _data_argument(site),
        f"--listen-client-urls={client}",
        f"--advertise-client-urls={client}",
        f"--listen-peer-urls={peer}",
        f"--initial-advertise-peer-urls={peer}",
        f"--initial-cluster=default={peer}",
        "--client-cert-auth",
        f"--trusted-ca-file={secrets / 'etcd-ca.crt'}",
        f"--cert-file={secrets / 'etcd.crt'}",
        f"--key-file={secrets / 'etcd.key'}",
        "--peer-client-cert-auth",
        f"--peer-trusted-ca-file={secrets / 'etcd-ca.crt'}",
        f"--peer-cert-file={secrets / 'etcd.crt'}",
        f"--peer-key-file={secrets / 'etcd.key'}",
        "--auto-compaction-retention=1h",
        "--quota-backend-bytes=8589934592",
        "--log-level=warn",
    )
    return arguments if durable else (*arguments, "--unsafe-no-fsync")


def apiserver(site: Site, more: tuple[str, ...]) -> tuple[str, ...]:
    """Return kube-apiserver's command line: RBAC, no anonymous request, an audit log."""
    secrets = site.secrets
    # Without a node there is none that could reach the `kubernetes` Service, and a loop-back address is no endpoint.
    joined: tuple[str, ...] = ("--authorization-mode=RBAC", "--endpoint-reconciler-type=none")
    if site.node_address is not None:
        joined = (
            "--authorization-mode=Node,RBAC",
            "--enable-admission-plugins=NodeRestriction",
            # Who may run such pods is said by namespace, by the Pod Security Standards.
            "--allow-privileged=true",
            "--kubelet-preferred-address-types=InternalIP",
            f"--kubelet-certificate-authority={secrets / 'kubernetes-ca.crt'}",
            f"--kubelet-client-certificate={secrets / 'kubelet-client.crt'}",
            f"--kubelet-client-key={secrets / 'kubelet-client.key'}",
        )
    return (
        str(site.programs.kube_apiserver),
        f"--bind-address={site.host}",
        # Else it looks for the address of a default route, which a machine without network has not.
        f"--advertise-address={site.host}",
        f"--secure-port={site.ports.apiserver}",
        f"--tls-cert-file={secrets / 'apiserver.crt'}",
        f"--tls-private-key-file={secrets / 'apiserver.key'}",
        f"--client-ca-file={secrets / 'kubernetes-ca.crt'}",
        f"--etcd-servers=https://{HOST}:{site.ports.etcd}",
        f"--etcd-cafile={secrets / 'etcd-ca.crt'}",
        f"--etcd-certfile={secrets / 'etcd.crt'}",
        f"--etcd-keyfile={secrets / 'etcd.key'}",
        "--anonymous-auth=false",
        *joined,
        "--service-account-issuer=https://kubernetes.default.svc",
        f"--service-account-key-file={secrets / 'service-account.pub'}",
        f"--service-account-signing-key-file={secrets / 'service-account.key'}",
        f"--service-cluster-ip-range={_SERVICES}",
        f"--audit-policy-file={_AUDIT_POLICY}",
        _audit_argument(site),
        "--audit-log-maxsize=500",
        "--audit-log-maxbackup=2",
        "--profiling=false",
        *more,
    )


def controller_manager(site: Site) -> tuple[str, ...]:
    """Return kube-controller-manager's command line: all controllers, or those that need no node."""
    secrets, kubeconfig = site.secrets, site.controllers_kubeconfig
    # Pods verify the API server by the authority that a controller puts into each namespace.
    controllers: tuple[str, ...] = (f"--controllers={','.join(_CONTROLLERS)}",)
    if site.node_address is not None:
        controllers = ("--controllers=*", f"--root-ca-file={secrets / 'kubernetes-ca.crt'}")
    return (
        str(site.programs.kube_controller_manager),
        f"--bind-address={HOST}",
        f"--secure-port={site.ports.controller_manager}",
        f"--tls-cert-file={secrets / 'apiserver.crt'}",
        f"--tls-private-key-file={secrets / 'apiserver.key'}",
        _kubeconfig_argument(site),
        f"--authentication-kubeconfig={kubeconfig}",
        f"--authorization-kubeconfig={kubeconfig}",
        f"--service-account-private-key-file={secrets / 'service-account.key'}",
        *controllers,
        # Each controller under its own ServiceAccount, as on a real cluster: RBAC and the audit log see which one.
        "--use-service-account-credentials=true",
        "--leader-elect=false",
        "--kube-api-qps=200",
        "--kube-api-burst=400",
        "--profiling=false",
    )
