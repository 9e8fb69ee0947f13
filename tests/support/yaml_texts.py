"""YAML files of the checkout, parsed once in a process: the reader in Python takes seconds for all CRDs."""

from __future__ import annotations

import copy
import functools
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML


def load_all(path: Path) -> list[Any]:
    """Return the documents of a file; a copy, which may be changed."""
    return copy.deepcopy(_parsed(path.read_text(encoding="utf-8")))


def load(path: Path) -> Any:
    """Return the only document of a file; a copy, which may be changed."""
    (document,) = load_all(path)
    return document


@functools.cache
def _parsed(text: str) -> list[Any]:
    return list(YAML(typ="safe", pure=True).load_all(text))
