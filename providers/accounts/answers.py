"""What the lists of an account and single looks answered last about each object: what need not be asked again.

An answer replaces a look where nothing is decided that changes anything: what changes the cloud, and every absence, is
decided on a look of that pass. An answer is as old as the beginning of its request; an older one never replaces a newer
one, and one that began before our own last call to the object never counts.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from providers.external.client import ExternalList, ListLeftOut
from providers.external.metering import routine
from providers.external.provider import ConnectedAccount
from runtime.errors import Failure
from runtime.objects import Key, key_of

# A state may take less time than expected: it is not looked at more often than this, nor than every eighth of it.
_SHORTEST = timedelta(seconds=10)
_SHARE = 8
# A list that is late by so much, or by a resync, shows nothing any more.
_MOST_SWEEPS = 3
_SLACK = timedelta(seconds=30)


def list_after(expected: timedelta, elapsed: timedelta) -> timedelta:
    """Return after how long to list again for a state that is known to take `expected`. Pure.

    Rarely at first, closer when it is about to end: after half of what is left of it. What takes longer than expected
    is listed ever more rarely.
    """
    return max((expected - elapsed) / 2, (elapsed - expected) / 4, expected / _SHARE, _SHORTEST)


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer about one object as its cloud encoded it; `as_of` is when its request began, in monotonic seconds."""

    encoded: bytes = field(repr=False)
    as_of: float


@dataclass(frozen=True, slots=True)
class Pending:
    """A resource at which the cloud is at work: the state, since when (monotonic seconds), and its usual duration."""

    state: str
    since: float
    expected: timedelta


class AccountAnswers:
    """The answers of one account about one kind. Pure state."""

    def __init__(self) -> None:
        self.pending: dict[Key, Pending] = {}
        self._answers: dict[str, Answer] = {}
        self._called: dict[str, float] = {}
        self._listed_at: float | None = None
        self._asked_at = float("-inf")
        self._names: frozenset[str] = frozenset()
        self._vanished: set[str] = set()
        self._refused_until = float("-inf")

    def record_list(self, listing: ExternalList, as_of: float) -> None:
        """Record a list; what it lacks is not known any more, unless a part of the account did not answer."""
        for name, encoded in listing.answers.items():
            self.record(name, encoded, as_of)
        self._refused_until = float("-inf")
        self._asked_at = max(self._asked_at, as_of)
        if not listing.complete or (self._listed_at is not None and as_of < self._listed_at):
            return
        kept = {
            name: answer for name, answer in self._answers.items() if name in listing.answers or answer.as_of > as_of
        }
        self._vanished.update(name for name in self._answers if name not in kept and name not in listing.items)
        self._answers = kept
        self._called = {name: at for name, at in self._called.items() if at >= as_of}
        self._names, self._listed_at = frozenset(listing.items), as_of

    def take_vanished(self) -> frozenset[str]:
        """Return each name once that was answered about before a complete list lacked it, whoever made that list."""
        vanished, self._vanished = frozenset(self._vanished), set()
        return vanished

    def record_failure(self, until: float) -> None:
        """Record that the list failed: until then, or a list that succeeds, objects are looked at one by one."""
        self._refused_until = until

    def record(self, name: str, encoded: bytes, as_of: float) -> None:
        """Record an answer about one object, unless a newer one is known."""
        known = self._answers.get(name)
        if as_of >= self._called.get(name, as_of) and (known is None or as_of >= known.as_of):
            self._answers[name] = Answer(encoded, as_of)

    def record_call(self, name: str, at: float) -> None:
        """Record that a call to an object ended: what was asked before shows nothing of it."""
        self._answers.pop(name, None)
        self._called[name] = at

    def forget(self, name: str) -> None:
        """Forget what was answered about an object that is gone."""
        self._answers.pop(name, None)

    def of(self, name: str, oldest: float) -> bytes | None:
        """Return the answer about an object that is no older than that."""
        answer = self._answers.get(name)
        return answer.encoded if answer is not None and answer.as_of >= oldest else None

    def is_listed(self, oldest: float) -> bool:
        """Return whether there is a complete list that is no older than that."""
        return self._listed_at is not None and self._listed_at >= oldest

    def was_asked(self, oldest: float) -> bool:
        """Return whether there is a list that is no older than that, be it an incomplete one."""
        return self._asked_at >= oldest

    def is_missing(self, name: str, oldest: float) -> bool:
        """Return whether the last complete list lacks an object, and began after our last call to it."""
        return self.is_listed(oldest) and name not in self._names and name not in self._called

    def is_refused(self, now: float) -> bool:
        """Return whether the last list failed a short while ago."""
        return now < self._refused_until

    def follow(self, key: Key, state: str, expected: timedelta, now: float) -> timedelta:
        """Follow a resource by lists from now on; return after how long to list."""
        known = self.pending.get(key)
        since = known.since if known is not None and known.state == state else now
        self.pending[key] = Pending(state, since, expected)
        return list_after(expected, timedelta(seconds=now - since))

    def next_list(self, now: float) -> timedelta | None:
        """Return after how long the first of the pending resources wants a list; None where none is pending."""
        return min(
            (list_after(pending.expected, timedelta(seconds=now - pending.since)) for pending in self.pending.values()),
            default=None,
        )


class Answers:
    """The answers of all accounts about one kind, by ProviderConfig and account.

    `enqueue_list` asks for a list of a ProviderConfig's account after a time. Without one nobody lists, and each object
    is looked at by itself.
    """

    def __init__(self, monotonic: Callable[[], float], sweep: timedelta, resync: timedelta) -> None:
        self._monotonic = monotonic
        self.sweep = sweep
        self._longest = min(_MOST_SWEEPS * sweep + _SLACK, resync)
        self._accounts: dict[tuple[str, str], AccountAnswers] = {}
        # A hundred resources at once list an account once, not each for itself.
        self._listing = asyncio.Lock()
        self.enqueue_list: Callable[[str, timedelta], None] | None = None

    def of(self, account: ConnectedAccount[Any, Any]) -> AccountAnswers:
        """Return the answers of one account."""
        return self._accounts.setdefault((key_of(account.config_object).name, account.id), AccountAnswers())

    @property
    def oldest(self) -> float:
        """When an answer that may be relied on was asked for at the earliest, monotonic seconds."""
        return self._monotonic() - self._longest.total_seconds()

    async def list(self, account: ConnectedAccount[Any, Any]) -> ExternalList:
        """List an account, and record what was answered; raises a Failure."""
        answers, as_of = self.of(account), self._monotonic()
        try:
            with routine(is_routine=False):
                # Whoever asks for the list, all that are in it wait for it.
                listing = await account.clients.account.list()
        except ListLeftOut:
            raise
        except Failure:
            answers.record_failure(self._monotonic() + self.sweep.total_seconds())
            raise
        answers.record_list(listing, as_of)
        return listing

    async def ensure_listed(self, account: ConnectedAccount[Any, Any]) -> bool:
        """Return whether lists show what becomes of all of an account's objects; list it where nobody has yet.

        A list in which a part of the account is silent shows nothing of that part, and is not repeated by each object.
        """
        return await self.listed_lately(account) and self.of(account).is_listed(self.oldest)

    async def listed_lately(self, account: ConnectedAccount[Any, Any]) -> bool:
        """Return whether there is a list that may be relied on, whole or not; list the account where there is none."""
        if self.enqueue_list is None or account.clients.listed is None:
            return False
        answers = self.of(account)
        async with self._listing:
            if answers.is_refused(self._monotonic()):
                return False
            if not answers.was_asked(self.oldest):
                try:
                    await self.list(account)
                except Failure:
                    return False
        return True

    async def answer(self, account: ConnectedAccount[Any, Any], name: str) -> bytes | None:
        """Return what was answered last about an object; None where it has to be asked."""
        return self.of(account).of(name, self.oldest) if await self.listed_lately(account) else None

    def is_missing(self, account: ConnectedAccount[Any, Any], name: str) -> bool:
        """Return whether the last list of an account lacks an object, and began after our last call to it."""
        return self.of(account).is_missing(name, self.oldest)

    def follow(self, account: ConnectedAccount[Any, Any], key: Key, state: str, expected: timedelta) -> None:
        """Follow a resource at which the cloud is at work by lists alone."""
        after = self.of(account).follow(key, state, expected, self._monotonic())
        if self.enqueue_list is not None:
            self.enqueue_list(key_of(account.config_object).name, after)

    def unfollow(self, key: Key) -> None:
        """Follow a resource no longer."""
        for answers in self._accounts.values():
            answers.pending.pop(key, None)

    def list_after(self, account: ConnectedAccount[Any, Any]) -> timedelta:
        """Return after how long to list an account again: each sweep, sooner where something is pending."""
        soonest = self.of(account).next_list(self._monotonic())
        return self.sweep if soonest is None else min(self.sweep, soonest)

    def now(self) -> float:
        """Return the monotonic time, in seconds, by which answers are ordered."""
        return self._monotonic()
