"""Find the control plane's programs, or get them: KUBEBUILDER_ASSETS, the cache, a download, a build.

Programs of another go.mod leave the cache when nobody used them for a while: a checkout beside this one may need them.
"""

import asyncio
import contextlib
import hashlib
import os
import re
import shutil
import time
from dataclasses import dataclass
from pathlib import Path

from devcloud.controlplane import build, download
from devcloud.errors import DevcloudError
from devcloud.locks import Progress, exclusive, take
from devcloud.paths import cache_home, remove_tree

_MODULE = Path(__file__).parent
KUBERNETES_VERSION = build.kubernetes_version(_MODULE)
_UNUSED_S = 14 * 86_400
_NAMES = ("etcd", "kube-apiserver", "kube-controller-manager", "kubectl")


@dataclass(frozen=True, slots=True)
class Programs:
    """The four programs' paths."""

    etcd: Path
    kube_apiserver: Path
    kube_controller_manager: Path
    kubectl: Path


def cache_folder() -> Path:
    """Return the folder of the programs that belong to today's go.mod and go.sum."""
    digest = hashlib.sha256()
    for name in ("go.mod", "go.sum"):
        digest.update((_MODULE / name).read_bytes())
    return cache_home() / f"controlplane-{KUBERNETES_VERSION}-{digest.hexdigest()[:12]}"


async def ensure(progress: Progress) -> Programs:
    """Return the programs, obtained in this order: KUBEBUILDER_ASSETS, the cache, a download, a build from source.

    Two processes at once get one build: the second waits, and says so.

    Raises:
        DevcloudError: KUBEBUILDER_ASSETS lacks a program, or neither download nor build succeeded.
    """
    programs = find()
    if programs is not None:
        return programs
    folder = cache_folder()
    lock = _sibling(folder, "lock")
    waiting = f"control plane: another process is getting the programs (lock {lock}); waiting for it"
    async with exclusive(lock, waiting=waiting, progress=progress):
        if not _is_whole(folder):
            await _obtain(folder, progress)
    await asyncio.to_thread(_drop_unused, folder, time.time() - _UNUSED_S)
    return _programs_in(folder)


def find() -> Programs | None:
    """Return the programs when nothing has to be fetched or built for them.

    Raises:
        DevcloudError: KUBEBUILDER_ASSETS lacks a program.
    """
    assets = os.environ.get("KUBEBUILDER_ASSETS", "")
    if assets:
        return _from_assets(Path(assets))
    folder = cache_folder()
    if not _is_whole(folder):
        return None
    with contextlib.suppress(OSError):
        # "Used just now"; a cache that another user shares out is none of ours to keep.
        os.utime(folder)
    return _programs_in(folder)


async def _obtain(folder: Path, progress: Progress) -> None:
    draft = _sibling(folder, "draft")
    shutil.rmtree(draft, ignore_errors=True)
    draft.mkdir()
    release = download.Release(KUBERNETES_VERSION, build.etcd_version(_MODULE))
    if not await download.fetch(release, draft, progress):
        await build.build(_MODULE, draft, _sibling(folder, "build"), progress)
    missing = [name for name in _NAMES if not _runs(draft / name)]
    if missing:
        raise DevcloudError(f"control plane: {draft} lacks {', '.join(missing)}: remove it, then try again")
    # An older go.mod's draft of this very name cannot be whole, else we would not be here.
    shutil.rmtree(folder, ignore_errors=True)
    draft.replace(folder)
    progress(f"control plane: programs are in {folder}")


def _drop_unused(ours: Path, before: float) -> None:
    """Delete other versions' programs and builds that nobody used since a time (seconds since the epoch)."""
    versions = {re.sub(r"\.(lock|draft|build)$", "", path.name) for path in ours.parent.glob("controlplane-*")}
    for folder in (ours.parent / name for name in versions - {ours.name}):
        parts = [part for part in (folder, _sibling(folder, "draft"), _sibling(folder, "build")) if part.exists()]
        if not parts or max(part.stat().st_mtime for part in parts) > before:
            continue
        lock = take(_sibling(folder, "lock"))
        if lock is None:
            continue
        for part in parts:
            remove_tree(part)
        os.close(lock)


def _sibling(folder: Path, suffix: str) -> Path:
    # Not `with_suffix`, which takes the version's last number for one.
    return folder.with_name(f"{folder.name}.{suffix}")


def _from_assets(folder: Path) -> Programs:
    missing = [name for name in _NAMES if not _runs(folder / name)]
    if missing:
        raise DevcloudError(
            f"KUBEBUILDER_ASSETS={folder} lacks {', '.join(missing)}: point it at a folder with "
            f"{', '.join(_NAMES)}, or unset it"
        )
    return _programs_in(folder)


def _is_whole(folder: Path) -> bool:
    return all(_runs(folder / name) for name in _NAMES)


def _runs(path: Path) -> bool:
    return path.is_file() and os.access(path, os.X_OK)


def _programs_in(folder: Path) -> Programs:
    etcd, apiserver, controller_manager, kubectl = (folder / name for name in _NAMES)
    return Programs(etcd, apiserver, controller_manager, kubectl)
