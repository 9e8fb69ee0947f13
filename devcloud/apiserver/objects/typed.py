"""Values of a type: checked, as sets of fields, and without some; after structured-merge-diff's `typed`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from devcloud.apiserver.objects.atoms import Atom, ListAtom, MapAtom
from devcloud.apiserver.objects.field_sets import FieldSet, Path, step_shown
from runtime.objects import dumps


@dataclass(frozen=True, slots=True)
class Misfit:
    """Where a value does not fit its type, and why."""

    path: str
    reason: str

    def __str__(self) -> str:
        return f"{self.path}: {self.reason}" if self.path else self.reason


class MistypedError(Exception):
    """A value does not fit its type."""

    def __init__(self, misfits: list[Misfit]) -> None:
        lines = [str(misfit) for misfit in misfits]
        super().__init__(lines[0] if len(lines) == 1 else "\n".join(["errors:", *(f"  {line}" for line in lines)]))


def check(atom: Atom, value: Any, *, allows_doubles: bool = False, fitting: Any = None) -> None:
    """Raise MistypedError for a value that does not fit; parts that are as in a `fitting` one are not looked at."""
    if isinstance(value, dict) and isinstance(fitting, dict):
        value = {name: part for name, part in value.items() if name not in fitting or part != fitting[name]}
    misfits = list(_misfits(atom, value, "", allows_doubles=allows_doubles))
    if misfits:
        raise MistypedError(misfits)


def _misfits(atom: Atom, value: Any, at: str, *, allows_doubles: bool) -> Iterator[Misfit]:
    if value is None:
        return
    match atom.form(value):
        case "map" if atom.map is not None:
            if not isinstance(value, dict):
                yield Misfit(at, f"expected map, got {_go(value)}")
                return
            yield from _of_map(atom.map, value, at, allows_doubles=allows_doubles)
        case "list" if atom.list is not None:
            if not isinstance(value, list):
                yield Misfit(at, f"expected list, got {_go(value)}")
                return
            yield from _of_list(atom.list, value, at, allows_doubles=allows_doubles)
        case _:
            if (reason := _no_scalar(atom.scalar, value)) is not None:
                yield Misfit(at, reason)


def _of_map(atom: MapAtom, value: dict[str, Any], at: str, *, allows_doubles: bool) -> Iterator[Misfit]:
    for name, part in value.items():
        below = atom.fields.get(name, atom.element)
        if below is None:
            yield Misfit(f"{at}.{name}", "field not declared in schema")
            return
        yield from _misfits(below, part, f"{at}.{name}", allows_doubles=allows_doubles)


def _of_list(atom: ListAtom, value: list[Any], at: str, *, allows_doubles: bool) -> Iterator[Misfit]:
    steps: set[str] = set()
    for index, part in enumerate(value):
        shown = f"[{index}]"
        if not atom.is_atomic:
            try:
                step = step_of(atom, part)
            except ValueError as error:
                yield Misfit(at, f"element {index}: {error}")
                return
            shown = step_shown(step)
            if step in steps and not allows_doubles:
                yield Misfit(at, f"duplicate entries for key {shown}")
            steps.add(step)
        yield from _misfits(atom.element, part, at + shown, allows_doubles=allows_doubles)


def _no_scalar(scalar: str, value: Any) -> str | None:
    """Return why a value is no such scalar, None where it is."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    match scalar:
        case "numeric" if not is_number:
            return f"expected numeric (int or float), got {_go_type(value)}"
        case "string" if not isinstance(value, str):
            return f"expected string, got &value.valueUnstructured{{Value:{_go_syntax(value)}}}"
        case "boolean" if not isinstance(value, bool):
            return f"expected boolean, got {_go(value)}"
        case "untyped" if isinstance(value, dict | list):
            return f"expected any scalar, got {_go(value)}"
        case _:
            return None


def _go(value: Any) -> str:
    """Return a value as Go's %v prints it within a struct."""
    return f"&{{{_go_inner(value)}}}"


def _go_inner(value: Any) -> str:
    if isinstance(value, dict):
        return "map[" + " ".join(f"{name}:{_go_inner(part)}" for name, part in sorted(value.items())) + "]"
    if isinstance(value, list):
        return "[" + " ".join(_go_inner(part) for part in value) + "]"
    if isinstance(value, str):
        return value
    return dumps(value).decode() if value is not None else "<nil>"


def _go_syntax(value: Any) -> str:
    """Return a value as Go's %#v prints it."""
    if isinstance(value, dict):
        inner = ", ".join(f"{dumps(name).decode()}:{_go_syntax(part)}" for name, part in sorted(value.items()))
        return f"map[string]interface {{}}{{{inner}}}"
    if isinstance(value, list):
        return "[]interface {}{" + ", ".join(_go_syntax(part) for part in value) + "}"
    return dumps(value).decode() if value is not None else "interface {}(nil)"


def _go_type(value: Any) -> str:
    if isinstance(value, dict):
        return "map[string]interface {}"
    if isinstance(value, list):
        return "[]interface {}"
    return {str: "string", bool: "bool", int: "int64", float: "float64"}[type(value)]


def step_of(atom: ListAtom, part: Any) -> str:
    """Return the step of an element of a set or a map list; raises ValueError where it has none."""
    return f"k:{_json(_keys(atom, part))}" if atom.keys else f"v:{_json(_of_set(part))}"


def _of_set(part: Any) -> Any:
    if part is None:
        raise ValueError("associative list without keys has an element that's an explicit null")
    reasons: dict[type[Any], str] = {
        dict: "associative list without keys has an element that's a map type",
        list: "not supported: associative list with lists as elements",
    }
    if type(part) in reasons:
        raise ValueError(reasons[type(part)])
    return part


def _keys(atom: ListAtom, part: Any) -> dict[str, Any]:
    if part is None:
        raise ValueError("associative list with keys may not have a null element")
    if not isinstance(part, dict):
        raise ValueError("associative list with keys may not have non-map elements")  # noqa: TRY004 - as the others
    defaults = atom.element.map.defaults if atom.element.map is not None else {}
    keys = {name: part.get(name, defaults.get(name)) for name in sorted(atom.keys)}
    keys = {name: value for name, value in keys.items() if value is not None or name in part}
    if not keys:
        names = " ".join(f'"{name}"' for name in atom.keys)
        raise ValueError(
            f"associative list with keys has an element that omits all key fields [{names}] "
            "(and doesn't have default values for any key fields)"
        )
    return keys


def _json(value: Any) -> str:
    text = dumps(value).decode()
    if "<" in text or ">" in text or "&" in text:
        text = text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
    return text


def to_set(atom: Atom, value: Any) -> FieldSet:
    """Return all fields that a value has."""
    made = FieldSet()
    _collect(atom, value, made, ())
    return made


def _collect(atom: Atom, value: Any, into: FieldSet, at: Path) -> None:
    match atom.form(value):
        case "map" if atom.map is not None:
            if atom.map.is_atomic:
                into.insert(at)
            elif isinstance(value, dict):
                _collect_fields(atom.map, value, into, at)
        case "list" if atom.list is not None:
            if atom.list.is_atomic:
                into.insert(at)
            elif isinstance(value, list):
                _collect_elements(atom.list, value, into, at)
        case _:
            into.insert(at)


def _collect_fields(atom: MapAtom, value: dict[str, Any], into: FieldSet, at: Path) -> None:
    for name, part in value.items():
        below = atom.fields.get(name)
        path = (*at, f"f:{name}")
        if below is None:
            into.insert(path)
            below = atom.element
        elif part is None or part == {}:
            into.insert(path)
        if below is not None:
            _collect(below, part, into, path)


def _collect_elements(atom: ListAtom, value: list[Any], into: FieldSet, at: Path) -> None:
    steps = [step_of(atom, part) for part in value]
    for step, part in zip(steps, value, strict=True):
        into.insert((*at, step))
        if steps.count(step) == 1:
            _collect(atom.element, part, into, (*at, step))


def removed(atom: Atom, value: Any, gone: FieldSet) -> Any:
    """Return a value without these fields; None where nothing is left of an object or a list."""
    match atom.form(value):
        case "map" if atom.map is not None:
            if not isinstance(value, dict) or not value or atom.map.is_atomic:
                return None
            return _removed_fields(atom, value, gone) or None
        case "list" if atom.list is not None:
            if not isinstance(value, list) or not value or atom.list.is_atomic:
                return None
            return _removed_elements(atom.list, value, gone) or None
        case _:
            return value


def _removed_fields(atom: Atom, value: dict[str, Any], gone: FieldSet) -> dict[str, Any]:
    kept = {}
    for name, part in value.items():
        step = f"f:{name}"
        if gone.has(step):
            continue
        below = gone.below(step)
        kept[name] = removed(atom.at(step), part, below) if below else part
    return kept


def _removed_elements(atom: ListAtom, value: list[Any], gone: FieldSet) -> list[Any]:
    kept = []
    for part in value:
        step = step_of(atom, part)
        if gone.has(step):
            continue
        below = gone.below(step)
        kept.append(removed(atom.element, part, below) if below else part)
    return kept
