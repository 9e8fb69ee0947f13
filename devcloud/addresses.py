"""Loop-back addresses for instances: each run leases a /16 of 127.0.0.0/8, so that runs never meet.

Linux answers on all of 127.0.0.0/8 without set-up. A lease is a file lock: it ends with the last process that holds it.
"""

import contextlib
import hashlib
import ipaddress
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from devcloud.errors import DevcloudError
from devcloud.locks import locked

# All users of the machine share the addresses, so the locks lie where all may write.
_LOCKS = Path("/tmp/fairlead-addresses")  # noqa: S108 - files are opened without following links
_LASTING = range(1, 128)
_PASSING = range(128, 255)
_LISTEN = "0A"  # of the state column of /proc/net/tcp


@dataclass(frozen=True, slots=True)
class Lease:
    """One /16, leased while `descriptor` is open in any process.

    Attributes:
        octet: The second number of the addresses.
        descriptor: The locked file, to be inherited by the process that outlives this one.
        pods_address: An address of this machine that pods reach, where a node is; no loop-back one.
    """

    octet: int
    descriptor: int
    pods_address: str | None = None

    def address(self, number: int) -> str:
        """Return the address of the instance with that number, from 1 on."""
        return address_in(self.octet, number)

    def release(self) -> None:
        """Give up this process's share of the lease."""
        os.close(self.descriptor)


def address_in(octet: int, number: int) -> str:
    """Return the address of the instance with that number, from 1 on, in a /16."""
    return f"127.{octet}.{number // 256}.{number % 256}"


def lease(*, locks: Path = _LOCKS) -> Lease:
    """Lease a /16 for a run that keeps nothing.

    Raises:
        DevcloudError: All of them are leased.
    """
    return _first_free(list(_PASSING), locks)


def choose_lasting(owner: Path, *, locks: Path = _LOCKS) -> Lease:
    """Lease a /16 for a platform that stays: out of a range of their own, another one for each owner's folder.

    A platform that is down holds no lock. Passing runs never take its addresses, and another platform hardly ever.

    Raises:
        DevcloudError: All of them are leased.
    """
    digest = hashlib.sha256(os.fsencode(owner.absolute())).digest()
    start = int.from_bytes(digest[:4]) % len(_LASTING)
    return _first_free([*_LASTING[start:], *_LASTING[:start]], locks)


def lease_again(octet: int, *, locks: Path = _LOCKS) -> Lease:
    """Lease the /16 that a platform chose before: what it published stays true.

    Raises:
        DevcloudError: It is leased by another run.
    """
    _make_folder(locks)
    descriptor = _locked(locks / f"127.{octet}")
    if descriptor is None:
        raise DevcloudError(f"127.{octet}.0.0/16 is leased by another run (lock {locks}/127.{octet}): end that run")
    return Lease(octet, descriptor)


def _first_free(octets: list[int], locks: Path) -> Lease:
    _make_folder(locks)
    for octet in octets:
        descriptor = _locked(locks / f"127.{octet}")
        if descriptor is not None:
            return Lease(octet, descriptor)
    raise DevcloudError(f"every /16 of 127.0.0.0/8 is leased by a running platform: see the locks in {locks}")


def _make_folder(locks: Path) -> None:
    with contextlib.suppress(FileExistsError):
        locks.mkdir()
        locks.chmod(0o1777)


def _locked(path: Path) -> int | None:
    try:
        return locked(_opened(path))
    except PermissionError:
        # Another user's file that we may not even open: theirs.
        return None


def _opened(path: Path) -> int:
    flags = os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW
    with contextlib.suppress(FileNotFoundError):
        # Without O_CREAT, which the kernel refuses on other users' files here (fs.protected_regular).
        return os.open(path, flags)
    descriptor = os.open(path, flags | os.O_CREAT, 0o666)
    os.fchmod(descriptor, 0o666)
    return descriptor


def is_listened(host: str, port: int) -> bool:
    """Return whether somebody listens on an address, or on all addresses of IPv4, at a port; touches nothing."""
    return _listener(host, port) is not None


def holder_of(host: str, port: int) -> str:
    """Say in words which process listens on an address, or on all addresses, at a port."""
    listener = _listener(host, port)
    if listener is not None:
        return _owner_of_socket(listener.inode, uid=listener.uid)
    if _listens_on_any_ipv6(port):
        return "a process that listens on all addresses of IPv6 and IPv4"
    return "no process that this user can see"


@dataclass(frozen=True, slots=True)
class _Listener:
    inode: str
    uid: int


def _listener(host: str, port: int) -> _Listener | None:
    wanted = {_hexadecimal(host), _hexadecimal("0.0.0.0")}  # noqa: S104 - compared, not bound
    for line in Path("/proc/net/tcp").read_text().splitlines()[1:]:
        fields = line.split()
        local, _, local_port = fields[1].partition(":")
        if fields[3] == _LISTEN and local in wanted and int(local_port, 16) == port:
            return _Listener(inode=fields[9], uid=int(fields[7]))
    return None


def _hexadecimal(host: str) -> str:
    # proc(5) prints the address in the machine's byte order.
    return f"{int.from_bytes(ipaddress.IPv4Address(host).packed, 'little'):08X}"


def _listens_on_any_ipv6(port: int) -> bool:
    path = Path("/proc/net/tcp6")
    text = path.read_text() if path.exists() else ""
    return re.search(rf": 0{{32}}:{port:04X} \S+ {_LISTEN} ", text) is not None


def _owner_of_socket(inode: str, *, uid: int) -> str:
    for pid, target in _open_files():
        if target == f"socket:[{inode}]":
            words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
            command = b" ".join(words).decode(errors="replace").strip()
            return f"pid {pid} ({command[:80]})"
    return f"a process of uid {uid}"


def _open_files() -> Iterator[tuple[str, str]]:
    for process in Path("/proc").glob("[0-9]*"):
        # Processes end while we look, and other users' are closed to us.
        with contextlib.suppress(OSError):
            for descriptor in (process / "fd").iterdir():
                with contextlib.suppress(OSError):
                    yield process.name, str(descriptor.readlink())
