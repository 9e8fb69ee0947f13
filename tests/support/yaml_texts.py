"""YAML files of the checkout, parsed once in a process by a reader in C: one in Python takes seconds for all CRDs."""

from __future__ import annotations

import functools
import re
from datetime import date
from pathlib import Path
from typing import Any

import msgspec
import yaml

_BOOL, _INT = "tag:yaml.org,2002:bool", "tag:yaml.org,2002:int"


class _Loader(yaml.CSafeLoader):  # type: ignore[misc]  # PyYAML ships no types
    """What is a text in YAML 1.2 (on, off, yes, no, 22:45) is one."""

    yaml_implicit_resolvers = {  # noqa: RUF012 - the library's own way to declare them
        first: [resolver for resolver in resolvers if resolver[0] not in (_BOOL, _INT)]
        for first, resolvers in yaml.CSafeLoader.yaml_implicit_resolvers.items()
    }


_Loader.add_implicit_resolver(_BOOL, re.compile("^(?:true|True|TRUE|false|False|FALSE)$"), list("tTfF"))
_Loader.add_implicit_resolver(_INT, re.compile("^[-+]?(?:0[0-7]*|[1-9][0-9]*|0x[0-9a-fA-F]+)$"), list("-+0123456789"))


def load_all(path: Path) -> list[Any]:
    """Return the documents of a file; a copy, which may be changed."""
    return documents_of(path.read_text(encoding="utf-8"))


def load(path: Path) -> Any:
    """Return the only document of a file; a copy, which may be changed."""
    (document,) = load_all(path)
    return document


def documents_of(text: str) -> list[Any]:
    """Return the documents of a text; a copy, which may be changed."""
    documents: list[Any] = msgspec.to_builtins(_parsed(text), builtin_types=(date,))
    return documents


@functools.cache
def _parsed(text: str) -> list[Any]:
    return list(yaml.load_all(text, _Loader))
