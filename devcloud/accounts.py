"""The account that PostgreSQL's programs run under: they refuse to run as root.

A user is himself. Root is mapped to an ordinary user in a user namespace, where its files stay its own; where
namespaces are forbidden (a chroot, some containers) the programs run as `nobody`, with data outside root's folders.
"""

import hashlib
import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from devcloud.daemons import program
from devcloud.errors import DevcloudError

_NOBODY = 65534
_NOBODY_HOME = Path("/var/tmp/fairlead-nobody")  # noqa: S108 - made and owned by root, checked below
_MAPPED = 1000


@dataclass(frozen=True, slots=True)
class Account:
    """How to run a program that refuses root.

    Attributes:
        prefix: The command that changes the account and then becomes the program.
        uid: The owner that the program's files must have, as we see it.
        is_foreign: Whether that owner is another user than ours, who cannot enter our folders.
    """

    prefix: tuple[str, ...]
    uid: int
    is_foreign: bool


def choose() -> Account:
    """Return the account of this machine and user.

    Raises:
        DevcloudError: We are root and neither a user namespace nor `nobody` works.
    """
    if os.geteuid() != 0:
        return Account((), os.geteuid(), is_foreign=False)
    mapped = (program("unshare"), "--user", f"--map-user={_MAPPED}", f"--map-group={_MAPPED}", "--")
    if _works((*mapped, "true")):
        return Account(mapped, 0, is_foreign=False)
    nobody = (program("setpriv"), f"--reuid={_NOBODY}", f"--regid={_NOBODY}", "--clear-groups", "--")
    if _works((*nobody, "true")):
        return Account(nobody, _NOBODY, is_foreign=True)
    raise DevcloudError("PostgreSQL refuses to run as root, and neither unshare nor setpriv works: run as a user")


def home_for(folder: Path, account: Account) -> Path:
    """Return the folder that an account may really use in place of `folder`, made when absent."""
    if not account.is_foreign:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        return folder
    _foreign_home()
    home = _NOBODY_HOME / hashlib.sha256(os.fsencode(folder.absolute())).hexdigest()[:16]
    home.mkdir(mode=0o700, exist_ok=True)
    os.chown(home, account.uid, account.uid)
    return home


def reachable_copy(tree: Path, probe: str, account: Account) -> Path:
    """Return a program tree that the account can execute: the tree itself, or a copy where it is out of reach.

    Args:
        tree: The folder to run from.
        probe: A program in it, relative, that ends well with `--version`.
        account: Who must be able to run it.
    """
    if not account.is_foreign or _works((*account.prefix, str(tree / probe), "--version")):
        return tree
    _foreign_home()
    found = (tree / probe).stat()
    key = hashlib.sha256(f"{tree.absolute()}\0{found.st_size}\0{found.st_mtime_ns}".encode()).hexdigest()[:16]
    copy = _NOBODY_HOME / f"programs-{key}"
    if not copy.exists():
        draft = _NOBODY_HOME / f"draft-{key}-{os.getpid()}"
        shutil.copytree(tree, draft)
        try:
            draft.rename(copy)
        except OSError:
            # Another process was first; its copy is the same.
            shutil.rmtree(draft)
    return copy


def _foreign_home() -> None:
    _NOBODY_HOME.mkdir(mode=0o755, exist_ok=True)
    found = _NOBODY_HOME.lstat()
    if _NOBODY_HOME.is_symlink() or found.st_uid != 0:
        raise DevcloudError(f"{_NOBODY_HOME} is not a folder of root: remove it, then try again")


def _works(command: tuple[str, ...]) -> bool:
    try:
        return subprocess.run(command, check=False, capture_output=True).returncode == 0
    except OSError:
        return False
