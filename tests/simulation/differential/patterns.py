"""Texts that match a pattern, drawn by chance."""

from __future__ import annotations

import importlib
import random
from typing import Any, Final

_MOST: Final = 3
_ANY: Final = "a1-"
_parser: Any = importlib.import_module("re._parser")


def matching(pattern: str, chance: random.Random) -> str:
    """Return a text that matches a pattern of a CRD."""
    return "".join(_drawn(part, chance) for part in _parser.parse(pattern))


def _drawn(part: tuple[Any, Any], chance: random.Random) -> str:  # noqa: PLR0911 - a table of what patterns have
    name, content = str(part[0]), part[1]
    match name:
        case "LITERAL":
            return chr(content)
        case "NOT_LITERAL" | "ANY":
            return chance.choice([letter for letter in _ANY if name == "ANY" or ord(letter) != content])
        case "IN":
            return chance.choice(_letters(content))
        case "MAX_REPEAT":
            least, most, below = content
            count = chance.randint(least, min(most, max(least, _MOST)))
            return "".join(_drawn(inner, chance) for _ in range(count) for inner in below)
        case "SUBPATTERN":
            return "".join(_drawn(inner, chance) for inner in content[-1])
        case "BRANCH":
            return "".join(_drawn(inner, chance) for inner in chance.choice(content[1]))
        case _:
            return ""


def _letters(ranges: Any) -> str:
    if str(ranges[0][0]) == "NEGATE":
        refused = _letters(ranges[1:])
        return "".join(letter for letter in _ANY if letter not in refused)
    letters = ""
    for name, content in ranges:
        match str(name):
            case "LITERAL":
                letters += chr(content)
            case "RANGE":
                letters += "".join(chr(code) for code in range(content[0], content[1] + 1))
            case _:
                letters += "1"
    return letters
