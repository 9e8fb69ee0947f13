"""What changed in a store, as its subscribers hear it. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from enum import Enum

from runtime.objects import Key, Object
from runtime.record import Record, same_marks


class ChangeKind(Enum):
    """What became of a key."""

    ADDED = "Added"
    MODIFIED = "Modified"
    DELETED = "Deleted"


@dataclass(frozen=True, slots=True)
class Change:
    """One change of one object. A name that passes to another uid is two: deleted, then added.

    `own`: the echo of a write that was remembered. `initial`: it was there when we began to look, and is no event.
    """

    key: Key
    kind: ChangeKind
    before: Record | None
    after: Record | None
    own: bool = False
    initial: bool = False

    @property
    def old_uid(self) -> str | None:
        """The uid before, None when there was no object."""
        return self.before.uid if self.before else None

    @property
    def new_uid(self) -> str | None:
        """The uid after, None when there is no object any more."""
        return self.after.uid if self.after else None

    @property
    def intent(self) -> bool:
        """Return whether what is wanted changed (creation, spec, labels, annotations, deletion), not status alone."""
        if self.before is None or self.after is None:
            return True
        if self.before.generation != self.after.generation or self.before.deleting != self.after.deleting:
            return True
        return not same_marks(self.before.raw, self.after.raw)

    def old(self) -> Object | None:
        """Decode the object as it was before."""
        return self.before.decode() if self.before else None

    def new(self) -> Object | None:
        """Decode the object as it is after."""
        return self.after.decode() if self.after else None


def differences(before: Mapping[Key, Record], after: Mapping[Key, Record], *, initial: bool) -> Iterator[Change]:
    """Give what a list changed, lazily."""
    # A list may merge a stranger's write with ours, so that no change of it is only our own echo.
    for key, old in before.items():
        if key not in after:
            yield Change(key, ChangeKind.DELETED, old, None, initial=initial)
    for key, new in tuple(after.items()):
        for change in changes_between(key, before.get(key), new, own=False):
            yield replace(change, initial=initial)


def changes_between(key: Key, old: Record | None, new: Record | None, *, own: bool) -> tuple[Change, ...]:
    """Return what became of one key."""
    match old, new:
        case None, None:
            return ()
        case None, _:
            return (Change(key, ChangeKind.ADDED, None, new, own=own),)
        case _, None:
            return (Change(key, ChangeKind.DELETED, old, None, own=own),)
        case Record() as was, Record() as now if was.uid != now.uid:
            return (
                Change(key, ChangeKind.DELETED, was, None, own=own),
                Change(key, ChangeKind.ADDED, None, now, own=own),
            )
        case Record() as was, Record() as now if was.version == now.version:
            return ()
        case _:
            return (Change(key, ChangeKind.MODIFIED, old, new, own=own),)
