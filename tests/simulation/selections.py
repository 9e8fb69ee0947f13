"""Which objects a list or a watch selects: by namespace, labels and fields."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from runtime.kube import Selection
from runtime.objects import Object


@dataclass(frozen=True, slots=True)
class Selected:
    """A selection that was read."""

    namespace: str
    terms: tuple[Callable[[Object], bool], ...]

    def has(self, obj: Object) -> bool:
        """Return whether an object is one of them."""
        in_namespace = self.namespace in ("", obj["metadata"].get("namespace", ""))
        return in_namespace and all(term(obj) for term in self.terms)


def selected(selection: Selection) -> Selected:
    """Read a selection; raises ValueError for a term that is not simulated."""
    labels = (_label(term) for term in selection.labels.split(",") if term)
    fields = (_field(term) for term in selection.fields.split(",") if term)
    return Selected(selection.namespace, (*labels, *fields))


def _label(term: str) -> Callable[[Object], bool]:
    if " " in term:
        raise ValueError(f"the selector {term!r} is not simulated")
    name, is_equal, value = term.partition("!=") if "!=" in term else term.partition("=")
    labels: Callable[[Object], dict[str, str]] = lambda obj: obj["metadata"].get("labels") or {}  # noqa: E731 - short
    if not is_equal:
        return (lambda obj: name[1:] not in labels(obj)) if name[0] == "!" else (lambda obj: name in labels(obj))
    if is_equal == "!=":
        return lambda obj: labels(obj).get(name) != value
    return lambda obj: labels(obj).get(name) == value.removeprefix("=")


def _field(term: str) -> Callable[[Object], bool]:
    path, _, value = term.partition("=")

    def has(obj: Object) -> bool:
        place: Any = obj
        for part in path.split("."):
            place = place.get(part) or {}
        return bool(place == value)

    return has
