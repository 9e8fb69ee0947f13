"""Of the fence: no call leaves after the lease or the time of its intent is over."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from typing import Any, Literal

from tests.providers.adapter import Adapter, clause
from tests.providers.gates import KilledError


def _verbs(cloud: Adapter) -> tuple[Literal["create", "update", "delete"], ...]:
    return ("create", "update", "delete") if cloud.edit else ("create", "delete")


@clause()
async def no_call_leaves_after_the_leadership_was_lost(cloud: Adapter) -> None:
    for verb in _verbs(cloud):
        await _prepare(cloud, verb)
        writer: Any = cloud.world.reconcile._executor.writer
        before, writer._leads = writer._leads, lambda: lambda _budget: False
        await cloud.pass_for(timedelta(minutes=1), verb)
        assert (verb, cloud.writes()) == (verb, [])

        writer._leads = before
        await _finish(cloud, verb)


@clause()
async def no_call_leaves_after_the_time_of_its_intent(cloud: Adapter) -> None:
    for verb in _verbs(cloud):
        await _prepare(cloud, verb)
        writer: Any = cloud.world.reconcile._executor.writer
        before = writer._settings
        writer._settings = replace(before, call_budget=timedelta(0))
        await cloud.pass_for(timedelta(minutes=1), verb)
        assert (verb, cloud.writes()) == (verb, [])

        writer._settings = before
        await _finish(cloud, verb)


@clause()
async def successor_only_reads_until_the_time_of_an_open_intent(cloud: Adapter) -> None:
    for writes in range(1, 10):
        name = f"db{writes}"
        cloud.ask(name)
        cloud.gate.kill_after(writes)
        with suppress(KilledError):
            await cloud.until_ready(name)
        if "intent" in cloud.status(name) and not cloud.creates():
            break
        cloud.restart()
        await cloud.until_ready(name)
        cloud.forget()
    else:
        raise AssertionError("a create never wrote its intent before its call")
    cloud.restart(after=timedelta(0))
    for _ in range(10):
        await cloud.world.step(name)
        cloud.move_on(timedelta(seconds=2))
    assert cloud.writes() == []
    await cloud.until_ready(name)
    assert cloud.creates() == 1


async def _prepare(cloud: Adapter, verb: str) -> None:
    """Bring a resource of the verb's name to where its next pass makes that call."""
    if verb == "create":
        cloud.ask(verb)
        cloud.forget()
        return
    await cloud.create(verb)
    if verb == "update":
        cloud.ask(verb, parameters=cloud.edit)
    else:
        cloud.world.delete(verb)


async def _finish(cloud: Adapter, verb: str) -> None:
    """Make the passes that carry the call out."""
    await cloud.until(lambda: bool(cloud.writes()), verb)
    if verb != "delete":
        await cloud.until_ready(verb)
