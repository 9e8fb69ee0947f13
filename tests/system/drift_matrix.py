"""Every kind of drift on-prem, pauses, and a database that is lost, replaced or made anew by consent."""

import pytest

from tests.support.kinds import CLAIM, DATABASE, condition, in_trouble, is_ready
from tests.support.system import System
from tests.support.waiting import eventually
from tests.system.test_drift import DRIFTS, Drift, exists, is_corrected_and_reported, ready

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.apiserver, pytest.mark.postgres]


@pytest.mark.parametrize("case", DRIFTS.values(), ids=DRIFTS.keys())
async def test_every_drift_is_corrected_and_reported(sweeping: System, namespace: str, case: Drift) -> None:
    await is_corrected_and_reported(sweeping, namespace, case)


async def test_a_paused_claim_lets_drift_be_until_the_pause_ends(sweeping: System, namespace: str) -> None:
    child = await ready(sweeping, namespace)
    database, name = child["status"]["externalName"], child["metadata"]["name"]
    wanted = await sweeping.connection_limit(database)
    pause = {"fairlead.dev/paused": "true", "fairlead.dev/paused-reason": "a look at the disk"}
    await sweeping.edit(CLAIM, namespace, "orders", {"metadata": {"annotations": pause}})
    await sweeping.until(DATABASE, namespace, name, in_trouble("Paused"))
    mark = sweeping.sql.mark()
    await sweeping.server.server.execute(f"ALTER DATABASE {database} CONNECTION LIMIT 1")
    await sweeping.ask_for_a_pass(DATABASE, namespace, name)
    obj = await sweeping.until(CLAIM, namespace, "orders", in_trouble("Paused"))
    assert "a look at the disk" in condition(obj, "Synced")["message"]
    assert condition(obj, "Ready")["status"] == "True"
    await sweeping.at_rest()
    assert sweeping.sql.changes(mark) == []
    ended = {"fairlead.dev/paused": None, "fairlead.dev/paused-reason": None}
    await sweeping.edit(CLAIM, namespace, "orders", {"metadata": {"annotations": ended}})

    async def is_back() -> bool:
        return await sweeping.connection_limit(database) == wanted

    await eventually(is_back, "the connection limit is as it was")
    await sweeping.until(CLAIM, namespace, "orders", is_ready)


@pytest.mark.parametrize("shut", ["CONNECTION LIMIT 0", "NOLOGIN"])
async def test_a_paused_claim_whose_login_is_shut_is_not_ready(sweeping: System, namespace: str, shut: str) -> None:
    await ready(sweeping, namespace)
    login = (await sweeping.binding(namespace, "orders"))["username"]
    await sweeping.edit(CLAIM, namespace, "orders", {"metadata": {"annotations": {"fairlead.dev/paused": "true"}}})
    await sweeping.until(CLAIM, namespace, "orders", in_trouble("Paused"))
    await sweeping.server.server.execute(f"ALTER ROLE {login} {shut}")

    await sweeping.until(CLAIM, namespace, "orders", lambda obj: condition(obj, "Ready").get("status") == "False")

    await sweeping.edit(CLAIM, namespace, "orders", {"metadata": {"annotations": {"fairlead.dev/paused": None}}})
    await sweeping.until(CLAIM, namespace, "orders", is_ready)
    async with await sweeping.login(namespace, "orders"):
        pass


async def test_consent_to_start_empty_makes_the_database_anew(sweeping: System, namespace: str) -> None:
    child = await ready(sweeping, namespace)
    database, name = child["status"]["externalName"], child["metadata"]["name"]
    await sweeping.server.server.execute(f"DROP DATABASE {database} WITH (FORCE)")
    lost = await sweeping.until(DATABASE, namespace, name, in_trouble("DatabaseLost"))
    incarnation = lost["metadata"]["annotations"]["fairlead.dev/incarnation"]

    oid, _, random = incarnation.partition("-")
    wrong = {"fairlead.dev/consent": f"recreate={int(oid) + 1}-{random}, recreate={oid}"}
    await sweeping.edit(DATABASE, namespace, name, {"metadata": {"annotations": wrong}})
    await sweeping.at_rest(for_s=2.0)
    assert not await exists(sweeping, database)

    consent = {"fairlead.dev/consent": f"recreate={incarnation}"}
    await sweeping.edit(DATABASE, namespace, name, {"metadata": {"annotations": consent}})
    again = await sweeping.until(DATABASE, namespace, name, is_ready)
    assert again["metadata"]["annotations"]["fairlead.dev/incarnation"] != incarnation
    await sweeping.until(CLAIM, namespace, "orders", is_ready)
    async with await sweeping.login(namespace, "orders") as connection:
        cursor = await connection.execute("SELECT count(*) FROM pg_catalog.pg_tables WHERE tablename = 'canary'")
        assert await cursor.fetchone() == (0,)


async def test_a_replaced_database_is_not_taken_for_ours(sweeping: System, namespace: str) -> None:
    child = await ready(sweeping, namespace)
    database, name = child["status"]["externalName"], child["metadata"]["name"]
    # Both within one pass's time, so that the provider may or may not see the gap.
    await sweeping.server.server.execute(f"DROP DATABASE {database} WITH (FORCE)", f"CREATE DATABASE {database}")
    mark = sweeping.sql.mark()
    resource = await sweeping.until(DATABASE, namespace, name, in_trouble("Replaced", "NotOwned"))
    assert condition(resource, "Ready")["status"] == "False"
    await sweeping.ask_for_a_pass(DATABASE, namespace, name)
    await sweeping.at_rest(for_s=1.0)
    assert sweeping.sql.changes(mark) == []
