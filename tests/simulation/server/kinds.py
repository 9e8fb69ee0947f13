"""What the API server does with objects of a kind before it stores them: custom resources and the few of its own."""

from __future__ import annotations

import base64
import binascii
import functools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from runtime.objects import CONFIG_MAPS, CRDS, EVENTS, LEASES, NAMESPACES, SECRETS, Object, Resource, dumps, loads
from tests.simulation import schemas
from tests.simulation.server import atoms, meta, values
from tests.simulation.server.atoms import ABSENT, Atom, Schema
from tests.simulation.server.compare import is_same
from tests.simulation.server.field_sets import NOTHING, FieldSet, of_paths
from tests.simulation.server.managers import Scope
from tests.simulation.server.refusals import Fault, forbidden_field, invalid

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
        return self.stored(obj)

    def complete(self, obj: Object) -> Object:
        made: Object = self.shape.default_into({name: part for name, part in obj.items() if name != "metadata"})
        return {**made, "metadata": meta.read(obj["metadata"])}

    def stored(self, obj: Object) -> Object:
        rooted = {name: part for name, part in obj.items() if name not in ("apiVersion", "kind", "metadata")}
        made: Object = {name: obj[name] for name in ("apiVersion", "kind") if name in obj}
        made["metadata"] = schemas.copied(meta.read(obj.get("metadata") or {}))
        made |= self.shape.complete(rooted)
        return made

    def unknown(self, obj: Object) -> list[str]:
        return [*sorted(meta.unknown(obj.get("metadata") or {})), *sorted(self.shape.unknown(obj))]

    def faults(self, obj: Object) -> Iterator[Fault]:
        yield from super().faults(obj)
        yield from values.faults(self.schema, obj)
        yield from values.doubles(self.schema, obj)

    def faults_of_update(self, obj: Object, old: Object, subresource: str) -> Iterator[Fault]:
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


def _object(**fields: Schema) -> Atom:
    return atoms.of_schema(
        atoms.record(apiVersion=atoms.STRING, kind=atoms.STRING, metadata=atoms.OBJECT_META, **fields)
    )


def _immutables(obj: Object, old: Object, *fields: str) -> Iterator[Fault]:
    detail = "field is immutable when `immutable` is set"
    if not old.get("immutable"):
        return
    if not obj.get("immutable"):
        yield forbidden_field("immutable", detail)
    yield from (forbidden_field(name, detail) for name in fields if obj.get(name) != old.get(name))


def _keys(obj: Object, field: str) -> Iterator[Fault]:
    for key in obj.get(field) or ():
        yield from (invalid(f"{field}[{key}]", key, message) for message in meta.config_key(key))


def _without_empty(obj: Object, *fields: str) -> Object:
    return {name: part for name, part in obj.items() if part or name not in fields}


class _Core(Kind):
    def faults(self, obj: Object) -> Iterator[Fault]:
        yield from super().faults(obj)
        yield from meta.legacy_finalizers(obj["metadata"])


class _ConfigMaps(_Core):
    def complete(self, obj: Object) -> Object:
        return _without_empty(obj, "data", "binaryData")

    def faults(self, obj: Object) -> Iterator[Fault]:
        yield from super().faults(obj)
        yield from _keys(obj, "data")
        yield from _keys(obj, "binaryData")
        for key in (obj.get("data") or {}).keys() & (obj.get("binaryData") or {}).keys():
            yield invalid(f"data[{key}]", key, "duplicate of key present in binaryData")

    def faults_of_update(self, obj: Object, old: Object, subresource: str) -> Iterator[Fault]:
        yield from super().faults_of_update(obj, old, subresource)
        yield from _immutables(obj, old, "data", "binaryData")
        yield from self.faults(obj)


class _Secrets(_Core):
    def complete(self, obj: Object) -> Object:
        texts: Mapping[str, str] = obj.get("stringData") or {}
        made = {name: part for name, part in obj.items() if name != "stringData"}
        encoded = {key: base64.b64encode((text or "").encode()).decode() for key, text in texts.items()}
        if encoded or "data" in made:
            made["data"] = {key: value or "" for key, value in {**(made.get("data") or {}), **encoded}.items()}
        made["type"] = made.get("type") or "Opaque"
        return _without_empty(made, "data")

    def faults(self, obj: Object) -> Iterator[Fault]:
        yield from super().faults(obj)
        yield from _keys(obj, "data")

    def faults_of_update(self, obj: Object, old: Object, subresource: str) -> Iterator[Fault]:
        yield from super().faults_of_update(obj, old, subresource)
        if obj["type"] != old["type"]:
            yield invalid("type", obj["type"], "field is immutable")
        yield from _immutables(obj, old, "data")
        yield from self.faults(obj)


def is_base64(text: str) -> bool:
    """Return whether a value of a Secret can be read."""
    try:
        base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return False
    return True


class _Leases(Kind):
    def complete(self, obj: Object) -> Object:
        return {**obj, "spec": {name: part for name, part in (obj.get("spec") or {}).items() if part is not None}}

    def faults(self, obj: Object) -> Iterator[Fault]:
        yield from super().faults(obj)
        spec = obj.get("spec") or {}
        if spec.get("leaseDurationSeconds", 1) <= 0:
            yield invalid("spec.leaseDurationSeconds", spec["leaseDurationSeconds"], "must be greater than 0")
        if spec.get("leaseTransitions", 0) < 0:
            yield invalid("spec.leaseTransitions", spec["leaseTransitions"], "must be greater than or equal to 0")

    def faults_of_update(self, obj: Object, old: Object, subresource: str) -> Iterator[Fault]:
        yield from super().faults_of_update(obj, old, subresource)
        yield from self.faults(obj)


class _Namespaces(_Core):
    def complete(self, obj: Object) -> Object:
        metadata = obj["metadata"]
        labels = {**(metadata.get("labels") or {}), "kubernetes.io/metadata.name": metadata.get("name", "")}
        return {**obj, "metadata": {**metadata, "labels": labels}, "spec": obj.get("spec") or {}}

    def prepare_create(self, obj: Object) -> None:
        obj["spec"] = {"finalizers": ["kubernetes"]}
        obj["status"] = {"phase": "Active"}

    def prepare_update(self, obj: Object, old: Object, subresource: str) -> Object:
        made = super().prepare_update(obj, old, subresource)
        return {**made, "spec": old.get("spec", {}), "status": old.get("status", {})} if not subresource else made


class _Crds(Kind):
    def prepare_create(self, obj: Object) -> None:
        super().prepare_create(obj)
        obj["status"] = crd_status(obj)


def crd_status(crd: Object) -> Object:
    """Return the status of a CRD that is served."""
    stored = [version["name"] for version in crd["spec"]["versions"] if version.get("storage")]
    conditions = [{"type": name, "status": "True"} for name in ("NamesAccepted", "Established")]
    return {"acceptedNames": crd["spec"]["names"], "conditions": conditions, "storedVersions": stored}


_ANY: Final[Schema] = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
_BYTES: Final[Schema] = {"type": "object", "additionalProperties": {"type": "string", "format": "byte"}}
_NAMES: Final = atoms.record(
    categories=atoms.several(atoms.STRING), kind=atoms.STRING, listKind=atoms.STRING, plural=atoms.STRING,
    shortNames=atoms.several(atoms.STRING), singular=atoms.STRING,
)  # fmt: skip
_CRD_SPEC: Final = atoms.record(
    conversion=_ANY, group=atoms.STRING, names=_NAMES, preserveUnknownFields=atoms.BOOLEAN, scope=atoms.STRING,
    versions=atoms.several(_ANY),
)  # fmt: skip
_CRD_STATUS: Final = atoms.record(
    acceptedNames=_NAMES, conditions=atoms.several(_ANY, "type"), storedVersions=atoms.several(atoms.STRING)
)
_LEASE_SPEC: Final = atoms.record(
    acquireTime=atoms.TIME, holderIdentity=atoms.STRING, leaseDurationSeconds=atoms.INTEGER,
    leaseTransitions=atoms.INTEGER, preferredHolder=atoms.STRING, renewTime=atoms.TIME, strategy=atoms.STRING,
)  # fmt: skip
BUILT_IN: Final[dict[tuple[str, str], Kind]] = {
    (kind.resource.group, kind.resource.plural): kind
    for kind in (
        _ConfigMaps(CONFIG_MAPS, _object(data=atoms.STRINGS, binaryData=_BYTES, immutable=atoms.BOOLEAN)),
        _Secrets(SECRETS, _object(data=_BYTES, stringData=atoms.STRINGS, immutable=atoms.BOOLEAN, type=atoms.STRING)),
        _Leases(
            LEASES, _object(spec=_LEASE_SPEC), creates_on_update=True, updates_unconditionally=False, parts=("spec",)
        ),
        _Namespaces(NAMESPACES, _object(spec=_ANY, status=_ANY), names=meta.label, parts=("spec", "status")),
        _Crds(
            CRDS,
            _object(spec=_CRD_SPEC, status=_CRD_STATUS),
            updates_unconditionally=False,
            has_status=True,
            has_generation=True,
            parts=("spec", "status"),
        ),
        # Its fields are not looked at.
        Kind(EVENTS, atoms.of_crd(_ANY), creates_on_update=True),
    )
}


def anything(resource: Resource) -> Kind:
    """Return a kind of which nothing is known."""
    return Kind(resource, atoms.of_crd(_ANY))
