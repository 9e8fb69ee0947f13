"""Where devcloud keeps what outlives one command: programs that were built, and the state of `fairlead up`."""

import os
import shutil
import stat
from pathlib import Path

from devcloud.errors import DevcloudError


def cache_home() -> Path:
    """Return this user's cache folder of Fairlead, made when absent.

    Raises:
        DevcloudError: It cannot be made.
    """
    folder = _cache_path()
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DevcloudError(
            f"the folder {folder} cannot be made: {error.strerror}; set XDG_CACHE_HOME to a folder of yours"
        ) from error
    return folder


def state_home() -> Path:
    """Return the folder that holds the persistent platform of this user, readable by this user only.

    Raises:
        DevcloudError: It cannot be made, or is another user's.
    """
    cache_home()
    return private_folder(platform_path())


def platform_path() -> Path:
    """Return where the persistent platform of this user is or would be; nothing is made."""
    return _cache_path() / "platform"


def _cache_path() -> Path:
    """Return the user's folder below the base that the XDG Base Directory Specification (0.8) names."""
    base = os.environ.get("XDG_CACHE_HOME", "")
    # The specification: a relative value is to be ignored.
    parent = Path(base) if Path(base).is_absolute() else Path.home() / ".cache"
    return parent / "fairlead"


def private_folder(folder: Path) -> Path:
    """Make a folder that only this user may enter, or prove that an existing one is such.

    Raises:
        DevcloudError: The path exists and is not a folder, or belongs to another user.
    """
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    status = folder.lstat()
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.geteuid():
        raise DevcloudError(f"{folder} is not a folder of this user: remove it, then try again")
    folder.chmod(0o700)
    return folder


def write_private(path: Path, content: str | bytes) -> None:
    """Replace a file by one that only this user may read, whole or not at all."""
    data = content.encode() if isinstance(content, str) else content
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    draft.unlink(missing_ok=True)
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(data)
    draft.replace(path)


def remove_tree(folder: Path) -> None:
    """Delete a folder with all in it, read-only parts too (Go makes its module cache so)."""
    if not folder.exists():
        return
    for parent, folders, _files in os.walk(folder):
        for name in folders:
            child = Path(parent, name)
            if not child.is_symlink():
                child.chmod(0o700)
    shutil.rmtree(folder)
