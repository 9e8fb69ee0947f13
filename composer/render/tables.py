"""Filters over tables: lists of maps, in a variable or an environment, from which a row is picked. Pure."""

from __future__ import annotations

import operator
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from composer.quantities import measured
from composer.render.errors import near
from composer.render.values import ExpressionError, UnsupportedValueError

_SHOWN_CHARACTERS = 64


def first_that_holds(table: Any, /, **wanted: Any) -> Mapping[str, Any]:
    """Return the first row that has at least as much of every field: a table is written from the smallest row.

    Amounts are numbers, and quantities such as 20Gi. Raises UnsupportedValueError when no row has as much,
    ExpressionError when one has no such field.
    """
    rows = _rows(table)
    if not wanted:
        raise ExpressionError("first_that_holds is told no field; name one, as first_that_holds(cpu=2)")
    least = [_wanted(name, value) for name, value in wanted.items()]
    # All rows are read: one that was written wrong is found by the first claim, and not by the one that needs it.
    amounts = [[_amount(row, name, number) for name in wanted] for number, row in enumerate(rows, 1)]
    for row, held in zip(rows, amounts, strict=True):
        if all(map(operator.ge, held, least)):
            return row
    raise UnsupportedValueError(_nothing_holds(rows, wanted))


def intersect(values: Any, others: Any) -> list[Any]:
    """Return the elements of a list that another list has too, each once, in the order of the first."""
    for value in (values, others):
        if not isinstance(value, list | tuple):
            raise ExpressionError(f"{_shown(value)} is no list, and cannot be intersected with one")
    elements: list[Any] = []
    for value in values:
        if value in others and value not in elements:
            elements.append(value)
    return elements


def _rows(table: Any) -> list[Mapping[str, Any]]:
    if isinstance(table, list | tuple) and table and all(isinstance(row, Mapping) for row in table):
        return list(table)
    raise ExpressionError(f"{_shown(table)} is no table; a table is a list of maps, as [{{cpu: 2}}, {{cpu: 4}}]")


def _wanted(name: str, value: Any) -> Fraction | int:
    amount = _measured(value)
    if amount is None:
        raise ExpressionError(f"{name} is {_shown(value)}, which is neither a number nor a quantity like 20Gi")
    return amount


def _amount(row: Mapping[str, Any], name: str, number: int) -> Fraction | int:
    if name not in row:
        raise ExpressionError(f"row {number} of the table has no field {name!r}{near(name, map(str, row))}")
    amount = _measured(row[name])
    if amount is None:
        place = f"row {number} of the table: {name} is {_shown(row[name])}"
        raise ExpressionError(f"{place}, which is neither a number nor a quantity like 20Gi")
    return amount


def _measured(value: Any) -> Fraction | int | None:
    match value:
        case bool():
            return None
        case int():
            return value
        case float():
            return Fraction(value)
        case _:
            return measured(value)


def _nothing_holds(rows: list[Mapping[str, Any]], wanted: Mapping[str, Any]) -> str:
    """Return what was wanted, and how much of each field the table has at most."""
    most = {name: max((row[name] for row in rows), key=lambda value: _measured(value) or 0) for name in wanted}
    return f"no row of the table holds {_listed(wanted)}; the most that one has: {_listed(most)}"


def _listed(fields: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} {str(value)[:_SHOWN_CHARACTERS]}" for name, value in fields.items())


def _shown(value: Any) -> str:
    return repr(str(value)[:_SHOWN_CHARACTERS])
