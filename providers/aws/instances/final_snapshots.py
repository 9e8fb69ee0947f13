"""The final snapshot of an instance: the names that it may have, and what to say where there is none. Pure."""

from __future__ import annotations

import hashlib
import itertools
import re
from collections.abc import Iterable

from providers.aws.instances import states

LONGEST_NAME = 255
"""Of a snapshot's identifier (DeleteDBInstance, FinalDBSnapshotIdentifier)."""
_PREFIX = "fl-final"
_HASH_LENGTH = 8
_NUMBER_LENGTH = 5
_TRIED = 5


def stem_of(name: str, incarnation: str, prefix: str | None) -> str:
    """Return what the final snapshots of one incarnation, and of no other, begin with."""
    short = hashlib.sha256(incarnation.encode()).hexdigest()[:_HASH_LENGTH]
    room = LONGEST_NAME - _HASH_LENGTH - _NUMBER_LENGTH
    stem = re.sub(r"-{2,}", "-", f"{prefix or _PREFIX}-{name}")[:room].rstrip("-")
    return f"{stem}-{short}"


def names_for(stem: str, taken: Iterable[str]) -> tuple[str, ...]:
    """Return the stem's first names that no snapshot in `taken` has; an earlier one is not what is there now."""
    present = set(taken)
    numbered = (stem if number == 1 else f"{stem}-{number}" for number in itertools.count(1))
    return tuple(itertools.islice((name for name in numbered if name not in present), _TRIED))


def names_taken_message(name: str, tried: tuple[str, ...]) -> str:
    """Return the message when each name that was tried is another snapshot's."""
    return (
        f"instance {name} is not deleted: snapshots of other instances have the names of its final snapshot,"
        f" {tried[0]} to {tried[-1]}; delete or copy them, set finalDBSnapshotIdentifierPrefix, or choose the deletion"
        " policy Delete or Orphan"
    )


def refused_message(name: str, state: str) -> str:
    """Return the message of an instance of which RDS takes no final snapshot as it is."""
    return (
        f"instance {name} is {state}, and RDS takes no final snapshot of it: nothing is deleted;"
        f" {states.remedy(state)}, or choose the deletion policy Delete or Orphan"
    )


def failed_message(name: str, snapshot: str) -> str:
    """Return the message when the final snapshot of an instance that is gone came to nothing."""
    return (
        f"the final snapshot {snapshot} of instance {name} failed, and the instance is gone: what is left are its"
        " automated backups, if any. Restore from these, then choose the deletion policy Delete or Orphan to let the"
        " object go"
    )
