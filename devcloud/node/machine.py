"""What a node has of the machine outside its folder: an address, a bridge, mounts, network namespaces, nftables."""

import asyncio
import contextlib
import ctypes
from pathlib import Path

from devcloud.errors import DevcloudError
from devcloud.node.components import ADDRESS, BRIDGE, NETWORK

_OWNER = Path("/run/fairlead-node")  # the folder of the node that has the machine
_CNI_RESULTS = Path("/var/lib/cni/results")
_CGROUPS = Path("/sys/fs/cgroup")
_FORWARDING = Path("/proc/sys/net/ipv4/ip_forward")
_MOUNT_POINT = 4  # of /proc/self/mountinfo, proc(5)
_DETACH = 2  # MNT_DETACH of umount2(2)


def owner() -> Path | None:
    """Return the folder of the node that this machine's bridge and addresses belong to, or None."""
    return Path(_OWNER.read_text()) if _OWNER.exists() else None


async def take(folder: Path) -> None:
    """Give the machine to the node of a folder: the node's address, and packets between its networks.

    Raises:
        DevcloudError: The address cannot be set.
    """
    _note(folder)
    await run("ip", "address", "replace", f"{ADDRESS}/32", "dev", "lo")


async def give_back(folder: Path) -> None:
    """Take away all that the node of a folder has outside it; what is not there is nothing to take.

    Raises:
        DevcloudError: A mount below the folder stays, so that the folder cannot be deleted.
    """
    unmount(folder)
    for table in ("ip kube-proxy", "ip6 kube-proxy"):
        await _try("nft", "delete", "table", *table.split())
    await _try("ip", "link", "delete", BRIDGE)
    await _try("ip", "address", "delete", f"{ADDRESS}/32", "dev", "lo")
    _forget()


def _note(folder: Path) -> None:
    _OWNER.write_text(str(folder))
    _FORWARDING.write_text("1")


def _forget() -> None:
    for result in _CNI_RESULTS.glob(f"{NETWORK}-*"):
        result.unlink(missing_ok=True)
    for cgroup in sorted(_CGROUPS.glob("**/kubepods/**/"), key=lambda path: -len(path.parts)):
        # An empty one only: what runs in it is not ours to end here.
        with contextlib.suppress(OSError):
            cgroup.rmdir()
    _OWNER.unlink(missing_ok=True)


def unmount(folder: Path) -> None:
    """Unmount all below a folder. Raises DevcloudError, with the mount, when one stays."""
    for point in reversed(_mounts(folder)):
        # Lazily: a volume that a dying process still holds goes with it.
        _umount(point)
    left = _mounts(folder)
    if left:
        raise DevcloudError(f"node: {left[0]} is still mounted: unmount it, then try again")


async def delete_network_namespace(path: Path) -> None:
    """Delete the network namespace of a pod, and with it the pod's end of its link."""
    await _try("ip", "netns", "delete", path.name)


def _mounts(folder: Path) -> list[Path]:
    """Return the mount points below a folder, the outer ones first."""
    lines = Path("/proc/self/mountinfo").read_text().splitlines()
    # proc(5): a space in a path is written as its octal number.
    points = [Path(line.split()[_MOUNT_POINT].replace("\\040", " ")) for line in lines]
    return [point for point in points if folder in point.parents]


def _umount(point: Path) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    libc.umount2(str(point).encode(), _DETACH)


async def run(*command: str) -> str:
    """Run a program of the machine and return what it printed. Raises DevcloudError with its words when it fails."""
    child = await asyncio.create_subprocess_exec(
        *command, stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )
    output, errors = await child.communicate()
    if child.returncode != 0:
        raise DevcloudError(f"node: `{' '.join(command)}` failed: {errors.decode(errors='replace').strip()}")
    return output.decode()


async def _try(*command: str) -> None:
    with contextlib.suppress(DevcloudError):
        await run(*command)
