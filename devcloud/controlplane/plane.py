"""A Kubernetes control plane on 127.0.0.1: etcd, kube-apiserver with RBAC, kube-controller-manager.

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

from devcloud import addresses, daemons
from devcloud.certificates import KeyPair, Subject, authority_in, signing_keys_in
from devcloud.controlplane import Programs, components
from devcloud.controlplane import kubeconfig as kubeconfigs
from devcloud.controlplane.components import HOST, Ports, Site
from devcloud.controlplane.kubectl import Kubectl
from devcloud.daemons import Command, Daemon, Identity, Lifetime
from devcloud.errors import DevcloudError
from devcloud.paths import private_folder

_READY_LIMIT_S = 90.0
_POLL_S = 0.3
_PORT_ATTEMPTS = 3
MEMBERS = ("kube-controller-manager", "kube-apiserver", "etcd")  # in the order of stopping


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """How to run a plane.

    Attributes:
        folder: Where it keeps keys, data, logs and kubeconfigs.
        lifetime: Whether it dies with this process.
        durable: Whether etcd syncs each write to disk; without, a power cut may lose data.
        apiserver_arguments: More arguments of kube-apiserver.
        node_address: An address of this machine that pods reach, for the API server; then all controllers run, and a
            node can join. None: no node, and a loop-back address.
        before_controllers: Called when the API server is ready and no controller runs yet. CRDs that are there by
            then are known to the garbage collector from its first second; later ones within 30 s.
    """

    folder: Path
    lifetime: Lifetime
    durable: bool
    apiserver_arguments: tuple[str, ...] = ()
    node_address: str | None = None
    before_controllers: Callable[[Kubectl], Awaitable[None]] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Plane:
    """A running control plane.

    Attributes:
        server: The API server's URL.
        authority_pem: The certificate authority that signed its serving certificate.
        kubeconfig: The administrator's kubeconfig (mode 0600).
        audit_log: The API server's audit log: JSON lines, `audit.k8s.io/v1` Event at level Metadata.
        node_address: The API server's address where a node can join; None where none can.
    """

    folder: Path
    programs: Programs
    server: str
    authority_pem: bytes
    kubeconfig: Path
    audit_log: Path
    node_address: str | None = None

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

    def certificate_kubeconfig(self, path: Path, subject: Subject) -> None:
        """Write the kubeconfig of a user by a new client certificate to a path."""
        pair = self.issue(subject)
        user = kubeconfigs.CertificateUser(subject.common_name, pair.certificate_pem, pair.key_pem)
        kubeconfigs.write(path, kubeconfigs.Cluster(self.server, self.authority_pem, "default"), user)

    def issue(self, subject: Subject) -> KeyPair:
        """Sign a new key by the plane's own authority."""
        return authority_in(self.folder / "pki", "kubernetes-ca").issue(subject)


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

    One that runs at another address is started again.

    Raises:
        DevcloudError: A program ended, or the plane was not ready in time; the end of the log is in the text.
    """
    folder = private_folder(options.folder)
    running = await find(folder, programs)
    if running is not None and running.node_address == options.node_address:
        return running
    # A part of a plane that was interrupted while it started would hold the data folder.
    await stop(folder)
    for attempt in range(1, _PORT_ATTEMPTS + 1):
        try:
            ports = _free_ports(folder, options.node_address or HOST, keep=attempt == 1)
            return await _start_on(Site(programs, folder, ports, options.node_address), options)
        except _PortTakenError:
            # Probing a port and using it are two steps; somebody came between.
            await stop(folder)
    raise DevcloudError(f"no free ports on {HOST} in {_PORT_ATTEMPTS} attempts: see the logs in {folder}/logs")


async def find(folder: Path, programs: Programs) -> Plane | None:
    """Return the plane that runs in a folder and answers, or None."""
    identities = [daemons.load(_pid_file(folder, name)) for name in MEMBERS]
    if not all(identity is not None and daemons.is_alive(identity) for identity in identities):
        return None
    ports = _saved_ports(folder)
    if ports is None:
        return None
    plane = _plane(Site(programs, folder, ports, _saved_node_address(folder)))
    return plane if await plane.kubectl.answers("/readyz") else None


async def stop(folder: Path, *, grace_s: float = 10.0) -> None:
    """Stop what runs of a plane; its data stay. A pid that another process has got by now is left alone."""
    for name in MEMBERS:
        identity = daemons.load(_pid_file(folder, name))
        if identity is not None:
            await daemons.stop(identity, number=signal.SIGTERM, grace_s=grace_s)
        _pid_file(folder, name).unlink(missing_ok=True)
    # Killed between a start and its pid file: the program would hold the data folder for ever.
    for name, marker in components.markers(folder).items():
        await daemons.stop_strays(name, marker)


def members(folder: Path) -> dict[str, Identity | None]:
    """Return the processes of a plane by name, as their pid files have them."""
    return {name: daemons.load(_pid_file(folder, name)) for name in MEMBERS}


class _PortTakenError(Exception):
    """A port that was free when we looked is taken."""


async def _start_on(site: Site, options: Options) -> Plane:
    _write_credentials(site)
    (site.folder / "ports.json").write_bytes(msgspec.json.encode(site.ports))
    _node_address_file(site.folder).write_text(site.node_address or "")
    etcd = _launch("etcd", components.etcd(site, durable=options.durable), options)
    apiserver = _launch("kube-apiserver", components.apiserver(site, options.apiserver_arguments), options)
    plane = _plane(site)
    await _until_ready(plane, site, (etcd, apiserver))
    if options.before_controllers is not None:
        await options.before_controllers(plane.kubectl)
    controllers = _launch("kube-controller-manager", components.controller_manager(site), options)
    await _until_controllers_work(plane, controllers)
    return plane


def _plane(site: Site) -> Plane:
    return Plane(
        folder=site.folder,
        programs=site.programs,
        server=f"https://{site.host}:{site.ports.apiserver}",
        authority_pem=(site.secrets / "kubernetes-ca.crt").read_bytes(),
        kubeconfig=site.admin_kubeconfig,
        audit_log=site.audit_log,
        node_address=site.node_address,
    )


def _write_credentials(site: Site) -> None:
    """Write keys, certificates and kubeconfigs; authorities are made once, what they sign at each start."""
    secrets = private_folder(site.secrets)
    authority, etcd_authority = authority_in(secrets, "kubernetes-ca"), authority_in(secrets, "etcd-ca")
    signing_keys_in(secrets, "service-account")
    authority.issue(Subject("kube-apiserver", hosts=site.server_hosts)).write(secrets, "apiserver")
    if site.node_address is not None:
        # Whom a kubelet lets read logs and run commands.
        authority.issue(Subject("kube-apiserver-kubelet-client", ("system:masters",))).write(secrets, "kubelet-client")
    etcd_authority.issue(Subject("etcd", hosts=(HOST, "localhost"))).write(secrets, "etcd")
    cluster = kubeconfigs.Cluster(f"https://{site.host}:{site.ports.apiserver}", authority.pem, "default")
    private_folder(site.admin_kubeconfig.parent)
    for path, subject in (
        (site.admin_kubeconfig, Subject("fairlead-admin", organizations=("system:masters",))),
        (site.controllers_kubeconfig, Subject("system:kube-controller-manager")),
    ):
        pair = authority.issue(subject)
        user = kubeconfigs.CertificateUser(subject.common_name, pair.certificate_pem, pair.key_pem)
        kubeconfigs.write(path, cluster, user)


def _launch(name: str, arguments: tuple[str, ...], options: Options) -> Daemon:
    log = options.folder / "logs" / f"{name}.log"
    log.parent.mkdir(exist_ok=True)
    # Only this start's words may answer "why did it end".
    daemons.set_aside(log)
    daemon = daemons.launch(Command(name=name, arguments=arguments, log=log), options.lifetime)
    daemons.save(_pid_file(options.folder, name), daemon)
    return daemon


async def _until_ready(plane: Plane, site: Site, needed: tuple[Daemon, ...]) -> None:
    async def ready() -> bool:
        for daemon in needed:
            _raise_if_ended(daemon)
        # Looking for the listener first: kubectl would take the processor that the API server needs to start.
        return addresses.is_listened(site.host, site.ports.apiserver) and await plane.kubectl.answers("/readyz")

    await _until(ready, "the API server", plane.folder / "logs" / "kube-apiserver.log")


async def _until_controllers_work(plane: Plane, controllers: Daemon) -> None:
    # The ServiceAccount controller's first object is the sign that the controllers run.
    async def working() -> bool:
        _raise_if_ended(controllers)
        return await plane.kubectl.answers("/api/v1/namespaces/default/serviceaccounts/default")

    await _until(working, "the controller manager", plane.folder / "logs" / "kube-controller-manager.log")


async def _until(state: Callable[[], Awaitable[bool]], goal: str, log: Path) -> None:
    loop = asyncio.get_running_loop()
    deadline = loop.time() + _READY_LIMIT_S
    while not await state():
        if loop.time() > deadline:
            raise DevcloudError(f"{goal} is not ready after {_READY_LIMIT_S:g} s: {daemons.log_tail(log)}; see {log}")
        await asyncio.sleep(_POLL_S)


def _raise_if_ended(daemon: Daemon) -> None:
    if daemons.is_alive(daemon.identity):
        return
    tail = daemons.log_tail(daemon.log)
    if "address already in use" in tail:
        raise _PortTakenError
    raise DevcloudError(f"{daemon.name} ended: {tail}; see {daemon.log}")


def _free_ports(folder: Path, host: str, *, keep: bool) -> Ports:
    # The same ports as last time keep kubeconfigs that a person copied alive.
    saved = _saved_ports(folder) if keep else None
    if saved is not None and _is_free(host, saved.apiserver):
        others = (saved.etcd, saved.etcd_peer, saved.controller_manager)
        if all(_is_free(HOST, port) for port in others):
            return saved
    with socket.socket() as a, socket.socket() as b, socket.socket() as c, socket.socket() as d:
        sockets = (a, b, c, d)
        for listener in sockets:
            listener.bind((host if listener is a else HOST, 0))
        return Ports(*(int(listener.getsockname()[1]) for listener in sockets))


def _is_free(host: str, port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError:
            return False
    return True


def _saved_ports(folder: Path) -> Ports | None:
    try:
        return msgspec.json.decode((folder / "ports.json").read_bytes(), type=Ports)
    except (FileNotFoundError, msgspec.DecodeError):
        return None


def _saved_node_address(folder: Path) -> str | None:
    file = _node_address_file(folder)
    return (file.read_text() or None) if file.exists() else None


def _node_address_file(folder: Path) -> Path:
    return folder / "node-address"


def _pid_file(folder: Path, name: str) -> Path:
    return folder / f"{name}.pid.json"
