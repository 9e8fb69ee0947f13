"""The API server's own kinds that are simulated; after kubernetes' `registry/core` and `apis/core/validation`."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping
from typing import Final

from devcloud.apiserver.objects import atoms, meta
from devcloud.apiserver.objects.atoms import Atom, Schema
from devcloud.apiserver.objects.kinds import ANYTHING, Kind
from devcloud.apiserver.objects.refusals import Fault, forbidden_field, invalid
from runtime.objects import CONFIG_MAPS, CRDS, EVENTS, LEASES, NAMESPACES, SECRETS, Object


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
        for key in sorted((obj.get("data") or {}).keys() & (obj.get("binaryData") or {}).keys()):
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


_BYTES: Final[Schema] = {"type": "object", "additionalProperties": {"type": "string", "format": "byte"}}
_NAMES: Final = atoms.record(
    categories=atoms.several(atoms.STRING), kind=atoms.STRING, listKind=atoms.STRING, plural=atoms.STRING,
    shortNames=atoms.several(atoms.STRING), singular=atoms.STRING,
)  # fmt: skip
_CRD_SPEC: Final = atoms.record(
    conversion=ANYTHING, group=atoms.STRING, names=_NAMES, preserveUnknownFields=atoms.BOOLEAN, scope=atoms.STRING,
    versions=atoms.several(ANYTHING),
)  # fmt: skip
_CRD_STATUS: Final = atoms.record(
    acceptedNames=_NAMES, conditions=atoms.several(ANYTHING, "type"), storedVersions=atoms.several(atoms.STRING)
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
        _Namespaces(NAMESPACES, _object(spec=ANYTHING, status=ANYTHING), names=meta.label, parts=("spec", "status")),
        _Crds(
            CRDS,
            _object(spec=_CRD_SPEC, status=_CRD_STATUS),
            updates_unconditionally=False,
            has_status=True,
            has_generation=True,
            parts=("spec", "status"),
        ),
        # Its fields are not looked at.
        Kind(EVENTS, atoms.of_crd(ANYTHING), creates_on_update=True),
    )
}
