"""An account that hangs takes one worker: who comes while it is dialled again is told what failed before."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import timedelta

import pytest

from runtime.errors import Transient
from tests.providers.toy import ToyCloud, ToyConfig, provider_of
from tests.providers.world import World


async def test_nobody_waits_for_somebody_elses_second_dial(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("providers.accounts._AFTER_FAILURE", timedelta(0))
    dials, hangs = 0, asyncio.Event()

    @asynccontextmanager
    async def connect(_config: ToyConfig, _given: Mapping[str, Mapping[str, str]], _id: str) -> AsyncIterator[ToyCloud]:
        nonlocal dials
        dials += 1
        if dials > 1:
            await hangs.wait()
        if dials < 100:
            raise Transient("no answer")
        yield ToyCloud()

    world = World(ToyCloud(), provider=replace(provider_of(ToyCloud()), connect=connect))
    world.feed()
    with pytest.raises(Transient):
        await world.accounts.connect("default")
    dialling = asyncio.create_task(world.accounts.connect("default"))
    for _ in range(5):
        await asyncio.sleep(0)

    with pytest.raises(Transient, match="no answer"):
        await asyncio.wait_for(world.accounts.connect("default"), timeout=1)

    assert dials == 2
    hangs.set()
    with pytest.raises(Transient):
        await dialling
