"""Start and stop a node: one a machine, by root, for one control plane.

Its programs end when they are stopped, and so do its pods. Images that were imported stay in the node's folder.
"""

import asyncio
import contextlib
import json
import platform
import signal
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from devcloud import daemons
from devcloud.certificates import Subject
from devcloud.controlplane.plane import Plane
from devcloud.daemons import Command, Daemon, Lifetime
from devcloud.errors import DevcloudError
from devcloud.locks import Progress, exclusive
from devcloud.node import dns, machine
from devcloud.node.archive import oci_archive
from devcloud.node.binaries import NodePrograms
from devcloud.node.components import (
    ADDRESS,
    DNS_IMAGE,
    NAME,
    PAUSE_IMAGE,
    NodeSite,
    containerd,
    kubelet,
    proxy,
    scheduler,
)
from devcloud.paths import private_folder

MEMBERS = ("kubelet", "kube-proxy", "kube-scheduler", "containerd")
"""Its programs, in the order of stopping."""
_LOCK = Path("/run/fairlead-node.lock")
_NAMESPACE = "k8s.io"  # of containerd, where the kubelet's containers are
_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
_READY_LIMIT_S = 180.0
_SOCKET_LIMIT_S = 60.0
_POLL_S = 0.3


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """A running node.

    Attributes:
        folder: Its files.
        address: Its address, at which pods reach what listens on this machine.
        logs: The log of each program, by its name.
    """

    folder: Path
    address: str
    logs: dict[str, Path]

    async def import_image(self, archive: Path) -> None:
        """Import an image from an OCI archive that holds its name, such as `localhost/fairlead-composer:0.1.0`.

        Raises:
            DevcloudError: containerd does not take it; its words are in the text.
        """
        # Not by --index-name: the name in the archive would then be given twice, to the index and to what it lists,
        # and containerd deletes the one that lost it, perhaps before it is unpacked.
        await _ctr(self.folder, "images", "import", str(archive))


async def start(folder: Path, plane: Plane, programs: NodePrograms, *, lifetime: Lifetime, progress: Progress) -> Node:
    """Start a node in its folder, or find the one that runs there already; return when it is Ready.

    A new one's DNS server answers by then; that of one that was stopped is a pod which the node starts again.

    Raises:
        DevcloudError: Another node has this machine, the plane is not at the node's address, a program ended, or the
            node was not Ready within three minutes; the text says which.
    """
    if plane.node_address != ADDRESS:
        raise DevcloudError(f"node: the API server is at {plane.server}, where no pod reaches it")
    site = NodeSite(programs, private_folder(folder))
    async with exclusive(_LOCK, waiting="node: another one starts or ends; waiting for it", progress=progress):
        running = find(folder)
        if running is None:
            await _take_machine(folder)
            _write_files(site, plane)
            await _launch_all(site, lifetime)
    await _until_ready(site, plane)
    await _serve_names(plane)
    return _describe(folder)


def find(folder: Path) -> Node | None:
    """Return the node that runs in a folder, all of its programs; else None."""
    identities = [daemons.load(_pid_file(folder, name)) for name in MEMBERS]
    if not all(identity is not None and daemons.is_alive(identity) for identity in identities):
        return None
    return _describe(folder)


async def stop(folder: Path, *, progress: Progress) -> None:
    """End a node, its pods, and what it has of the machine; images stay.

    Raises:
        DevcloudError: A container or a mount of it cannot be removed.
    """
    async with exclusive(_LOCK, waiting="node: another one starts or ends; waiting for it", progress=progress):
        await _stop(folder)


async def _stop(folder: Path) -> None:
    for name in MEMBERS[:-1]:
        await _end(folder, name)
    if (folder / "containerd.toml").exists():
        await _remove_containers(folder)
    await _end(folder, "containerd")
    # The kubelet and we may remove a pod at the same time; its shim is then left, and runs on without containerd.
    await daemons.stop_strays("containerd-shim-runc-v2", str(folder / "containerd.sock"))
    machine.unmount(folder)
    if machine.owner() == folder:
        await machine.give_back(folder)


async def take_address(folder: Path, *, progress: Progress) -> str:
    """Give this machine the node's address, before a control plane listens there; return the address.

    Raises:
        DevcloudError: Another node has this machine.
    """
    async with exclusive(_LOCK, waiting="node: another one starts or ends; waiting for it", progress=progress):
        await _take_machine(folder)
    return ADDRESS


async def _take_machine(folder: Path) -> None:
    other = machine.owner()
    if other is not None and other != folder:
        if any(_runs(other, name) for name in MEMBERS):
            raise DevcloudError(f"node: this machine has a node already, in {other}: end that one first")
        # Killed, or of an earlier boot.
        await _stop(other)
    await machine.take(folder)


def _write_files(site: NodeSite, plane: Plane) -> None:
    folder = site.folder
    pki = private_folder(folder / "pki")
    plane.issue(Subject("kubelet", hosts=(ADDRESS, NAME))).write(pki, "kubelet")
    (pki / "authority.crt").write_bytes(plane.authority_pem)
    private_folder(folder / "kubeconfigs")
    for user, groups in (
        (f"system:node:{NAME}", ("system:nodes",)),
        ("system:kube-proxy", ()),
        ("system:kube-scheduler", ()),
    ):
        plane.certificate_kubeconfig(site.kubeconfig(user.replace(":", ".")), Subject(user, groups))
    for name, text in site.configurations.items():
        path = folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)


async def _launch_all(site: NodeSite, lifetime: Lifetime) -> None:
    folder = site.folder
    if not _runs(folder, "containerd"):
        await _launch_containerd(folder, containerd(site), lifetime)
    await _import_program(site, site.programs.pause, PAUSE_IMAGE)
    await _import_program(site, site.programs.coredns, DNS_IMAGE)
    for name, arguments in (
        ("kube-scheduler", scheduler(site)),
        ("kubelet", kubelet(site)),
        ("kube-proxy", proxy(site)),
    ):
        if not _runs(folder, name):
            _launch(folder, name, arguments, lifetime)


async def _launch_containerd(folder: Path, arguments: tuple[str, ...], lifetime: Lifetime) -> None:
    daemon = _launch(folder, "containerd", arguments, lifetime)

    async def answers() -> bool:
        _raise_if_ended(daemon)
        try:
            await _ctr(folder, "version")
        except DevcloudError:
            return False
        return True

    await _until(answers, "containerd does not answer", daemon.log, _SOCKET_LIMIT_S)


async def _import_program(site: NodeSite, program: Path, image: str) -> None:
    """Import an image that holds one static program."""
    machine_name = platform.machine()
    content = await asyncio.to_thread(program.read_bytes)
    archive = site.folder / f"{program.name}.tar"
    archive.write_bytes(oci_archive(content, program.name, _ARCHITECTURES.get(machine_name, machine_name)))
    await _ctr(site.folder, "images", "import", "--index-name", image, str(archive))


async def _serve_names(plane: Plane) -> None:
    document = json.dumps({"apiVersion": "v1", "kind": "List", "items": dns.objects()})
    apply = ("apply", "--server-side", "--force-conflicts", "--field-manager=fairlead-cli", "--filename=-")
    await plane.kubectl.run(*apply, standard_input=document)
    rollout = ("rollout", "status", f"deployment/{dns.DEPLOYMENT}", f"--namespace={dns.NAMESPACE}")
    await plane.kubectl.run(*rollout, f"--timeout={_READY_LIMIT_S:g}s", limit_s=_READY_LIMIT_S + 30)


def _launch(folder: Path, name: str, arguments: tuple[str, ...], lifetime: Lifetime) -> Daemon:
    log = _log(folder, name)
    log.parent.mkdir(exist_ok=True)
    daemons.set_aside(log)
    daemon = daemons.launch(Command(name=name, arguments=arguments, log=log), lifetime)
    daemons.save(_pid_file(folder, name), daemon)
    return daemon


async def _until_ready(site: NodeSite, plane: Plane) -> None:
    query = ("get", "node", NAME, "--ignore-not-found", "--output")

    async def ready() -> bool:
        for name in MEMBERS:
            if not _runs(site.folder, name):
                log = _log(site.folder, name)
                raise DevcloudError(f"node: {name} ended: {daemons.log_tail(log)}; see {log}")
        condition = """jsonpath={.status.conditions[?(@.type=="Ready")].status}"""
        return await plane.kubectl.run(*query, condition) == "True"

    await _until(ready, f"node {NAME} is not Ready", _log(site.folder, "kubelet"), _READY_LIMIT_S)


async def _until(state: Callable[[], Awaitable[bool]], problem: str, log: Path, limit_s: float) -> None:
    loop = asyncio.get_running_loop()
    deadline = loop.time() + limit_s
    while not await state():
        if loop.time() > deadline:
            raise DevcloudError(f"node: {problem} after {limit_s:g} s: {daemons.log_tail(log)}; see {log}")
        await asyncio.sleep(_POLL_S)


def _raise_if_ended(daemon: Daemon) -> None:
    if not daemons.is_alive(daemon.identity):
        raise DevcloudError(f"node: {daemon.name} ended: {daemons.log_tail(daemon.log)}; see {daemon.log}")


async def _remove_containers(folder: Path) -> None:
    """End and remove all containers of the node, with their network namespaces."""
    if not _runs(folder, "containerd"):
        # Containers outlive it.
        await _launch_containerd(folder, ("containerd", f"--config={folder / 'containerd.toml'}"), Lifetime.DETACHED)
    names = (await _ctr(folder, "containers", "list", "--quiet")).split()
    namespaces = {path for name in names if (path := await _network_namespace(folder, name)) is not None}
    for kind, option in (("tasks", "--force"), ("containers", "--keep-snapshot=false")):

        async def removed(kind: str = kind, option: str = option) -> bool:
            left = (await _ctr(folder, kind, "list", "--quiet")).split()
            for name in left:
                # containerd removes ended ones itself, perhaps between our two words.
                with contextlib.suppress(DevcloudError):
                    await _ctr(folder, kind, "delete", option, name)
            return not left

        await _until(removed, f"{kind} of containerd are left", _log(folder, "containerd"), _SOCKET_LIMIT_S)
    for path in namespaces:
        await machine.delete_network_namespace(path)


async def _network_namespace(folder: Path, container: str) -> Path | None:
    spec = json.loads(await _ctr(folder, "containers", "info", container)).get("Spec") or {}
    spaces: Sequence[dict[str, str]] = spec.get("linux", {}).get("namespaces", ())
    paths = [space.get("path") for space in spaces if space.get("type") == "network"]
    return next((Path(path) for path in paths if path and "/netns/" in path), None)


async def _ctr(folder: Path, *arguments: str) -> str:
    return await machine.run("ctr", f"--address={folder / 'containerd.sock'}", f"--namespace={_NAMESPACE}", *arguments)


async def _end(folder: Path, name: str) -> None:
    identity = daemons.load(_pid_file(folder, name))
    if identity is not None:
        await daemons.stop(identity, number=signal.SIGTERM)
    _pid_file(folder, name).unlink(missing_ok=True)


def _runs(folder: Path, name: str) -> bool:
    identity = daemons.load(_pid_file(folder, name))
    return identity is not None and daemons.is_alive(identity)


def _describe(folder: Path) -> Node:
    return Node(folder=folder, address=ADDRESS, logs={name: _log(folder, name) for name in MEMBERS})


def _log(folder: Path, name: str) -> Path:
    return folder / "logs" / f"{name}.log"


def _pid_file(folder: Path, name: str) -> Path:
    return folder / f"{name}.pid.json"
