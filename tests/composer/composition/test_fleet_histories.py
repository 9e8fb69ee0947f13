"""Whatever happens to a fleet, in whichever order: no claim comes to a revision but by its waves."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, cast

import msgspec
from hypothesis import example, given, settings
from hypothesis import strategies as st

from apis.identity import identity_of
from apis.pause import is_paused
from composer.claim.selection import ClaimState, choose_revision
from composer.composition.revision import Revision
from composer.composition.rollout import Course, advance, choice_after, superseded
from composer.composition.rollout_claims import (
    NOT_YET,
    RolloutClaim,
    is_well,
    lacks_revision,
    rollout_claim_of,
    unchanged_since,
)
from composer.models import CompositionChoice, Rollout, RolloutStatus
from runtime.conditions import Condition, merge, timestamp
from runtime.objects import Object

START = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
WAVES = ("1", "50%", "100%")
CLAIMS = 4


@dataclass
class Fleet:
    """One Composition, its revisions and claims; `composed` is what is really composed for each claim."""

    now: datetime = START
    revisions: dict[str, Revision] = field(default_factory=dict)
    claims: dict[str, Object] = field(default_factory=dict)
    composed: dict[str, str] = field(default_factory=dict)
    failing: set[str] = field(default_factory=set)
    is_paused: bool = False
    published: int = 0

    @property
    def newest(self) -> Revision:
        return max(self.revisions.values(), key=lambda revision: revision.number)

    # What may happen

    def publish(self, *, goes_back: bool) -> None:
        self.published += 1
        rules = {"waves": list(WAVES), "soakSeconds": 60, "onFailure": "Rollback" if goes_back else "Halt"}
        name = f"c-{self.published}"
        number = 1 + max((revision.number for revision in self.revisions.values()), default=0)
        self.revisions[name] = Revision(name, number, "c", {"rollout": rules})

    def make(self) -> None:
        name = f"claim-{len(self.claims)}"
        made = {"name": name, "namespace": "shop", "uid": name, "generation": 1, "annotations": {}}
        self.claims[name] = {"metadata": {**made, "creationTimestamp": timestamp(self.now)}, "spec": {}, "status": {}}

    def pause(self, claim: str) -> None:
        self.claims[claim]["metadata"]["annotations"]["fairlead.dev/paused"] = "true"

    def go_on(self, claim: str) -> None:
        self.claims[claim]["metadata"]["annotations"].pop("fairlead.dev/paused", None)

    def lose_revision(self, index: int) -> None:
        """Delete a revision by force; the content of the Composition is recorded anew."""
        name = sorted(self.revisions)[index % len(self.revisions)]
        lost, newest = self.revisions.pop(name), self.newest.name if len(self.revisions) else ""
        if not newest or lost.number > self.revisions[newest].number:
            number = 1 + max((revision.number for revision in self.revisions.values()), default=0)
            self.revisions[name] = Revision(name, number, "c", lost.composition)

    def lose_statuses(self) -> None:
        """Restore revisions and claims as a backup tool does, without their statuses."""
        for name, revision in self.revisions.items():
            self.revisions[name] = Revision(revision.name, revision.number, "c", revision.composition)
        for claim in self.claims.values():
            claim["status"] = {}

    def lose_status(self, claim: str) -> None:
        self.claims[claim]["status"] = {}

    # What the composer does then

    def look(self) -> None:
        """Bring the newest revision a step further."""
        newest = self.newest
        for name, revision in self.revisions.items():
            if revision.number < newest.number:
                self.revisions[name] = _with_state(revision, superseded(revision.rollout, self.now))
        rules = msgspec.convert(newest.composition["rollout"], Rollout)
        course = Course(newest.name, newest.number, rules, is_paused=self.is_paused)
        self.revisions[newest.name] = _with_state(
            newest, advance(course, newest.state, self.rollout_claims(), self.now)
        )

    def rollout_claims(self) -> list[RolloutClaim]:
        in_rollout = (rollout_claim_of(claim, self.newest.name, self.now) for claim in self.claims.values())
        return [claim for claim in in_rollout if claim is not None]

    def follow(self, name: str) -> Revision | None:
        """Let a claim choose, compose and write its status; return the revision that it was composed by."""
        claim = self.claims[name]
        if is_paused(claim["metadata"]["annotations"], self.now):
            self._say(claim, ("Synced", "False", "Paused"))
            return None
        before = dict((claim["status"].get("composition")) or {})
        is_known = bool(before.get("revision")) or lacks_revision(claim)
        state = ClaimState(
            str(identity_of(claim)),
            before.get("revision", ""),
            before.get("previous", ""),
            is_well(claim),
            unchanged_since(claim) if is_known else NOT_YET,
            has_children=name in self.composed,
        )
        chosen = choose_revision("c", "", self.revisions.values(), state=state)
        if not isinstance(chosen, Revision):
            self._say(claim, ("Synced", "False", chosen.reason), ("Stalled", "True", chosen.reason))
            return None
        choice = CompositionChoice("c", chosen.name, timestamp(self.now))
        claim["status"] = {
            **claim["status"],
            "observedGeneration": 1,
            "composition": choice_after(before, choice, claim),
        }
        claim["metadata"]["annotations"]["fairlead.dev/identity"] = f"{name}@shop/{name}"
        fails = name in self.failing
        stalled = (("Stalled", "True", "InvalidValue"),) if fails else ()
        self._say(claim, ("Ready", "True", "Available"), ("Synced", "False" if fails else "True", "InSync"), *stalled)
        return chosen

    def _say(self, claim: Object, *reported: tuple[str, str, str]) -> None:
        before = claim["status"].get("conditions") or []
        kept = [
            ("Ready", condition["status"], condition["reason"]) for condition in before if condition["type"] == "Ready"
        ]
        stated = reported if reported[0][0] == "Ready" else (*(kept or [("Ready", "False", reported[0][2])]), *reported)
        conditions = [Condition(type_, cast("Any", status), reason, "", 1) for type_, status, reason in stated]
        claim["status"]["conditions"] = merge(before, conditions, self.now)


def _with_state(revision: Revision, state: RolloutStatus | None) -> Revision:
    return Revision(revision.name, revision.number, "c", revision.composition, state)


@dataclass
class Judge:
    """Knows by itself who may come to what: keeps what each claim had, and who could come when a wave was opened.

    `newcomers` are the claims that came to a revision as a new claim does: without a status, when there was no other.
    """

    had: dict[str, str] = field(default_factory=dict)
    newcomers: dict[str, str] = field(default_factory=dict)
    opened: tuple[str, int, str] = ("", 0, "")
    able: set[str] = field(default_factory=set)
    start: int = 0
    phase: str = ""

    def see(self, fleet: Fleet) -> None:
        """Note who could come when a wave was opened, and how many had the revision then."""
        state, name = fleet.newest.state, fleet.newest.name
        wave = (name, state.wave, state.opened) if state else ("", 0, "")
        if state is None or (wave, state.phase) == (self.opened, self.phase):
            return
        have = sum(revision == name for revision in fleet.composed.values())
        if state.phase == "Finished":
            assert have == len(fleet.composed), f"{name} has finished, and {have} have it"
        if wave != self.opened:
            # Neither paused nor known to be ill: by these the waves are filled.
            able = {claim_name for claim_name in fleet.composed if not _is_away(fleet.claims[claim_name])}
            if state.opened and state.wave > 1 and any(fleet.composed[claim_name] != name for claim_name in able):
                assert have >= _size(fleet, state.wave - 1), f"wave {state.wave} was opened when {have} had {name}"
            paused = {
                claim_name
                for claim_name, claim in fleet.claims.items()
                if "paused" in str(claim["metadata"]["annotations"])
            }
            self.able, self.start = set(fleet.composed) - paused, have
        self.opened, self.phase = wave, state.phase

    def judge(self, fleet: Fleet, claim: str, chosen: Revision, *, remembers: bool) -> None:
        """Refuse a move that nothing allows. `remembers`: the claim's status says what it had."""
        before = fleet.composed.get(claim)
        if before in (None, chosen.name):
            return
        phase = chosen.state.phase if chosen.state else "none"
        left = fleet.revisions.get(before)
        goes_back = left is not None and left.state is not None and left.state.phase == "Reverted"
        if phase == "Finished" or (goes_back and self.had.get(claim) == chosen.name):
            return
        if not remembers and len(fleet.revisions) == 1 and phase not in ("Halted", "Reverted"):
            self.newcomers[claim] = chosen.name
            return
        assert chosen.name == fleet.newest.name, f"{claim} comes to {chosen.name}, which is old and {phase}"
        assert phase in ("Progressing", "Soaking"), f"{claim} comes to {chosen.name}, which is {phase}"
        assert claim in self.able, f"{claim} was not there when wave {self.opened} was opened"
        size = _size(fleet, self.opened[1])
        by_waves = (name for name, revision in fleet.composed.items() if self.newcomers.get(name) != revision)
        count = 1 + sum(fleet.composed[name] == chosen.name for name in by_waves)
        assert count <= max(size, self.start + 1), f"{count} have {chosen.name} in wave {self.opened}"


def _size(fleet: Fleet, wave: int) -> int:
    written = WAVES[wave - 1]
    total = len(fleet.composed)
    return math.ceil(total * int(written[:-1]) / 100) if written.endswith("%") else int(written)


def _is_away(claim: Object) -> bool:
    reported = {
        (condition["type"], condition["status"], condition["reason"])
        for condition in claim["status"].get("conditions") or ()
    }
    return (
        "paused" in str(claim["metadata"]["annotations"])
        or ("Synced", "False", "Paused") in reported
        or ("Stalled", "True", "InvalidValue") in reported
    )


def _pass(fleet: Fleet, judge: Judge) -> None:
    fleet.now += 2 * MINUTE
    fleet.look()
    judge.see(fleet)
    fleet.now += timedelta(seconds=1)
    for name, claim in fleet.claims.items():
        remembers = bool((claim["status"].get("composition") or {}).get("revision"))
        chosen = fleet.follow(name)
        if chosen is not None:
            judge.judge(fleet, name, chosen, remembers=remembers)
            if fleet.composed.get(name) != chosen.name:
                judge.had[name] = fleet.composed.get(name, "")
            fleet.composed[name] = chosen.name


_WHO = st.integers(0, CLAIMS - 1).map(lambda number: f"claim-{number}")
_EVENTS = st.one_of(
    st.tuples(st.just("pass")),
    st.tuples(st.just("pass")),
    st.tuples(st.sampled_from(["publish", "pause_rollout"]), st.booleans()),
    st.tuples(st.sampled_from(["pause", "go_on", "fail", "mend", "lose_status"]), _WHO),
    st.tuples(st.sampled_from(["pause_all", "go_on_all", "lose_statuses"])),
    st.tuples(st.just("lose_revision"), st.integers(0, 5)),
)


def _happen(fleet: Fleet, event: tuple[object, ...]) -> None:
    match event:
        case ("publish", bool() as goes_back):
            fleet.publish(goes_back=goes_back)
        case ("pause_rollout", bool() as is_paused):
            fleet.is_paused = is_paused
        case ("lose_revision", int() as index):
            fleet.lose_revision(index)
        case ("lose_statuses",):
            fleet.lose_statuses()
        case ("fail", str() as claim):
            fleet.failing.add(claim)
        case ("mend", str() as claim):
            fleet.failing.discard(claim)
        case ("pause" | "go_on" | "lose_status" as method, str() as claim):
            getattr(fleet, method)(claim)
        case ("pause_all" | "go_on_all" as method,):
            for claim in fleet.claims:
                getattr(fleet, method.removesuffix("_all"))(claim)
        case _:
            pass


@settings(deadline=None, max_examples=80)
@given(st.lists(_EVENTS, max_size=40))
@example([("publish", False), ("lose_status", "claim-0"), ("lose_revision", 0)])
@example([("lose_statuses",), ("pass",), ("publish", False), ("lose_status", "claim-1"), ("pass",)])
def test_claim_comes_to_a_revision_by_its_waves_alone_in_every_history(history: list[tuple[object, ...]]) -> None:
    fleet, judge = Fleet(), Judge()
    fleet.publish(goes_back=False)
    for _ in range(CLAIMS):
        fleet.make()
    _pass(fleet, judge)
    for event in history:
        _happen(fleet, event)
        if event == ("pass",):
            _pass(fleet, judge)

    # Whatever it was, a good revision then comes to everybody.
    fleet.failing.clear()
    fleet.is_paused = False
    _happen(fleet, ("go_on_all",))
    _pass(fleet, judge)
    fleet.publish(goes_back=False)
    for _ in range(12):
        _pass(fleet, judge)
    assert set(fleet.composed.values()) == {fleet.newest.name}
    assert fleet.newest.is_finished
