"""Find a node's programs: Debian's are named when they are missing, Kubernetes' own are built once from Go modules."""

import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from devcloud.controlplane import KUBERNETES_VERSION, modules
from devcloud.controlplane.modules import GoModule
from devcloud.errors import DevcloudError
from devcloud.locks import Progress

_HERE = Path(__file__).parent
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
    """The paths of the programs that are built: three of Kubernetes, a pod's sandbox's, and that of the names."""

    kubelet: Path
    kube_proxy: Path
    kube_scheduler: Path
    pause: Path
    coredns: Path


# Two, since each has its own versions of what Kubernetes and CoreDNS share.
_NODE_SOURCES = ("go.mod", "go.sum", "pause/main.go")
_NODE = GoModule(_HERE, ("tool", "./pause"), _NODE_SOURCES, f"node-{KUBERNETES_VERSION}", "node")
_DNS = GoModule(_HERE / "dns", (".",), ("go.mod", "go.sum", "main.go"), "coredns", "node")


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


def find() -> NodePrograms | None:
    """Return the programs when nothing has to be built for them."""
    return _programs() if _NODE.built().is_dir() and _DNS.built().is_dir() else None


async def ensure(progress: Progress) -> NodePrograms:
    """Return the programs, built from source where they are not yet: minutes, once.

    Two processes at once get one build: the second waits, and says so.

    Raises:
        DevcloudError: There is no Go, or the build failed.
    """
    for module in (_NODE, _DNS):
        await modules.ensure(module, progress)
    return _programs()


def _programs() -> NodePrograms:
    folder = _NODE.built()
    kubelet, proxy, scheduler, pause = (folder / name for name in ("kubelet", "kube-proxy", "kube-scheduler", "pause"))
    return NodePrograms(kubelet, proxy, scheduler, pause, _DNS.built() / "coredns")
