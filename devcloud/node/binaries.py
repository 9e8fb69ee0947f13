"""Find a node's programs: Debian's are named when they are missing, Kubernetes' own are built once from Go modules."""

import hashlib
import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from devcloud.controlplane import KUBERNETES_VERSION, build
from devcloud.errors import DevcloudError
from devcloud.locks import Progress, exclusive
from devcloud.paths import cache_home, remove_tree

_MODULE = Path(__file__).parent
_PACKAGES = ("tool", "./pause")
_SOURCES = ("go.mod", "go.sum", "pause/main.go")
_BUILT = ("kubelet", "kube-proxy", "kube-scheduler", "pause")
# Where Debian's containernetworking-plugins has them.
CNI_PLUGINS = Path("/usr/lib/cni")
# A program of each of Debian's packages, and the package.
_DEBIAN = {
    "containerd": "containerd",
    "ctr": "containerd",
    "runc": "runc",
    "nft": "nftables",
    "ip": "iproute2",
    str(CNI_PLUGINS / "bridge"): "containernetworking-plugins",
}


@dataclass(frozen=True, slots=True)
class NodePrograms:
    """The paths of the programs that are built: three of Kubernetes, and the one of a pod's sandbox."""

    kubelet: Path
    kube_proxy: Path
    kube_scheduler: Path
    pause: Path


def refuse_unless_possible() -> None:
    """Refuse where no node can run.

    Raises:
        DevcloudError: We are not root, or a package of Debian is missing; the line that installs it is in the text.
    """
    if os.geteuid() != 0:
        raise DevcloudError("node: containers and their networks are root's: run it as root")
    missing = dict.fromkeys(package for program, package in _DEBIAN.items() if shutil.which(program) is None)
    if missing:
        raise DevcloudError(
            f"node: {', '.join(missing)} not installed: apt-get install --no-install-recommends {' '.join(missing)}"
        )


def cache_folder() -> Path:
    """Return the folder of the programs that belong to today's sources."""
    digest = hashlib.sha256(b"".join((_MODULE / name).read_bytes() for name in _SOURCES)).hexdigest()
    return cache_home() / f"node-{KUBERNETES_VERSION}-{digest[:12]}"


def find() -> NodePrograms | None:
    """Return the programs when nothing has to be built for them."""
    folder = cache_folder()
    return _programs_in(folder) if folder.is_dir() else None


async def ensure(progress: Progress) -> NodePrograms:
    """Return the programs, built from source where they are not yet: minutes, once.

    Two processes at once get one build: the second waits, and says so.

    Raises:
        DevcloudError: There is no Go, or the build failed.
    """
    folder = cache_folder()
    lock = folder.with_name(f"{folder.name}.lock")
    waiting = f"node: another process builds the programs (lock {lock}); waiting for it"
    async with exclusive(lock, waiting=waiting, progress=progress):
        if not folder.is_dir():
            draft = folder.with_name(f"{folder.name}.draft")
            remove_tree(draft)
            draft.mkdir()
            build_folder = folder.with_name(f"{folder.name}.build")
            await build.build(_MODULE, draft, build_folder, progress, title="node", packages=_PACKAGES)
            draft.rename(folder)
    return _programs_in(folder)


def _programs_in(folder: Path) -> NodePrograms:
    kubelet, proxy, scheduler, pause = (folder / name for name in _BUILT)
    return NodePrograms(kubelet, proxy, scheduler, pause)
