"""A simulated cloud as a part of `fairlead up`: a process at a loop-back address, its databases at others beside it."""

import secrets
import signal
from dataclasses import dataclass
from pathlib import Path

from devcloud import daemons
from devcloud.addresses import Lease, address_in
from devcloud.daemons import Command, Daemon, Lifetime
from devcloud.listening import until_listening
from devcloud.paths import private_folder, remove_tree, write_private
from devcloud.simulator.databases import discard

_PORT = 8000
_READY_LIMIT_S = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Simulation:
    """How a cloud's simulator is run.

    Attributes:
        cloud: As in `devcloud.<cloud>`.
        title: What it is, for messages: `simulated RDS`.
        name: Of its process: `simulated-rds`.
    """

    cloud: str
    title: str
    name: str

    async def start(self, folder: Path, lease: Lease, *arguments: str) -> None:
        """Start the process; return when it listens.

        Args:
            folder: All that it keeps.
            lease: Its addresses: the first one is the API's.
            arguments: Those that only this cloud has.

        Raises:
            DevcloudError: Its address is taken (the text says by what), or it ended.
        """
        daemon = self.launch(private_folder(folder), lease, arguments)
        address = (lease.address(1), _PORT)
        await until_listening(daemon, address, name=self.title, words="listening on", limit_s=_READY_LIMIT_S)

    def launch(self, folder: Path, lease: Lease, arguments: tuple[str, ...]) -> Daemon:
        """Start the process and return at once; the folder exists."""
        log = log_of(folder)
        # Only this start's words say when it listens; those of a process that died are kept beside them.
        daemons.set_aside(log)
        command_line = daemons.python(
            *("-m", f"devcloud.{self.cloud}", f"--listen={lease.address(1)}:{_PORT}"),
            *arguments,
            f"--state={folder / 'state.json'}",
            f"--control-token-file={secret_in(folder, 'control-token')}",
            *(f"--databases={databases_in(folder)}", f"--octet={lease.octet}", "--durable"),
        )
        # It inherits the lease: the addresses stay ours for as long as it listens.
        command = Command(name=self.name, arguments=command_line, log=log, descriptors=(lease.descriptor,))
        daemon = daemons.launch(command, Lifetime.DETACHED)
        daemons.save(_pid_file(folder), daemon)
        return daemon


def is_running(folder: Path) -> bool:
    """Return whether a folder's simulator runs."""
    identity = daemons.load(_pid_file(folder))
    return identity is not None and daemons.is_alive(identity)


async def stop(folder: Path) -> None:
    """Stop a folder's simulator; what it keeps stays."""
    identity = daemons.load(_pid_file(folder))
    if identity is not None:
        await daemons.stop(identity, number=signal.SIGTERM, grace_s=20.0)
    _pid_file(folder).unlink(missing_ok=True)


def erase(folder: Path) -> None:
    """Delete all that a stopped simulator keeps, for good."""
    discard(databases_in(folder))
    remove_tree(folder)


def location_of(octet: int) -> str:
    """Return host and port of the simulator in a /16."""
    return f"{address_in(octet, 1)}:{_PORT}"


def log_of(folder: Path) -> Path:
    """Return the simulator's log."""
    return folder / "simulator.log"


def databases_in(folder: Path) -> Path:
    """Return where its databases lie."""
    return folder / "databases"


def secret_in(folder: Path, name: str) -> Path:
    """Return a file with a secret, made when absent."""
    path = folder / name
    if not path.exists():
        write_private(path, secrets.token_urlsafe(30))
    return path


def _pid_file(folder: Path) -> Path:
    return folder / "simulator.pid.json"
