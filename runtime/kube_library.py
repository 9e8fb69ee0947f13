"""Imports modules of kubernetes_asyncio without its generated models.

The library's packages load a class for every API and every object there is as soon as anything of them is imported:
60 MiB and half a second in every process, for requests that are JSON here (`runtime.kube_client`). Within
`bare_packages` its modules are loaded under packages that load nothing by themselves. These are taken away again:
whoever imports kubernetes_asyncio elsewhere gets it whole.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import Any

_LIBRARY = "kubernetes_asyncio"
_PACKAGES = ("", ".client", ".config")


class _NoApiClient:
    """Stands for the library's ApiClient, which only functions name that build one."""


@contextmanager
def bare_packages() -> Iterator[None]:
    """Have the library's packages empty for the length of a block, unless it is loaded whole already.

    Raises ModuleNotFoundError where it is not installed.
    """
    if _LIBRARY in sys.modules:
        yield
        return
    spec = find_spec(_LIBRARY)
    if spec is None or spec.submodule_search_locations is None:
        raise ModuleNotFoundError(f"{_LIBRARY} is not installed")
    (root,) = spec.submodule_search_locations
    for suffix in _PACKAGES:
        package = ModuleType(_LIBRARY + suffix)
        package.__path__ = [root + suffix.replace(".", "/")]
        sys.modules[package.__name__] = package
    vars(sys.modules[f"{_LIBRARY}.client"])["__getattr__"] = _of_client
    try:
        yield
    finally:
        for name in [name for name in sys.modules if name.partition(".")[0] == _LIBRARY]:
            del sys.modules[name]


def _of_client(name: str) -> Any:
    """Return what the modules of `config` import from the package `client` (PEP 562)."""
    match name:
        case "Configuration":
            return import_module(f"{_LIBRARY}.client.configuration").Configuration
        case "ApiClient":
            return _NoApiClient
        case _:
            raise AttributeError(f"the package {_LIBRARY}.client is empty here and has no {name}")
