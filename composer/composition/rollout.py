"""How a new revision reaches the claims: wave after wave, and no further once too many of them fail. Pure.

The state is in the revision's status and has one writer. A claim needs no list of names to know whether it is in a
wave: its rank is a hash, and the state says up to which rank the revision has come.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, assert_never

import msgspec

from apis import names
from apis.reasons import SHARED
from composer.composition.rollout_claims import EVER, NOT_YET, RolloutClaim, input_of, was_well
from composer.models import CompositionChoice, Rollout, RolloutFailure, RolloutStatus
from runtime.conditions import Condition, instant, timestamp
from runtime.objects import Object

DEFAULT_WAVES = ("100%",)
_LAST_RANK = "f" * 16
_MOST_FAILURES = 10
_MESSAGE_LIMIT = 300


@dataclass(frozen=True, slots=True)
class Course:
    """One revision under way: its object's name and number, the rules, and whether a person asked to go on.

    While it is paused, by a person too, it comes to no claim, and claims that have it keep it.
    """

    revision: str
    number: int
    rules: Rollout
    is_resumed: bool = False
    is_paused: bool = False

    @property
    def waves(self) -> tuple[str, ...]:
        """The sizes of the waves, as they are written."""
        return self.rules.waves or DEFAULT_WAVES


def is_under_way(state: RolloutStatus) -> bool:
    """Return whether a rollout moves by itself."""
    return state.phase in ("Progressing", "Soaking")


def superseded(state: RolloutStatus | None, now: datetime) -> RolloutStatus | None:
    """Return the state of a revision that is not the newest any more: nothing moves to it."""
    if state is None or not (is_under_way(state) or state.phase == "Paused"):
        return state
    return _in_phase(state, "Superseded", now)


def is_included(state: RolloutStatus, rank: str, *, well: bool, since: datetime = EVER) -> bool:
    """Return whether the open wave is also for the claim of this rank that is as it is `since` then.

    One that is not well goes with the last wave alone, which is for all that were so when it was opened.
    """
    if not is_under_way(state) or since > (instant(state.opened) or NOT_YET):
        return False
    return state.everyone or (well and rank <= state.through)


def advance(
    course: Course, before: RolloutStatus | None, claims: Sequence[RolloutClaim], now: datetime
) -> RolloutStatus:
    """Return the next state of a rollout; equal to `before` when there is nothing to say.

    A state of another number is of an earlier time at which the revision was the newest: the rollout begins anew.
    """
    state = before if before is not None and before.revision == course.number else _begun(course, now)
    if course.is_paused and (is_under_way(state) or state.phase == "Paused"):
        paused = state if state.phase == "Paused" else _in_phase(state, "Paused", now)
        return _counted(paused, course, claims)
    if state.phase == "Paused":
        state = _in_phase(state, "Progressing", now)
    match state.phase, course.is_resumed:
        case ("Finished" | "Superseded", _) | ("Halted", False):
            return state
        case "Reverted", False:
            return _counted(state, course, claims)
        case "Halted", True:
            state = msgspec.structs.replace(_in_phase(state, "Progressing", now), failed=0, failures=())
        case "Reverted", True:
            state = _begun(course, now)
        case _:
            pass
    return _stepped(_counted(state, course, claims), course, claims, now)


def _stepped(state: RolloutStatus, course: Course, claims: Sequence[RolloutClaim], now: datetime) -> RolloutStatus:
    """Return the state after a look at the open wave: stop, wait for it, watch it, or open the next."""
    failing = _failing(course, claims, now)
    late = _late(state, course, claims, now)
    state = msgspec.structs.replace(state, failed=len(failing), failures=_passed_over(late))
    if len(failing) > course.rules.max_failed:
        return _stopped(state, course, failing, now)
    # One that does not take the revision, whatever hinders it, holds up nobody, as one that is paused does not.
    claims = [replace(claim, is_paused=True) if claim.name in late else claim for claim in claims]
    if any(_is_awaited(claim, course, state) and claim not in failing for claim in claims):
        return state if state.phase == "Progressing" else _in_phase(state, "Progressing", now)
    if state.phase == "Progressing" and _is_open(state):
        state = _in_phase(state, "Soaking", now)
    if _is_open(state) and not _has_soaked(state, course.rules, now):
        return state
    return _next_wave(state, course, claims, now)


def choice_after(before: Mapping[str, Any], after: CompositionChoice, claim: Object) -> Object:
    """Return `status.composition` of a claim: what it uses and, where revisions go by waves, how it came to it.

    `after.since` is empty where the revision has no rollout.
    """
    if (before.get("name"), before.get("revision", "")) == (after.name, after.revision):
        return dict(before)
    choice: Object = {"name": after.name}
    if after.revision:
        choice["revision"] = after.revision
    if after.revision and after.since:
        choice |= {"since": after.since, "wasReady": was_well(claim), "input": input_of(claim)}
        if before.get("name") == after.name and before.get("revision"):
            choice["previous"] = before["revision"]
    return choice


def sentence(state: RolloutStatus) -> str:
    """Return in words how far a rollout is, for conditions and events."""
    where = f"revision {state.revision}, wave {state.wave} of {state.waves}"
    match state.phase:
        case "Progressing":
            paused = f"; {state.paused} paused claims have not got it" if state.paused else ""
            return f"{where}: {state.updated} of {state.total} claims have it{paused}{_of_late_claims(state)}"
        case "Soaking":
            have = f"{state.updated} of {state.total} claims have it and are watched for a while"
            return f"{where}: {have}{_of_late_claims(state)}"
        case "Paused":
            have = f"{state.updated} of {state.total} claims have it"
            return f"{where}, is paused: {have}; remove annotation {names.PAUSED} of the Composition to go on"
        case "Finished":
            return f"revision {state.revision} has come to all claims"
        case "Superseded":
            return f"revision {state.revision} gave way to a newer one in wave {state.wave} of {state.waves}"
        case "Halted" | "Reverted":
            first = state.failures[0]
            outcome = "stopped" if state.phase == "Halted" else "stopped, and its claims go back"
            more = f" (and {state.failed - 1} more)" if state.failed > 1 else ""
            return (
                f"{where}, is {outcome}: claim {first.claim}{more} failed: {first.reason}: {first.message}; edit the "
                "Composition, or mend the claim and ask for a reconcile of the Composition to go on"
            )


def _of_late_claims(state: RolloutStatus) -> str:
    """Return which claims did not take the revision in time, as the end of a sentence."""
    if not state.failures:
        return ""
    first, others = state.failures[0], len(state.failures) - 1
    more = f" (and {others} more)" if others else ""
    text = f"claim {first.claim}{more} did not take it within the deadline and is passed over"
    return f"; {text}: {first.reason}: {first.message}"


def conditions_of(state: RolloutStatus) -> tuple[Condition, ...]:
    """Return what a rollout under way or stopped adds to the conditions of Composition and revision."""
    match state.phase:
        case "Finished" | "Superseded":
            return ()
        case "Paused":
            return (Condition("Synced", "False", "Paused", sentence(state), 0),)
        case "Progressing" | "Soaking":
            reason, abnormal = "RollingOut", "Reconciling"
        case "Halted" | "Reverted":
            reason, abnormal = "RolloutHalted", "Stalled"
        case _:
            assert_never(state.phase)
    text = sentence(state)
    return Condition("Synced", "False", reason, text, 0), Condition(abnormal, "True", reason, text, 0)


def _begun(course: Course, now: datetime) -> RolloutStatus:
    return RolloutStatus(revision=course.number, phase="Progressing", waves=len(course.waves), since=timestamp(now))


def _in_phase(state: RolloutStatus, phase: Any, now: datetime) -> RolloutStatus:
    return msgspec.structs.replace(state, phase=phase, since=timestamp(now))


def _counted(state: RolloutStatus, course: Course, claims: Sequence[RolloutClaim]) -> RolloutStatus:
    updated = sum(1 for claim in claims if claim.revision == course.revision)
    paused = sum(1 for claim in claims if claim.revision != course.revision and claim.is_paused)
    return msgspec.structs.replace(state, total=len(claims), updated=updated, paused=paused)


def _failing(course: Course, claims: Sequence[RolloutClaim], now: datetime) -> list[RolloutClaim]:
    """Return the claims that speak against the revision.

    A reason that a tenant can bring about counts once claims of two namespaces give it: one alone stops nobody else.
    """
    failing = [claim for claim in claims if _fails(claim, course, now)]
    namespaces: dict[str, set[str]] = {}
    for claim in failing:
        namespaces.setdefault(claim.hindrance, set()).add(claim.namespace)
    return [claim for claim in failing if claim.hindrance not in SHARED or len(namespaces[claim.hindrance]) > 1]


def _fails(claim: RolloutClaim, course: Course, now: datetime) -> bool:
    if claim.revision != course.revision or not claim.was_ready or claim.has_changed or claim.is_paused:
        return False
    if claim.trouble is not None:
        return True
    deadline = timedelta(seconds=course.rules.progress_deadline_seconds)
    return not claim.is_settled and claim.since is not None and now - claim.since > deadline


def _late(
    state: RolloutStatus, course: Course, claims: Sequence[RolloutClaim], now: datetime
) -> dict[str, RolloutClaim]:
    """Return by name the claims that were reached and did not take the revision, though there was time for it.

    The time begins anew whenever another one takes it; one that was passed over stays so until it has it.
    """
    taken = (claim.since or EVER for claim in claims if claim.revision == course.revision)
    # Not while it was paused, either.
    progress = max((instant(state.opened) or NOT_YET, instant(state.since) or EVER, *taken))
    is_over = progress != NOT_YET and now - progress > timedelta(seconds=course.rules.progress_deadline_seconds)
    passed_over = {failure.claim for failure in state.failures}
    return {
        claim.name: claim
        for claim in claims
        if claim.revision != course.revision
        and not claim.is_paused
        and (claim.name in passed_over or (is_over and _is_reached(state, claim)))
    }


def _passed_over(late: Mapping[str, RolloutClaim]) -> tuple[RolloutFailure, ...]:
    untaken = "it was reached and did not take the revision"
    first = sorted(late)[:_MOST_FAILURES]
    said = ((name, late[name].trouble or (late[name].hindrance or "RollingOut", untaken)) for name in first)
    return tuple(RolloutFailure(name, reason, message[:_MESSAGE_LIMIT]) for name, (reason, message) in said)


def _is_reached(state: RolloutStatus, claim: RolloutClaim) -> bool:
    return not claim.is_paused and is_included(state, claim.rank, well=claim.is_well, since=claim.unchanged_since)


def _is_awaited(claim: RolloutClaim, course: Course, state: RolloutStatus) -> bool:
    """Return whether the wave waits for a claim; one that was not well before counts for nothing once it has moved."""
    if claim.revision != course.revision:
        return _is_reached(state, claim)
    return claim.was_ready and not claim.is_settled and not claim.is_paused and not _says_nothing(claim)


def _says_nothing(claim: RolloutClaim) -> bool:
    """Return whether the trouble of a claim says nothing of its revision: its owner edited it, or may have done it."""
    is_in_trouble = claim.trouble is not None or not claim.is_settled
    return is_in_trouble and (claim.has_changed or claim.hindrance in SHARED)


def _stopped(state: RolloutStatus, course: Course, failing: Sequence[RolloutClaim], now: datetime) -> RolloutStatus:
    failures = tuple(_failure(claim) for claim in sorted(failing, key=lambda claim: claim.name)[:_MOST_FAILURES])
    phase = "Reverted" if course.rules.on_failure == "Rollback" else "Halted"
    return msgspec.structs.replace(_in_phase(state, phase, now), failures=failures)


def _failure(claim: RolloutClaim) -> RolloutFailure:
    reason, message = claim.trouble or ("ChildNotReady", "it was ready before and is not ready after the deadline")
    return RolloutFailure(claim.name, reason, message[:_MESSAGE_LIMIT])


def _has_soaked(state: RolloutStatus, rules: Rollout, now: datetime) -> bool:
    begun = instant(state.since) or now
    return now - begun >= timedelta(seconds=rules.soak_seconds)


def _is_open(state: RolloutStatus) -> bool:
    return bool(state.through) or state.everyone


def _next_wave(state: RolloutStatus, course: Course, claims: Sequence[RolloutClaim], now: datetime) -> RolloutStatus:
    """Open the next wave that has anybody in it; finished is what all have who take part.

    Until a wave has as many claims as it is for it is opened again, so that who was paused goes by waves, too.
    """
    there = _size_of_opened(state, course, claims)
    sizes = [
        _size(written, there if number <= state.wave else len(claims))
        for number, written in enumerate(course.waves, start=1)
    ]
    judging = sum(1 for claim in claims if claim.revision == course.revision and not _says_nothing(claim))
    unfilled = next((number for number, size in enumerate(sizes, start=1) if size > judging), len(sizes))
    for number in range(min(state.wave + 1, unfilled), len(sizes) + 1):
        is_whole = number == len(sizes) or sizes[number - 1] >= len(claims)
        through = _LAST_RANK if is_whole else _through(course, claims, sizes[number - 1], judging, now)
        opened = msgspec.structs.replace(
            _in_phase(state, "Progressing", now),
            wave=number,
            opened=timestamp(now),
            through=through,
            everyone=is_whole,
        )
        if any(claim.revision != course.revision and _is_reached(opened, claim) for claim in claims):
            return opened
    if any(claim.revision != course.revision for claim in claims):
        return _closed(state, now)
    return msgspec.structs.replace(_in_phase(state, "Finished", now), wave=len(sizes))


def _size_of_opened(state: RolloutStatus, course: Course, claims: Sequence[RolloutClaim]) -> int:
    """Count the claims that were there when the open wave was opened: those that came later do not enlarge it."""
    opened = instant(state.opened) or NOT_YET
    return sum(1 for claim in claims if claim.revision == course.revision or (claim.since or EVER) <= opened)


def _through(course: Course, claims: Sequence[RolloutClaim], size: int, judging: int, now: datetime) -> str:
    """Return the rank up to which a wave of that size goes."""
    able = [claim for claim in claims if claim.is_well and claim.unchanged_since <= now and not claim.is_paused]
    if size > judging:
        waiting = sorted(claim.rank for claim in able if claim.revision != course.revision)[: size - judging]
        return waiting[-1] if waiting else ""
    # Content that came back: so many have it already that only the order says who is first.
    order = sorted(
        {claim.rank for claim in claims if claim.revision == course.revision} | {claim.rank for claim in able}
    )
    return order[size - 1]


def _closed(state: RolloutStatus, now: datetime) -> RolloutStatus:
    """Return a rollout in which no wave is open: the claims that do not have it yet are paused."""
    if not _is_open(state):
        return state
    return msgspec.structs.replace(_in_phase(state, "Progressing", now), opened="", through="", everyone=False)


def _size(written: str, total: int) -> int:
    """Return how many claims a wave holds with all before it; percentages are rounded up."""
    if written.endswith("%"):
        return math.ceil(total * int(written[:-1]) / 100)
    return int(written)
