"""References between managed resources of a namespace: what a name in the spec stands for in the cloud."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Generic

import msgspec

from apis.names import EXTERNAL_NAME
from providers.external.observation import SpecT
from providers.external.provider import Kind
from runtime.cache import Cache, Informer
from runtime.conditions import find, is_true
from runtime.objects import Key, Object, annotations_of, key_of, status_of

_NOT_OURS = frozenset({"NotOwned", "Replaced", "AdoptionRefused"})


@dataclass(frozen=True, slots=True)
class Resolved(Generic[SpecT]):
    """A spec with its references filled in; `missing` is reason and sentence for the first that could not be."""

    spec: SpecT
    names: Mapping[str, str] = field(default_factory=dict)
    missing: tuple[str, str] | None = None


class References:
    """Looks up what the references of a kind stand for; its informers wake whoever refers."""

    def __init__(self, kind: Kind[Any], cache: Cache) -> None:
        self._of = tuple((each, cache.informer(each.resource)) for each in kind.references)

    @property
    def informers(self) -> tuple[Informer, ...]:
        """Return the informers of all kinds that may be referred to."""
        return tuple(dict.fromkeys(informer for _, informer in self._of))

    def resolve(self, obj: Object, spec: SpecT) -> Resolved[SpecT]:
        """Fill in each reference whose own field is unset."""
        found: dict[str, str] = {}
        missing: tuple[str, str] | None = None
        for each, informer in self._of:
            reference = getattr(spec, each.field)
            if reference is None or getattr(spec, each.into) is not None:
                continue
            name, trouble = _looked_up(each.resource.kind, informer, Key(key_of(obj).namespace, reference.name))
            missing = missing or trouble
            if name:
                found[each.shown] = name
                spec = msgspec.structs.replace(spec, **{each.into: name})
        return Resolved(spec, found, missing)


def _looked_up(kind: str, informer: Informer, key: Key) -> tuple[str, tuple[str, str] | None]:
    other = informer.store.get(key)
    if other is None:
        return "", ("ReferenceNotFound", f"there is no {kind} {key.name} in this namespace")
    # The status first: an annotation may be anybody's, and what it names is known to be ours once a pass says so.
    name = status_of(other).get("externalName", "") or annotations_of(other).get(EXTERNAL_NAME)
    if (find(other, "Synced") or {}).get("reason") in _NOT_OURS:
        return "", ("ResourcePending", f"waits for {kind} {key.name}, which does not name a {kind} of its own")
    if not name or not is_true(other, "Ready"):
        return str(name), ("ResourcePending", f"waits for {kind} {key.name}, which is not Ready")
    return str(name), None


def referred(kind: Kind[Any], obj: Object) -> tuple[str, ...]:
    """Index a resource by `Kind/namespace/name` of each that it refers to; reads the JSON, whatever else is in it."""
    spec = ((obj.get("spec") or {}).get("forProvider")) or {}
    found = []
    for each in kind.references:
        reference = spec.get(f"{each.shown}Ref") or {}
        if isinstance(reference, dict) and reference.get("name"):
            found.append(f"{each.resource.kind}/{key_of(obj).namespace}/{reference['name']}")
    return tuple(found)
