"""Drift made by hand in PostgreSQL is put back, and said in event and status without a secret."""

import pytest

from tests.support.home import claim, move_in
from tests.support.kinds import DATABASE, EVENT, is_ready
from tests.support.system import System
from tests.support.waiting import eventually

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.apiserver, pytest.mark.postgres]


async def test_drift_is_corrected_and_reported(sweeping: System, namespace: str) -> None:
    home = await move_in(sweeping, claim(namespace, "orders"))
    name, limit = (await home.child())["metadata"]["name"], await sweeping.connection_limit(home.database)
    login = (await sweeping.binding(namespace, "orders"))["username"]
    await sweeping.server.server.execute(
        f"ALTER DATABASE {home.database} CONNECTION LIMIT 3", f"ALTER ROLE {login} PASSWORD 'of-somebody-else'"
    )

    async def notes() -> list[str]:
        events = await sweeping.api.items(EVENT.path(namespace))
        return [event["note"] for event in events if event["reason"] == "DriftCorrected"]

    async def both_are_said() -> bool:
        said = str(await notes())
        return "connectionLimit" in said and login in said

    await eventually(both_are_said, "events DriftCorrected")
    await home.until_home()
    assert await sweeping.connection_limit(home.database) == limit
    after = await sweeping.until(DATABASE, namespace, name, lambda obj: is_ready(obj) and bool(obj["status"]["drift"]))
    assert "of-somebody-else" not in str(after) + str(await notes())
