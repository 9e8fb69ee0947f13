"""Download the official programs: Kubernetes' own from its release site, etcd from its release.

Each file is checked against the checksum that its release publishes beside it (the procedure of kubernetes.io's
"Install kubectl binary with curl on Linux" and of etcd's release notes): it finds a broken transfer, and trusts the
site's TLS for the rest. Where the sites are out of reach, nothing is lost but a few seconds.
"""

import asyncio
import hashlib
import platform
import tarfile
import urllib.error
import urllib.request
from dataclasses import dataclass
from pathlib import Path

from devcloud.errors import DevcloudError
from devcloud.locks import Progress

_CONNECT_LIMIT_S = 5.0
_CHUNK_BYTES = 1 << 20
_KUBERNETES_NAMES = ("kube-apiserver", "kube-controller-manager", "kubectl")
_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}


@dataclass(frozen=True, slots=True)
class Sites:
    """Where releases are published; a test serves its own."""

    kubernetes: str = "https://dl.k8s.io/release"
    etcd: str = "https://github.com/etcd-io/etcd/releases/download"


@dataclass(frozen=True, slots=True)
class Release:
    """The versions to fetch, each with its `v`."""

    kubernetes: str
    etcd: str


async def fetch(release: Release, target: Path, progress: Progress, *, sites: Sites | None = None) -> bool:
    """Fetch the four programs into a folder; return False when the sites are out of reach or lack a file.

    Raises:
        DevcloudError: A file does not have the checksum that its release publishes.
    """
    architecture = _ARCHITECTURES.get(platform.machine())
    if architecture is None:
        return False
    progress(f"control plane: looking for the official programs of Kubernetes {release.kubernetes}")
    try:
        await asyncio.to_thread(_fetch_all, release, architecture, target, sites or Sites())
    except (urllib.error.URLError, TimeoutError, ConnectionError) as error:
        reason = error.reason if isinstance(error, urllib.error.URLError) else error
        progress(f"control plane: no download ({reason}); building from source instead")
        return False
    progress("control plane: downloaded and checked")
    return True


def _fetch_all(release: Release, architecture: str, target: Path, sites: Sites) -> None:
    base = f"{sites.kubernetes}/{release.kubernetes}/bin/linux/{architecture}"
    for name in _KUBERNETES_NAMES:
        published = _text(f"{base}/{name}.sha256").split()[0]
        _file(f"{base}/{name}", published, target / name)
    archive_name = f"etcd-{release.etcd}-linux-{architecture}.tar.gz"
    sums = _text(f"{sites.etcd}/{release.etcd}/SHA256SUMS")
    by_name = {words[1]: words[0] for words in (line.split() for line in sums.splitlines()) if len(words) > 1}
    if archive_name not in by_name:
        raise DevcloudError(f"control plane: etcd {release.etcd} publishes no checksum of {archive_name}")
    archive = target / archive_name
    _file(f"{sites.etcd}/{release.etcd}/{archive_name}", by_name[archive_name], archive)
    _unpack_etcd(archive, target / "etcd")
    archive.unlink()


def _text(url: str) -> str:
    with urllib.request.urlopen(url, timeout=_CONNECT_LIMIT_S) as answer:  # noqa: S310 - https by `Sites`
        content: bytes = answer.read()
    return content.decode()


def _file(url: str, sha256: str, path: Path) -> None:
    digest = hashlib.sha256()
    with urllib.request.urlopen(url, timeout=_CONNECT_LIMIT_S) as answer, path.open("wb") as file:  # noqa: S310 - as above
        while chunk := answer.read(_CHUNK_BYTES):
            digest.update(chunk)
            file.write(chunk)
    if digest.hexdigest() != sha256:
        raise DevcloudError(f"control plane: {url} does not have its published checksum: try again, or build offline")
    path.chmod(0o755)


def _unpack_etcd(archive: Path, path: Path) -> None:
    with tarfile.open(archive) as files:
        member = next((file for file in files if file.isfile() and Path(file.name).name == "etcd"), None)
        content = files.extractfile(member) if member is not None else None
        if content is None:
            raise DevcloudError(f"control plane: {archive.name} holds no program etcd")
        path.write_bytes(content.read())
    path.chmod(0o755)
