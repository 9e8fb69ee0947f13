"""Whose an object is by its tags, which Google calls labels; as a map of text, however a cloud writes it. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from providers.external.observation import Change
from providers.external.ownership import Owner

Tags = Mapping[str, str]

PREFIX = "fairlead-"
INSTALLATION = "fairlead-installation"
IDENTITY = "fairlead-identity"
CLAIM = "fairlead-claim"
NAMESPACE = "fairlead-namespace"
NAME = "fairlead-name"
RESOURCE = "fairlead-resource"
NAMESPACE_UID = "fairlead-namespace-uid"
RELEASED = "fairlead-released"
FIELD = "tags"
"""The field of a change under which a tag's key is the one segment that follows."""


def owner_tags(owner: Owner) -> dict[str, str]:
    """Return the tags that say whose it is: three that decide, three that people read, and whose namespace it is."""
    tags = {
        INSTALLATION: owner.installation,
        IDENTITY: owner.identity,
        CLAIM: owner.claim,
        NAMESPACE: owner.namespace,
        NAME: owner.name,
        RESOURCE: owner.resource,
        NAMESPACE_UID: owner.namespace_uid,
    }
    return {key: value for key, value in tags.items() if value}


def with_owner(tags: Tags | None, owner: Owner) -> dict[str, str]:
    """Return the tags that a create carries: those that the spec asks for, and the owner's, which win."""
    return {**(tags or {}), **owner_tags(owner)}


def owner_from(tags: Tags) -> Owner | None:
    """Return whose it is; None when one of the three tags that decide is missing."""
    installation, identity, claim = (tags.get(key, "") for key in (INSTALLATION, IDENTITY, CLAIM))
    if not (installation and identity and claim):
        return None
    namespace, name, resource = (tags.get(key, "") for key in (NAMESPACE, NAME, RESOURCE))
    return Owner(installation, identity, claim, namespace, name, resource, tags.get(NAMESPACE_UID, ""))


def peoples_tags(tags: Tags, *clouds_own: str) -> dict[str, str]:
    """Return the tags that are not ours, nor the cloud's own, which begin with one of `clouds_own`."""
    return {key: value for key, value in tags.items() if not key.startswith((PREFIX, *clouds_own))}


def released_tag(now: datetime) -> dict[str, str]:
    """Return the tag of what was released, in Unix time in seconds."""
    return {RELEASED: str(int(now.timestamp()))}


def missing_owner_tags(owner: Owner, present: Tags) -> tuple[Change, ...]:
    """Return the owner's tags that are not there, or say something else."""
    return tuple(
        Change((FIELD, key), value, present.get(key))
        for key, value in sorted(owner_tags(owner).items())
        if present.get(key) != value
    )


@dataclass(frozen=True, slots=True)
class TagChanges:
    """Tags to write, by key, and keys to remove; both may be empty."""

    put: Tags
    removed: frozenset[str]


def tag_changes(changes: Iterable[Change]) -> TagChanges:
    """Return those of some changes that are of tags."""
    wanted = {change.path[1]: change.want for change in changes if change.path[0] == FIELD}
    put = {key: str(value) for key, value in wanted.items() if value is not None}
    return TagChanges(put, frozenset(wanted.keys() - put.keys()))
