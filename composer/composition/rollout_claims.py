"""Claims as a rollout sees them: their rank, how they fare, and since when. Pure."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from datetime import UTC, datetime

import msgspec

from apis import names
from apis.identity import identity_of
from apis.pause import is_paused
from composer.hashes import digest
from composer.models import CompositionChoice
from runtime.conditions import find, instant, is_true
from runtime.objects import Object, annotations_of, deleting, generation_of, key_of, labels_of, metadata

EVER = datetime.min.replace(tzinfo=UTC)
NOT_YET = datetime.max.replace(tzinfo=UTC)
_NO_INPUT = (names.PREFIX, "kubectl.kubernetes.io/")


@dataclass(frozen=True, slots=True)
class RolloutClaim:
    """One claim as a rollout sees it.

    `rank` is its position in the order, `revision` the one it uses, empty when that is not known; `trouble` why it is
    stalled, `hindrance` the reason why it is not usable or not in sync; `since`: when it took its present revision or,
    if that is later, when it last settled; `was_ready`: how it was just before it took the revision; `unchanged_since`:
    see the function of this name. `has_changed`: its owner asks for something else than when it took the revision.
    """

    name: str
    rank: str
    revision: str
    is_ready: bool = True
    is_working: bool = False
    trouble: tuple[str, str] | None = None
    hindrance: str = ""
    since: datetime | None = None
    was_ready: bool = True
    unchanged_since: datetime = EVER
    is_paused: bool = False
    has_changed: bool = False

    @property
    def namespace(self) -> str:
        """The claim's namespace."""
        return self.name.partition("/")[0]

    @property
    def is_well(self) -> bool:
        """Whether it is usable and nothing stands in its way."""
        return self.is_ready and self.trouble is None

    @property
    def is_settled(self) -> bool:
        """Whether it is usable and all that was to be changed is changed."""
        return self.is_ready and not self.is_working


def rank_of(identity: str, revision: str) -> str:
    """Return a claim's rank of one revision: 16 hexadecimal digits, another order for each revision."""
    return hashlib.sha256(f"{identity}\0{revision}".encode()).hexdigest()[:16]


def is_well(claim: Object) -> bool:
    """Return whether a claim is healthy: Ready, and not Stalled by anything that a newer revision would not end."""
    return lacks_revision(claim) or (is_true(claim, "Ready") and not is_true(claim, "Stalled"))


def lacks_revision(claim: Object) -> bool:
    """Return whether a claim stays as it is, since its revision is gone, until a wave takes it along."""
    return (find(claim, "Synced") or {}).get("reason") == "RevisionNotFound"


def was_well(claim: Object) -> bool:
    """Return whether a claim that takes a revision was healthy with what it asks for now."""
    observed = (claim.get("status") or {}).get("observedGeneration")
    return is_well(claim) and observed == generation_of(claim)


def input_of(claim: Object) -> str:
    """Return what a claim asks for, in short: its generation, and a hash of the labels and annotations of its owner.

    Templates see these, and an edit of them changes no generation. Ours and those of kubectl are left out.
    """
    annotations = {name: text for name, text in annotations_of(claim).items() if not name.startswith(_NO_INPUT)}
    return f"{generation_of(claim)}/{digest([dict(labels_of(claim)), annotations])[:10]}"


def rollout_claim_of(claim: Object, revision: str, now: datetime) -> RolloutClaim | None:
    """Return a claim as a rollout sees it; None where it passes over the claim.

    Nothing is composed for such a claim yet, it is pinned, or it is being deleted.
    """
    in_use = (claim.get("status") or {}).get("composition") or {}
    choice = msgspec.convert(in_use, CompositionChoice, strict=False)
    is_composed = bool(choice.revision) or names.IDENTITY in annotations_of(claim)
    if not is_composed or deleting(claim) or (claim.get("spec") or {}).get("compositionRevisionRef"):
        return None
    lacks = lacks_revision(claim)
    stalled = find(claim, "Stalled")
    is_stalled = stalled is not None and stalled.get("status") == "True" and not lacks
    return RolloutClaim(
        name=str(key_of(claim)),
        rank=rank_of(str(identity_of(claim)), revision),
        revision=choice.revision,
        is_ready=lacks or is_true(claim, "Ready"),
        is_working=is_true(claim, "Reconciling") and not lacks,
        trouble=(str(stalled["reason"]), str(stalled["message"])) if stalled and is_stalled else None,
        hindrance=_hindrance(claim),
        since=_since(claim, choice),
        was_ready=choice.was_ready is not False,
        # Of one without any status nothing is known yet.
        unchanged_since=unchanged_since(claim) if choice.revision or lacks else NOT_YET,
        is_paused=is_paused(annotations_of(claim), now),
        has_changed=choice.revision == revision and choice.input not in ("", input_of(claim)),
    )


def _hindrance(claim: Object) -> str:
    for type_, unrest in (("Stalled", "True"), ("Reconciling", "True"), ("Ready", "False")):
        condition = find(claim, type_)
        if condition is not None and condition.get("status") == unrest:
            return str(condition.get("reason", ""))
    return ""


def unchanged_since(claim: Object) -> datetime:
    """Return since when a claim is as it is: took its revision or lacks one, became Ready and in sync, was not paused.

    A claim that became so after a wave was opened was not counted for it, and goes with the next.
    """
    synced = find(claim, "Synced") or {}
    if synced.get("reason") == "Paused":
        return NOT_YET
    taken = str(((claim.get("status") or {}).get("composition") or {}).get("since") or "")
    # One that lost its status was not counted for a wave that was open when it turned out to lack a revision.
    since = [synced] if lacks_revision(claim) or synced.get("status") == "True" else []
    since += [ready] if (ready := find(claim, "Ready")) and ready.get("status") == "True" else []
    texts = [taken or str(metadata(claim).get("creationTimestamp") or "")]
    texts += [str(condition.get("lastTransitionTime") or "") for condition in since]
    return max((moment for text in texts if (moment := instant(text)) is not None), default=EVER)


def _since(claim: Object, choice: CompositionChoice) -> datetime | None:
    taken = instant(choice.since)
    unrest = [find(claim, "Ready"), find(claim, "Reconciling")]
    begun = [
        instant(str(condition.get("lastTransitionTime") or ""))
        for condition, at_rest in zip(unrest, ("True", "False"), strict=True)
        if condition is not None and condition.get("status") != at_rest
    ]
    earliest = min((moment for moment in begun if moment is not None), default=None)
    return max(taken, earliest) if taken and earliest else taken
