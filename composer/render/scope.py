"""What an expression can see: claim, env, vars, each, and what is known of the other resources. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from apis import names
from composer.render.errors import PendingError
from composer.render.template import Tree, fill
from composer.render.values import Nowhere, Pending, Status, ordered
from runtime.objects import Object, annotations_of, labels_of, metadata, status_of


class Variables(Mapping[str, Any]):
    """The composition's variables, computed when first read; one that waits makes only its readers wait."""

    def __init__(self, trees: Mapping[str, Tree], scope: Mapping[str, Any]) -> None:
        self._trees = trees
        self._scope = scope
        self._values: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name not in self._values:
            try:
                self._values[name] = fill(self._trees[name], self._scope)
            except PendingError as error:
                # Not kept: what it waits for may be known when it is read again.
                return Pending(obj=error.waits_for, name=error.path)
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._trees)

    def __len__(self) -> int:
        return len(self._trees)


class Composed(Mapping[str, Any]):
    """One other resource: its name, the spec it was given, the status it reports."""

    def __init__(self, resource: str, desired: Object | None, live: Object | None) -> None:
        path = f"resources.{resource}"
        self._parts: dict[str, Any] = {
            "metadata": {"name": metadata(desired or live or {}).get("name")},
            "spec": (desired or {}).get("spec", Pending(obj=resource, name=f"{path}.spec")),
            "status": Status(resource, f"{path}.status", ordered(status_of(live or {}))),
        }

    def __getitem__(self, part: str) -> Any:
        return self._parts[part]

    def __iter__(self) -> Iterator[str]:
        return iter(self._parts)

    def __len__(self) -> int:
        return len(self._parts)


class Absent(Mapping[str, Any]):
    """A resource that is not composed for this claim: reading it is an error, unless `or_else` says how to go on."""

    def __init__(self, resource: str) -> None:
        hint = f"resource {resource!r} is not composed for this claim; say `| or_else(...)`"
        self._parts = dict.fromkeys(("metadata", "spec", "status"), Nowhere(hint=hint))

    def __getitem__(self, part: str) -> Any:
        return self._parts[part]

    def __iter__(self) -> Iterator[str]:
        return iter(self._parts)

    def __len__(self) -> int:
        return len(self._parts)


def claim_view(claim: Object) -> Object:
    """Return what templates see of a claim: what people wrote, nothing that Fairlead wrote."""
    meta = metadata(claim)
    annotations = ordered(annotations_of(claim)).items()
    return {
        "apiVersion": claim["apiVersion"],
        "kind": claim["kind"],
        "metadata": {
            "name": meta["name"],
            "namespace": meta.get("namespace", ""),
            "labels": ordered(labels_of(claim)),
            "annotations": {name: text for name, text in annotations if not name.startswith(names.PREFIX)},
        },
        "spec": ordered(claim.get("spec") or {}),
    }
