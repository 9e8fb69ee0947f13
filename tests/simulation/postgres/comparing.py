"""Runs sequences on both servers and returns in what they differ."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from itertools import zip_longest

from devcloud.onprem import OnPremServer
from providers.onprem.client import connect
from tests.simulation.postgres.acting import Plain
from tests.simulation.postgres.sequences import Names, Step, sequence
from tests.simulation.postgres.sides import config_of, memory, real, secrets_of

_AROUND = 300


@dataclass(frozen=True, slots=True)
class Difference:
    """In what two servers differ after so many steps."""

    steps: tuple[Step, ...]
    memory: str
    real: str

    def __str__(self) -> str:
        steps = "\n".join(f"  {step}" for step in self.steps)
        return f"{steps}\n  memory: {self.memory}\n  real:   {self.real}"


@dataclass(slots=True)
class Comparison:
    """One real server, on which many sequences may run at once; each has names of its own."""

    server: OnPremServer
    runs: int = 0

    def names(self) -> Names:
        """Return names that no other run has."""
        self.runs += 1
        return Names(f"q{self.runs:05}zz")

    async def difference(self, seed: str) -> Difference | None:
        """Run the sequence of a seed."""
        names = self.names()
        return await self.run(sequence(seed, names, self.server.username), names)

    async def run(self, steps: Sequence[Step], names: Names) -> Difference | None:
        """Run steps on both; return the first difference."""
        async with memory(self.server, names) as model, real(self.server, names) as server:
            plain = (Plain(), Plain())
            for number, step in enumerate(steps, 1):
                both = await asyncio.gather(model.take(step), server.take(step))
                differing = _first(both, plain)
                if differing is not None:
                    return Difference(tuple(steps[:number]), *differing)
            differing = _first((await model.catalogs(), await server.catalogs()), plain)
            return None if differing is None else Difference(tuple(steps), *differing)


def _first(both: Sequence[list[str]], plain: tuple[Plain, Plain]) -> tuple[str, str] | None:
    for model, server in zip_longest(*both, fillvalue="nothing"):
        texts = plain[0].text(model), plain[1].text(server)
        if texts[0] != texts[1]:
            same = next((at for at, (a, b) in enumerate(zip(*texts, strict=False)) if a != b), min(map(len, texts)))
            return _around(texts[0], same), _around(texts[1], same)
    return None


def _around(text: str, place: int) -> str:
    return f"{text.partition(' ')[0]} ... {text[max(0, place - _AROUND) : place + _AROUND]}"


@asynccontextmanager
async def comparison(server: OnPremServer) -> AsyncIterator[Comparison]:
    """Yield what compares with a real server."""
    # The table is made once, before there are several who would make it.
    async with connect(config_of(server), secrets_of(server)):
        pass
    yield Comparison(server)


async def compared(
    of: Comparison, seeds: Sequence[str], at_once: int = 4
) -> AsyncIterator[tuple[str, Difference | None]]:
    """Yield each seed with its difference, several at once."""
    for at in range(0, len(seeds), at_once):
        some = seeds[at : at + at_once]
        for seed, difference in zip(some, await asyncio.gather(*map(of.difference, some)), strict=True):
            yield seed, difference
