"""Claims as a rollout sees them: their place in the order, how they fare, and since when. Pure."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from datetime import UTC, datetime

import msgspec

from composer.models import CompositionChoice
from composer.view import identity_of, is_paused
from runtime.conditions import find, is_true
from runtime.objects import Object, annotations_of, deleting, key_of, metadata

EVER = datetime.min.replace(tzinfo=UTC)
NOT_YET = datetime.max.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Member:
    """One claim as a rollout sees it.

    `place` is its position in the order, `trouble` why it is stalled; `since`: when it took its present revision or,
    if that is later, when it was last at rest; `was_ready`: how it was just before it took the revision; `stands_since`
    as `stands_since()` says.
    """

    name: str
    place: str
    revision: str
    is_ready: bool = True
    is_working: bool = False
    trouble: tuple[str, str] | None = None
    since: datetime | None = None
    was_ready: bool = True
    stands_since: datetime = EVER

    @property
    def is_well(self) -> bool:
        """Whether it is usable and nothing stands in its way."""
        return self.is_ready and self.trouble is None

    @property
    def is_settled(self) -> bool:
        """Whether it is usable and all that was to be changed is changed."""
        return self.is_ready and not self.is_working


def place_of(identity: str, revision: str) -> str:
    """Return a claim's place in the order of one revision: 16 hexadecimal digits, another order for each revision."""
    return hashlib.sha256(f"{identity}\0{revision}".encode()).hexdigest()[:16]


def is_well(claim: Object) -> bool:
    """Tell whether a claim is healthy: Ready, and not Stalled."""
    return is_true(claim, "Ready") and not is_true(claim, "Stalled")


def member_of(claim: Object, revision: str, now: datetime) -> Member | None:
    """Read a claim; None for one that a rollout passes over: it has no revision yet, is pinned, paused, or goes."""
    found = (claim.get("status") or {}).get("composition") or {}
    if not found.get("revision") or deleting(claim) or is_paused(annotations_of(claim), now):
        return None
    if (claim.get("spec") or {}).get("compositionRevisionRef"):
        return None
    choice = msgspec.convert(found, CompositionChoice, strict=False)
    stalled = find(claim, "Stalled")
    is_stalled = stalled is not None and stalled.get("status") == "True"
    return Member(
        name=str(key_of(claim)),
        place=place_of(str(identity_of(claim)), revision),
        revision=choice.revision,
        is_ready=is_true(claim, "Ready"),
        is_working=is_true(claim, "Reconciling"),
        trouble=(str(stalled["reason"]), str(stalled["message"])) if stalled and is_stalled else None,
        since=_since(claim, choice),
        was_ready=choice.was_ready is not False,
        stands_since=stands_since(claim),
    )


def stands_since(claim: Object) -> datetime:
    """Tell since when a claim stands as it does: it took its revision, became Ready and in sync, was not paused.

    Who came to stand so after a wave was opened was not counted for it, and goes with the next.
    """
    synced = find(claim, "Synced") or {}
    if synced.get("reason") == "Paused":
        return NOT_YET
    taken = str(((claim.get("status") or {}).get("composition") or {}).get("since") or "")
    told = (each for each in (find(claim, "Ready"), synced) if each and each.get("status") == "True")
    texts = [taken or str(metadata(claim).get("creationTimestamp") or "")]
    texts += [str(each.get("lastTransitionTime") or "") for each in told]
    return max((found for text in texts if (found := instant(text)) is not None), default=EVER)


def _since(claim: Object, choice: CompositionChoice) -> datetime | None:
    taken = instant(choice.since)
    unrest = [find(claim, "Ready"), find(claim, "Reconciling")]
    begun = [
        instant(str(each.get("lastTransitionTime") or ""))
        for each, at_rest in zip(unrest, ("True", "False"), strict=True)
        if each is not None and each.get("status") != at_rest
    ]
    earliest = min((each for each in begun if each is not None), default=None)
    return max(taken, earliest) if taken and earliest else taken


def instant(text: str) -> datetime | None:
    """Read an instant (RFC 3339); None when there is none, or when it cannot be read."""
    try:
        found = datetime.fromisoformat(text) if text else None
    except ValueError:
        return None
    return found if found and found.tzinfo else None
