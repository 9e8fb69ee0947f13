"""Paths of fields, as managedFields and the API server's messages have them: `.spec.ports[name="http"].port`. Pure.

A name that has a dot or a bracket stands in quotation marks: `.metadata.labels."app.kubernetes.io/name"`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, TypeAlias

import msgspec

from runtime.objects import Object, copied

_Step: TypeAlias = str | dict[str, str]

_STEP: Final = re.compile(r'\.("(?:[^"\\]|\\.)*"|[^.\[]+)|\[((?:"(?:[^"\\]|\\.)*"|[^\]])*)\]')
_FIELD: Final = "f:"
_ITEM: Final = "k:"


def differing_fields(fields: Mapping[str, Any], wanted: Any, live: Any) -> tuple[str, ...]:
    """Return the paths of fields in a set (FieldsV1) that `wanted` has, and `live` with another value.

    `fields` is the set of one manager, `live` the object that it is of. A field that is in `wanted` with the same value
    may have two managers, and items of a set ("v:") have no value that could differ.
    """
    return tuple(_differing(fields, wanted, live, ""))


def _differing(fields: Mapping[str, Any], wanted: Any, live: Any, path: str) -> Iterator[str]:
    for name, below in fields.items():
        if name.startswith(_FIELD) and isinstance(wanted, Mapping) and isinstance(live, Mapping):
            key, step = name.removeprefix(_FIELD), "." + _quoted(name.removeprefix(_FIELD))
            if key in wanted:
                yield from _differing_value(below, wanted[key], live.get(key), path + step)
        elif name.startswith(_ITEM) and isinstance(wanted, Sequence) and isinstance(live, Sequence):
            keys: dict[str, Any] = msgspec.json.decode(name.removeprefix(_ITEM))
            ours, theirs = _item(wanted, keys), _item(live, keys)
            if ours is not None:
                yield from _differing_value(below, ours, theirs, f"{path}[{_selector(keys)}]")


def _differing_value(below: Mapping[str, Any], wanted: Any, live: Any, path: str) -> Iterator[str]:
    """Return the paths at or below a field: an empty set below it stands for the whole value."""
    is_whole = not below or not isinstance(wanted, Mapping | list)
    if not is_whole:
        yield from _differing(below, wanted, live, path)
    elif wanted != live:
        yield path


def _item(items: Sequence[Any], keys: Mapping[str, Any]) -> Any:
    """Return the item of a list that has these keys; None without one."""
    with_keys = (
        item for item in items if isinstance(item, Mapping) and all(item.get(key) == keys[key] for key in keys)
    )
    return next(with_keys, None)


def _quoted(name: str) -> str:
    return f'"{name}"' if re.search(r"[.\[\]]", name) else name


def _selector(keys: Mapping[str, Any]) -> str:
    return ",".join(f"{key}={msgspec.json.encode(value).decode()}" for key, value in keys.items())


def without_fields(obj: Object, paths: Iterable[str]) -> Object:
    """Return the object without the fields at these paths; a path that leads nowhere removes nothing."""
    steps = [_steps(path) for path in paths]
    if not steps:
        return obj
    left = copied(obj)
    for path in steps:
        _drop(left, path)
    return left


def _steps(path: str) -> list[_Step]:
    steps: list[_Step] = []
    for name, selector in _STEP.findall(path):
        if name:
            steps.append(name.strip('"'))
        else:
            pairs = (pair.partition("=") for pair in selector.split(","))
            steps.append({key: value.strip('"') for key, _, value in pairs})
    return steps


def _drop(container: Any, steps: Sequence[_Step]) -> None:
    match steps:
        case [str() as name] if isinstance(container, dict):
            container.pop(name, None)
        case [str() as name, *rest] if isinstance(container, dict) and name in container:
            _drop(container[name], rest)
        case [dict() as selector, *rest] if isinstance(container, list):
            chosen = [item for item in container if isinstance(item, dict) and _selected(item, selector)]
            for item in chosen:
                if rest:
                    _drop(item, rest)
                else:
                    container.remove(item)
        case _:
            return


def _selected(item: Mapping[str, Any], selector: Mapping[str, str]) -> bool:
    return all(str(item.get(name)) == value for name, value in selector.items())
