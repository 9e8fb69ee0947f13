"""A leader whose writes are held back on their way: each is refused once its successor has written."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from urllib.parse import urlsplit

import pytest
import pytest_asyncio

from tests.support.audit import AuditLog
from tests.support.late_line import LateLine
from tests.support.system import System
from tests.support.waiting import eventually
from tests.system.test_leadership import (
    LEASE,
    ROLES,
    Candidate,
    Late,
    Role,
    acts,
    start_other,
    under_load,
    until_acts,
    until_held,
)

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.apiserver, pytest.mark.postgres]
_SERIES = 8


@pytest_asyncio.fixture(loop_scope="session")
async def line(system: System) -> AsyncIterator[LateLine]:
    """Yield a line to the API server that can hold back what is sent."""
    made = LateLine(urlsplit(system.plane.server).port or 443)
    await made.start()
    yield made
    await made.close()


async def test_a_lost_leaders_write_is_refused_once_its_successor_has_written(
    system: System, namespace: str, line: LateLine
) -> None:
    role = ROLES["composer"]
    await start_other(system, role)
    first = await Candidate.start(system, role, "held-back", *LEASE, line=line)
    await until_held(system, role)
    second = await Candidate.start(system, role, "successor", *LEASE)
    audit = system.audit()

    async with under_load(system, namespace, _SERIES) as load:
        await until_acts(audit, role, first)
        line.hold()
        await until_acts(audit, role, second)
        # By then the successor has finished all that was under way.
        await load.until_each_is_done_again()
        sent = len(acts(audit, role, first))
        await line.deliver()
        await _until_answered(audit, role, first, sent)

    late = Late.after(acts(audit, role, first)[sent:], acts(audit, role, second))
    assert late.over_the_successor == []
    assert late.refused, "nothing was under way when the line was held: the test has shown nothing"


async def _until_answered(audit: AuditLog, role: Role, candidate: Candidate, sent: int) -> None:
    """Wait until what was held back of a process has arrived: more than `sent` writes, and then no more."""
    counts = [sent]

    async def is_quiet() -> bool:
        counts.append(len(acts(audit, role, candidate)))
        await asyncio.sleep(0.5)
        return sent < counts[-1] == counts[-2]

    await eventually(is_quiet, "what was held back is answered")
