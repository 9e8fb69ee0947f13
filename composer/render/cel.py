"""Rules of a CRD's schema (`x-kubernetes-validations`), as far as they are evaluated without an API server. Pure.

Rules are written in CEL. Read here is the part of it that is Python's too once `!`, `&&` and `||` are spelled out:
fields, has(), comparisons, `in`, int(), size(), startsWith(), matches() and all(). A rule that holds anything else, or
that compares with `oldSelf`, is passed over: the API server has the last word.

Source: Kubernetes, "Extend the Kubernetes API with CustomResourceDefinitions", Validation rules; the CEL specification.
"""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from typing import Any

from composer.render.errors import Problem
from composer.render.schema import Schema, step

_TEXT = re.compile(r"""('(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")""")
_SPELLED_OUT = (("!=", "\0"), ("!", " ~ "), ("\0", "!="), ("&&", " and "), ("||", " or "), ("\n", " "))
_COMPARISONS: Mapping[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.In: lambda item, items: item in items,
}
_METHODS: Mapping[str, Callable[[Any, Any], Any]] = {
    "startsWith": lambda text, start: text.startswith(start),
    "endsWith": lambda text, end: text.endswith(end),
    "contains": lambda text, part: part in text,
    "matches": lambda text, pattern: re.search(pattern, text) is not None,
}


class _UnreadableError(Exception):
    """A rule goes beyond what is read here."""


def broken(value: Any, schema: Schema, path: str) -> Iterator[Problem]:
    """Yield each rule that a value breaks, with the rule's own words and the field that it names."""
    for rule in schema.get("x-kubernetes-validations") or ():
        if not _holds(str(rule["rule"]), value):
            place = f"{path}{rule.get('fieldPath', '')}"
            yield Problem("SchemaMismatch", str(rule.get("message") or f"must fulfil {rule['rule']}"), place)
    match value:
        case Mapping():
            for name, item in value.items():
                yield from broken(item, step(schema, name) or {}, f"{path}.{name}")
        case list():
            for index, item in enumerate(value):
                yield from broken(item, schema.get("items") or {}, f"{path}[{index}]")
        case _:
            return


def _holds(rule: str, value: Any) -> bool:
    if "oldSelf" in rule:
        return True
    try:
        return bool(_value(_parsed(rule), {"self": value}))
    except (SyntaxError, TypeError, ValueError, AttributeError, RecursionError, re.error, _UnreadableError):
        return True


@lru_cache(maxsize=1024)
def _parsed(rule: str) -> ast.expr:
    return ast.parse(_in_python(rule), mode="eval").body


def _in_python(rule: str) -> str:
    parts = _TEXT.split(rule)
    for index in range(0, len(parts), 2):
        for ours, theirs in _SPELLED_OUT:
            parts[index] = parts[index].replace(ours, theirs)
    return "".join(parts).strip()


def _value(node: ast.expr, names: Mapping[str, Any]) -> Any:
    value: Any
    match node:
        case ast.Constant(value=value):
            pass
        case ast.List(elts=items):
            value = [_value(item, names) for item in items]
        case ast.Name(id=name) if name in names:
            value = names[name]
        case ast.Attribute(value=base, attr=name):
            value = _field(_value(base, names), name)
        case ast.UnaryOp(op=ast.Invert(), operand=operand):
            value = not _value(operand, names)
        case ast.BoolOp(op=ast.And(), values=parts):
            value = all(_value(part, names) for part in parts)
        case ast.BoolOp(op=ast.Or(), values=parts):
            value = any(_value(part, names) for part in parts)
        case ast.Compare(left=left, ops=[sign], comparators=[right]) if type(sign) in _COMPARISONS:
            value = _COMPARISONS[type(sign)](_value(left, names), _value(right, names))
        case ast.Call(func=function, args=arguments, keywords=[]):
            value = _called(function, arguments, names)
        case _:
            raise _UnreadableError(type(node).__name__)
    return value


def _field(base: Any, name: str) -> Any:
    if not isinstance(base, Mapping) or name not in base:
        raise _UnreadableError(name)
    return base[name]


def _called(function: ast.expr, arguments: list[ast.expr], names: Mapping[str, Any]) -> Any:
    match function, arguments:
        case ast.Name(id="has"), [ast.Attribute(value=base, attr=field)]:
            return field in _value(base, names)
        case ast.Name(id="int"), [argument]:
            return int(_value(argument, names))
        case ast.Name(id="size"), [argument]:
            return len(_value(argument, names))
        case ast.Attribute(value=base, attr="all"), [ast.Name(id=name), condition]:
            return all(_value(condition, {**names, name: item}) for item in _value(base, names))
        case ast.Attribute(value=base, attr=method), [argument] if method in _METHODS:
            return _METHODS[method](_value(base, names), _value(argument, names))
        case _:
            raise _UnreadableError(ast.unparse(function))
