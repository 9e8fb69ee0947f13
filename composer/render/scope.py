"""What an expression can see: claim, env, vars, each, and what is known of the other resources. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from apis import names
from composer.render.errors import PendingError
from composer.render.template import Tree, fill
from composer.render.values import Named, Nowhere, Pending, Status, ordered
from runtime.objects import Object, annotations_of, labels_of, metadata, status_of


class Variables(Named):
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

    def __contains__(self, name: object) -> bool:
        # Without this a variable is computed to learn whether there is one.
        return name in self._trees

    def __iter__(self) -> Iterator[str]:
        return iter(self._trees)

    def __len__(self) -> int:
        return len(self._trees)


class Composed(Named):
    """One other resource, or one element of it: its name, the spec it was given, the status it reports."""

    def __init__(self, resource: str, desired: Object | None, live: Object | None, key: str = "") -> None:
        path = f"resources.{resource}[{key!r}]" if key else f"resources.{resource}"
        made = desired or live
        self._parts: dict[str, Any] = {
            "metadata": {"name": metadata(made).get("name") if made else Pending(obj=resource, name=f"{path}.name")},
            "spec": (desired or {}).get("spec", Pending(obj=resource, name=f"{path}.spec")),
            "status": Status(resource, f"{path}.status", ordered(status_of(live or {}))),
        }

    def __getitem__(self, part: str) -> Any:
        return self._parts[part]

    def __iter__(self) -> Iterator[str]:
        return iter(self._parts)

    def __len__(self) -> int:
        return len(self._parts)


class Elements(Named):
    """The elements of a resource with forEach, by key. `desired` is None while they are not known yet.

    Every text is a key: an element that is not composed is Absent, one that may come is still to come.
    """

    def __init__(
        self, resource: str, desired: Mapping[str, Object] | None, live: Mapping[tuple[str, str], Object]
    ) -> None:
        self._resource = resource
        self._desired = desired
        self._live = live

    def __contains__(self, key: object) -> bool:
        return isinstance(key, str) and not key.startswith("__")

    def __getitem__(self, key: str) -> Any:
        if self._desired is not None and key not in self._desired:
            return Absent(f"{self._resource}[{key!r}]")
        made = self._desired[key] if self._desired is not None else None
        return Composed(self._resource, made, self._live.get((self._resource, key)), key)

    def __iter__(self) -> Iterator[str]:
        return iter(self._desired or ())

    def __len__(self) -> int:
        return len(self._desired or ())


class Absent(Named):
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
