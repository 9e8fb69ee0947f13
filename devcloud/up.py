"""`fairlead up`, `down` and `env`: one platform per user, that outlives the command.

Every step is safe to repeat, finds what runs already and records what it started, so an interrupted `up` is continued
by the next one, and so is a platform after a reboot.
"""

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import msgspec

from devcloud import addresses, controlplane, install, onprem, plane, programs
from devcloud.controlplane import Programs
from devcloud.daemons import Lifetime
from devcloud.errors import DevcloudError
from devcloud.install import Assets
from devcloud.kubectl import Kubectl
from devcloud.locks import Progress, exclusive
from devcloud.onprem import OnPremServer
from devcloud.paths import private_folder, remove_tree, state_home, write_private
from devcloud.pgprograms import Major
from devcloud.plane import Plane
from devcloud.programs import PROGRAMS

_POSTGRES: Major = 16


@dataclass(frozen=True, slots=True)
class Options:
    """What `up` needs to know: where the reviewed data is, and the platform's folder when it is not the usual one."""

    assets: Assets
    folder: Path | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Environment:
    """A platform that is up.

    Attributes:
        plane: The control plane; its `kubeconfig` is the administrator's.
        onprem: The platform team's PostgreSQL server.
        logs: The log of each program, by its name.
        was_running: Whether all of it ran before it was asked for.
    """

    plane: Plane
    onprem: OnPremServer
    logs: dict[str, Path]
    was_running: bool


class _State(msgspec.Struct, frozen=True):
    """What stays the same from one `up` to the next, since ProviderConfigs and people hold these addresses."""

    octet: int
    health_ports: dict[str, int]


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
    async with _alone(folder, progress):
        running = await _find(folder)
        if running is not None:
            progress("fairlead: the platform is up already")
            return running
        binaries = await controlplane.ensure(progress)
        clock = _Clock(progress)
        cluster = await _start_plane(folder, options.assets, binaries)
        clock.step(f"control plane: {cluster.server}")
        installation = await _install(cluster, options.assets)
        clock.step("control plane: CRDs, accounts, roles, policies and Compositions applied")
        server, ports = await _start_server(folder)
        await install.connect_onprem(cluster.kubectl, server)
        clock.step(f"on-prem: PostgreSQL {_POSTGRES} at {server.host}:{server.port} with TLS, ProviderConfig default")
        for program in PROGRAMS:
            port = ports[program.name]
            await programs.start(program, folder, cluster, installation=installation, health_port=port)
        for program in PROGRAMS:
            await programs.until_ready(program, folder, health_port=ports[program.name])
            clock.step(f"{program.name}: ready, as ServiceAccount {program.namespace}/{program.account}")
        return _describe(folder, cluster, server, was_running=False)


async def down(progress: Progress, *, keep_data: bool = False, folder: Path | None = None) -> bool:
    """Stop the platform and, unless told to keep them, delete its objects and databases for good.

    Returns:
        Whether there was anything to stop or to delete.
    """
    home = folder or state_home()
    async with _alone(home, progress):
        # An interrupted `up` leaves parts, and no state yet.
        was_there = _state_file(home).exists() or (home / "plane").exists()
        # First those who might still write.
        for program in reversed(PROGRAMS):
            await programs.stop(program, home)
        await onprem.stop(home / "onprem")
        await plane.stop(home / "plane")
        if not keep_data:
            onprem.erase(home / "onprem")
            remove_tree(home)
    return was_there


async def environment(*, folder: Path | None = None) -> Environment:
    """Return the platform that runs.

    Raises:
        DevcloudError: It does not run, or not all of it does.
    """
    running = await _find(folder or state_home())
    if running is None:
        raise DevcloudError("the platform is not up, or not all of it is: run `fairlead up`")
    return running


async def _start_plane(folder: Path, assets: Assets, binaries: Programs) -> Plane:
    async def install_crds(kubectl: Kubectl) -> None:
        await install.install_crds(kubectl, assets)

    options = plane.Options(
        folder=folder / "plane",
        lifetime=Lifetime.DETACHED,
        durable=True,
        # Of two equal flags the last one counts; tests count in a whole log, a platform that stays up needs no more.
        apiserver_arguments=("--audit-log-maxsize=50",),
        before_controllers=install_crds,
    )
    return await plane.start(options, binaries)


async def _install(cluster: Plane, assets: Assets) -> str:
    # CRDs again, for a plane that was found running: it may have those of an older version of ours.
    await install.install_crds(cluster.kubectl, assets)
    await install.install_base(cluster.kubectl, assets)
    await install.install_compositions(cluster.kubectl, assets)
    return await install.installation_id(cluster.kubectl)


async def _start_server(folder: Path) -> tuple[OnPremServer, dict[str, int]]:
    """Start the PostgreSQL server at its address; return it and the programs' health ports."""
    state = _state(folder)
    running = _find_server(folder, state)
    if running is not None and state is not None:
        return running, state.health_ports
    lease = addresses.lease_again(state.octet) if state else addresses.choose_lasting(folder)
    try:
        options = onprem.Options(folder=folder / "onprem", lifetime=Lifetime.DETACHED, durable=True, major=_POSTGRES)
        server = await onprem.start(options, lease)
        chosen = state or _State(lease.octet, programs.free_ports())
        write_private(_state_file(folder), msgspec.json.encode(chosen))
    finally:
        # The front has its own copy, which lives as long as it listens.
        lease.release()
    return server, chosen.health_ports


def _find_server(folder: Path, state: _State | None) -> OnPremServer | None:
    if state is None:
        return None
    return onprem.find(folder / "onprem", _POSTGRES, addresses.address_in(state.octet, 1))


async def _find(folder: Path) -> Environment | None:
    server = _find_server(folder, _state(folder))
    if server is None or not all(programs.runs(program, folder) for program in PROGRAMS):
        return None
    binaries = controlplane.find()
    cluster = None if binaries is None else await plane.find(folder / "plane", binaries)
    return None if cluster is None else _describe(folder, cluster, server, was_running=True)


def _describe(folder: Path, cluster: Plane, server: OnPremServer, *, was_running: bool) -> Environment:
    logs = {program.name: program.log(folder) for program in PROGRAMS}
    logs |= {name: cluster.folder / "logs" / f"{name}.log" for name in plane.MEMBERS}
    logs |= {"postgres": server.server.log, "front": folder / "onprem" / "front.log"}
    return Environment(plane=cluster, onprem=server, logs=logs, was_running=was_running)


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
