"""What an environment gives to templates: the texts of a ConfigMap, and the data of its YAML keys. Pure.

A key `zones.yaml` is read as YAML 1.2 and seen as `env.<name>.zones`; every other key stays the text that it is.
Aliases are refused: a few lines of them may stand for gigabytes. The reader of YAML is loaded at the first such key:
it is large, and of the composer's processes only those need it that render.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, Final

from composer.render.errors import CompositionError, Problem
from composer.render.schema import is_json

_SUFFIX: Final = ".yaml"
# A reader written in Python: as much as a render has time for.
_LENGTH_LIMIT: Final = 16_384
_DEPTH_LIMIT: Final = 16


def read(environments: Mapping[str, Mapping[str, Any]]) -> dict[str, Mapping[str, Any]]:
    """Return what expressions see as `env`. Raises CompositionError (YamlRefused) with environment, key and place."""
    return {name: _read(name, data) for name, data in environments.items()}


def _read(name: str, data: Mapping[str, Any]) -> Mapping[str, Any]:
    if not any(key.endswith(_SUFFIX) for key in data):
        return data
    values: dict[str, Any] = {key: value for key, value in data.items() if not key.endswith(_SUFFIX)}
    for key, text in data.items():
        if not key.endswith(_SUFFIX):
            continue
        place, short = f"environment {name!r}, key {key!r}", key.removesuffix(_SUFFIX)
        if short in values:
            raise _refusal(f"{place}: there is a key {short!r} too")
        values[short] = _parsed(str(text), place)
    return values


@lru_cache(maxsize=64)
def _parsed(text: str, place: str) -> Any:
    from ruamel.yaml.error import MarkedYAMLError, YAMLError  # noqa: PLC0415 - large, see above

    if len(text) > _LENGTH_LIMIT:
        raise _refusal(f"{place}: longer than {_LENGTH_LIMIT} characters")
    try:
        value = _plain(_loaded(text), place)
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
        raise _refusal(f"{place}: {where}{_first_line(error.problem or error.context)}") from error
    except (YAMLError, RecursionError, ValueError) as error:
        raise _refusal(f"{place}: not YAML") from error
    if not is_json(value):
        raise _refusal(f"{place}: holds a number that JSON cannot hold")
    return value


def _loaded(text: str) -> Any:
    """Return the data of a YAML text. Raises YAMLError, RecursionError, ValueError."""
    from ruamel.yaml import YAML  # noqa: PLC0415 - large, see above
    from ruamel.yaml.composer import Composer, ComposerError  # noqa: PLC0415 - large, see above
    from ruamel.yaml.events import AliasEvent  # noqa: PLC0415 - large, see above

    class Strict(Composer):
        def compose_node(self, parent: Any, index: Any) -> Any:
            if self.parser.check_event(AliasEvent):
                mark = self.parser.peek_event().start_mark
                raise ComposerError(None, None, "aliases are refused: write it out", mark)
            return super().compose_node(parent, index)

    yaml = YAML(typ="safe", pure=True)
    yaml.Composer = Strict
    return yaml.load(text)


def _first_line(text: str | None) -> str:
    """Cut what a reader says to its first line: the next may quote values."""
    return str(text).partition("\n")[0].partition(" with value")[0][:120]


def _plain(value: Any, place: str, depth: int = 0) -> Any:
    if depth > _DEPTH_LIMIT:
        raise _refusal(f"{place}: nested deeper than {_DEPTH_LIMIT}")
    match value:
        case Mapping():
            if not all(isinstance(key, str) for key in value):
                raise _refusal(f"{place}: a key is no text; quote it")
            return {key: _plain(item, place, depth + 1) for key, item in value.items()}
        case Sequence() if not isinstance(value, str | bytes):
            return [_plain(item, place, depth + 1) for item in value]
        case None | bool() | int() | float():
            return value
        case bytes():
            raise _refusal(f"{place}: holds bytes")
        case _:
            # A bare date too: in JSON it is a text.
            return str(value)


def _refusal(message: str) -> CompositionError:
    return CompositionError(Problem("YamlRefused", message))
