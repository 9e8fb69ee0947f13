"""Tags as RDS takes and shows them: `[{"Key": ..., "Value": ...}]`. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, TypeAlias

from providers.external.cloud_api.tags import peoples_tags, with_owner
from providers.external.ownership import Owner

Tag: TypeAlias = dict[str, str]

AWS_OWN: Final = "aws:"
"""What AWS's own tags begin with."""


def tags_of(owner: Owner, extra: Mapping[str, str] | None = None) -> list[Tag]:
    """Return the tags that a create call carries: those that the spec asks for, and the owner's."""
    return encoded_tags(with_owner(extra, owner))


def encoded_tags(tags: Mapping[str, str]) -> list[Tag]:
    """Return tags as RDS takes them, in a stable order."""
    return [{"Key": key, "Value": tags[key]} for key in sorted(tags)]


def decoded_tags(tags: Iterable[Mapping[str, str]]) -> dict[str, str]:
    """Return tags by their keys."""
    return {tag["Key"]: tag.get("Value", "") for tag in tags}


def specs_tags(tags: Mapping[str, str]) -> dict[str, str]:
    """Return the tags that a spec may set: neither ours nor AWS's own."""
    return peoples_tags(tags, AWS_OWN)
