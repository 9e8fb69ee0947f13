"""References between managed resources of a namespace, resolved to names in the cloud."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Generic

import msgspec

from apis.names import EXTERNAL_NAME
from providers.external.observation import SpecT
from providers.external.provider import Kind
from runtime.cache import Cache, Informer
from runtime.changes import Change
from runtime.conditions import find, is_true
from runtime.objects import Key, Object, Resource, annotations_of, key_of, status_of

_NOT_OURS = frozenset({"NotOwned", "Replaced", "AdoptionRefused"})


@dataclass(frozen=True, slots=True)
class Resolved(Generic[SpecT]):
    """A spec with its references filled in; `missing` is reason and sentence for the first that could not be."""

    spec: SpecT
    names: Mapping[str, str] = field(default_factory=dict)
    missing: tuple[str, str] | None = None


class References:
    """Resolves the references of a kind; its informers enqueue whoever refers."""

    def __init__(self, kind: Kind[Any, Any], cache: Cache) -> None:
        self._informers = tuple((reference, cache.informer(reference.resource)) for reference in kind.references)

    @property
    def informers(self) -> tuple[Informer, ...]:
        """The informers of all kinds that may be referred to."""
        return tuple(dict.fromkeys(informer for _, informer in self._informers))

    def resolve(self, obj: Object, spec: SpecT) -> Resolved[SpecT]:
        """Fill in each reference whose own field is unset."""
        names: dict[str, str] = {}
        missing: tuple[str, str] | None = None
        for reference, informer in self._informers:
            value = getattr(spec, reference.field)
            if value is None or getattr(spec, reference.into) is not None:
                continue
            name, refusal = _resolved(reference.resource.kind, informer, Key(key_of(obj).namespace, value.name))
            missing = missing or refusal
            if name:
                names[reference.shown] = name
                spec = msgspec.structs.replace(spec, **{reference.into: name})
        return Resolved(spec, names, missing)


def _resolved(kind: str, informer: Informer, key: Key) -> tuple[str, tuple[str, str] | None]:
    other = informer.store.get(key)
    if other is None:
        return "", ("ReferenceNotFound", f"there is no {kind} {key.name} in this namespace")
    # The status first: anybody may write an annotation; what it names is ours once a pass recorded it.
    name = str(status_of(other).get("externalName", "") or annotations_of(other).get(EXTERNAL_NAME, ""))
    if (find(other, "Synced") or {}).get("reason") in _NOT_OURS:
        return "", ("ResourcePending", f"waits for {kind} {key.name}, which does not name a {kind} of its own")
    if not name or not is_true(other, "Ready"):
        return name, ("ResourcePending", f"waits for {kind} {key.name}, which is not Ready")
    return name, None


def referred(kind: Kind[Any, Any], obj: Object) -> tuple[str, ...]:
    """Index a resource by `Kind/namespace/name` of each that it refers to; reads the JSON, whatever else is in it."""
    spec = ((obj.get("spec") or {}).get("forProvider")) or {}
    targets = []
    for reference in kind.references:
        value = spec.get(f"{reference.shown}Ref") or {}
        if isinstance(value, dict) and value.get("name"):
            targets.append(f"{reference.resource.kind}/{key_of(obj).namespace}/{value['name']}")
    return tuple(targets)


def containers(kind: Kind[Any, Any], container: Resource, change: Change) -> tuple[Key, ...]:
    """Return what a resource of a kind refers to of another one, where it appeared or changed and is not Ready."""
    obj = change.new()
    if obj is None or is_true(obj, "Ready"):
        return ()
    named = (name.split("/") for name in referred(kind, obj))
    return tuple(Key(namespace, name) for of, namespace, name in named if of == container.kind)
