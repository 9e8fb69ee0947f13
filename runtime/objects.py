"""What a Kubernetes object is to a controller: its resource, its key, its metadata. Pure.

Objects travel as plain JSON dictionaries; the readers here are the only place that spells `metadata` paths.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import msgspec

from runtime.errors import InvalidName

Object: TypeAlias = dict[str, Any]
"""A Kubernetes object as decoded JSON. Objects read from a cache are never modified."""


class Key(NamedTuple):
    """Names one object within its resource; `namespace` is empty for cluster-scoped ones."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}" if self.namespace else self.name


# What names of any kind are made of (those of roles hold colons); all of it stands for itself in a path (RFC 3986).
_NAME = re.compile(r"(?!\.{1,2}\Z)[A-Za-z0-9._:-]{1,253}", re.ASCII)
# RFC 1123.
_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?")
_SHOWN_CHARACTERS = 64


def is_name(text: str) -> bool:
    """Return whether an object of some kind can have this name."""
    return _NAME.fullmatch(text) is not None


def is_subdomain(text: str) -> bool:
    """Return whether a text is a DNS subdomain, as the name of a Secret, a ConfigMap and most other objects must be."""
    return _SUBDOMAIN.fullmatch(text) is not None


def _segment(kind: str, name: str) -> str:
    if not is_name(name):
        shown = repr(str(name)[:_SHOWN_CHARACTERS])
        raise InvalidName(f"{shown} is no name of a {kind}: letters, digits, '-' and '.', at most 253", status=422)
    return name


@dataclass(frozen=True, slots=True)
class Resource:
    """One kind as the API server serves it."""

    group: str
    version: str
    kind: str
    plural: str
    namespaced: bool = True

    @property
    def api_version(self) -> str:
        """`group/version`, or `version` alone for the core group."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def group_kind(self) -> str:
        """`Kind.group`, the form used in annotations and inventories."""
        return f"{self.kind}.{self.group}" if self.group else self.kind

    def path(self, key: Key | None = None, *, namespace: str = "", subresource: str = "") -> str:
        """Return the URL path of one object (`key`), or of the collection (all namespaces when none is named).

        Raises InvalidName before anything is asked under a name that would be read as more than one.
        """
        root = f"/apis/{self.group}/{self.version}" if self.group else f"/api/{self.version}"
        within = key.namespace if key else namespace
        scope = f"/namespaces/{_segment('Namespace', within)}" if self.namespaced and within else ""
        name = f"/{_segment(self.kind, key.name)}" if key else ""
        tail = f"/{subresource}" if subresource else ""
        return f"{root}{scope}/{self.plural}{name}{tail}"


NAMESPACES = Resource("", "v1", "Namespace", "namespaces", namespaced=False)
SECRETS = Resource("", "v1", "Secret", "secrets")
CONFIG_MAPS = Resource("", "v1", "ConfigMap", "configmaps")
LEASES = Resource("coordination.k8s.io", "v1", "Lease", "leases")
EVENTS = Resource("events.k8s.io", "v1", "Event", "events")
CRDS = Resource("apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions", namespaced=False)

_ENCODER = msgspec.json.Encoder()
_DECODER = msgspec.json.Decoder(Object)


def dumps(value: object) -> bytes:
    """Encode JSON, keys in insertion order."""
    return _ENCODER.encode(value)


def loads(data: bytes) -> Object:
    """Decode one JSON object; raises msgspec.DecodeError on anything else."""
    return _DECODER.decode(data)


def copied(obj: Object) -> Object:
    """Return a copy of JSON data that shares nothing which can be changed; `copy.deepcopy` takes ten times as long."""
    copy: Object = msgspec.to_builtins(obj)
    return copy


def metadata(obj: Object) -> Object:
    """Return `metadata`, or an empty dictionary."""
    meta: Object = obj.get("metadata") or {}
    return meta


def key_of(obj: Object) -> Key:
    """Return the key of an object that has a name."""
    meta = metadata(obj)
    return Key(meta.get("namespace", ""), meta["name"])


def uid_of(obj: Object) -> str:
    """Return `metadata.uid`, empty when the object was never stored."""
    return str(metadata(obj).get("uid", ""))


def version_of(obj: Object) -> str:
    """Return `metadata.resourceVersion`, empty when the object was never stored."""
    return str(metadata(obj).get("resourceVersion", ""))


def generation_of(obj: Object) -> int:
    """Return `metadata.generation`, 0 for kinds that have none."""
    return int(metadata(obj).get("generation", 0))


def status_of(obj: Object) -> Object:
    """Return `status`, or an empty dictionary where there is none or it is no map: kinds of others report as they like.

    The parts of it may have any shape, too.
    """
    status = obj.get("status")
    return status if isinstance(status, dict) else {}


def observed_generation_of(obj: Object) -> int | None:
    """Return `status.observedGeneration`; None where it is absent or no whole number."""
    observed = status_of(obj).get("observedGeneration")
    return observed if isinstance(observed, int) and not isinstance(observed, bool) else None


def deleting(obj: Object) -> bool:
    """Return whether the object carries a deletionTimestamp."""
    return "deletionTimestamp" in metadata(obj)


def annotations_of(obj: Object) -> dict[str, str]:
    """Return the annotations, possibly empty."""
    return metadata(obj).get("annotations") or {}


def labels_of(obj: Object) -> dict[str, str]:
    """Return the labels, possibly empty."""
    return metadata(obj).get("labels") or {}


def finalizers_of(obj: Object) -> tuple[str, ...]:
    """Return the finalizers in their stored order."""
    return tuple(metadata(obj).get("finalizers") or ())
