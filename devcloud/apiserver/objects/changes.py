"""What a change of an object keeps of it as it was, and what is refused of it at once."""

from __future__ import annotations

from devcloud.apiserver import schemas
from devcloud.apiserver.objects import refusals
from devcloud.apiserver.objects.compare import is_same
from devcloud.apiserver.objects.entries import bare
from devcloud.apiserver.objects.kinds import Kind
from runtime.objects import Key, Object, Resource, key_of

Place = tuple[str, str, Key]


def unknown_fields(kind: Kind, obj: Object) -> str:
    """Return how a strict request is refused for fields that a kind has not; empty for none."""
    listed = ", ".join(f'unknown field "{path}"' for path in kind.unknown(obj))
    return f"strict decoding error: {listed}" if listed else ""


def refuse_unknown(kind: Kind, obj: Object) -> None:
    """Refuse an object with fields that its kind has not."""
    unknown, name = unknown_fields(kind, obj), kind.resource.kind
    if unknown:
        raise refusals.bad_request(
            f'{name} in version "{kind.resource.version}" cannot be handled as a {name}: {unknown}'
        )


def id_of(resource: Resource) -> tuple[str, str]:
    """Return what distinguishes a resource, whatever its version."""
    return resource.group, resource.plural


def place_of(resource: Resource, obj: Object) -> Place:
    """Return where an object is."""
    return (*id_of(resource), key_of(obj))


def other_uid(resource: Resource, key: Key, uid: str, present: str) -> str:
    """Return what the store says of a uid that is not the present one."""
    parts = [part for part in (resource.group, resource.plural, key.namespace, key.name) if part]
    return (
        f"StorageError: invalid object, Code: 4, Key: /registry/{'/'.join(parts)}, ResourceVersion: 0, "
        f"AdditionalErrorMsg: Precondition failed: UID in precondition: {uid}, UID in object meta: {present}"
    )


def as_before(metadata: Object, former: Object) -> Object:
    """Return metadata with the generation that it had."""
    made = {name: part for name, part in metadata.items() if name != "generation"}
    return made | ({"generation": former["generation"]} if "generation" in former else {})


def keep_system_fields(metadata: Object, former: Object) -> None:
    """Put back what the server alone says."""
    metadata.setdefault("uid", former["uid"])
    for name in ("creationTimestamp", "deletionTimestamp"):
        if name in former:
            metadata[name] = former[name]
    if "deletionGracePeriodSeconds" in former:
        metadata.setdefault("deletionGracePeriodSeconds", former["deletionGracePeriodSeconds"])


def keep_times(changed: Object, live: Object) -> None:
    """Put back the times of managedFields where they are all that would change."""
    old, new = live["metadata"].get("managedFields") or [], changed["metadata"].get("managedFields") or []
    if not new or len(old) != len(new) or old == new or _timeless(old) != _timeless(new):
        return
    if is_same(unversioned(bare(changed)), unversioned(bare(live))):
        changed["metadata"]["managedFields"] = schemas.copied(old)


def _timeless(entries: list[Object]) -> list[Object]:
    return [{name: part for name, part in entry.items() if name != "time"} for entry in entries]


def unversioned(obj: Object) -> Object:
    """Return an object without its version."""
    metadata = {name: part for name, part in obj["metadata"].items() if name != "resourceVersion"}
    return {**obj, "metadata": metadata}
