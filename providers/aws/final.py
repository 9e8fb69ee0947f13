"""Names of final snapshots, and what is said where a name is not what it was. Pure."""

from __future__ import annotations

import hashlib
import itertools
import re
from collections.abc import Iterable

from apis import names
from providers.aws import states
from runtime import kubectl

LONGEST = 255
"""Of a snapshot's identifier (DeleteDBInstance, FinalDBSnapshotIdentifier)."""
_PREFIX = "fl-final"
_MARK_LENGTH = 8
_NUMBER_LENGTH = 5
_TRIED = 5


def stem_of(name: str, incarnation: str, prefix: str | None) -> str:
    """Return what the final snapshots of one incarnation, and of no other, begin with."""
    mark = hashlib.sha256(incarnation.encode()).hexdigest()[:_MARK_LENGTH]
    room = LONGEST - _MARK_LENGTH - _NUMBER_LENGTH
    stem = re.sub(r"-{2,}", "-", f"{prefix or _PREFIX}-{name}")[:room].rstrip("-")
    return f"{stem}-{mark}"


def names_for(stem: str, taken: Iterable[str]) -> tuple[str, ...]:
    """Return the stem's first names that no snapshot in `taken` has; an earlier one is not what is there now."""
    present = set(taken)
    numbered = (stem if number == 1 else f"{stem}-{number}" for number in itertools.count(1))
    return tuple(itertools.islice((name for name in numbered if name not in present), _TRIED))


def taken_by_others(name: str, tried: tuple[str, ...]) -> str:
    """Return what to say when each name that was tried is another snapshot's."""
    return (
        f"instance {name} is not deleted: snapshots of other instances have the names of its final snapshot,"
        f" {tried[0]} to {tried[-1]}; delete or copy them, set finalDBSnapshotIdentifierPrefix, or choose the deletion"
        " policy Delete or Orphan"
    )


def final_refused(name: str, state: str) -> str:
    """Return what to say of an instance of which RDS takes no final snapshot as it is."""
    return (
        f"instance {name} is {state}, and RDS takes no final snapshot of it: nothing is deleted;"
        f" {states.advice(state)}, or choose the deletion policy Delete or Orphan"
    )


def final_failed(name: str, snapshot: str) -> str:
    """Return what to say when the final snapshot of an instance that is gone came to nothing."""
    return (
        f"the final snapshot {snapshot} of instance {name} failed, and the instance is gone: what is left are its"
        " automated backups, if any. Restore from these, then choose the deletion policy Delete or Orphan to let the"
        " object go"
    )


def renamed(name: str, now: str, address: str) -> str:
    """Return what to say of an instance that lives on under another name; `address` is its resource's for kubectl."""
    command = kubectl.annotate(address, names.PREFIX + "external-name", now, overwrites=True)
    return (
        f"instance {name} was renamed and is called {now} now; nothing is changed or let go. Rename it back to {name};"
        f" or, to go on with it under that name: {command}"
    )
