"""The oracle of random walks: it logs in with what the Secrets hold, reads the cloud, and compares with Ready.

It calls no code under test. One look serves all claims: a list of claims, a list of Secrets, one look at the cloud,
and one login for each claim, a few at once.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter, defaultdict
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field

from tests.support.api import JsonObject
from tests.support.kinds import CLAIM, SECRET, condition, is_ready
from tests.support.system import decoded
from tests.support.waiting import eventually, in_background
from tests.support.walk_world import Cloud, World

EVERY_S = 2.0
_LOGINS_AT_ONCE = 6


@dataclass(frozen=True, slots=True)
class Sample:
    """What was seen of one claim in one look.

    Attributes:
        says: Its conditions in short.
        ready: The status of its condition Ready.
        refusal: Why a login with the published Secret failed; empty where it worked.
        gap: How the cloud differs from the claim's spec; empty where it does not.
        settled: Whether the claim says Ready and Synced of its newest generation, and is right.
    """

    says: str
    ready: str
    refusal: str
    gap: str
    settled: bool

    @property
    def disagreement(self) -> str:
        """Return how the claim and the oracle differ now, if they do."""
        if self.ready == "True" and self.refusal:
            return "Ready=True but no login works"
        if self.ready == "False" and not self.refusal and not self.gap:
            return "Ready=False but login works and the cloud is as the spec says"
        return ""


@dataclass(slots=True)
class _Span:
    """One disagreement from its first look to its last, in seconds of the loop's clock."""

    disagreement: str
    began: float
    ended: float
    unseen_s: float = 0.0
    story: str = ""


@dataclass(slots=True)
class Ledger:
    """The disagreements of all claims.

    Attributes:
        lasting_s: What is shorter than this is none.
    """

    lasting_s: float
    _now: dict[str, _Span] = field(default_factory=dict)
    _all: list[tuple[str, _Span]] = field(default_factory=list)

    def judge(self, name: str, sample: Sample | None, now: float, story: str, unseen_s: float = 0.0) -> None:
        """Take in a look at a claim; none where nothing can be held against it.

        `unseen_s`: for how long nobody could know what a disagreement that begins now is about.
        """
        disagreement = "" if sample is None else sample.disagreement
        span = self._now.get(name)
        if span is not None and span.disagreement != disagreement:
            del self._now[name]
            span = None
        if not disagreement:
            return
        if span is None:
            span = self._now[name] = _Span(disagreement, now, now, unseen_s)
            self._all.append((name, span))
        span.ended, span.story = now, story

    def disagreements(self) -> list[str]:
        """Return those that lasted, in words."""
        return [
            f"{name} for {span.ended - span.began:.0f} s: {span.disagreement}; {span.story}"
            for name, span in self._all
            if span.ended - span.began > self.lasting_s + span.unseen_s
        ]


@dataclass(slots=True)
class Oracle:
    """Looks at all claims of a namespace again and again.

    Attributes:
        ledger: The disagreements that it found.
        setting: The round and the event, for reports.
    """

    world: World
    namespace: str
    ledger: Ledger
    setting: str = "the start"
    _last: dict[str, Sample] = field(default_factory=dict)
    _acts: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    _unseen: set[str] = field(default_factory=set)
    _count: Counter[str] = field(default_factory=Counter)
    _samples: int = 0
    _mark: int = 0
    _slowest_s: float = 0.0
    _looking: asyncio.Event = field(default_factory=asyncio.Event)

    def watching(self) -> AbstractAsyncContextManager[None]:
        """Return a block for whose length the oracle looks."""
        return in_background(self._watch())

    def note(self, name: str, act: str) -> None:
        """Record an act on a claim, for reports."""
        self._acts[name].append(act)

    def expect(self, name: str, *, unseen: bool) -> None:
        """Note before an act whether nobody can know of it before the next resync."""
        if unseen:
            self._unseen.add(name)
        else:
            self._unseen.discard(name)

    def mark(self) -> None:
        """Take no look that has begun before this for a proof that a claim converged."""
        self._mark = self._samples + 1

    async def samples_more(self, count: int) -> None:
        """Wait until that many more samples are taken."""
        wanted = self._samples + count

        async def seen() -> bool:
            return self._samples >= wanted

        await eventually(seen, f"{count} looks", limit_s=60.0 + 30.0 * count, every_s=0.2)

    async def until_settled(self, names: list[str], *, limit_s: float) -> list[str]:
        """Wait until these claims have converged; return those that have not within the limit."""

        async def settled() -> bool:
            return not self._unsettled(names)

        with contextlib.suppress(AssertionError):
            await eventually(settled, "all converged", limit_s=limit_s, every_s=0.2)
        return self._unsettled(names)

    def _unsettled(self, names: list[str]) -> list[str]:
        if self._samples <= self._mark:
            return list(names)
        return [name for name in names if name not in self._last or not self._last[name].settled]

    def story(self, name: str) -> str:
        """Return what a claim says, what the oracle sees, and what happened to the claim."""
        return self._state_of(name, self._last.get(name))

    def _state_of(self, name: str, sample: Sample | None) -> str:
        seen = "never seen" if sample is None else _seen(sample)
        return f"{self.setting}; {seen}; acts: {', '.join(self._acts[name])}"

    def summary(self) -> str:
        """Return how much was sampled."""
        counts = f"{self._samples} samples, {self._count['logins']} logins, {self.world.ended} processes that ended"
        return f"{counts}, the slowest look {self._slowest_s:.1f} s"

    # One look

    async def _watch(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            began = loop.time()
            can_report = self.world.can_report and await self.world.all_lead()
            samples = await self._look()
            now = loop.time()
            for name, sample in samples.items():
                # Who cannot say anything is held to nothing.
                seen = sample if can_report and self.world.can_report else None
                unseen_s = self.world.resync_s if name in self._unseen else 0.0
                self.ledger.judge(name, seen, now, self._state_of(name, sample), unseen_s)
            self._last = samples
            self._samples += 1
            self._slowest_s = max(self._slowest_s, now - began)
            await asyncio.sleep(max(0.0, began + EVERY_S - now))

    async def _look(self) -> dict[str, Sample]:
        api, room = self.world.system.api, asyncio.Semaphore(_LOGINS_AT_ONCE)
        claims = await api.items(CLAIM.path(self.namespace))
        secrets = {obj["metadata"]["name"]: obj for obj in await api.items(SECRET.path(self.namespace))}
        cloud = await self.world.look()

        async def sample(claim: JsonObject) -> Sample:
            name = claim.get("status", {}).get("binding", {}).get("name", f"{claim['metadata']['name']}-connection")
            if name not in secrets:
                return _sample(claim, f"no Secret {name}", "")
            binding = decoded(secrets[name])
            async with room:
                self._count["logins"] += 1
                refusal = cloud.unreachable or await self.world.refusal(binding)
            return _sample(claim, refusal, _gap(cloud, claim, binding))

        return dict(
            zip(
                [claim["metadata"]["name"] for claim in claims],
                await asyncio.gather(*(sample(claim) for claim in claims)),
                strict=True,
            )
        )


def _gap(cloud: Cloud, claim: JsonObject, binding: dict[str, str]) -> str:
    return cloud.unreachable or cloud.gap(claim, binding)


def _seen(sample: Sample) -> str:
    return f"it says [{sample.says}]; login: {sample.refusal or 'works'}; cloud: {sample.gap or 'as the spec says'}"


def _sample(claim: JsonObject, refusal: str, gap: str) -> Sample:
    names = ("Ready", "Synced", "Stalled", "Reconciling")
    conditions = [condition(claim, name) for name in names]
    says = ", ".join(
        f"{entry['type']}={entry['status']} {entry['reason']}: {entry['message'][:300]}"
        for entry in conditions
        if entry
    )
    ready = str(condition(claim, "Ready").get("status", "Unknown"))
    return Sample(says, ready, refusal, gap, is_ready(claim) and not refusal and not gap)
