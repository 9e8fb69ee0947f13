"""A bound on one pass that leaves time to say of it that it was too long."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from datetime import timedelta
from typing import Final, TypeVar

from runtime.errors import Transient

T = TypeVar("T")
PASS: Final = timedelta(seconds=100)
"""How long a pass may take; the controller cuts off what goes on for `ControllerSettings.pass_timeout`."""


async def in_time(work: Awaitable[T], limit: timedelta = PASS) -> T:
    """Wait for `work`, and cancel it after `limit`.

    Raises:
        Transient: It took longer.
    """
    timeout = asyncio.timeout(limit.total_seconds())
    try:
        async with timeout:
            return await work
    except TimeoutError:
        if timeout.expired():
            raise Transient(f"the pass took longer than {limit.total_seconds():g} seconds") from None
        raise
