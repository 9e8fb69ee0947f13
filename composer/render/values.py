"""What an expression gives, and what it says where it has no value: missing, pending, too large, no JSON. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NoReturn

import msgspec
from jinja2 import StrictUndefined, Undefined

from composer.render.errors import PendingError, near

DEPTH_LIMIT = 64
# A mebibyte of empty lists keeps an event loop that reads it for longer than a mebibyte of text.
VALUES_LIMIT = 1 << 16


class ExpressionError(Exception):
    """An expression has no value: the sentence says why."""


class WrongTypeError(ExpressionError):
    """The types of its values do not go together, whatever these are."""


class UnsupportedValueError(ExpressionError):
    """What the claim asks for is not served: the Composition says so."""


class NotJsonError(ExpressionError):
    """The value cannot be written as JSON that every reader understands."""


class TooLargeError(ExpressionError):
    """The value would exceed what a render may produce."""


class Missing(StrictUndefined):
    """A value that is not there; any use raises, only `default`, `is defined` and `or_else` may look at it."""

    @property
    def _undefined_message(self) -> str:
        obj, name = self._undefined_obj, self._undefined_name
        if self._undefined_hint or not isinstance(obj, Mapping):
            return super()._undefined_message
        # Names are compared for who reads the message: a value is mostly looked at by `default` alone.
        return f"{name!r} is undefined{near(str(name), map(str, obj))}"


class Nowhere(Missing):
    """A part of a resource that is not composed at all: missing at any depth."""


class Pending(Undefined):
    """A value of another resource's status that is not there yet; any use raises PendingError, `or_else` apart."""

    __slots__ = ()

    @property
    def waits_for(self) -> str:
        """The resource whose status it is."""
        return str(self._undefined_obj)

    @property
    def path(self) -> str:
        """The path that was asked for."""
        return str(self._undefined_name)

    def _raise(self, *_: object, **__: object) -> NoReturn:
        raise PendingError(self.waits_for, self.path)

    _fail_with_undefined_error = _raise
    __str__ = __len__ = __iter__ = __bool__ = __eq__ = __ne__ = __hash__ = _raise
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = _raise
    __truediv__ = __rtruediv__ = __floordiv__ = __rfloordiv__ = __mod__ = __rmod__ = _raise
    __pos__ = __neg__ = __lt__ = __le__ = __gt__ = __ge__ = __int__ = __float__ = _raise
    __complex__ = __pow__ = __rpow__ = __contains__ = __getitem__ = __call__ = _raise


class Named(Mapping[str, Any]):
    """What an expression sees of something that is no data: it can be read by its fields, and is no text."""

    def __repr__(self) -> str:
        # The text of an object says where it lies in memory: another place in every process.
        raise WrongTypeError(f"this is no text; name one of its fields: {', '.join(map(str, self))}")


class Status(Mapping[str, Any]):
    """The status of another resource: what is missing in it is Pending instead of undefined."""

    def __init__(self, resource: str, path: str, content: Mapping[str, Any]) -> None:
        self.resource = resource
        self.path = path
        self.content = content

    def __getitem__(self, key: str) -> Any:
        return self.content[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self.content)

    def __len__(self) -> int:
        return len(self.content)

    def __repr__(self) -> str:
        # As a map of the same content: a text that an expression makes of it is the same in every process.
        return repr(dict(self.content))


def ordered(value: Any) -> Any:
    """Return JSON data with the fields of every map in the order of their names, as the API server keeps them."""
    match value:
        case dict():
            return {name: ordered(value[name]) for name in sorted(value)}
        case list():
            return [ordered(item) for item in value]
        case _:
            return value


def settled(value: Any) -> Any:
    """Return the value when it is there. Raises PendingError when it is still to come, ExpressionError when missing."""
    match value:
        case Pending():
            raise PendingError(value.waits_for, value.path)
        case Undefined():
            raise ExpressionError(str(value._undefined_message))  # noqa: SLF001 - jinja2 has no public name for it
        case _:
            return value


def as_data(value: Any) -> Any:
    """Return a settled value as the data it stands for: a status as a map. Raises as `settled`."""
    return dict(value.content) if isinstance(value, Status) else settled(value)


def plain(value: Any, depth: int = 0) -> Any:
    """Turn a result into plain JSON data, the fields of maps in the order of their names.

    Raises:
        PendingError: something in it is still to come.
        NotJsonError: JSON lacks something in it.
        TooLargeError: it is nested too deep.
        ExpressionError: something in it is undefined.
    """
    if depth > DEPTH_LIMIT:
        raise TooLargeError(f"the value is nested deeper than {DEPTH_LIMIT} levels")
    match settled(value):
        case None | bool():
            return value
        case str():
            return _text(value)
        case int():
            return _whole(value)
        case float():
            if math.isfinite(value):
                return value
            raise NotJsonError(f"{value} is no number in JSON")
        case Mapping():
            # The API server sorts what it keeps, a file does not: a map's order must not be seen.
            return {key: plain(value[key], depth + 1) for key in sorted(map(_key, value))}
        case Iterable():
            return [plain(item, depth + 1) for item in value]
        case _:
            raise NotJsonError(f"a {type(value).__name__} is no JSON")


def _key(key: Any) -> str:
    if isinstance(key, str):
        return key
    raise NotJsonError(f"a field's name must be a text, {key!r} is none; quote it")


def _text(value: str) -> str:
    if value.isascii() or not any("\ud800" <= sign <= "\udfff" for sign in value):
        return str(value)
    raise NotJsonError("a text holds half of a UTF-16 pair (\\ud800 to \\udfff), which is no character")


def _whole(value: int) -> int:
    if -(2**63) <= value < 2**63:
        return value
    raise NotJsonError(f"a whole number of {value.bit_length()} bits does not fit 64 bits")


def has_too_many_values(output: bytes, limit: int = VALUES_LIMIT) -> bool:
    """Count the values in a JSON document, beginning with what is quick to see: signs, those within texts too."""
    rough = sum(map(output.count, (b",", b"[", b"{")))
    return rough > limit and _count(msgspec.json.decode(output)) > limit


def _count(value: Any) -> int:
    match value:
        case dict():
            return 1 + sum(map(_count, value.values()))
        case list():
            return 1 + sum(map(_count, value))
        case _:
            return 1
