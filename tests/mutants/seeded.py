"""Mutants made by an operator at random, a function of the seed: one comparison, branch, constant or statement changed.

The operators are those of mutation testing: negate a condition, swap `and` and `or`, move a bound, drop a call.
"""

from __future__ import annotations

import ast
import random
from pathlib import Path
from typing import Final

from tests.mutants.mutant import Mutant

PARTS: Final = ("composer", "providers", "runtime")
_SWAPPED: Final = {
    ast.Lt: "<=", ast.LtE: "<", ast.Gt: ">=", ast.GtE: ">", ast.Eq: "!=", ast.NotEq: "==",
    ast.In: "not in", ast.NotIn: "in", ast.Is: "is not", ast.IsNot: "is",
}  # fmt: skip
_CHANGED: Final = (ast.Compare, ast.BoolOp, ast.UnaryOp, ast.Constant, ast.Expr)
_LOGS: Final = ("log.", "logger.", "_log.")


def seeded(root: Path, seed: int, count: int) -> list[Mutant]:
    """Return mutants of the product's parts below a root; which ones is a function of the seed and of the code."""
    chance = random.Random(seed)  # noqa: S311 - a run is to be repeated
    files = sorted(str(path.relative_to(root)) for part in PARTS for path in (root / part).rglob("*.py"))
    mutants: list[Mutant] = []
    while len(mutants) < count:
        file = chance.choice(files)
        text = (root / file).read_text(encoding="utf-8")
        nodes = [node for node in ast.walk(ast.parse(text)) if isinstance(node, _CHANGED)]
        change = _change(text, chance.choice(nodes)) if nodes else None
        if change is not None and text.count(change[0]) == 1 and _parses(text.replace(*change)):
            mutants.append(Mutant(f"seed{seed}-{len(mutants):03}", file, *change))
    return mutants


def _parses(text: str) -> bool:
    try:
        ast.parse(text)
    except SyntaxError:
        return False
    return True


def _change(text: str, node: ast.expr | ast.stmt) -> tuple[str, str] | None:
    """Return the whole lines of a node, and what an operator makes of them; None where none can."""
    changed = _changed(text, node)
    if changed is None:
        return None
    old = "".join(text.splitlines(keepends=True)[node.lineno - 1 : node.end_lineno])
    return old, old.replace(ast.get_source_segment(text, node) or "", changed, 1)


def _changed(text: str, node: ast.expr | ast.stmt) -> str | None:
    piece = ast.get_source_segment(text, node) or ""
    match node:
        case ast.Compare(left=left, ops=[operator], comparators=[right]) if type(operator) in _SWAPPED:
            sides = [ast.get_source_segment(text, side) for side in (left, right)]
            return f"{sides[0]} {_SWAPPED[type(operator)]} {sides[1]}"
        case ast.BoolOp(op=operator):
            words = (" and ", " or ") if isinstance(operator, ast.And) else (" or ", " and ")
            return piece.replace(*words, 1)
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return ast.get_source_segment(text, operand)
        case ast.Constant(value=bool() as value):
            return str(not value)
        case ast.Expr(value=ast.Await() | ast.Call()):
            return None if piece.startswith(_LOGS) else "pass"
        case _:
            return None
