"""What the API server does with objects of a kind before it stores them: custom resources and the few of its own."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from devcloud.apiserver import schemas
from devcloud.apiserver.objects import atoms, meta, values
from devcloud.apiserver.objects.atoms import ABSENT, Atom, Schema
from devcloud.apiserver.objects.compare import is_same
from devcloud.apiserver.objects.field_sets import NOTHING, FieldSet, of_paths
from devcloud.apiserver.objects.managers import Scope
from devcloud.apiserver.objects.refusals import Fault
from runtime.objects import Object, Resource, dumps, loads

_STATUS: Final[FieldSet] = of_paths([("f:status",)])
_SPEC: Final[FieldSet] = of_paths([("f:spec",)])


@dataclass(frozen=True, eq=False)
class Kind:
    """A kind of the API server's own; custom resources do more."""

    resource: Resource
    atom: Atom
    names: meta.Names = meta.subdomain
    creates_on_update: bool = False
    updates_unconditionally: bool = True
    has_status: bool = False
    has_generation: bool = False
    parts: tuple[str, ...] = ()
    """Objects that are always there, empty or not."""

    def bottom(self) -> Object:
        """Return what there is before a creation."""
        named = {"apiVersion": self.resource.api_version, "kind": self.resource.kind}
        return named | {name: {} for name in self.parts}

    def scope(self, subresource: str = "") -> Scope:
        """Return a way to write objects of this kind."""
        reset: FieldSet = NOTHING
        if self.has_status:
            reset = _SPEC if subresource == "status" else _STATUS
        return Scope(self.atom, self.resource.api_version, self.resource.kind, subresource, reset, self.bottom())

    def decode(self, obj: Object) -> Object:
        """Return an object as it was sent, with defaults and without what is unknown."""
        made = {name: part for name, part in schemas.copied(obj).items() if self.atom.field(name) is not None}
        made = {"apiVersion": self.resource.api_version, "kind": self.resource.kind, **made}
        sent = made.get("metadata") or {}
        # An empty list of managers resets them; of a custom resource it is dropped.
        reset: Object = {"managedFields": []} if sent.get("managedFields") == [] else {}
        made["metadata"] = meta.read(sent) | reset
        return self.complete({name: part for name, part in made.items() if part is not None})

    def complete(self, obj: Object) -> Object:
        """Return an object with its defaults, as it would be stored."""
        return obj

    def applied(self, obj: Object) -> Object:
        """Return what an apply merged, as it would be stored."""
        return self.complete({**obj, "metadata": meta.read(obj["metadata"])})

    def stored(self, obj: Object) -> Object:
        """Return an object as it is read from the store."""
        return obj

    def unknown(self, obj: Object) -> list[str]:
        """Return the paths of what an object has no field for."""
        fields = [name for name in obj if self.atom.field(name) is None]
        return sorted([*fields, *meta.unknown(obj.get("metadata") or {})])

    def prepare_create(self, obj: Object) -> None:
        """Set what a creation sets."""
        if self.has_status:
            obj.pop("status", None)
        if self.has_generation:
            obj["metadata"]["generation"] = 1

    def prepare_update(self, obj: Object, old: Object, subresource: str) -> Object:
        """Return an object with what a change may not change as it was."""
        if subresource == "status":
            made = {name: part for name, part in old.items() if name != "status"}
            made["metadata"] = _with_entries(old["metadata"], obj["metadata"].get("managedFields"))
            return made | ({"status": obj["status"]} if "status" in obj else {})
        if self.has_status:
            obj = {name: part for name, part in obj.items() if name != "status"}
            obj |= {"status": old["status"]} if "status" in old else {}
        if self.has_generation and not is_same(_intent(obj), _intent(old)):
            generation = old["metadata"].get("generation", 0) + 1
            obj = {**obj, "metadata": {**obj["metadata"], "generation": generation}}
        return obj

    def faults(self, obj: Object) -> Iterator[Fault]:
        """Yield what is wrong with a new object."""
        yield from meta.faults(obj["metadata"], self.names, is_namespaced=self.resource.namespaced)

    def faults_of_update(self, obj: Object, old: Object, subresource: str) -> Iterator[Fault]:
        """Yield what is wrong with a changed object."""
        del subresource
        yield from meta.faults(obj["metadata"], meta.any_name, is_namespaced=self.resource.namespaced)
        yield from meta.faults_of_update(obj["metadata"], old["metadata"])


def _with_entries(metadata: Object, entries: list[Object] | None) -> Object:
    made = {name: part for name, part in metadata.items() if name != "managedFields"}
    return made | ({"managedFields": entries} if entries else {})


def _intent(obj: Object) -> Object:
    return {name: part for name, part in obj.items() if name != "metadata"}


@dataclass(frozen=True, eq=False)
class Custom(Kind):
    """Custom resources of one version of a CRD."""

    schema: Schema = field(default_factory=dict)
    shape: schemas.Shape = schemas.NO_FIELDS

    def decode(self, obj: Object) -> Object:
        """Return what is left of a stored object."""
        return self.stored(obj)

    def applied(self, obj: Object) -> Object:
        """Return what an apply sends."""
        made: Object = self.shape.default_into({name: part for name, part in obj.items() if name != "metadata"})
        return {**made, "metadata": meta.read_applied(obj["metadata"])}

    def stored(self, obj: Object) -> Object:
        """Return what is stored."""
        rooted = {name: part for name, part in obj.items() if name not in ("apiVersion", "kind", "metadata")}
        made: Object = {name: obj[name] for name in ("apiVersion", "kind") if name in obj}
        made["metadata"] = schemas.copied(meta.read(obj.get("metadata") or {}))
        made |= self.shape.complete(rooted)
        return made

    def unknown(self, obj: Object) -> list[str]:
        """Return the fields that the schema does not know."""
        return [*sorted(meta.unknown(obj.get("metadata") or {})), *sorted(self.shape.unknown(obj))]

    def faults(self, obj: Object) -> Iterator[Fault]:
        """Yield what is wrong with an object."""
        yield from super().faults(obj)
        yield from values.faults(self.schema, obj)
        yield from values.doubles(self.schema, obj)

    def faults_of_update(self, obj: Object, old: Object, subresource: str) -> Iterator[Fault]:
        """Yield what is wrong with a change."""
        yield from super().faults_of_update(obj, old, subresource)
        if subresource == "status":
            below = (self.schema.get("properties") or {}).get("status")
            if "status" in obj and below is not None:
                yield from values.faults(below, obj["status"], old.get("status", ABSENT), within="status")
        else:
            yield from values.faults(self.schema, obj, old)
        doubles = list(values.doubles(self.schema, obj, old))
        if doubles and not list(values.doubles(self.schema, old)):
            yield from doubles


@functools.lru_cache(maxsize=256)
def custom(resource: Resource, version: bytes) -> Custom:
    """Return the kind of one version of a CRD, the version as JSON; what was read once is kept."""
    entry = loads(version)
    schema = dict((entry.get("schema") or {}).get("openAPIV3Schema") or {"x-kubernetes-preserve-unknown-fields": True})
    properties = {name: part for name, part in (schema.get("properties") or {}).items() if name != "metadata"}
    schema["properties"] = {**properties, "metadata": {"type": "object"}}
    shape = schemas.shape_of({**schema, "properties": properties})
    return Custom(
        resource,
        atoms.of_crd(schema),
        updates_unconditionally=False,
        has_status="status" in (entry.get("subresources") or {}),
        has_generation=True,
        schema=schema,
        shape=shape,
    )


def of_crd(crd: Object, resource: Resource) -> Custom:
    """Return the kind of a CRD's version."""
    version = next(item for item in crd["spec"]["versions"] if item["name"] == resource.version)
    return custom(resource, dumps({name: version.get(name) for name in ("name", "schema", "subresources")}))


ANYTHING: Final[Schema] = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


def anything(resource: Resource) -> Kind:
    """Return a kind of which nothing is known."""
    return Kind(resource, atoms.of_crd(ANYTHING))
