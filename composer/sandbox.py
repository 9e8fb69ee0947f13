"""The expression language: jinja2 expressions over plain data, and nothing else.

Guarantees: attributes are items (`claim.spec.items` is the field `items`); nothing can be called; no statement, import
or global exists; an undefined value never becomes an empty text. Pure; limits of time and memory are the worker's.
"""

from __future__ import annotations

import ipaddress
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NoReturn

from jinja2 import StrictUndefined, TemplateRuntimeError, Undefined, UndefinedError
from jinja2.exceptions import SecurityError
from jinja2.filters import FILTERS
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.tests import TESTS

from composer.problems import PendingError, near

_HARMLESS_FILTERS = (
    *("abs", "first", "float", "int", "join", "last", "length", "list", "lower", "max", "min"),
    *("replace", "round", "sort", "string", "sum", "trim", "unique", "upper"),
)
_FORBIDDEN_TESTS = frozenset({"callable", "filter", "test", "escaped", "sameas"})
_SIZE_LIMIT = 1 << 20
_BITS_LIMIT = 64


class ExpressionError(Exception):
    """An expression has no value: the sentence says why."""


class Missing(StrictUndefined):
    """A value that is not there; any use raises, only `default`, `is defined` and `or_else` may look at it."""


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


class Status(Mapping[str, Any]):
    """The status of another resource: what is missing in it is Pending instead of undefined."""

    def __init__(self, resource: str, path: str, content: Mapping[str, Any]) -> None:
        self.resource = resource
        self.path = path
        self.content = content

    def __getitem__(self, key: str) -> Any:
        return self.content[key]

    def __iter__(self) -> Any:
        return iter(self.content)

    def __len__(self) -> int:
        return len(self.content)


class Sandbox(ImmutableSandboxedEnvironment):
    """jinja2 cut down to expressions over data."""

    intercepted_binops = frozenset({"+", "*", "**", "%", "//"})

    def __init__(self) -> None:
        super().__init__(undefined=Missing, autoescape=False)
        self.globals.clear()
        self.filters = {name: FILTERS[name] for name in _HARMLESS_FILTERS} | {
            "cidr": _cidr,
            "d": _default,
            "default": _default,
            "dns_label": _dns_label,
            "gib": _gib,
            "or_else": _or_else,
        }
        self.tests = {name: test for name, test in TESTS.items() if name not in _FORBIDDEN_TESTS}
        self.tests |= {"defined": _is_defined, "undefined": lambda value: not _is_defined(value)}

    def getattr(self, obj: Any, attribute: str) -> Any:
        """Read the item `attribute`; data has no attributes."""
        return self.getitem(obj, attribute)

    def getitem(self, obj: Any, argument: Any) -> Any:
        """Read one item of a mapping or list. Raises SecurityError for Python's own names, else ExpressionError."""
        if isinstance(obj, Pending):
            return Pending(obj=obj.waits_for, name=f"{obj.path}.{argument}")
        if isinstance(obj, Undefined):
            raise ExpressionError(_sentence(obj))
        if isinstance(_settled(argument), Undefined):
            raise ExpressionError(_sentence(argument))
        if isinstance(obj, Mapping):
            return self._item(obj, argument)
        if isinstance(obj, Sequence) and not isinstance(obj, str) and isinstance(argument, int | slice):
            try:
                return obj[argument]
            except IndexError:
                raise ExpressionError(f"the list has no element {argument}") from None
        if isinstance(obj, str) and isinstance(argument, int | slice):
            return obj[argument] if isinstance(argument, slice) or -len(obj) <= argument < len(obj) else ""
        if isinstance(argument, str) and argument.startswith("_"):
            raise SecurityError(f"{argument!r} is not data; an expression reads fields and applies filters only")
        raise ExpressionError(f"a {_kind(obj)} has no field {argument!r}; use a filter, for example `| upper`")

    def _item(self, obj: Mapping[Any, Any], argument: Any) -> Any:
        if argument not in obj:
            if isinstance(argument, str) and argument.startswith("__"):
                raise SecurityError(f"{argument!r} is not data; an expression reads fields and applies filters only")
            if isinstance(obj, Status):
                return Pending(obj=obj.resource, name=f"{obj.path}.{argument}")
            return Missing(hint=f"{argument!r} is undefined{near(str(argument), map(str, obj))}")
        found = obj[argument]
        if isinstance(obj, Status) and isinstance(found, Mapping):
            return Status(obj.resource, f"{obj.path}.{argument}", found)
        return found

    def is_safe_callable(self, obj: Any) -> bool:  # noqa: ARG002 - the base class's signature
        """Refuse every call: filters are no calls."""
        return False

    def call_binop(self, context: Any, operator: str, left: Any, right: Any) -> Any:
        """Compute an operator whose result could be huge, after its size was looked at."""
        _look_at_size(operator, left, right)
        return super().call_binop(context, operator, left, right)


def evaluate(function: Callable[..., Any], scope: Mapping[str, Any]) -> Any:
    """Call a compiled expression and give its value as plain JSON data.

    Raises:
        PendingError: it uses a status that is not there yet.
        SecurityError: it reaches for what is not data.
        ExpressionError: anything else; the sentence says what.
    """
    try:
        return plain(function(**scope))
    except (PendingError, SecurityError, ExpressionError):
        raise
    except NameError as error:
        # jinja2 folds constants into Python's source, where nan and inf are names that do not exist.
        raise NotJsonError("a number that JSON lacks") from error
    except UndefinedError as error:
        raise ExpressionError(str(error.message)) from error
    except (
        TemplateRuntimeError,
        ArithmeticError,
        TypeError,
        ValueError,
        LookupError,
        AttributeError,
    ) as error:
        raise ExpressionError(f"cannot be computed: {error}") from error


def plain(value: Any) -> Any:
    """Turn a result into plain JSON data; an undefined anywhere in it raises, and so does what JSON lacks."""
    match value:
        case Pending():
            raise PendingError(value.waits_for, value.path)
        case Undefined():
            raise ExpressionError(_sentence(value))
        case None | bool():
            return value
        case str():
            return str(value)
        case int():
            return _whole(value)
        case float():
            if math.isfinite(value):
                return value
            raise NotJsonError(f"{value} is no number in JSON")
        case Mapping():
            return {_key(key): plain(item) for key, item in value.items()}
        case Iterable():
            return [plain(item) for item in value]
        case _:
            raise NotJsonError(f"a {type(value).__name__} is no JSON")


class NotJsonError(ExpressionError):
    """The value cannot be written as JSON that every reader understands."""


def _key(key: Any) -> str:
    if isinstance(key, str):
        return key
    raise NotJsonError(f"a field's name must be a text, {key!r} is none; quote it")


def _whole(value: int) -> int:
    if -(2**63) <= value < 2**63:
        return value
    raise NotJsonError(f"a whole number of {value.bit_length()} bits does not fit 64 bits")


def _sentence(value: Undefined) -> str:
    return str(value._undefined_message)  # noqa: SLF001 - jinja2 offers the sentence under no public name


def _kind(value: Any) -> str:
    match value:
        case str():
            return "text"
        case bool():
            return "true or false"
        case int() | float():
            return "number"
        case None:
            return "none"
        case _:
            return "list"


def _length(value: Any) -> int:
    return len(value) if isinstance(value, str | list | tuple) else 0


def _bits(value: Any) -> int:
    return value.bit_length() if isinstance(value, int) else 0


def _look_at_size(operator: str, left: Any, right: Any) -> None:
    match operator:
        case "*" if isinstance(left, int) and isinstance(right, int):
            too_large = _bits(left) + _bits(right) > 2 * _BITS_LIMIT
        case "*":
            times = max((value for value in (left, right) if isinstance(value, int)), default=0)
            too_large = max(_length(left), _length(right)) * times > _SIZE_LIMIT
        case "**":
            exponent = right if isinstance(right, int) else _BITS_LIMIT
            too_large = _bits(left) * abs(exponent) > 2 * _BITS_LIMIT
        case "+":
            too_large = _length(left) + _length(right) > _SIZE_LIMIT
        case "%" if isinstance(left, str):
            raise ExpressionError("texts are not formatted with %; write them side by side or use ~")
        case _:
            too_large = _bits(left) > 2 * _BITS_LIMIT
    if too_large:
        raise TooLargeError(f"the result of {operator} would be too large")


class TooLargeError(ExpressionError):
    """The value would exceed what a render may produce."""


def _settled(value: Any) -> Any:
    if isinstance(value, Pending):
        raise PendingError(value.waits_for, value.path)
    return value


def _is_defined(value: Any) -> bool:
    return not isinstance(_settled(value), Undefined)


def _default(value: Any, default_value: Any = "", boolean: bool = False) -> Any:  # noqa: FBT001, FBT002 - jinja2's form
    if isinstance(_settled(value), Undefined) or (boolean and not value):
        return default_value
    return value


def _or_else(value: Any, other: Any) -> Any:
    """Give `other` while the value is not there, and go on without waiting."""
    return other if isinstance(value, Undefined) else value


def _dns_label(value: Any, length: int = 63) -> str:
    """Make a DNS label (RFC 1123) of a text: lower case, other characters to `-`, cut."""
    label = re.sub(r"[^a-z0-9]+", "-", str(_settled(value)).lower()).strip("-")
    return label[:length].rstrip("-")


_BINARY = {"Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40}
_DECIMAL = {"k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}


def _gib(value: Any) -> int:
    """Give a Kubernetes quantity in GiB, rounded up: "20Gi" -> 20, "1500Mi" -> 2."""
    found = re.fullmatch(r"(\d{1,18})(Ki|Mi|Gi|Ti|k|M|G|T)?", str(_settled(value)))
    if not found:
        raise ExpressionError(f"{str(value)[:64]!r} is no quantity like 20Gi")
    unit = (_BINARY | _DECIMAL).get(found[2] or "", 1)
    return -(-int(found[1]) * unit // 2**30)


def _cidr(value: Any) -> str:
    """Give the normal form of a network: host bits zero, IPv6 shortened."""
    try:
        return str(ipaddress.ip_network(str(_settled(value)), strict=False))
    except ValueError:
        raise ExpressionError(f"{str(value)[:64]!r} is no network like 10.0.0.0/8") from None
