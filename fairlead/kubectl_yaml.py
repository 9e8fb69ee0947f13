"""Plain scalars as kubectl reads them, and those that YAML 1.2 reads otherwise. Pure.

kubectl reads files by go.yaml.in/yaml/v2, which keeps much of YAML 1.1: `off` is false, `010` is 8. A check that reads
them otherwise has checked something else.

Source: go.yaml.in/yaml/v2, resolve.go; strconv.ParseInt of Go with base 0.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from typing import Any, Final, TypeAlias

import yaml
from ruamel.yaml import YAML

Value: TypeAlias = str | int | float | bool | None
_WORDS: Final[dict[str, Value]] = {
    **{form: True for word in ("y", "yes", "true", "on") for form in (word, word.capitalize(), word.upper())},
    **{form: False for word in ("n", "no", "false", "off") for form in (word, word.capitalize(), word.upper())},
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
}
_INTEGER: Final = re.compile(r"([-+]?)(?:(0[xX])([0-9a-fA-F]+)|(0[bB])([01]+)|(0[oO]?)([0-7]+)|([0-9]+))")
_FLOAT: Final = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_AFTER_A_POINT: Final = re.compile(r"\.[0-9]+(?:[eE][-+]?[0-9]+)?")
_NO_NUMBER: Final = re.compile(r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)")
_BASES: Final = ((3, 16), (5, 2), (7, 8), (8, 10))
_SHOWN_CHARACTERS: Final = 40


@dataclass(frozen=True, slots=True)
class Difference:
    """A plain scalar of two readings, and where it stands; line and column count from 1."""

    line: int
    column: int
    text: str
    ours: Value
    theirs: Value

    def __str__(self) -> str:
        written = self.text[:_SHOWN_CHARACTERS]
        readings = f"{written} is {_named(self.ours)} in YAML 1.2 and {_named(self.theirs)} for kubectl"
        return f"{readings}: quote it, or write what you mean"


def differences(text: str) -> Iterator[Difference]:
    """Yield the plain scalars that kubectl reads otherwise than YAML 1.2; none of a text that is no YAML."""
    try:
        for token in yaml.scan(text, yaml.CSafeLoader):
            if isinstance(token, yaml.ScalarToken) and token.plain:
                ours, theirs = _by_version_2(token.value), read(token.value)
                if (isinstance(ours, bool), ours) != (isinstance(theirs, bool), theirs):
                    mark = token.start_mark
                    yield Difference(mark.line + 1, mark.column + 1, token.value, ours, theirs)
    except yaml.YAMLError:
        return


def read(text: str) -> Value:
    """Return what kubectl reads a plain scalar as; a time stays a text there."""
    if text in _WORDS:
        return _WORDS[text]
    if _NO_NUMBER.fullmatch(text):
        return float(text.replace(".", "", 1))
    if text.startswith("."):
        return float(text) if _AFTER_A_POINT.fullmatch(text) else text
    if not text[0].isascii() or not (text[0].isdigit() or text[0] in "+-"):
        return text
    plain = text.replace("_", "")
    if match := _INTEGER.fullmatch(plain):
        digits, base = next((match[group], base) for group, base in _BASES if match[group] is not None)
        number = -int(digits, base) if match[1] == "-" else int(digits, base)
        if -(2**63) <= number < 2**64:
            return number
    return float(plain) if _FLOAT.fullmatch(plain) else text


def _by_version_2(text: str) -> Value:
    # Most scalars are words, of which the two versions know the same few.
    if text in ("true", "false", "null", "~") or (text[:1].isalpha() and text not in _WORDS):
        return {"true": True, "false": False, "null": None, "~": None}.get(text, text)
    value: Any = YAML(typ="safe", pure=True).load(text) if text else None
    return text if isinstance(value, date | dict | list) else value


def _named(value: Value) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return str(value).lower()
        case str():
            return "a text"
        case _:
            return f"the number {value}"
