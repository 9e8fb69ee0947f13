"""What a kind must have to be a kind of claim. Pure.

The composer keeps all that it must remember of a claim in its status, and the API server drops a field that the schema
does not have without an error: so each field is checked by name.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from composer.inventory import Entry, YieldedField
from composer.models import Binding, ClaimSpec, ClaimStatus, CompositionChoice
from composer.render.schema import Schema, step

_UNSEEN = {"observedGeneration": -1}
_OF_TEMPLATES = frozenset({"endpoint", "port", "version", "storageGiB", "notes"})
# Asked for by a Composition that has passwords.
_OPTIONAL = frozenset({"passwords"})
# Without it what is taken over of an earlier claim is held.
_OF_ADOPTION = frozenset({"adopted"})
_NESTED: tuple[tuple[str, type[msgspec.Struct]], ...] = (("composition", CompositionChoice), ("binding", Binding))
# Without it an edited claim may fail a rollout, and all else works.
_SPARED = frozenset({"input"})
_MOST_NAMED = 6


def gaps(scope: str, version: Mapping[str, Any]) -> tuple[str, ...]:
    """Return what a kind of claim must have and this version of a CRD has not, each as a field path with text."""
    return tuple(_gaps(scope, version))


def absent_options(version: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the spec fields that the engine would read and this kind does not have; it works without them."""
    spec = step((version.get("schema") or {}).get("openAPIV3Schema") or {}, "spec") or {}
    return tuple(_lacking(spec, ClaimSpec, "spec"))


def in_words(gap_paths: tuple[str, ...]) -> str:
    """Return gaps as text, the first few where they are many."""
    named = ", ".join(gap_paths[:_MOST_NAMED])
    more = len(gap_paths) - _MOST_NAMED
    return f"{named} and {more} more; `fairlead crd check` names all" if more > 0 else named


def _gaps(scope: str, version: Mapping[str, Any]) -> Iterator[str]:
    if scope != "Namespaced":
        yield "scope Namespaced"
    if "status" not in (version.get("subresources") or {}):
        yield "subresources.status"
    status = step((version.get("schema") or {}).get("openAPIV3Schema") or {}, "status")
    if status is None:
        yield "status"
        return
    if status.get("default") != _UNSEEN:
        yield "status with default {observedGeneration: -1}"
    conditions = (status.get("properties") or {}).get("conditions") or {}
    if conditions.get("x-kubernetes-list-type") != "map" or conditions.get("x-kubernetes-list-map-keys") != ["type"]:
        yield "status.conditions as a map list with key type"
    yield from _lacking(status, ClaimStatus, "status", _OF_TEMPLATES | _OPTIONAL)
    for name, model in _NESTED:
        yield from _lacking_below(status, name, model)
    entries = _items(status, "inventory")
    if entries is not None:
        yield from _lacking(entries, Entry, "status.inventory[]", _OF_ADOPTION)
        floors = step(entries, "floors") or {}
        if (step(floors, "") or {}).get("type") == "integer":
            yield "status.inventory[].floors with values of x-kubernetes-int-or-string"
        yielded = _items(entries, "resting")
        if yielded is not None:
            yield from _lacking(yielded, YieldedField, "status.inventory[].resting[]")


def _lacking(
    schema: Schema, model: type[msgspec.Struct], path: str, but: frozenset[str] = frozenset()
) -> Iterator[str]:
    for field in msgspec.structs.fields(model):
        name = field.encode_name
        if name not in but and step(schema, name) is None:
            yield f"{path}.{name}"


def _lacking_below(schema: Schema, name: str, model: type[msgspec.Struct]) -> Iterator[str]:
    below = step(schema, name)
    if below is not None:
        yield from _lacking(below, model, f"status.{name}", _SPARED)


def _items(schema: Schema, name: str) -> Schema | None:
    below = step(schema, name)
    return None if below is None else below.get("items") or {}
