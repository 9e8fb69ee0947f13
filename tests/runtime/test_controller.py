"""The controller in virtual time: when a key is looked at, how often, and what trouble does to its neighbours."""

import asyncio
from datetime import timedelta

import pytest

from fairlead.simulation.virtual_time import VirtualLoop
from runtime.errors import (
    Blocked,
    Conflict,
    Forbidden,
    NoAnswer,
    Terminal,
    Throttled,
    TooManyRequests,
    Transient,
    Unavailable,
    WriteConflict,
)
from runtime.objects import Key
from runtime.results import SETTLED, Result
from tests.runtime.stage import raising, staged, times_of
from tests.runtime.virtual_loop import run
from tests.support.memory_kube import WIDGETS, MemoryKube

LOOP = VirtualLoop

BACKED_OFF, AS_REQUESTED, SLOWLY = (range(8, 20), (0.5, 0.75)), (range(30, 38), (100, 110)), (range(11, 14), (300, 330))
# In an hour 20 without jitter and 18 with all of it: 50 ms doubled up to ten minutes, and up to half more.
AT_ONCE_THEN_RARER = (range(18, 21), (0, 0.01))
HUNDRED_S = timedelta(seconds=100)


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        pytest.param(Transient("x"), BACKED_OFF, id="transient backs off"),
        pytest.param(Unavailable("x"), BACKED_OFF, id="5xx backs off"),
        pytest.param(NoAnswer("x"), BACKED_OFF, id="no answer backs off"),
        pytest.param(Forbidden("x"), BACKED_OFF, id="forbidden backs off"),
        pytest.param(ValueError("x"), BACKED_OFF, id="a defect backs off"),
        pytest.param(Throttled("x", after=HUNDRED_S), AS_REQUESTED, id="throttled waits as long as it was asked to"),
        pytest.param(
            TooManyRequests("x", retry_after=HUNDRED_S), AS_REQUESTED, id="429 waits as long as it was asked to"
        ),
        pytest.param(Unavailable("x", retry_after=HUNDRED_S), AS_REQUESTED, id="503 waits as long as it was asked to"),
        pytest.param(Blocked("R", "x"), SLOWLY, id="blocked is polled slowly"),
        pytest.param(Terminal("R", "x"), SLOWLY, id="terminal is polled slowly"),
        pytest.param(Conflict("x"), AT_ONCE_THEN_RARER, id="a conflict is tried again at once, and ever more rarely"),
        pytest.param(WriteConflict("x"), AT_ONCE_THEN_RARER, id="a write conflict too"),
    ],
)
def test_each_class_of_trouble_has_its_pace(error: Exception, expected: tuple[range, tuple[float, float]]) -> None:
    times = run(times_of(raising(error), 3_600))
    passes, (low, high) = expected

    assert len(times) in passes
    assert low <= times[1] - times[0] <= high


async def test_a_controller_that_wakes_itself_is_held_to_one_pass_a_second() -> None:
    kube = MemoryKube()
    kube.put(WIDGETS, "w", spec={"n": 1})

    async def writes_unremembered(key: Key) -> Result:
        kube.put(WIDGETS, key.name, spec={"n": 1}, status={"at": kube.server.version})
        return SETTLED

    async with staged(writes_unremembered, kube) as stage:
        await asyncio.sleep(600)

        assert len(stage.passes) in range(500, 615)


def test_a_pass_that_hangs_is_ended_and_the_key_tried_again() -> None:
    async def hang(_: Key) -> Result:
        await asyncio.Event().wait()
        return SETTLED

    times = run(times_of(hang, 70, pass_timeout_s=30))

    assert len(times) == 3
    assert times[1] - times[0] >= 30
