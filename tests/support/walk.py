"""Random walks: claims side by side, one random act on each in a round, and one event that hits all of them.

A walk is one claim's: its seed gives its acts. A batch is some walks on one platform: its seed gives the events. An
oracle looks at all claims meanwhile (see walk_oracle).
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from tests.support.walk_acts import ACTS, Act, Walker, take_back
from tests.support.walk_events import EVENTS, Event
from tests.support.walk_oracle import Ledger, Oracle
from tests.support.walk_world import World

_STORIES_MOST = 4
"""Of how many claims that have not converged a round shows the story."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """How large a batch is, and how patient.

    Attributes:
        claims: Walks side by side.
        rounds: Acts of each walk.
        lasting_s: A disagreement that lasts longer is one.
        round_s: A round ends when all claims have converged, or after this.
        end_s: All claims must have converged this long after the last round.
        only: The seed of the one walk to make of a batch; 0 for all.
    """

    claims: int = 30
    rounds: int = 10
    lasting_s: float = 15.0
    round_s: float = 15.0
    end_s: float = 120.0
    only: int = 0

    def seeds(self, batch: int) -> list[int]:
        """Return the seeds of the walks of a batch."""
        return [seed for seed in range(batch * self.claims, (batch + 1) * self.claims) if self.only in (0, seed)]


@dataclass(slots=True)
class Report:
    """What a batch has shown.

    Attributes:
        seed: The batch's.
        wrong: Disagreements, and claims that did not converge or lost something, in words.
        acts: How often each act and each event was done.
        seconds: What the batch took.
        rounds: For each round: the event, its seconds, and how many claims had not converged at its end.
        samples: How much was sampled.
        again: The command that makes this batch again.
    """

    seed: int
    wrong: list[str] = field(default_factory=list)
    acts: Counter[str] = field(default_factory=Counter)
    seconds: float = 0.0
    rounds: list[str] = field(default_factory=list)
    samples: str = ""
    again: str = ""

    def __str__(self) -> str:
        done = ", ".join(f"{name} {count}" for name, count in sorted(self.acts.items()))
        lines = [f"batch {self.seed}: {self.seconds:.0f} s, {len(self.wrong)} wrong; {self.samples}; {done}"]
        again = [f"  again: {self.again}"] if self.wrong else []
        wrong = [f"  WRONG {line}" for line in self.wrong]
        return "\n".join([*lines, *(f"  {line}" for line in self.rounds), *wrong, *again])


def acts_of(seed: int, rounds: int, acts: tuple[Act, ...]) -> list[Act]:
    """Return the acts of a walk."""
    return random.Random(f"walk {seed}").choices(acts, k=rounds)  # noqa: S311 - a walk that can be repeated


def events_of(seed: int, rounds: int, events: tuple[Event, ...]) -> list[Event]:
    """Return the events of a batch: each once before any comes again."""
    dice = random.Random(f"batch {seed}")  # noqa: S311 - as above
    turns = [dice.sample(events, k=len(events)) for _ in range(1 + rounds // len(events))]
    return [event for turn in turns for event in turn][:rounds]


async def walk_batch(
    world: World,
    seed: int,
    size: Size,
    *,
    acts: tuple[Act, ...] = ACTS,
    events: tuple[Event, ...] = EVENTS,
    say: Callable[[str], None] = lambda _line: None,
) -> Report:
    """Let a batch of claims walk; return what the oracle saw. Each round is said as it ends."""
    loop = asyncio.get_running_loop()
    began, report = loop.time(), Report(seed)
    async with world.system.namespace(**world.labels) as namespace:
        walkers = [Walker(world, namespace, f"w{walk:05}", walk) for walk in size.seeds(seed)]
        names = [walker.name for walker in walkers]
        await world.move_in(walkers)
        oracle = Oracle(world, namespace, Ledger(size.lasting_s))
        async with world.supervised(), oracle.watching():
            known = 0
            chosen = {walker: acts_of(walker.seed, size.rounds, acts) for walker in walkers}
            for number, event in enumerate(events_of(seed, size.rounds, events), start=1):
                await _round(oracle, report, number, event, {walker: chosen[walker][number - 1] for walker in walkers})
                left = await oracle.until_settled([w.name for w in walkers if w.converges], limit_s=size.round_s)
                report.rounds[-1] += f", {loop.time() - began:.0f} s, not converged {len(left)}"
                wrong = oracle.ledger.disagreements()
                stories = [*(f"{name}: {oracle.story(name)}" for name in left[:_STORIES_MOST]), *wrong[known:]]
                say(report.rounds[-1] + "".join(f"\n  {line}" for line in stories))
                known = len(wrong)
            await asyncio.gather(*(_end(oracle, walker) for walker in walkers))
            oracle.setting = "the end"
            left = await oracle.until_settled(names, limit_s=size.end_s)
            report.wrong += [f"{name} does not converge: {oracle.story(name)}" for name in left]
        report.wrong += oracle.ledger.disagreements()
        report.wrong += await world.losses(walkers)
        report.wrong += await world.move_out(namespace)
        report.samples = oracle.summary()
    report.seconds = loop.time() - began
    return report


async def _round(oracle: Oracle, report: Report, number: int, event: Event, acts: dict[Walker, Act]) -> None:
    """Do one act on each claim; half of them before the event, half while it lasts where the event allows that."""
    oracle.setting = f"round {number}, {event.name}"
    report.acts.update([event.name, *(act.name for act in acts.values())])
    report.rounds.append(f"round {number}: {event.name}")
    pairs = list(acts.items())
    before, meanwhile = (pairs, []) if event.stops_acts else _halves(pairs)
    await asyncio.gather(*(_act(oracle, number, walker, act) for walker, act in before))
    async with event.happen(oracle.world, oracle):
        await asyncio.gather(*(_act(oracle, number, walker, act) for walker, act in meanwhile))
    oracle.mark()


async def _end(oracle: Oracle, walker: Walker) -> None:
    await take_back(walker)
    if walker.way_out is not None:
        # A child that is only now made again takes the token that it finds for the one it was made with.
        await walker.until_child_reports()
        # The rotation of the one login that RDS makes: nobody gets in until the new password is published.
        oracle.expect(walker.name, unseen=True)
        await walker.edit(walker.way_out)


def _halves(pairs: list[tuple[Walker, Act]]) -> tuple[list[tuple[Walker, Act]], list[tuple[Walker, Act]]]:
    """Part walks by their seeds, so that one that is made alone is in the same half."""
    return [pair for pair in pairs if pair[0].seed % 2 == 0], [pair for pair in pairs if pair[0].seed % 2]


async def _act(oracle: Oracle, number: int, walker: Walker, act: Act) -> None:
    await take_back(walker)
    oracle.expect(walker.name, unseen=bool(act.unseen))
    detail = await act.do(walker, random.Random(f"{walker.seed} {number}"))  # noqa: S311 - as above
    oracle.note(walker.name, f"{number}: {act.name} {detail}")
