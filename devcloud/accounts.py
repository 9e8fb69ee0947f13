"""The account that PostgreSQL's programs run under: they refuse root, and users without an entry in passwd(5).

A user is himself. Root, or a container's nameless user, is mapped to a named one in a user namespace, where his files
stay his own. Where namespaces are forbidden (a chroot, some containers) root's programs run as `nobody`, with data
outside root's folders.
"""

import functools
import hashlib
import os
import pwd
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from devcloud.daemons import program
from devcloud.errors import DevcloudError
from devcloud.paths import cache_home

_NOBODY = 65534
_NOBODY_HOME = Path("/var/tmp/fairlead-nobody")  # noqa: S108 - made and owned by root, checked below


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


@functools.cache
def choose() -> Account:
    """Return the account of this machine and user.

    Raises:
        DevcloudError: PostgreSQL refuses this user, and neither a user namespace nor `nobody` works.
    """
    own = os.geteuid()
    if own != 0 and _is_named(own):
        return Account((), own, is_foreign=False)
    named = _some_named_uid()
    mapped = (program("unshare"), "--user", f"--map-user={named}", f"--map-group={named}", "--")
    if _runs((*mapped, "true")):
        return Account(mapped, own, is_foreign=False)
    nobody = (program("setpriv"), f"--reuid={named}", f"--regid={named}", "--clear-groups", "--")
    if own == 0 and _runs((*nobody, "true")):
        return Account(nobody, named, is_foreign=True)
    raise DevcloudError(
        f"PostgreSQL refuses to run as uid {own}, and user namespaces are forbidden here: run as a user of /etc/passwd"
    )


def _is_named(uid: int) -> bool:
    try:
        pwd.getpwuid(uid)
    except KeyError:
        return False
    return True


def _some_named_uid() -> int:
    if _is_named(_NOBODY):
        return _NOBODY
    others = (entry.pw_uid for entry in pwd.getpwall() if entry.pw_uid != 0)
    return next(others, _NOBODY)


def home_path(folder: Path, account: Account) -> Path:
    """Return the folder that an account may really use in place of `folder`."""
    if not account.is_foreign:
        return folder
    return _NOBODY_HOME / hashlib.sha256(os.fsencode(folder.absolute())).hexdigest()[:16]


def home_for(folder: Path, account: Account) -> Path:
    """Return the folder that an account may really use in place of `folder`, made when absent."""
    home = home_path(folder, account)
    if account.is_foreign:
        _foreign_home()
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    if account.is_foreign:
        os.chown(home, account.uid, account.uid)
    return home


def reachable_copy(root: Path, parts: tuple[str, ...], program_path: str, account: Account) -> Path:
    """Return a folder in place of `root` whose programs the account can execute: itself, or a copy of its members.

    Args:
        root: The folder that the members' own relative references (RPATH) stay within.
        parts: What of it is needed, relative.
        program_path: A program below it, relative, that uses the libraries and ends well with `--version`.
        account: Who must be able to run it.
    """
    path = str(root / program_path)
    # One that runs may yet be unable to find its own folder.
    if not account.is_foreign or (
        _runs((*account.prefix, path, "--version")) and _runs((*account.prefix, "test", "-r", path))
    ):
        return root
    _foreign_home()
    stat = (root / program_path).stat()
    key = hashlib.sha256(f"{root.absolute()}\0{stat.st_size}\0{stat.st_mtime_ns}".encode()).hexdigest()[:16]
    copy = _NOBODY_HOME / f"programs-{key}"
    if not copy.exists():
        draft = _NOBODY_HOME / f"draft-{key}-{os.getpid()}"
        for member in parts:
            shutil.copytree(root / member, draft / member)
        try:
            draft.rename(copy)
        except OSError:
            # Another process was first; its copy is the same.
            shutil.rmtree(draft)
    return copy


def copies_folder(account: Account) -> Path:
    """Return where copies of programs lie that the account can reach, made when absent."""
    if not account.is_foreign:
        return cache_home()
    _foreign_home()
    return _NOBODY_HOME


def _foreign_home() -> None:
    _NOBODY_HOME.mkdir(mode=0o755, exist_ok=True)
    stat = _NOBODY_HOME.lstat()
    if _NOBODY_HOME.is_symlink() or stat.st_uid != 0:
        raise DevcloudError(f"{_NOBODY_HOME} is not a folder of root: remove it, then try again")


def _runs(command: tuple[str, ...]) -> bool:
    try:
        return subprocess.run(command, check=False, capture_output=True).returncode == 0
    except OSError:
        return False
