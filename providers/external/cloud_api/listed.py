"""What a list says of each object of an account: enough to see that it changed, and to find whose it is. Pure.

A whole answer takes a hundred times the memory of what is kept here, and an account may hold thousands of objects.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from providers.external.cloud_api.tags import RELEASED, owner_from
from providers.external.observation import digest
from providers.external.ownership import Owner


@dataclass(frozen=True, slots=True)
class ListedObject:
    """One object of a list.

    `digest` changes when anything about it does, its tags apart; `tags_digest` when a tag does. That is None where the
    answer did not say which tags it has, which is not that it has none; then `owner` is None as well. `reference` is
    by what its tags can be read. `answer` is all that was answered, encoded, where that stands for a look by itself
    (`ExternalList.answers`). `tags` are kept of what nobody is at work on.
    """

    name: str
    incarnation: str
    digest: str
    tags_digest: str | None
    owner: Owner | None
    reference: str = ""
    answer: bytes = field(default=b"", repr=False)
    tags: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ListedObjects:
    """A list; not `complete` where a part of the account did not answer, as a region of Google's may not."""

    objects: tuple[ListedObject, ...]
    complete: bool = True


def digest_of(answer: Mapping[str, Any], volatile: Collection[str]) -> str:
    """Return what changes when anything but the `volatile` fields of an answer does."""
    return digest({key: value for key, value in answer.items() if key not in volatile})


def tags_digest(tags: Mapping[str, str] | None) -> str | None:
    """Return what changes when a tag does; None where an answer did not say which there are."""
    return None if tags is None else digest(dict(tags))


def tags_kept(tags: Mapping[str, str] | None, owner: Owner | None) -> Mapping[str, str]:
    """Return the tags by which somebody may look for an object: none of one that is at work for its owner."""
    return tags if tags and (owner is None or RELEASED in tags) else {}


def owner_in(tags: Mapping[str, str] | None) -> Owner | None:
    """Return whose an object is by its tags; None where an answer did not say which there are."""
    return None if tags is None else owner_from(tags)
