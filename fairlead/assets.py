"""Where the reviewed data lies: in a wheel beside this file, in a checkout beside the packages.

Packages below this one never look for data; whoever starts them passes the folder.
"""

from pathlib import Path
from typing import Literal, TypeAlias

Folder: TypeAlias = Literal["crds", "compositions", "deploy", "docs"]

_PACKAGE = Path(__file__).resolve().parent


class AssetsMissingError(Exception):
    """Neither a wheel's nor a checkout's data is where this package lies."""


def assets(folder: Folder) -> Path:
    """Return the folder of CRDs, shipped Compositions, installs or pages; a wheel has only the page that we read.

    Raises AssetsMissingError when the installation is incomplete.
    """
    for candidate in (_PACKAGE / "assets" / folder, _PACKAGE.parent / folder):
        if candidate.is_dir():
            return candidate
    raise AssetsMissingError(
        f"the folder {folder!r} is neither in {_PACKAGE / 'assets'} nor in {_PACKAGE.parent}: "
        "the installation is incomplete; install the fairlead wheel again, or run from a whole checkout"
    )
