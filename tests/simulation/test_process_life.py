"""A process dies around the effect at which it was to die, and nothing that it sends afterwards arrives."""

from __future__ import annotations

import asyncio
from functools import partial

import pytest

from fairlead.simulation import virtual_time
from fairlead.simulation.process_life import Interruption, Moment, ProcessLife


async def _written(life: ProcessLife, count: int, written: list[int]) -> None:
    for number in range(count):
        await life.before_effect()
        written.append(number)
        await life.after_effect()


@pytest.mark.parametrize(("moment", "written"), [("before", [0, 1]), ("after", [0, 1, 2])])
def test_process_dies_around_its_third_effect(moment: Moment, written: list[int]) -> None:
    deaths: list[float] = []

    async def main() -> list[int]:
        life, done = ProcessLife(), list[int]()

        def die() -> None:
            life.is_over = True
            deaths.append(asyncio.get_running_loop().time())

        life.interruption = Interruption(3, moment, die)
        writing = asyncio.create_task(_written(life, 5, done))
        await asyncio.sleep(60)
        assert (life.is_over, writing.done()) == (True, False)
        writing.cancel()
        return done

    assert virtual_time.run("1:0", main) == written
    assert deaths == [0.0]


def test_process_that_is_to_die_nowhere_has_all_its_effects() -> None:
    async def main() -> list[int]:
        done = list[int]()
        await _written(ProcessLife(), 5, done)
        return done

    assert virtual_time.run("1:0", main) == [0, 1, 2, 3, 4]


@pytest.mark.parametrize(("moment", "written_meanwhile"), [("before", [0, 1]), ("after", [0, 1, 2])])
def test_process_that_stands_still_has_its_effect_late_though_nobody_waits_for_it(
    moment: Moment, written_meanwhile: list[int]
) -> None:
    async def main() -> tuple[list[int], list[int]]:
        life, done = ProcessLife(), list[int]()

        async def write_all() -> None:
            for number in range(5):
                await life.carry_out(partial(_write, number, done))

        life.interruption = Interruption(3, moment, lambda: life.freeze(20))
        writing = asyncio.create_task(write_all())
        await asyncio.sleep(10)
        meanwhile = list(done)
        writing.cancel()
        await asyncio.sleep(20)
        return meanwhile, done

    assert virtual_time.run("1:0", main) == (written_meanwhile, [0, 1, 2])


async def _write(number: int, written: list[int]) -> None:
    written.append(number)
