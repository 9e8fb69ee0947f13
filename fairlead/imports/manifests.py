"""What is written of something that a provider observed: a managed resource that would change nothing of it. Pure."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from typing import Any, Final

from apis import names
from composer.render import schema
from fairlead.imports.thing import Thing
from runtime.objects import Object, Resource, status_of

_MOST_CHARACTERS: Final = 52
_OTHER: Final = re.compile(r"[^a-z0-9]+")


def object_name(thing: Thing) -> str:
    """Return a name for a Kubernetes object (RFC 1123) that says which thing it is of, and is no other thing's."""
    plain = _OTHER.sub("-", thing.name.lower()).strip("-")[:_MOST_CHARACTERS].strip("-")
    is_same = plain == thing.name
    digest = hashlib.sha256(thing.name.encode()).hexdigest()[:8]
    return plain if is_same else f"{plain or 'import'}-{digest}"


def observed_fields(obj: Object, kind_schema: schema.Schema) -> Object:
    """Return every field of `spec.forProvider` that was observed and that the kind's schema has, in its order."""
    below: Mapping[str, Any] = schema.step(schema.step(kind_schema, "spec") or {}, "forProvider") or {}
    fields = (status_of(obj).get("observed") or {}).get("forProvider") or {}
    return {name: fields[name] for name in below.get("properties", {}) if fields.get(name) not in (None, "", {}, [])}


def managed_resource(  # noqa: PLR0913 - what it says of the thing
    resource: Resource, config: str, thing: Thing, namespace: str, fields: Object, *, policy: str = "Manage"
) -> Object:
    """Return the managed resource that has these fields typed. It changes nothing before a person adopts the thing."""
    return {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "metadata": {
            "name": object_name(thing),
            "namespace": namespace,
            "annotations": {names.EXTERNAL_NAME: thing.name},
        },
        "spec": {
            "providerConfigRef": {"name": config},
            "managementPolicy": policy,
            "deletionPolicy": "Orphan",
            "forProvider": fields,
        },
    }
