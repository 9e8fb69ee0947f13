"""Templates as trees: compiles every text of a tree once, lists what it reads, and evaluates it. Pure.

A text that is one expression keeps the expression's type; a text with expressions in it stays a text; a field whose
expression is `none` is left out. Values can never change the structure of the tree.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeAlias, assert_never

from jinja2 import TemplateError, nodes
from jinja2.exceptions import SecurityError
from jinja2.optimizer import optimize

from composer.render.errors import UNSUPPORTED_VALUE, CompositionError, MistypedError, PendingError, Problem, near
from composer.render.sandbox import Sandbox, evaluate
from composer.render.values import ExpressionError, NotJsonError, TooLargeError, UnsupportedValueError, WrongTypeError

SANDBOX = Sandbox()
_DEPTH_LIMIT = 32
_LEAF_LIMIT = 16_384
# Expressions that are kept compiled: those of several large Compositions.
_COMPILED = 1_024

ROOTS = frozenset({"claim", "each", "env", "passwords", "resources", "vars"})
"""All that an expression can name."""

# What an expression is made of. Whatever else jinja2 can parse, now or later, is refused before it is compiled.
_DATA = (
    *(nodes.Const, nodes.Name, nodes.List, nodes.Tuple, nodes.Dict, nodes.Getattr, nodes.Getitem, nodes.Slice),
    *(nodes.Filter, nodes.Test, nodes.CondExpr, nodes.Concat, nodes.Compare, nodes.BinExpr, nodes.UnaryExpr),
)


@dataclass(frozen=True, slots=True)
class Path:
    """What an expression reads: `claim.spec.size` is root `claim`, steps `("spec", "size")`.

    `beyond` begins with the first step that is computed, which is None there, as is every other one.
    """

    root: str
    steps: tuple[str, ...]
    beyond: tuple[str | None, ...] = ()

    @property
    def whole(self) -> tuple[str | None, ...]:
        """All steps, None for each that is computed."""
        return (*self.steps, *self.beyond)

    def __str__(self) -> str:
        return ".".join((self.root, *self.steps))


@dataclass(frozen=True, slots=True)
class Expression:
    """One compiled expression; `column` is where it begins in its text, from 1."""

    source: str
    column: int
    reads: tuple[Path, ...]
    function: Callable[..., Any]


@dataclass(frozen=True, slots=True)
class _Compiled:
    """What a source is compiled to, wherever it stands."""

    reads: tuple[Path, ...]
    function: Callable[..., Any]


@dataclass(frozen=True, slots=True)
class _Refused:
    """Why a source is not compiled; `offset` is where the fault begins in it, without the spaces before it."""

    reason: str
    message: str
    offset: int


@dataclass(frozen=True, slots=True)
class Leaf:
    """One text with expressions: the parts in order, plain texts as they are."""

    path: str
    parts: tuple[str | Expression, ...]

    @property
    def expressions(self) -> Iterator[Expression]:
        """The expressions in it, in order."""
        return (part for part in self.parts if isinstance(part, Expression))


Tree: TypeAlias = Any
"""JSON data in which a text with expressions is a Leaf."""


def compile_tree(value: Any, path: str, depth: int = 0) -> Tree:
    """Compile all texts below `value`. Raises CompositionError naming the first that does not compile."""
    if depth > _DEPTH_LIMIT:
        raise CompositionError(Problem("RenderLimit", f"nested deeper than {_DEPTH_LIMIT} levels", path))
    match value:
        case str():
            return compile_text(value, path)
        case Mapping():
            _refuse_computed_keys(value, path)
            return {key: compile_tree(item, f"{path}.{key}", depth + 1) for key, item in value.items()}
        case list() | tuple():
            return [compile_tree(item, f"{path}[{index}]", depth + 1) for index, item in enumerate(value)]
        case _:
            return value


def _refuse_computed_keys(value: Mapping[Any, Any], path: str) -> None:
    """Refuse expressions in keys, which would be sent as they are written."""
    for key in value:
        if isinstance(key, str) and _has_expression(key):
            message = (
                f'the key {key[:64]!r} is not computed; make the whole map one expression: "{{{{ {{key: value}} }}}}"'
            )
            raise CompositionError(Problem("TemplateInvalid", message, path))


def _has_expression(text: str) -> bool:
    return "{{" in text or "{%" in text or "{#" in text


def compile_text(text: str, path: str) -> str | Leaf:
    """Compile one text; without an expression in it, it stays as it is."""
    if len(text) > _LEAF_LIMIT:
        raise CompositionError(Problem("RenderLimit", f"a text is longer than {_LEAF_LIMIT} characters", path))
    if not _has_expression(text):
        return text
    parts = tuple(_parts(text, path))
    if parts[1:] == ("\n",) and isinstance(parts[0], Expression):
        # YAML's block texts end in a line break; around a lone expression it is no text.
        parts = parts[:1]
    return Leaf(path, parts)


def _parts(text: str, path: str) -> Iterator[str | Expression]:
    position, begin, source = 0, 0, ""
    inside = False
    try:
        for _, kind, token in SANDBOX.lex(text):
            match kind:
                case "data":
                    yield token
                case "variable_begin":
                    inside, source, begin = True, "", position + len(token)
                case "variable_end":
                    inside = False
                    yield _expression(source, path, begin)
                case _ if inside:
                    source += token
                case _:
                    fault = (
                        f"{token.strip()!r} is not allowed: a text holds expressions in double braces, no statements"
                    )
                    raise CompositionError(Problem("TemplateForbidden", fault, path, position + 1))
            position += len(token)
        if inside:
            raise CompositionError(Problem("TemplateInvalid", "an expression is not closed by '}}'", path, begin + 1))
    except TemplateError as error:
        raise CompositionError(Problem("TemplateInvalid", str(error.message), path, position + 1)) from error


def _expression(source: str, path: str, begin: int) -> Expression:
    column = begin + len(source) - len(source.lstrip()) + 1
    try:
        compiled = _compiled(source)
    except TemplateError as error:
        raise CompositionError(Problem("TemplateInvalid", str(error.message), path, column)) from error
    except ValueError as error:
        # A number of more digits than Python reads.
        raise CompositionError(Problem("TemplateInvalid", str(error), path, column)) from error
    except (RecursionError, MemoryError, SyntaxError) as error:
        # The last is Python's own: it compiles no more than some hundred nested parentheses.
        raise CompositionError(Problem("RenderLimit", "the expression is nested too deep", path, column)) from error
    match compiled:
        case _Refused(reason, message, offset):
            raise CompositionError(Problem(reason, message, path, column + offset))
        case _Compiled(reads, function):
            return Expression(source.strip(), column, reads, function)
        case _:
            assert_never(compiled)


@lru_cache(maxsize=_COMPILED)
def _compiled(source: str) -> _Compiled | _Refused:
    """Compile one source; the same expression stands in many fields, and in each check of a Composition again."""
    tree = SANDBOX.parse("{{ " + source + " }}")
    fault = _forbidden(tree)
    if fault:
        return _Refused("TemplateForbidden", fault, 0)
    unknown = _unknown_root(tree)
    if unknown:
        message = f"{unknown!r} is undefined{near(unknown, ROOTS)}; known: {', '.join(sorted(ROOTS))}"
        return _Refused("RenderFailed", message, max(source.strip().find(unknown), 0))
    function = SANDBOX.compile_expression(source.strip(), undefined_to_none=False)
    # A step that is computed of constants is written out for the compiler, and so for the checks.
    return _Compiled(tuple(_reads(optimize(tree, SANDBOX))), function)


def _forbidden(tree: nodes.Template) -> str | None:
    if any(tree.find_all(nodes.Call)):
        return "nothing can be called in an expression; use a filter, for example `| upper`"
    if any(name.startswith("__") for name in _steps_named(tree)):
        return "names that begin with two underscores are Python's, no data; an expression reads fields only"
    for node in tree.find_all(nodes.Expr):
        if not isinstance(node, _DATA):
            return f"{type(node).__name__} is no part of an expression"
        if isinstance(node, nodes.Filter | nodes.Test) and (node.dyn_args or node.dyn_kwargs):
            return "arguments are written out; * and ** pass none on"
    return None


def _unknown_root(tree: nodes.Template) -> str | None:
    return next((node.name for node in tree.find_all(nodes.Name) if node.name not in ROOTS), None)


def _steps_named(tree: nodes.Template) -> Iterator[str]:
    for node in tree.find_all((nodes.Getattr, nodes.Getitem)):
        match node:
            case nodes.Getattr(attr=name):
                yield name
            case nodes.Getitem(arg=nodes.Const(value=str() as name)):
                yield name
            case _:
                continue


def _reads(tree: nodes.Node) -> Iterator[Path]:
    inner: set[int] = set()
    for node in tree.find_all((nodes.Getattr, nodes.Getitem, nodes.Name)):
        if id(node) in inner:
            continue
        steps: list[str | None] = []
        current: nodes.Node = node
        while isinstance(current, nodes.Getattr | nodes.Getitem):
            inner.add(id(current.node))
            match current:
                case nodes.Getattr(attr=name):
                    steps.append(name)
                case nodes.Getitem(arg=nodes.Const(value=str() as name)):
                    steps.append(name)
                case _:
                    steps.append(None)
            current = current.node
        if isinstance(current, nodes.Name):
            steps.reverse()
            plain = written_out(steps)
            yield Path(current.name, plain, tuple(steps[len(plain) :]))


def written_out(steps: Iterable[str | None]) -> tuple[str, ...]:
    """Return the steps before the first that is computed."""
    plain: list[str] = []
    for step in steps:
        if step is None:
            break
        plain.append(step)
    return tuple(plain)


def leaves(tree: Tree) -> Iterator[Leaf]:
    """Yield all leaves of a tree."""
    match tree:
        case Leaf():
            yield tree
        case Mapping():
            for item in tree.values():
                yield from leaves(item)
        case list():
            for item in tree:
                yield from leaves(item)
        case _:
            return


def reads(trees: Iterable[Tree]) -> Iterator[tuple[Leaf, Expression, Path]]:
    """Yield everything that the expressions of these trees read."""
    for tree in trees:
        for leaf in leaves(tree):
            for expression in leaf.expressions:
                for path in expression.reads:
                    yield leaf, expression, path


def fill(tree: Tree, scope: Mapping[str, Any]) -> Any:
    """Evaluate a tree into plain JSON data; a field whose expression is `none` is left out.

    Raises PendingError when a status is not there yet, CompositionError otherwise.
    """
    match tree:
        case Leaf():
            return fill_leaf(tree, scope)
        case Mapping():
            pairs = ((key, item, fill(item, scope)) for key, item in tree.items())
            return {key: value for key, item, value in pairs if value is not None or not isinstance(item, Leaf)}
        case list():
            return [fill(item, scope) for item in tree]
        case _:
            return tree


def fill_leaf(leaf: Leaf, scope: Mapping[str, Any]) -> Any:
    """Evaluate one leaf: the value itself when it is one expression, else a text."""
    values = [part if isinstance(part, str) else _value(part, leaf.path, scope) for part in leaf.parts]
    if len(values) == 1:
        return values[0]
    for part, value in zip(leaf.parts, values, strict=True):
        if isinstance(value, bool) or not isinstance(value, str | int | float):
            message = "a text can only embed texts and numbers; make the expression the whole value"
            column = part.column if isinstance(part, Expression) else 0
            raise CompositionError(Problem("RenderFailed", message, leaf.path, column))
    return "".join(str(value) for value in values)


def _value(expression: Expression, path: str, scope: Mapping[str, Any]) -> Any:
    try:
        return evaluate(expression.function, scope)
    except PendingError:
        raise
    except SecurityError as error:
        reason, message = "TemplateForbidden", str(error)
    except NotJsonError as error:
        reason, message = "NotJson", str(error)
    except (TooLargeError, RecursionError, MemoryError) as error:
        reason, message = "RenderLimit", str(error) or "too much memory or depth"
    except UnsupportedValueError as error:
        reason, message = UNSUPPORTED_VALUE, str(error)
    except WrongTypeError as error:
        raise MistypedError(Problem("RenderFailed", str(error), path, expression.column)) from error
    except ExpressionError as error:
        reason, message = "RenderFailed", str(error)
    raise CompositionError(Problem(reason, message, path, expression.column))
