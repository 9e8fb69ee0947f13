"""What is written of something that a provider observed: a managed resource that would change nothing of it. Pure."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from typing import Any, Final

from apis import names
from composer.render import schema
from composer.render.schema_limits import excesses
from fairlead.imports.thing import Thing
from providers.external.cloud_api.tags import PREFIX
from runtime.objects import Object, Resource, status_of

_MOST_CHARACTERS: Final = 52
_IN_EVERY_DATABASE: Final = frozenset({"plpgsql"})
_OTHER: Final = re.compile(r"[^a-z0-9]+")


def object_name(thing: Thing) -> str:
    """Return a name for a Kubernetes object (RFC 1123) that says which thing it is of, and is no other thing's."""
    plain = _OTHER.sub("-", thing.own_name.lower()).strip("-")[:_MOST_CHARACTERS].strip("-")
    is_same = plain == thing.name
    digest = hashlib.sha256(thing.name.encode()).hexdigest()[:8]
    return plain if is_same else f"{plain or 'import'}-{digest}"


def observed_fields(obj: Object, thing: Thing, kind_schema: schema.Schema) -> Object:
    """Return every field of `spec.forProvider` that was observed and that may be written so, in the schema's order.

    A database on premises that is taken over gets a login of its own, which is called after it.
    """
    below: Mapping[str, Any] = schema.step(schema.step(kind_schema, "spec") or {}, "forProvider") or {}
    fields = _without_what_all_have((status_of(obj).get("observed") or {}).get("forProvider") or {})
    if "username" in below.get("properties", {}):
        fields = {"username": _OTHER.sub("_", thing.own_name.lower()).strip("_") or "app", **fields}
    return {name: fields[name] for name in below.get("properties", {}) if _is_written(name, fields, below)}


def _without_what_all_have(fields: Object) -> Object:
    """Leave out what is in every database, and the tags by which it was ours before."""
    extensions = [name for name in fields.get("extensions") or () if name not in _IN_EVERY_DATABASE]
    maps = {name: value for name, value in fields.items() if isinstance(value, Mapping)}
    plain = {
        name: {key: text for key, text in value.items() if not key.startswith(PREFIX)} for name, value in maps.items()
    }
    return {**fields, **plain, "extensions": extensions}


def _is_written(name: str, fields: Object, below: schema.Schema) -> bool:
    """Return whether a field says something, and is none of what a cloud says of what nobody set (-1 for no limit)."""
    value, of_field = fields.get(name), schema.step(below, name) or {}
    if value in (None, "", {}, []):
        return False
    return not any(schema.mismatches(value, of_field, name)) and not any(excesses(value, of_field, name))


def managed_resource(  # noqa: PLR0913 - what it says of the thing
    resource: Resource,
    config: str,
    thing: Thing,
    namespace: str,
    fields: Object,
    *,
    policy: str = "Manage",
    password_secret: str = "",
) -> Object:
    """Return the managed resource that has these fields typed. It changes nothing before a person adopts the thing.

    `password_secret` is the Secret that has the present password of its login, by the key `password`.
    """
    reference = {"passwordSecretRef": {"name": password_secret, "key": "password"}} if password_secret else {}
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
            **reference,
            "forProvider": fields,
        },
    }
