"""Where the destroy rate limit holds a deletion, its message has the command that lifts it for an hour at most."""

from __future__ import annotations

import subprocess
from datetime import UTC, datetime, timedelta

import pytest

from tests.providers.accounts.test_limits import World, toy

CONFIG = "providerconfig.toy.example.org/default"


RELEASED = "fairlead.dev/brake-released"
UNTIL = "$(date -u +%Y-%m-%dT%H:59:59Z)"


@pytest.mark.parametrize("written", [True, False], ids=["in the status", "in memory"])
async def test_message_has_the_command_that_lifts_the_limit_and_stays_the_same(*, written: bool) -> None:
    world = World(10)
    for _ in range(3):
        await world.destroy(written=written)
    message = world.allowance(toy("there-0")).destroy_limit_reached
    assert f'`kubectl annotate {CONFIG} "{RELEASED}={UNTIL}"`' in message

    world.now += timedelta(minutes=59)
    assert world.allowance(toy("there-0")).destroy_limit_reached == message
    world.config["metadata"]["annotations"][RELEASED] = "2026-11-21T11:59:59Z"
    message = world.allowance(toy("there-0")).destroy_limit_reached
    assert f'`kubectl annotate --overwrite {CONFIG} "{RELEASED}={UNTIL}"`' in message


def test_command_lifts_the_limit_until_the_end_of_the_hour() -> None:
    world = World(10, destroysPerHour=0)
    typed = subprocess.run(["/bin/sh", "-c", f'printf %s "{UNTIL}"'], capture_output=True, text=True, check=True)
    world.now = datetime.now(UTC).replace(minute=0)
    until = datetime.fromisoformat(typed.stdout)
    assert timedelta(0) < until - world.now <= timedelta(hours=2)

    world.config["metadata"]["annotations"][RELEASED] = typed.stdout
    world.now = until - timedelta(seconds=1)
    assert world.allowance(toy("there-0")).destroy_limit_reached == ""
    world.now = until
    assert world.allowance(toy("there-0")).destroy_limit_reached
