"""`fairlead up`, `down` and `env`: one platform per user, that outlives the command.

Every step is safe to repeat, finds what runs already and records what it started, so an interrupted `up` is continued
by the next one, and so is a platform after a reboot.
"""

import dataclasses
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import msgspec

from devcloud import addresses, clouds, controlplane, install, node, programs
from devcloud.addresses import Lease
from devcloud.clouds import Cloud, RunningCloud
from devcloud.controlplane import Programs, plane
from devcloud.controlplane.kubectl import Kubectl
from devcloud.controlplane.plane import Plane
from devcloud.daemons import Lifetime
from devcloud.errors import DevcloudError
from devcloud.install import Assets
from devcloud.locks import Progress, exclusive
from devcloud.node import node as nodes
from devcloud.node.node import Node
from devcloud.paths import private_folder, remove_tree, state_home, write_private
from devcloud.postgres import contrib
from devcloud.programs import COMPOSER, Program

_FIRST_NAMESPACE = "default"


@dataclass(frozen=True, slots=True)
class Options:
    """What `up` needs to know.

    Attributes:
        assets: Where the reviewed data is.
        folder: The platform's folder when it is not the usual one.
        clouds: Those to bring up beside the ones that the platform has; a new one without any gets the default one.
        is_bare: Whether a new platform goes without composer and providers.
        node: Whether it gets a node for pods, as root; one that has a node keeps it.
    """

    assets: Assets
    folder: Path | None = None
    clouds: tuple[str, ...] = ()
    is_bare: bool = False
    node: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Environment:
    """A platform that is up.

    Attributes:
        folder: Its folder.
        plane: The control plane; its `kubeconfig` is the administrator's.
        clouds: Its simulated clouds by name.
        logs: The log of each program, by its name.
        was_running: Whether all of it ran before it was asked for.
        node: Its node; None without one.
    """

    folder: Path
    plane: Plane
    clouds: dict[str, RunningCloud]
    logs: dict[str, Path]
    was_running: bool
    node: Node | None = None

    def place_of(self, cloud: str) -> tuple[Path, int]:
        """Return a cloud's folder and the second number of its addresses.

        Raises:
            DevcloudError: The platform does not have it.
        """
        state = _state(self.folder)
        octet = None if state is None else state.octets.get(cloud)
        if octet is None:
            raise DevcloudError(f"the platform has no cloud {cloud}: run `fairlead up --clouds {cloud}`")
        return self.folder / cloud, octet


class _State(msgspec.Struct, frozen=True):
    """What stays the same from one `up` to the next, since ProviderConfigs and people hold these addresses.

    The second number of each cloud's addresses by the cloud's name, and the health port of each program by its.
    """

    octets: dict[str, int] = {}
    health_ports: dict[str, int] = {}
    is_bare: bool = False
    has_node: bool = False

    def clouds(self) -> tuple[Cloud, ...]:
        return tuple(clouds.cloud_of(name) for name in self.octets)

    def programs(self) -> tuple[Program, ...]:
        return () if self.is_bare else (COMPOSER, *(cloud.program for cloud in self.clouds()))


class _Clock:
    """Prints one line a step with the seconds since the start."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._start = time.monotonic()

    def step(self, line: str) -> None:
        self._progress(f"[{time.monotonic() - self._start:5.1f} s] {line}")


async def up(options: Options, progress: Progress) -> Environment:
    """Bring the platform up, or what of it is missing; return when composer and providers are ready.

    Raises:
        DevcloudError: A step failed; the text says which, why, and where its log is.
    """
    folder = options.folder or state_home()
    for name in options.clouds:
        clouds.cloud_of(name)
    async with _alone(folder, progress):
        running = await _find(folder)
        is_enough = running is not None and (running.node is not None or not options.node)
        if running is not None and is_enough and running.clouds.keys() >= set(options.clouds):
            progress("fairlead: the platform is up already")
            return running
        with_node = _with_node(folder, options)
        contrib.warn(progress)
        binaries = await controlplane.ensure(progress)
        node_binaries = await node.ensure(progress) if with_node else None
        clock = _Clock(progress)
        address = await nodes.take_address(folder / "node", progress=progress) if with_node else None
        cluster = await _start_plane(folder, options.assets, binaries, address)
        clock.step(f"control plane: {cluster.server}")
        chosen = _chosen(folder, options)
        installation = await _install(cluster, options.assets, chosen)
        clock.step("control plane: CRDs, accounts, roles, policies and Compositions applied")
        running_clouds: dict[str, RunningCloud] = {}
        for name in chosen:
            running_clouds[name] = await _start_cloud(clouds.cloud_of(name), folder, address)
            await install.apply_objects(cluster.kubectl, running_clouds[name].objects)
            clock.step(running_clouds[name].says)
        state = _with_ports(folder, is_bare=options.is_bare)
        for program, flags in _starts(state, running_clouds):
            start = programs.Start(installation=installation, health_port=state.health_ports[program.name], flags=flags)
            await programs.start(program, folder, cluster, start)
        if node_binaries is not None:
            place = folder / "node"
            await nodes.start(place, cluster, node_binaries, lifetime=Lifetime.DETACHED, progress=progress)
            clock.step(f"node: Ready, at {address}")
        for program in state.programs():
            await programs.until_ready(program, folder, health_port=state.health_ports[program.name])
            clock.step(f"{program.name}: ready, as ServiceAccount {program.namespace}/{program.account}")
        return _describe(folder, cluster, running_clouds, state)


async def down(progress: Progress, *, keep_data: bool = False, folder: Path | None = None) -> bool:
    """Stop the platform and, unless asked to keep them, delete its objects and databases for good.

    Returns:
        Whether there was anything to stop or to delete.
    """
    home = folder or state_home()
    async with _alone(home, progress):
        was_there = has_data(folder=home)
        # Not by the state, which may be damaged: all that could be there.
        all_clouds = clouds.all_clouds()
        # First those who might still write.
        for program in (*(cloud.program for cloud in all_clouds), COMPOSER):
            await programs.stop(program, home)
        for cloud in all_clouds:
            await cloud.stop(home / cloud.name)
        if (home / "node").exists():
            await nodes.stop(home / "node", progress=progress)
        await plane.stop(home / "plane")
        if not keep_data:
            for cloud in all_clouds:
                cloud.erase(home / cloud.name)
            remove_tree(home)
    return was_there


def has_data(*, folder: Path | None = None) -> bool:
    """Return whether there is anything that `down` would delete."""
    home = folder or state_home()
    # An interrupted `up` leaves parts.
    return _state_file(home).exists() or (home / "plane").exists()


async def prepare(assets: Assets, namespaces: Sequence[str], *, folder: Path | None = None) -> tuple[str, ...]:
    """Let all processes of the platform that runs use Secrets in these namespaces; return its clouds' names.

    Raises:
        DevcloudError: It does not run, or has no such namespace.
    """
    running = await environment(folder=folder)
    await install.prepare_namespaces(running.plane.kubectl, assets, namespaces, running.clouds)
    return tuple(running.clouds)


async def environment(*, folder: Path | None = None) -> Environment:
    """Return the platform that runs.

    Raises:
        DevcloudError: It does not run, or not all of it does.
    """
    running = await _find(folder or state_home())
    if running is None:
        raise DevcloudError("the platform is not up, or not all of it is: run `fairlead up`")
    return running


def _with_node(folder: Path, options: Options) -> bool:
    """Return whether the platform has a node, and keep that it is to have one from now on."""
    state = _state(folder) or _State()
    if not (options.node or state.has_node):
        return False
    node.refuse_unless_possible()
    _save(folder, msgspec.structs.replace(state, has_node=True))
    return True


async def _start_plane(folder: Path, assets: Assets, binaries: Programs, node_address: str | None) -> Plane:
    async def install_crds(kubectl: Kubectl) -> None:
        await install.install_crds(kubectl, assets)

    options = plane.Options(
        folder=folder / "plane",
        lifetime=Lifetime.DETACHED,
        durable=True,
        # Of two equal flags the last one counts; tests count in a whole log, a platform that stays up needs no more.
        apiserver_arguments=("--audit-log-maxsize=50",),
        node_address=node_address,
        before_controllers=install_crds,
    )
    return await plane.start(options, binaries)


async def _install(cluster: Plane, assets: Assets, chosen: Sequence[str]) -> str:
    # CRDs again, for a plane that was found running: it may have those of an older version of ours.
    await install.install_crds(cluster.kubectl, assets)
    await install.install_base(cluster.kubectl, assets)
    for name in chosen:
        await install.install_cloud(cluster.kubectl, assets, name)
    # A cloud that came later serves the namespaces that were prepared before it.
    prepared = dict.fromkeys((_FIRST_NAMESPACE, *await install.prepared_namespaces(cluster.kubectl)))
    await install.prepare_namespaces(cluster.kubectl, assets, prepared, chosen)
    await install.install_compositions(cluster.kubectl, assets, without=set(clouds.names()) - set(chosen))
    return await install.installation_id(cluster.kubectl)


def _chosen(folder: Path, options: Options) -> tuple[str, ...]:
    """Return the clouds that the platform has, and those that it is to get."""
    before = _state(folder)
    has = () if before is None else tuple(before.octets)
    return tuple(dict.fromkeys((*has, *options.clouds))) or (clouds.default().name,)


async def _start_cloud(cloud: Cloud, folder: Path, pods_address: str | None) -> RunningCloud:
    """Start a simulated cloud's programs at the addresses of the platform's state; one that runs is left alone."""
    state = _state(folder) or _State()
    octet = state.octets.get(cloud.name)
    home = folder / cloud.name
    if octet is not None:
        running = cloud.find(home, octet)
        if running is not None:
            return running
    # A part of it that is left holds its addresses and its data.
    await cloud.stop(home)
    lease = _new_lease(home, set(state.octets.values())) if octet is None else addresses.lease_again(octet)
    try:
        _save(folder, msgspec.structs.replace(state, octets=state.octets | {cloud.name: lease.octet}))
        return await cloud.start(home, dataclasses.replace(lease, pods_address=pods_address))
    finally:
        # The program that listens has its own copy, which lives as long as it does.
        lease.release()


def _new_lease(owner: Path, taken: set[int]) -> Lease:
    with ExitStack() as others:
        # Those of this platform's clouds that are down are locked by nobody.
        while (lease := addresses.choose_lasting(owner)).octet in taken:
            others.callback(lease.release)
        return lease


def _with_ports(folder: Path, *, is_bare: bool) -> _State:
    """Choose and keep health ports for the programs that have none; return the state."""
    state = _state(folder) or _State()
    if not state.health_ports:
        state = msgspec.structs.replace(state, is_bare=is_bare)
    missing = [program.name for program in state.programs() if program.name not in state.health_ports]
    state = msgspec.structs.replace(state, health_ports=state.health_ports | programs.free_ports(missing))
    _save(folder, state)
    return state


def _starts(state: _State, running_clouds: dict[str, RunningCloud]) -> list[tuple[Program, tuple[str, ...]]]:
    if state.is_bare:
        return []
    return [(COMPOSER, ()), *((cloud.program, running_clouds[cloud.name].flags) for cloud in state.clouds())]


async def _find(folder: Path) -> Environment | None:
    state = _state(folder)
    if state is None or not all(programs.runs(program, folder) for program in state.programs()):
        return None
    running_clouds: dict[str, RunningCloud] = {}
    for cloud in state.clouds():
        running = cloud.find(folder / cloud.name, state.octets[cloud.name])
        if running is None:
            return None
        running_clouds[cloud.name] = running
    if state.has_node and nodes.find(folder / "node") is None:
        return None
    binaries = controlplane.find()
    cluster = None if binaries is None else await plane.find(folder / "plane", binaries)
    return None if cluster is None else _describe(folder, cluster, running_clouds, state, was_running=True)


def _describe(
    folder: Path, cluster: Plane, running_clouds: dict[str, RunningCloud], state: _State, *, was_running: bool = False
) -> Environment:
    logs = {program.name: program.log(folder) for program in state.programs()}
    logs |= {name: cluster.folder / "logs" / f"{name}.log" for name in plane.MEMBERS}
    for running in running_clouds.values():
        logs |= running.logs
    running_node = nodes.find(folder / "node") if state.has_node else None
    logs |= {} if running_node is None else running_node.logs
    return Environment(
        folder=folder, plane=cluster, clouds=running_clouds, logs=logs, was_running=was_running, node=running_node
    )


@asynccontextmanager
async def _alone(folder: Path, progress: Progress) -> AsyncIterator[None]:
    # Beside the folder, not in it: `down` deletes the folder while it holds the lock.
    lock = folder.with_name(f"{folder.name}.lock")
    waiting = "fairlead: another `fairlead up` or `down` is at work; waiting for it"
    async with exclusive(lock, waiting=waiting, progress=progress):
        private_folder(folder)
        yield


def _state(folder: Path) -> _State | None:
    try:
        return msgspec.json.decode(_state_file(folder).read_bytes(), type=_State)
    except FileNotFoundError:
        return None
    except msgspec.DecodeError as error:
        raise DevcloudError(f"{_state_file(folder)} is damaged: run `fairlead down`, then `fairlead up`") from error


def _state_file(folder: Path) -> Path:
    return folder / "platform.json"


def _save(folder: Path, state: _State) -> None:
    write_private(_state_file(folder), msgspec.json.encode(state))
