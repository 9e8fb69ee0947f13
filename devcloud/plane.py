"""A Kubernetes control plane on 127.0.0.1: etcd, kube-apiserver with RBAC, kube-controller-manager; no node.

Every connection is TLS under authorities made for this plane. Nothing answers without a credential.
"""

import asyncio
import signal
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import msgspec

from devcloud import daemons, kubeconfigs
from devcloud.certificates import Authority, Subject, authority_in, signing_keys_in
from devcloud.controlplane import Programs
from devcloud.daemons import Command, Daemon, Identity, Lifetime
from devcloud.errors import DevcloudError
from devcloud.kubectl import Kubectl
from devcloud.paths import private_folder

_HOST = "127.0.0.1"
_SERVER_HOSTS = (_HOST, "localhost", "kubernetes.default.svc")
_AUDIT_POLICY = Path(__file__).parent / "audit-policy.yaml"
_READY_LIMIT_S = 90.0
_POLL_S = 0.1
_PORT_ATTEMPTS = 3
_CONTROLLERS_USER = "controller-manager"
MEMBERS = ("kube-controller-manager", "kube-apiserver", "etcd")  # in the order of stopping
# No node, no pod: what keeps objects whole, and nothing that schedules.
_CONTROLLERS = (
    "garbage-collector-controller",
    "namespace-controller",
    "serviceaccount-controller",
    "serviceaccount-token-controller",
    "clusterrole-aggregation-controller",
)


class Ports(msgspec.Struct, frozen=True):
    """The TCP ports of a plane, all on 127.0.0.1."""

    apiserver: int
    etcd: int
    etcd_peer: int
    controller_manager: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """How to run a plane.

    Attributes:
        folder: Where it keeps keys, data, logs and kubeconfigs.
        lifetime: Whether it dies with this process.
        durable: Whether etcd syncs each write to disk; without, a power cut may lose data.
        apiserver_arguments: More arguments of kube-apiserver.
        before_controllers: Called when the API server is ready and no controller runs yet. CRDs that are there by
            then are known to the garbage collector from its first second; later ones within 30 s.
    """

    folder: Path
    lifetime: Lifetime
    durable: bool
    apiserver_arguments: tuple[str, ...] = ()
    before_controllers: Callable[[Kubectl], Awaitable[None]] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Plane:
    """A running control plane.

    Attributes:
        server: The API server's URL.
        authority_pem: The certificate authority that signed its serving certificate.
        kubeconfig: The administrator's kubeconfig (mode 0600).
        audit_log: The API server's audit log: JSON lines, `audit.k8s.io/v1` Event at level Metadata.
    """

    folder: Path
    programs: Programs
    server: str
    authority_pem: bytes
    kubeconfig: Path
    audit_log: Path

    @property
    def kubectl(self) -> Kubectl:
        """The administrator's kubectl."""
        return Kubectl(self.programs.kubectl, self.kubeconfig)

    async def service_account_kubeconfig(self, namespace: str, name: str, *, lifetime_s: int = 86_400) -> Path:
        """Write the kubeconfig of one ServiceAccount, with a token from the TokenRequest API; return its path.

        Raises:
            DevcloudError: There is no such ServiceAccount.
        """
        token = await self.kubectl.run("create", "token", name, f"--namespace={namespace}", f"--duration={lifetime_s}s")
        user = kubeconfigs.TokenUser(f"{namespace}/{name}", token.strip())
        path = self.folder / "kubeconfigs" / f"{namespace}.{name}"
        private_folder(path.parent)
        return kubeconfigs.write(path, kubeconfigs.Cluster(self.server, self.authority_pem, namespace), user)


@asynccontextmanager
async def ephemeral(options: Options, programs: Programs) -> AsyncIterator[Plane]:
    """Run a plane for the length of a block."""
    plane = await start(options, programs)
    try:
        yield plane
    finally:
        await stop(options.folder, grace_s=3.0)


async def start(options: Options, programs: Programs) -> Plane:
    """Start a plane in its folder, or find the one that runs there already; return when it is ready.

    Raises:
        DevcloudError: A program ended, or the plane was not ready in time; the end of the log is in the text.
    """
    folder = private_folder(options.folder)
    running = await find(folder, programs)
    if running is not None:
        return running
    # A part of a plane that was interrupted while it started would hold the data folder.
    await stop(folder)
    for attempt in range(1, _PORT_ATTEMPTS + 1):
        try:
            return await _start_on(_free_ports(folder, keep=attempt == 1), options, programs)
        except _PortTakenError:
            # Probing a port and using it are two steps; somebody came between.
            await stop(folder)
    raise DevcloudError(f"no free ports on {_HOST} in {_PORT_ATTEMPTS} attempts: see the logs in {folder}/logs")


async def find(folder: Path, programs: Programs) -> Plane | None:
    """Return the plane that runs in a folder and answers, or None."""
    identities = [daemons.load(_pid_file(folder, name)) for name in MEMBERS]
    if not all(identity is not None and daemons.is_alive(identity) for identity in identities):
        return None
    ports = _saved_ports(folder)
    if ports is None:
        return None
    plane = _plane(folder, programs, ports)
    return plane if await plane.kubectl.answers("/readyz") else None


async def stop(folder: Path, *, grace_s: float = 10.0) -> None:
    """Stop what runs of a plane; its data stay. A pid that another process has got by now is left alone."""
    for name in MEMBERS:
        identity = daemons.load(_pid_file(folder, name))
        if identity is not None:
            await daemons.stop(identity, number=signal.SIGTERM, grace_s=grace_s)
        _pid_file(folder, name).unlink(missing_ok=True)
    # Killed between a start and its pid file: the program would hold the data folder for ever.
    await daemons.stop_strays("kube-controller-manager", f"--kubeconfig={folder / 'kubeconfigs' / _CONTROLLERS_USER}")
    await daemons.stop_strays("kube-apiserver", f"--audit-log-path={folder / 'logs' / 'audit.log'}")
    await daemons.stop_strays("etcd", f"--data-dir={folder / 'etcd'}")


def members(folder: Path) -> dict[str, Identity | None]:
    """Return the processes of a plane by name, as their pid files have them."""
    return {name: daemons.load(_pid_file(folder, name)) for name in MEMBERS}


class _PortTakenError(Exception):
    """A port that was free when we looked is taken."""


async def _start_on(ports: Ports, options: Options, programs: Programs) -> Plane:
    folder = options.folder
    secrets = private_folder(folder / "pki")
    authority, etcd_authority = authority_in(secrets, "kubernetes-ca"), authority_in(secrets, "etcd-ca")
    signing_keys_in(secrets, "service-account")
    authority.issue(Subject("kube-apiserver", hosts=_SERVER_HOSTS)).write(secrets, "apiserver")
    etcd_authority.issue(Subject("etcd", hosts=(_HOST, "localhost"))).write(secrets, "etcd")
    plane = _plane(folder, programs, ports)
    cluster = kubeconfigs.Cluster(plane.server, authority.pem, "default")
    _write_kubeconfigs(authority, cluster, folder)
    (folder / "ports.json").write_bytes(msgspec.json.encode(ports))

    etcd = _launch("etcd", _etcd_arguments(programs, ports, options), options)
    apiserver = _launch("kube-apiserver", _apiserver_arguments(programs, ports, options), options)
    await _until_ready(plane, (etcd, apiserver))
    if options.before_controllers is not None:
        await options.before_controllers(plane.kubectl)
    _launch("kube-controller-manager", _controller_manager_arguments(programs, ports, options), options)
    await _until_controllers_work(plane)
    return plane


def _plane(folder: Path, programs: Programs, ports: Ports) -> Plane:
    return Plane(
        folder=folder,
        programs=programs,
        server=f"https://{_HOST}:{ports.apiserver}",
        authority_pem=(folder / "pki" / "kubernetes-ca.crt").read_bytes(),
        kubeconfig=folder / "kubeconfigs" / "admin",
        audit_log=folder / "logs" / "audit.log",
    )


def _write_kubeconfigs(authority: Authority, cluster: kubeconfigs.Cluster, folder: Path) -> None:
    target = private_folder(folder / "kubeconfigs")
    for name, subject in (
        ("admin", Subject("fairlead-admin", organizations=("system:masters",))),
        (_CONTROLLERS_USER, Subject("system:kube-controller-manager")),
    ):
        pair = authority.issue(subject)
        user = kubeconfigs.CertificateUser(subject.common_name, pair.certificate_pem, pair.key_pem)
        kubeconfigs.write(target / name, cluster, user)


def _launch(name: str, arguments: tuple[str, ...], options: Options) -> Daemon:
    log = options.folder / "logs" / f"{name}.log"
    log.parent.mkdir(exist_ok=True)
    # Only this start's words may answer "why did it end".
    log.unlink(missing_ok=True)
    daemon = daemons.launch(Command(name=name, arguments=arguments, log=log), options.lifetime)
    daemons.save(_pid_file(options.folder, name), daemon)
    return daemon


def _etcd_arguments(programs: Programs, ports: Ports, options: Options) -> tuple[str, ...]:
    secrets = options.folder / "pki"
    client, peer = f"https://{_HOST}:{ports.etcd}", f"https://{_HOST}:{ports.etcd_peer}"
    arguments = (
        str(programs.etcd),
        f"--data-dir={options.folder / 'etcd'}",
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
    return arguments if options.durable else (*arguments, "--unsafe-no-fsync")


def _apiserver_arguments(programs: Programs, ports: Ports, options: Options) -> tuple[str, ...]:
    secrets = options.folder / "pki"
    return (
        str(programs.kube_apiserver),
        f"--bind-address={_HOST}",
        f"--secure-port={ports.apiserver}",
        f"--tls-cert-file={secrets / 'apiserver.crt'}",
        f"--tls-private-key-file={secrets / 'apiserver.key'}",
        f"--client-ca-file={secrets / 'kubernetes-ca.crt'}",
        f"--etcd-servers=https://{_HOST}:{ports.etcd}",
        f"--etcd-cafile={secrets / 'etcd-ca.crt'}",
        f"--etcd-certfile={secrets / 'etcd.crt'}",
        f"--etcd-keyfile={secrets / 'etcd.key'}",
        "--anonymous-auth=false",
        "--authorization-mode=RBAC",
        "--service-account-issuer=https://kubernetes.default.svc",
        f"--service-account-key-file={secrets / 'service-account.pub'}",
        f"--service-account-signing-key-file={secrets / 'service-account.key'}",
        "--service-cluster-ip-range=10.0.0.0/24",
        # There is no node that could reach the `kubernetes` Service, and a loop-back address is no valid endpoint.
        "--endpoint-reconciler-type=none",
        f"--audit-policy-file={_AUDIT_POLICY}",
        f"--audit-log-path={options.folder / 'logs' / 'audit.log'}",
        "--audit-log-maxsize=500",
        "--audit-log-maxbackup=2",
        "--profiling=false",
        *options.apiserver_arguments,
    )


def _controller_manager_arguments(programs: Programs, ports: Ports, options: Options) -> tuple[str, ...]:
    secrets, kubeconfig = options.folder / "pki", options.folder / "kubeconfigs" / _CONTROLLERS_USER
    return (
        str(programs.kube_controller_manager),
        f"--bind-address={_HOST}",
        f"--secure-port={ports.controller_manager}",
        f"--tls-cert-file={secrets / 'apiserver.crt'}",
        f"--tls-private-key-file={secrets / 'apiserver.key'}",
        f"--kubeconfig={kubeconfig}",
        f"--authentication-kubeconfig={kubeconfig}",
        f"--authorization-kubeconfig={kubeconfig}",
        f"--service-account-private-key-file={secrets / 'service-account.key'}",
        f"--controllers={','.join(_CONTROLLERS)}",
        # Each controller under its own ServiceAccount, as on a real cluster: RBAC and the audit log see which one.
        "--use-service-account-credentials=true",
        "--leader-elect=false",
        "--kube-api-qps=200",
        "--kube-api-burst=400",
        "--profiling=false",
    )


async def _until_ready(plane: Plane, needed: tuple[Daemon, ...]) -> None:
    async def ready() -> bool:
        for daemon in needed:
            _raise_if_ended(daemon)
        return await plane.kubectl.answers("/readyz")

    await _until(ready, "the API server", plane.folder / "logs" / "kube-apiserver.log")


async def _until_controllers_work(plane: Plane) -> None:
    # The ServiceAccount controller's first object is the sign that the controllers run.
    async def working() -> bool:
        return await plane.kubectl.answers("/api/v1/namespaces/default/serviceaccounts/default")

    await _until(working, "the controller manager", plane.folder / "logs" / "kube-controller-manager.log")


async def _until(state: Callable[[], Awaitable[bool]], what: str, log: Path) -> None:
    loop = asyncio.get_running_loop()
    deadline = loop.time() + _READY_LIMIT_S
    while not await state():
        if loop.time() > deadline:
            raise DevcloudError(f"{what} is not ready after {_READY_LIMIT_S:g} s: {daemons.log_tail(log)}; see {log}")
        await asyncio.sleep(_POLL_S)


def _raise_if_ended(daemon: Daemon) -> None:
    if daemons.is_alive(daemon.identity):
        return
    tail = daemons.log_tail(daemon.log)
    if "address already in use" in tail:
        raise _PortTakenError
    raise DevcloudError(f"{daemon.name} ended: {tail}; see {daemon.log}")


def _free_ports(folder: Path, *, keep: bool) -> Ports:
    # The same ports as last time keep kubeconfigs that a person copied alive.
    saved = _saved_ports(folder) if keep else None
    if saved is not None and all(_is_free(port) for port in msgspec.structs.astuple(saved)):
        return saved
    with socket.socket() as a, socket.socket() as b, socket.socket() as c, socket.socket() as d:
        sockets = (a, b, c, d)
        for one in sockets:
            one.bind((_HOST, 0))
        return Ports(*(int(one.getsockname()[1]) for one in sockets))


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((_HOST, port))
        except OSError:
            return False
    return True


def _saved_ports(folder: Path) -> Ports | None:
    try:
        return msgspec.json.decode((folder / "ports.json").read_bytes(), type=Ports)
    except (FileNotFoundError, msgspec.DecodeError):
        return None


def _pid_file(folder: Path, name: str) -> Path:
    return folder / f"{name}.pid.json"
