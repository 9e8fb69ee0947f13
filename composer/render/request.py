"""What a render depends on, and what the objects of children get from it besides their templates. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from apis.identity import Identity, child_name
from composer.models import Expressions
from composer.render.child_metadata import Owning, Part, child_object, group_kind_of, name_rule_of
from composer.render.floors import Floor
from runtime.objects import Object


class Observed(msgspec.Struct, frozen=True):
    """A live child and its place in the composition. `is_silent`: its kind has a status, and nobody has written one."""

    resource: str
    key: str
    object: Object
    is_silent: bool = False


class Request(msgspec.Struct, frozen=True):
    """All that a render depends on. `identity` is the claim's, `environments` the ConfigMaps' data by name.

    `stateful_foreign` lists the kinds (`Kind.group`) that hold data and are no provider's of ours, `origins` the
    earlier names of resources whose objects keep them, `element_origins` those of elements whose objects were made by a
    resource without forEach, by resource and key, `floors` the least values of fields that never become smaller.
    `stateful_places` are children (resource, forEach key, kind) that held data before, whatever is said of them now,
    `passwords` the Secrets' names by password, `adopted` the names of objects of an earlier claim, by resource and key.
    """

    composition_name: str
    composition: Expressions
    claim: Object
    identity: str
    environments: Mapping[str, Mapping[str, Any]] = {}
    observed: tuple[Observed, ...] = ()
    stateful_foreign: tuple[str, ...] = ()
    origins: dict[str, str] = {}
    element_origins: dict[str, dict[str, str]] = {}
    floors: tuple[Floor, ...] = ()
    stateful_places: tuple[tuple[str, str, str], ...] = ()
    passwords: dict[str, str] = {}
    adopted: dict[str, dict[str, str]] = {}


@dataclass(frozen=True, slots=True)
class ChildBuilder:
    """Adds to children what follows from the claim. `offered`: the deletion policies of the Composition."""

    request: Request
    identity: Identity
    offered: Collection[str]

    def build(
        self, slot: tuple[str, str], edges: tuple[str, ...], manifest: Object, *, stateful: bool, path: str
    ) -> Object:
        """Return the object of the child in a slot; `edges` are the resources that go after it.

        `stateful`: the Composition says that it holds data. Raises CompositionError, which names `path`.
        """
        request, group_kind = self.request, group_kind_of(manifest)
        wanted = (request.claim.get("spec") or {}).get("deletionPolicy", "Orphan")
        policy = wanted if wanted in self.offered else "Orphan"
        made_as, made_key = self._made_in(slot)
        part = Part(
            name=self.name_of(slot),
            made_as=made_as,
            key=made_key,
            path=path,
            needs=self._made_as(edges),
            holds_data=stateful
            or group_kind in request.stateful_foreign
            or (*slot, group_kind) in request.stateful_places,
        )
        return child_object(Owning(request.claim, self.identity, request.composition_name, policy), part, manifest)

    def name_of(self, slot: tuple[str, str]) -> str:
        """Return the name of the object in a slot: of one that was taken over its own, else the one by rule."""
        resource, key = slot
        rule = name_rule_of(self.request.composition, resource)
        adopted = self.request.adopted.get(resource, {}).get(key, "")
        return adopted or child_name(self.identity, *self._made_in(slot), rule)

    def _made_in(self, slot: tuple[str, str]) -> tuple[str, str]:
        """Return the resource and the key that the object in a slot was made under."""
        resource, key = slot
        without_key = self.request.element_origins.get(resource, {}).get(key)
        return (without_key, "") if without_key else (self.request.origins.get(resource, resource), key)

    def _made_as(self, resources: tuple[str, ...]) -> tuple[str, ...]:
        """Return the names under which the objects of these resources were made: all that those of one have."""
        origins, elements = self.request.origins, self.request.element_origins
        return tuple(
            made_as
            for name in resources
            for made_as in (origins.get(name, name), *sorted(set(elements.get(name, {}).values())))
        )
