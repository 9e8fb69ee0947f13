"""Judges of a life: they read its history alone and never call the code under test."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import groupby
from typing import Final

from fairlead.simulation.calls import PROVIDER, Made
from tests.simulation.history import Finding, History, Sample, Statement

_CHANGES_AN_HOUR: Final = 20
# A life that is judged for less has its own share of them.
_CHANGES_WITHIN_S: Final = 30 * 60.0
_TAKES_AWAY: Final = {"servers.change", "servers.replace", "databases.disown"}
_INSIDE: Final = {"logins", "databases", "rules", "settings"}
_DATA_GO: Final = {"servers.delete", "databases.delete"}
_STILL_S: Final = 20 * 60.0
_SEEN_S: Final = 10 * 60.0
# What is stalled is tried again within five minutes, and may be said to be reconciled meanwhile.
_TRIED_AGAIN_S: Final = 5 * 60.0
_WRITES_OF_A_TRY: Final = 2
_ON_ITS_WAY_S: Final = 60.0


Judge = Callable[[History], Iterator[Finding]]
Place = tuple[str, str, str]


@dataclass(slots=True)
class Makers:
    """Who made what is inside of servers now, by server, kind and name; `ours` were once of the provider."""

    of: dict[Place, str] = field(default_factory=dict)
    ours: set[Place] = field(default_factory=set)

    def place_of(self, call: Made) -> Place:
        """Return what a call is about; without a kind for what is not inside of one."""
        kind = call.action.partition(".")[0]
        return (call.server, kind if kind in _INSIDE else "", call.name)

    def note(self, call: Made) -> None:
        """Take a call into account."""
        place, verb = self.place_of(call), call.action.partition(".")[2]
        if call.action == "servers.delete":
            self.of = {known: maker for known, maker in self.of.items() if known[0] != call.server}
        elif verb == "delete":
            self.of.pop(place, None)
        elif verb == "create" and place[1] and not call.had:
            self.of[place] = call.principal
            if call.principal == PROVIDER:
                self.ours.add(place)


def a_strangers_object_is_changed(history: History) -> Iterator[Finding]:
    """I13: what somebody else made is not changed or deleted, also where it has the name of what was ours."""
    makers = Makers()
    for call in history.calls:
        place = makers.place_of(call)
        maker = makers.of.get(place, "")
        if place[1] and call.principal == PROVIDER and maker not in {"", PROVIDER} and call.had:
            rule = "a replacement of ours" if place in makers.ours else "a stranger's object"
            yield Finding(f"{rule} is changed", call.at, f"{call.action} of {call.server}/{call.name}")
        makers.note(call)


def a_strangers_server_is_changed(history: History) -> Iterator[Finding]:
    """I13: a server in place of ours that somebody else made is not changed, nor is what is inside of it.

    What was on its way when it was replaced may still arrive: no cloud takes a condition with it.
    """
    replaced: dict[str, float] = {}
    for call in history.calls:
        if call.action == "servers.replace":
            replaced[call.server] = call.at
        elif call.action == "servers.create" or (call.action == "servers.delete" and call.principal != PROVIDER):
            replaced.pop(call.server, None)
        elif call.principal == PROVIDER and call.at > replaced.get(call.server, history.until) + _ON_ITS_WAY_S:
            yield Finding("a stranger's server is changed", call.at, f"{call.action} of {call.server}/{call.name}")
            replaced.pop(call.server)


def a_strangers_object_is_taken(history: History) -> Iterator[Finding]:
    """I13: nothing is Ready over what somebody else made in its place, before there was one of ours."""
    makers, calls = Makers(), iter(history.calls)
    coming = next(calls, None)
    taken: set[str] = set()
    for sample in sorted(history.samples, key=lambda sample: sample.at):
        while coming is not None and coming.at <= sample.at:
            makers.note(coming)
            coming = next(calls, None)
        server, _, name = sample.external.partition("/")
        place = (server, sample.role if sample.role in _INSIDE else "", name)
        is_foreign = makers.of.get(place, PROVIDER) != PROVIDER and place not in makers.ours
        if name and sample.ready and is_foreign and sample.name not in taken:
            taken.add(sample.name)
            yield Finding("a stranger's object is taken", sample.at, f"{sample.name}: {sample.external}")


def ready_over_nothing(history: History) -> Iterator[Finding]:
    """I4: what is Ready for long in calm weather is there, and takes its published login.

    In AWS nobody tries logins in a life: a password that a stranger has set is seen by nobody.
    """
    spoilt = {f"{call.server}/{call.name}".rstrip("/") for call in history.calls if _sets_a_password(call)}
    for name, samples in _by_name(history):
        if samples[-1].external in spoilt:
            continue
        for lasting in _streaks(samples, lambda sample: sample.ready and not sample.serves and not sample.leaving):
            calm = [sample for sample in lasting if sample.at >= history.calm_since]
            if calm and calm[-1].at - calm[0].at >= history.lasting_s:
                yield Finding("Ready over what takes no login", calm[0].at, f"{name}: {calm[-1].says}")


def left_behind(history: History) -> Iterator[Finding]:
    """I3: when a resource is gone under Delete, so is what it had made, unless somebody took its labels from it."""
    for ended in history.ended:
        if ended.policy != "Delete" or not ended.external:
            continue
        server, _, name = ended.external.partition("/")
        made = [call for call in history.calls if (call.server, call.name if name else "") == (server, name)]
        makers = [call.principal for call in made if _makes(call) and call.at < ended.at]
        # What a stranger made in its place is left to the stranger.
        is_ours = makers[-1:] == [PROVIDER]
        if any(call.principal != PROVIDER and call.action in _TAKES_AWAY for call in made):
            continue
        is_made_since = any(call.action.endswith(".create") and call.at > ended.at for call in made)
        if is_ours and not is_made_since and ended.external in history.left:
            yield Finding("left behind without a word", ended.at, f"{ended.name}: {ended.external}")


def left_by_its_claim(history: History) -> Iterator[Finding]:
    """I3: a claim that is gone under Delete was not gone before what it had: nobody else would end that."""
    replaced = {call.server for call in history.calls if call.action == "servers.replace"}
    for ended in {ended.external: ended for ended in history.ended}.values():
        policies = {history.claims.get(uid) for uid in history.keepers.get(ended.external, ())}
        is_ours = ended.external in history.left and ended.external.partition("/")[0] not in replaced
        if ended.policy == "Detach" and "Delete" in policies and is_ours:
            yield Finding("left over by its claim", ended.at, f"{ended.name}: {ended.external}")


def a_deletion_never_ends(history: History) -> Iterator[Finding]:
    """A deletion that waits for nobody ends."""
    for name, samples in _by_name(history):
        last = samples[-1]
        leaving = [sample for sample in samples if sample.leaving and sample.at >= history.calm_since]
        if last.at < history.until - 120 or not leaving or last.at - leaving[0].at < history.lasting_s:
            continue
        is_for_people = _is_for_people(last.says) or _awaits_a_held_claim(history, last.says)
        is_for_people = is_for_people or _is_used_by_others(history, last) or _is_denied(history, last.says)
        if not is_for_people and (last.policy == "Orphan" or last.serves):
            yield Finding("a deletion never ends", leaving[0].at, f"{name} under {last.policy}: {last.says}")


def waits_without_a_cause(history: History) -> Iterator[Finding]:
    """I8: a claim that is not Ready for long in calm weather is stalled, and says who can change it."""
    for name, samples in _by_name(history):
        waiting = [sample for sample in samples if not sample.role and sample.at >= history.calm_since]
        for lasting in _streaks(waiting, lambda sample: not (sample.ready or sample.leaving or _is_stalled(sample))):
            if lasting[-1].at - lasting[0].at >= history.lasting_s:
                yield Finding("waits without a cause", lasting[0].at, f"{name}: {lasting[-1].says}")


def in_sync_with_another_size(history: History) -> Iterator[Finding]:
    """What says that it is as its spec asks is so, also after an edit that came while others happened."""
    for name, samples in _by_name(history):
        calm = [sample for sample in samples if sample.at >= history.calm_since and not sample.leaving]
        for lasting in _streaks(calm, lambda sample: bool(sample.size) and "Synced True" in sample.says):
            if lasting[-1].at - lasting[0].at >= history.lasting_s:
                yield Finding("in sync with another size", lasting[0].at, f"{name}: {lasting[-1].size}")


def replaced_without_a_word(history: History) -> Iterator[Finding]:
    """A database that was replaced by another one is not Ready as if nothing had been."""
    for name, samples in _by_name(history):
        known = 0
        for at, sample in enumerate(samples):
            if sample.leaving or not sample.incarnation:
                continue
            if known not in {0, sample.incarnation} and _is_silent(history, name, samples[max(0, at - 2) : at + 45]):
                yield Finding("replaced by an empty one without a word", sample.at, f"{name}: {sample.says}")
            known = sample.incarnation


def a_loop(history: History) -> Iterator[Finding]:
    """No object is changed again and again in calm weather."""
    changed: dict[tuple[str, str], list[Made]] = {}
    for call in history.calls:
        if call.principal == PROVIDER and call.at >= history.calm_since:
            changed.setdefault((call.server, call.name), []).append(call)
    for place, calls in sorted(changed.items()):
        hours = (history.until - history.calm_since) / 3600
        if len(calls) > _CHANGES_AN_HOUR * max(hours, history.lasting_s / _CHANGES_WITHIN_S):
            yield Finding("a loop", calls[0].at, f"{'/'.join(place)}: {len(calls)} changes in {hours:.1f} h")


def deleted_without_a_cause(history: History) -> Iterator[Finding]:
    """I2: what is deleted in the cloud is of a resource that is being deleted."""
    for call in history.calls:
        if call.principal != PROVIDER or not call.action.endswith(".delete") or call.action.startswith("backups."):
            continue
        external = f"{call.server}/{call.name}" if call.name else call.server
        if history.dying.get(external, history.until) > call.at:
            yield Finding("deleted without a cause", call.at, f"{call.action} of {external}")


def deleted_though_kept(history: History) -> Iterator[Finding]:
    """I2: data go when the people of a claim, or of a resource without one, gave them up, whatever else is deleted."""
    for call in history.calls:
        if call.principal != PROVIDER or call.action not in _DATA_GO:
            continue
        external = f"{call.server}/{call.name}" if call.name else call.server
        keepers = history.keepers.get(external)
        if keepers and all(history.given_up.get(uid, history.until) > call.at for uid in keepers):
            yield Finding("data are deleted that nobody gave up", call.at, f"{call.action} of {external}")


def nobodys_server(history: History) -> Iterator[Finding]:
    """I1, I3: a server that the provider made and that is there at the end is some resource's, or was released."""
    known = {sample.external for sample in history.samples} | {ended.external for ended in history.ended}
    for call in history.calls:
        is_made = call.principal == PROVIDER and call.action == "servers.create"
        if is_made and call.server in history.left and call.server not in known:
            yield Finding("a server of nobody", call.at, call.server)


def restless(history: History) -> Iterator[Finding]:
    """I6: in calm weather nothing is written again and again."""
    written: dict[str, list[Statement]] = {}
    since = max(history.until - _STILL_S, history.calm_since)
    most = _WRITES_OF_A_TRY * math.ceil((history.until - since) / _TRIED_AGAIN_S)
    for write in history.writes:
        if write.at >= since:
            written.setdefault(write.name, []).append(write)
    for name, writes in sorted(written.items()):
        if len(writes) > most:
            yield Finding("written again and again", writes[0].at, f"{name}: {len(writes)} times")


def status_goes_back(history: History) -> Iterator[Finding]:
    """I7: a status is never of an earlier generation than the one before it."""
    for statement in history.backwards:
        yield Finding("a status of before", statement.at, f"{statement.name}: {statement.text}")


def a_password_is_exposed(history: History) -> Iterator[Finding]:
    """I11: passwords stand in Secrets alone."""
    for statement in history.exposed:
        yield Finding("a password outside of Secrets", statement.at, statement.name)


def published_too_early(history: History) -> Iterator[Finding]:
    """A password is published when the cloud has it, and not before; nobody sees what others do to a server."""
    for statement in history.unproven:
        server = statement.name.partition("/")[0]
        others = (call for call in history.calls if call.server == server and call.principal != PROVIDER)
        if not any(call.at <= statement.at for call in others):
            yield Finding("a password is published too early", statement.at, f"{statement.name} in {statement.text}")


def two_write(history: History) -> Iterator[Finding]:
    """I9: nobody changes anything while another leads."""
    for statement in history.overlaps:
        yield Finding("two write at a time", statement.at, f"{statement.name} while {statement.text}")


def a_rollout_stands_still(history: History) -> Iterator[Finding]:
    """I8, I14: a rollout goes on, or says what stops it."""
    yield from _lasting("a rollout stands still without a cause", history, history.rollouts)


def a_kind_never_goes(history: History) -> Iterator[Finding]:
    """A kind that was deleted goes, and can be had again."""
    going = [line for line in history.going if not _awaits_a_held_claim(history, line.text)]
    ending = (sample for sample in history.samples if sample.leaving and sample.at > history.until - 120)
    used = {sample.says for sample in ending if _is_used_by_others(history, sample)}
    going = [line for line in going if not any(says in line.text for says in used)]
    yield from _lasting("a kind that was deleted never goes", history, going)


def _lasting(rule: str, history: History, statements: list[Statement]) -> Iterator[Finding]:
    """Yield what was there for long at the end, and said the same all the time."""
    for name in sorted({statement.name for statement in statements}):
        calm = [line for line in statements if line.name == name and line.at >= history.calm_since]
        same = [line for line in calm if line.text == calm[-1].text]
        is_at_the_end = bool(same) and same[-1].at > history.until - 120
        if is_at_the_end and same[-1].at - same[0].at >= history.lasting_s:
            yield Finding(rule, same[0].at, f"{name}: {same[-1].text}")


JUDGES: Final[tuple[Judge, ...]] = (
    a_strangers_object_is_changed,
    a_strangers_server_is_changed,
    a_strangers_object_is_taken,
    ready_over_nothing,
    left_behind,
    left_by_its_claim,
    a_deletion_never_ends,
    waits_without_a_cause,
    in_sync_with_another_size,
    replaced_without_a_word,
    a_loop,
    deleted_without_a_cause,
    deleted_though_kept,
    nobodys_server,
    restless,
    status_goes_back,
    a_password_is_exposed,
    published_too_early,
    two_write,
    a_rollout_stands_still,
    a_kind_never_goes,
)


def findings(history: History) -> list[Finding]:
    """Return all breaches of a life."""
    return [finding for judge in JUDGES for finding in judge(history)]


def _is_stalled(sample: Sample) -> bool:
    return "Stalled True" in sample.says


def _is_for_people(says: str) -> bool:
    return "DeletionProtected" in says or "`kubectl " in says


def _is_denied(history: History, says: str) -> bool:
    """Return whether the server denies what it did not deny before others changed the owner or the role it names."""
    changed = {call.name for call in history.calls if call.principal != PROVIDER and call.action.endswith(".change")}
    return "Stalled True AccessDenied" in says and any(name and name in says for name in changed)


def _is_used_by_others(history: History, used: Sample) -> bool:
    """Return whether something is used by the server of its own claim, for which people decide.

    Others replaced it or took our labels from it, and may end that; it waits for a consent; or it failed for good.
    A server that a resource of ours stands for at the end, and that is Ready, is none of these.
    """
    if not any(text in used.says for text in ("are still members of", "is still using it")):
        return False
    taken = {call.server for call in history.calls if call.principal != PROVIDER and call.action in _TAKES_AWAY}
    ending = [sample for sample in history.samples if sample.at > history.until - 120 and sample.role == "servers"]
    theirs = (taken & history.left) - {sample.external for sample in ending if sample.ready}
    waits = [sample for sample in ending if not sample.leaving]
    held = {of.external for of in waits if _is_for_people(of.says) or "Stalled True DatabaseFailed" in of.says}
    keepers = {used.name.split()[-1], *history.keepers.get(used.external, ())}
    return any(keepers & history.keepers.get(server, set()) for server in theirs | held)


def _awaits_a_held_claim(history: History, says: str) -> bool:
    """Return whether something waits for its claim, which waits for people at the end: deleted, or for a consent.

    What left the claim stays until what used it is as the claim asks, which takes that consent.
    """
    ending = (sample for sample in history.samples if sample.at > history.until - 120 and not sample.role)
    return "AwaitingTeardown" in says and any(
        "HeldChange" in claim.says or (claim.leaving and (_is_for_people(claim.says) or _is_stalled(claim)))
        for claim in ending
    )


def _sets_a_password(call: Made) -> bool:
    return call.principal != PROVIDER and call.had and call.action in {"logins.create", "logins.change"}


def _makes(call: Made) -> bool:
    return call.action.endswith(".create") and not call.had


def _by_name(history: History) -> Iterator[tuple[str, list[Sample]]]:
    grouped: dict[str, list[Sample]] = {}
    for sample in history.samples:
        grouped.setdefault(sample.name, []).append(sample)
    yield from sorted(grouped.items())


def _streaks(samples: list[Sample], holds: Callable[[Sample], bool]) -> Iterator[list[Sample]]:
    for is_so, streak in groupby(samples, holds):
        if is_so:
            yield list(streak)


def _is_silent(history: History, name: str, samples: list[Sample]) -> bool:
    began, ended = samples[0].at, samples[-1].at
    is_warned = any(began <= at <= ended and text.startswith(name) for at, text in history.warnings)
    # What is gone before the cloud was listed again had nobody who could have seen it.
    return not is_warned and ended - began >= _SEEN_S and all(sample.ready for sample in samples)
