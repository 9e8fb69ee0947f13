"""Loads structlog without rich, by which it prints tracebacks for people.

Loading that takes a sixth of the processor time of a start. Whoever imports rich elsewhere gets it. A process imports
this module before what logs.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Any, Final

_LIBRARY: Final = "structlog"
_LEFT_OUT: Final = "rich"


def load() -> None:
    """Import structlog, unless it or rich is loaded already."""
    modules: dict[str, Any] = sys.modules
    if _LIBRARY in modules or _LEFT_OUT in modules:
        return
    # An import of what stands here as None raises ModuleNotFoundError, which structlog expects.
    modules[_LEFT_OUT] = None
    try:
        import_module(_LIBRARY)
    finally:
        del modules[_LEFT_OUT]


load()
