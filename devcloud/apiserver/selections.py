"""Which objects a list or a watch selects: by namespace, labels, fields; after apimachinery's `labels` and `fields`."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from devcloud.apiserver.objects import refusals
from runtime.kube import Selection
from runtime.objects import CONFIG_MAPS, LEASES, SECRETS, Object, Resource, dumps

Term = Callable[[Object], bool]
_SET: Final = re.compile(r"\s*(?P<name>[^\s!=(),]+)\s+(?P<how>in|notin)\s*\((?P<values>[^)]*)\)\s*")
_FIELDS: Final = {"metadata.name", "metadata.namespace"}


@dataclass(frozen=True, slots=True)
class Selected:
    """A selection that was read."""

    namespace: str
    terms: tuple[Term, ...]

    def has(self, obj: Object) -> bool:
        """Return whether an object is one of them."""
        in_namespace = self.namespace in ("", obj["metadata"].get("namespace", ""))
        return in_namespace and all(term(obj) for term in self.terms)


def selected(selection: Selection, resource: Resource | None = None) -> Selected:
    """Read a selection; raises RefusedError for a field that is not selected by."""
    labels = (_label(term) for term in re.split(r",(?![^(]*\))", selection.labels) if term.strip())
    fields = (_field(term, resource) for term in selection.fields.split(",") if term)
    return Selected(selection.namespace, (*labels, *fields))


def _labels(obj: Object) -> dict[str, str]:
    return obj["metadata"].get("labels") or {}


def _label(term: str) -> Term:
    listed = _SET.fullmatch(term)
    if listed is not None:
        name, values = listed["name"], {value.strip() for value in listed["values"].split(",")}
        if listed["how"] == "in":
            return lambda obj: name in _labels(obj) and _labels(obj)[name] in values
        return lambda obj: name not in _labels(obj) or _labels(obj)[name] not in values
    name, is_equal, value = (part.strip() for part in (term.partition("!=") if "!=" in term else term.partition("=")))
    if not is_equal:
        return (
            (lambda obj: name[1:].strip() not in _labels(obj)) if name[0] == "!" else (lambda obj: name in _labels(obj))
        )
    if is_equal == "!=":
        return lambda obj: _labels(obj).get(name) != value
    value = value.removeprefix("=").strip()
    return lambda obj: _labels(obj).get(name) == value


def _unselected(path: str, resource: Resource) -> str:
    if resource in (CONFIG_MAPS, LEASES):
        return f'{dumps(path).decode()} is not a known field selector: only "metadata.name", "metadata.namespace"'
    return f"field label not supported: {path}"


def _field(term: str, resource: Resource | None) -> Term:
    path, is_equal, value = term.partition("!=") if "!=" in term else term.partition("=")
    allowed = {*_FIELDS, "type"} if resource == SECRETS else _FIELDS
    if resource is not None and path not in allowed:
        raise refusals.bad_request(_unselected(path, resource))
    value = value.removeprefix("=")

    def has(obj: Object) -> bool:
        place: Any = obj
        for part in path.split("."):
            place = place.get(part) or {}
        return bool((place or "") == value) == (is_equal != "!=")

    return has
