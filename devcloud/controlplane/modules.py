"""Programs of a Go module of ours: built once per user from its go.mod and go.sum, and kept in the cache."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from devcloud.controlplane import build
from devcloud.locks import Progress, exclusive
from devcloud.paths import cache_home, remove_tree


@dataclass(frozen=True, slots=True)
class GoModule:
    """A Go module of ours: what is compiled, from which files, in which folder.

    Attributes:
        folder: The folder of go.mod.
        packages: The programs' packages; `tool` is every `tool` of go.mod.
        sources: The files, by their paths from the folder, that a change of which needs a new build.
        name: What the folder of its programs begins with.
        title: What lines for a person begin with.
        copies: Folders of other modules to keep beside the programs: name, and a module with a folder in it.
    """

    folder: Path
    packages: tuple[str, ...]
    sources: tuple[str, ...]
    name: str
    title: str
    copies: Mapping[str, tuple[str, str]] = field(default_factory=dict)

    def built(self) -> Path:
        """Return the folder of the programs that belong to today's sources."""
        digest = hashlib.sha256(b"".join((self.folder / name).read_bytes() for name in self.sources)).hexdigest()
        return cache_home() / f"{self.name}-{digest[:12]}"


async def ensure(module: GoModule, progress: Progress) -> Path:
    """Return the folder of a module's programs, built from source where they are not yet: minutes, once.

    Two processes at once get one build: the second waits, and says so.

    Raises:
        DevcloudError: There is no Go, or the build failed.
    """
    folder = module.built()
    lock = folder.with_name(f"{folder.name}.lock")
    waiting = f"{module.title}: another process builds the programs (lock {lock}); waiting for it"
    async with exclusive(lock, waiting=waiting, progress=progress):
        if not folder.is_dir():
            await _build(module, folder, progress)
    return folder


async def _build(module: GoModule, folder: Path, progress: Progress) -> None:
    draft = folder.with_name(f"{folder.name}.draft")
    remove_tree(draft)
    draft.mkdir()
    build_folder = folder.with_name(f"{folder.name}.build")
    await build.build(
        module.folder,
        draft,
        build_folder,
        progress,
        title=module.title,
        packages=module.packages,
        copies=module.copies,
    )
    draft.rename(folder)
