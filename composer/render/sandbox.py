"""The expression language: jinja2 expressions over plain data, and nothing else.

Guarantees: attributes are items (`claim.spec.items` is the field `items`); nothing can be called; no statement, import
or global exists; an undefined value never becomes an empty text. A path through the claim's spec that is written out is
undefined as a whole where the claim leaves a part of it out; that its schema has such a path is checked at load. Pure;
limits of time and memory are the worker's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from jinja2 import TemplateRuntimeError, Undefined, UndefinedError, nodes
from jinja2.compiler import CodeGenerator, Frame
from jinja2.exceptions import SecurityError
from jinja2.sandbox import ImmutableSandboxedEnvironment

from composer.render.errors import PendingError
from composer.render.filters import EXPRESSION_FILTERS, EXPRESSION_TESTS
from composer.render.values import (
    ExpressionError,
    Missing,
    NotJsonError,
    Nowhere,
    Pending,
    Status,
    TooLargeError,
    WrongTypeError,
    as_data,
    plain,
    settled,
)

_SIZE_LIMIT = 1 << 20
_BITS_LIMIT = 64


class _Generator(CodeGenerator):
    """Sends what jinja2 leaves to Python's own operators through the sandbox: comparisons, `in` and slices.

    It reads a path through the claim's spec in one call, which knows the whole path.
    """

    def visit_Compare(self, node: nodes.Compare, frame: Frame) -> None:  # noqa: N802 - jinja2's name for it
        """Write a comparison whose sides must be there: `x in []` asks nothing of x."""
        self.write("(")
        self._settled(node.expr, frame)
        for operand in node.ops:
            self.visit(operand, frame)
        self.write(")")

    def visit_Operand(self, node: nodes.Operand, frame: Frame) -> None:  # noqa: N802 - as above
        """Write the right side of a comparison."""
        operators = {"eq": "==", "ne": "!=", "gt": ">", "gteq": ">=", "lt": "<", "lteq": "<=", "notin": "not in"}
        self.write(f" {operators.get(node.op, node.op)} ")
        self._settled(node.expr, frame)

    def visit_Concat(self, node: nodes.Concat, frame: Frame) -> None:  # noqa: N802 - as above
        """Write `~` over plain data: a status has the text of a map."""
        self.write("str_join((")
        for part in node.nodes:
            self.write("environment.as_data(")
            self.visit(part, frame)
            self.write("), ")
        self.write("))")

    def visit_Getattr(self, node: nodes.Getattr, frame: Frame) -> None:  # noqa: N802 - as above
        """Write a path through the claim's spec as one read."""
        if not self._is_claim_path(node, frame):
            super().visit_Getattr(node, frame)

    def visit_Getitem(self, node: nodes.Getitem, frame: Frame) -> None:  # noqa: N802 - as above
        """Write a slice as a read of the sandbox; jinja2 would index the object itself."""
        if not isinstance(node.arg, nodes.Slice):
            if not self._is_claim_path(node, frame):
                super().visit_Getitem(node, frame)
            return
        self.write("environment.getitem(")
        self.visit(node.node, frame)
        self.write(", slice(")
        for part in (node.arg.start, node.arg.stop, node.arg.step):
            self._settled(part or nodes.Const(None), frame)
            self.write(", ")
        self.write("))")

    def _is_claim_path(self, node: nodes.Expr, frame: Frame) -> bool:
        """Write `claim.spec.a.b`, every step written out, as one read; return whether the node is such a path."""
        steps: list[str] = []
        current: nodes.Node = node
        while True:
            match current:
                case nodes.Getattr(node=below, attr=name):
                    steps.append(name)
                case nodes.Getitem(node=below, arg=nodes.Const(value=str() as name)):
                    steps.append(name)
                case _:
                    break
            current = below
        is_claim = isinstance(current, nodes.Name) and current.name == "claim"
        if not is_claim or steps[-1] != "spec" or any(step.startswith("__") for step in steps):
            return False
        self.write("environment.read_claim(")
        self.visit(current, frame)
        self.write(f", {tuple(reversed(steps))!r})")
        return True

    def _settled(self, node: nodes.Expr, frame: Frame) -> None:
        self.write("environment.settled(")
        self.visit(node, frame)
        self.write(")")


class Sandbox(ImmutableSandboxedEnvironment):
    """jinja2 cut down to expressions over data."""

    intercepted_binops = frozenset({"+", "*", "**", "%", "//"})
    code_generator_class = _Generator

    def __init__(self) -> None:
        # A text keeps the line break at its end.
        super().__init__(undefined=Missing, autoescape=False, keep_trailing_newline=True)
        self.globals.clear()
        self.filters = dict(EXPRESSION_FILTERS)
        self.tests = dict(EXPRESSION_TESTS)

    def settled(self, value: Any) -> Any:
        """Return the value when it is there. Raises PendingError or ExpressionError."""
        return settled(value)

    def as_data(self, value: Any) -> Any:
        """Return a value as plain data. Raises PendingError or ExpressionError."""
        return as_data(value)

    def read_claim(self, claim: Any, steps: tuple[str, ...]) -> Any:
        """Return the value at a path of the claim; where a step is left out, the whole path is undefined."""
        value = claim
        for step in steps:
            # What is there is nearly always read from a plain map.
            value = value[step] if type(value) is dict and step in value else self.getitem(value, step)
            if isinstance(value, Missing):
                return value
        return value

    def getattr(self, obj: Any, attribute: str) -> Any:
        """Return the item `attribute`; data has no attributes."""
        return self.getitem(obj, attribute)

    def getitem(self, obj: Any, argument: Any) -> Any:
        """Return one item of a mapping or list. Raises SecurityError for Python's own names, else ExpressionError."""
        if isinstance(obj, Pending):
            return Pending(obj=obj.waits_for, name=f"{obj.path}.{argument}")
        if isinstance(obj, Nowhere):
            return obj
        settled(obj)
        settled(argument)
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
        if isinstance(argument, slice):
            raise ExpressionError("a map has no order to cut a piece of; name a field")
        if argument not in obj:
            if isinstance(argument, str) and argument.startswith("__"):
                raise SecurityError(f"{argument!r} is not data; an expression reads fields and applies filters only")
            if isinstance(obj, Status):
                return Pending(obj=obj.resource, name=f"{obj.path}.{argument}")
            return Missing(obj=obj, name=argument)
        value = obj[argument]
        if isinstance(obj, Status) and isinstance(value, Mapping):
            return Status(obj.resource, f"{obj.path}.{argument}", value)
        return value

    def is_safe_callable(self, obj: Any) -> bool:  # noqa: ARG002 - the base class's signature
        """Refuse every call: filters are no calls."""
        return False

    def call_binop(self, context: Any, operator: str, left: Any, right: Any) -> Any:
        """Compute an operator whose result could be huge, after its size was looked at."""
        settled(left)
        settled(right)
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
    except TypeError as error:
        raise WrongTypeError(f"cannot be computed: {error}") from error
    except (
        TemplateRuntimeError,
        ArithmeticError,
        ValueError,
        LookupError,
        AttributeError,
    ) as error:
        raise ExpressionError(f"cannot be computed: {error}") from error


def _kind(value: Any) -> str:
    match value:
        case str():
            return "text"
        case bool():
            return "true or false"
        case int() | float():
            return "number"
        case None | Undefined():
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
