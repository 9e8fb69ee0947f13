"""A leader that is cut off in the other ways makes no call once another leads: run by `make faults`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from tests.apiserver.runtime.test_processes import Caller, callers, cut_off_it_makes_no_call
from tests.runtime.tcp_proxy import Line

__all__ = ["callers"]


@pytest.mark.parametrize("line", [Line.REFUSED, Line.DROPPED])
async def test_a_leader_cut_off_makes_no_call_once_another_leads(
    callers: Callable[..., Awaitable[Caller]],
    line: Line,
) -> None:
    await cut_off_it_makes_no_call(callers, line)
