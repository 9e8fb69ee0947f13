"""Every statement of a change of password, a retirement and a deletion may be the last one that was sent."""

from __future__ import annotations

import itertools
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from functools import partial

import pytest
import pytest_asyncio

from apis.teardown import Policy
from devcloud.onprem import OnPremServer
from providers.external.client import Fence, FenceClosed
from providers.external.credential import Credential, Login
from providers.external.observation import Absent, Present
from providers.onprem.client import OnPremCloud, connect
from tests.postgres.conftest import FENCE, Database, Where, config_of, credential, log_in, new_target, secrets_of

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.postgres]


@dataclass
class Countdown:
    """Lets so many statements through, then none: what was sent is done, what follows never leaves."""

    left: int

    def __call__(self) -> bool:
        self.left -= 1
        return self.left >= 0

    def fence(self) -> Fence:
        return Fence(until=time.monotonic() + 600, leads=self, monotonic=time.monotonic)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def cloud(onprem_server: OnPremServer) -> AsyncIterator[OnPremCloud]:
    async with connect(config_of(onprem_server), secrets_of(onprem_server)) as connected:
        yield connected


async def interrupted(act: Callable[[Fence], Awaitable[object]], after: int) -> bool:
    """Return whether the act was cut off before its end."""
    try:
        await act(Countdown(after).fence())
    except FenceClosed:
        return True
    return False


async def databases(server: OnPremServer, where: Where) -> list[str]:
    rows = await server.server.execute("SELECT datname FROM pg_catalog.pg_database")
    return [str(name) for (name,) in rows if where.hash in str(name)]


@pytest.mark.parametrize("policy", [Policy.DELETE, Policy.SNAPSHOT])
async def test_a_deletion_cut_off_anywhere_is_finished(
    cloud: OnPremCloud, onprem_server: OnPremServer, policy: Policy
) -> None:
    for after in itertools.count():
        database = await Database(cloud, onprem_server, new_target()).create()
        where, seen = database.where, await database.look()
        cut = await interrupted(partial(cloud.delete, where, seen, policy), after)
        again = await cloud.observe(where)
        if isinstance(again, Present) or again.remains:
            observed = again.observed if isinstance(again, Present) else None
            await cloud.delete(where, observed, policy, FENCE)

        assert await cloud.observe(where) == Absent(), after
        left = await databases(onprem_server, where)
        if policy is Policy.SNAPSHOT:
            assert left == [await cloud.latest(where)]
        else:
            roles = await onprem_server.server.execute("SELECT rolname FROM pg_catalog.pg_roles")
            assert (left, [name for (name,) in roles if where.hash in str(name)]) == ([], [])
        if not cut:
            break
    assert after > 5


async def test_a_rotation_cut_off_anywhere_takes_no_login_away(cloud: OnPremCloud, onprem_server: OnPremServer) -> None:
    database = await Database(cloud, onprem_server, new_target()).create()
    where = database.where
    for after in itertools.count():
        seen = await database.look()
        other = Credential(where.active.removesuffix("_a") + "_b", f"Another1password{after:02}")
        cut = await interrupted(partial(cloud.set, where, seen, other), after)

        assert await log_in(cloud, where, credential(where)) is Login.OK, after
        if not cut:
            assert await log_in(cloud, where, other) is Login.OK
            break
