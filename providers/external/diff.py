"""What differs between two values of one model. Pure.

A cloud projects its answer into the same model that `spec.forProvider` has, so one `diff` serves every cloud; set
order, units, letter case and server defaults are normalised there and never here.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping
from enum import Enum
from typing import Any, Final, assert_never

import msgspec

from providers.external.observation import Change, Keys, Path, SpecT, Value


class Compare(Enum):
    """How `diff` compares one field; set on the model with `field(...)`."""

    EQUAL = "equal"
    CREATE_ONLY = "create-only"
    NEVER = "never"
    CONTAINS = "contains"
    WHOLE_SET = "whole-set"
    WHOLE_MAP = "whole-map"
    SUB_MAP = "sub-map"


def compared(how: Compare) -> msgspec.Meta:
    """Annotate a model's field with how it is compared."""
    return msgspec.Meta(extra={"compare": how})


REQUIRED: Final = msgspec.Meta(extra={"required": True})
"""Annotates a field that only the spec of what is observed leaves out: then it is empty, and not compared."""


def missing(spec: msgspec.Struct) -> tuple[str, ...]:
    """Return the required fields that a spec leaves out, by their names in the resource."""
    return tuple(
        info.encode_name for info in _fields(type(spec)) if _is_required(info.type) and not getattr(spec, info.name)
    )


def _is_required(info: msgspec.inspect.Type) -> bool:
    return isinstance(info, msgspec.inspect.Metadata) and bool((info.extra or {}).get("required"))


def _equal(path: Path, want: Value, have: Value) -> Iterable[Change]:
    if want != have:
        yield Change(path, want, have)


def _members(path: Path, want: Iterable[str], have: Iterable[str]) -> Iterable[Change]:
    present = set(have)
    for member in sorted(set(want)):
        if member not in present:
            yield Change((*path, member), "present", "absent")


def _map(path: Path, want: Mapping[str, str], have: Mapping[str, str]) -> Iterable[Change]:
    for key in sorted({*want, *have}):
        yield from _equal((*path, key), want.get(key), have.get(key))


def _field(path: Path, want: Any, have: Any, how: Compare, applied: tuple[str, ...]) -> Iterable[Change]:
    match how:
        case Compare.EQUAL:
            return _equal(path, want, have)
        case Compare.CREATE_ONLY | Compare.NEVER:
            return ()
        case Compare.CONTAINS:
            return _members(path, want, have or ())
        case Compare.WHOLE_SET:
            return _equal(path, tuple(sorted(set(want))), tuple(sorted(set(have or ()))))
        case Compare.WHOLE_MAP:
            return _map(path, want, have or {})
        case Compare.SUB_MAP:
            ours = {*want, *applied}
            return _map(path, want, {key: value for key, value in (have or {}).items() if key in ours})
        case never:
            assert_never(never)


def _how(info: msgspec.inspect.Type) -> Compare:
    match info:
        case msgspec.inspect.Metadata(extra=dict() as extra):
            return Compare(extra.get("compare", Compare.EQUAL))
        case msgspec.inspect.UnionType(types=types):
            return next((how for how in map(_how, types) if how is not Compare.EQUAL), Compare.EQUAL)
        case _:
            return Compare.EQUAL


@functools.cache
def _fields(model: type[msgspec.Struct]) -> tuple[msgspec.inspect.Field, ...]:
    info = msgspec.inspect.type_info(model)
    return info.fields if isinstance(info, msgspec.inspect.StructType) else ()


def diff(want: SpecT, have: SpecT, *, ignore: Iterable[str] = (), applied: Keys | None = None) -> tuple[Change, ...]:
    """Return what the user asked for and the cloud does not show; unset fields (None) are not managed.

    `ignore` holds paths below forProvider as people write them; a path also covers what lies below it. `applied` are
    keys that the spec set before in maps which others write as well: what it names no more of them is to go.
    """
    skipped, left_out = tuple(ignore), missing(want)
    changes: list[Change] = []
    for info in _fields(type(want)):
        value, ours = getattr(want, info.name), (applied or {}).get(info.encode_name, ())
        if value is None and ours:
            value = {}
        if value is not None and info.encode_name not in left_out:
            changes += _field((info.encode_name,), value, getattr(have, info.name), _how(info.type), ours)
    return tuple(change for change in changes if not _covered(change.path, skipped))


def shared_keys(spec: msgspec.Struct) -> dict[str, tuple[str, ...]]:
    """Return the keys that a spec sets in maps which others write as well."""
    maps = {
        info.encode_name: getattr(spec, info.name) for info in _fields(type(spec)) if _how(info.type) is Compare.SUB_MAP
    }
    return {path: tuple(sorted(keys)) for path, keys in maps.items() if keys}


def joined_keys(first: Keys, second: Keys) -> dict[str, tuple[str, ...]]:
    """Return the keys of both."""
    return {path: tuple(sorted({*first.get(path, ()), *second.get(path, ())})) for path in sorted({*first, *second})}


def _covered(path: Path, ignored: tuple[str, ...]) -> bool:
    return any(".".join(path[: end + 1]) in ignored for end in range(len(path)))
