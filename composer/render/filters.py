"""The filters and tests of the expression language: ours, and those of jinja2 that read data and nothing else. Pure.

Where a value is still to come or missing, each of them says so instead of answering: only `default`, `or_else`,
`is defined` and `is undefined` look at such a value.
"""

from __future__ import annotations

import functools
import ipaddress
import math
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from jinja2 import Undefined
from jinja2.filters import FILTERS
from jinja2.tests import TESTS

from composer.quantities import measured
from composer.render.tables import first_that_holds, intersect
from composer.render.times import shift, window
from composer.render.values import ExpressionError, Pending, Status, UnsupportedValueError, as_data, settled

Function = Callable[..., Any]

_BUILT_IN_FILTERS: Mapping[str, Function] = FILTERS
_BUILT_IN_TESTS: Mapping[str, Any] = TESTS
_HARMLESS_FILTERS = (
    *("abs", "first", "float", "int", "join", "last", "length", "list", "lower", "max", "min"),
    *("replace", "round", "sort", "string", "sum", "trim", "unique", "upper"),
)
_FORBIDDEN_TESTS = frozenset({"callable", "filter", "test", "escaped", "sameas"})
_SHOWN_CHARACTERS = 64


def _strict(function: Function) -> Function:
    """Return a function that refuses arguments that are not there, and returns a list instead of an iterator."""

    # jinja2 marks what wants its environment by an attribute, which `wraps` carries over.
    @functools.wraps(function)
    def settling(*arguments: Any, **named: Any) -> Any:
        for argument in (*arguments, *named.values()):
            settled(argument)
        result = function(*arguments, **named)
        return list(result) if isinstance(result, Iterator) else result

    return settling


def _of_data(function: Function) -> Function:
    """Return a function of jinja2's that sees plain data alone: a text of it is the same text everywhere."""

    @functools.wraps(function)
    def reading(*arguments: Any, **named: Any) -> Any:
        return function(*map(as_data, arguments), **{name: as_data(argument) for name, argument in named.items()})

    return _strict(reading)


def _is_defined(value: Any) -> bool:
    return not isinstance(_not_pending(value), Undefined)


def _default(value: Any, default_value: Any = "", boolean: bool = False) -> Any:  # noqa: FBT001, FBT002 - jinja2's form
    if isinstance(_not_pending(value), Undefined) or (boolean and not value):
        return default_value
    return value


def _or_else(value: Any, other: Any) -> Any:
    """Return `other` while the value is not there, and go on without waiting."""
    return other if isinstance(value, Undefined) else value


def _not_pending(value: Any) -> Any:
    return settled(value) if isinstance(value, Pending) else value


def _dns_label(value: Any, length: int = 63) -> str:
    """Return a DNS label (RFC 1123) of a text: lower case, other characters to `-`, cut."""
    label = re.sub(r"[^a-z0-9]+", "-", str(value).lower()).strip("-")
    return label[:length].rstrip("-")


def _gib(value: Any) -> int:
    """Return a Kubernetes quantity in GiB, rounded up: "20Gi" -> 20, "1.5Gi" -> 2."""
    amount = measured(value)
    if amount is None or amount < 0:
        raise ExpressionError(f"{str(value)[:_SHOWN_CHARACTERS]!r} is no quantity like 20Gi")
    return math.ceil(amount / 2**30)


def _cidr(value: Any) -> str:
    """Return the normal form of a network: host bits zero, IPv6 shortened."""
    try:
        return str(ipaddress.ip_network(str(value), strict=False))
    except ValueError:
        raise ExpressionError(f"{str(value)[:_SHOWN_CHARACTERS]!r} is no network like 10.0.0.0/8") from None


def _combine(value: Any, *others: Any) -> Mapping[str, Any]:
    """Merge maps into one; where two have a key, the later one's value counts."""
    merged: dict[str, Any] = {}
    for part in (value, *others):
        if not isinstance(part, Mapping):
            raise ExpressionError(f"{str(part)[:_SHOWN_CHARACTERS]!r} is no map, and cannot be combined with one")
        merged |= part
    status = next((part for part in (value, *others) if isinstance(part, Status)), None)
    # What is not there yet is still to come.
    return Status(status.resource, status.path, merged) if status else merged


def _split(value: Any, separator: Any = ",") -> list[str]:
    """Return the parts of a text without the blanks around them: "a, b" -> ["a", "b"], "" -> []."""
    if not isinstance(value, str) or not isinstance(separator, str) or not separator:
        raise ExpressionError(f"{str(value)[:_SHOWN_CHARACTERS]!r} is no text that can be split")
    return [part.strip() for part in value.split(separator) if part.strip()]


def _refuse(value: Any) -> None:
    """Refuse the claim, in the sentence of the Composition's author: `{{ 'give a backup' | refuse }}`."""
    if not isinstance(value, str) or not value.strip():
        raise ExpressionError(f"{str(value)[:_SHOWN_CHARACTERS]!r} is no sentence that says what is not served")
    raise UnsupportedValueError(value)


EXPRESSION_FILTERS: Mapping[str, Function] = {
    **{name: _of_data(_BUILT_IN_FILTERS[name]) for name in _HARMLESS_FILTERS},
    "cidr": _of_data(_cidr),
    "combine": _strict(_combine),
    "d": _default,
    "default": _default,
    "dns_label": _of_data(_dns_label),
    "first_that_holds": _of_data(first_that_holds),
    "gib": _of_data(_gib),
    "intersect": _of_data(intersect),
    "or_else": _or_else,
    "refuse": _strict(_refuse),
    "shift": _of_data(shift),
    "split": _strict(_split),
    "window": _of_data(window),
}
EXPRESSION_TESTS: Mapping[str, Function] = {
    **{name: _strict(test) for name, test in _BUILT_IN_TESTS.items() if name not in _FORBIDDEN_TESTS},
    "defined": _is_defined,
    "undefined": lambda value: not _is_defined(value),
}
