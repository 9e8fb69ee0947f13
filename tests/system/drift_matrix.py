"""Every kind of drift on-prem, pauses, and a database that is lost, replaced or made anew by consent."""

import pytest

from tests.support.kinds import CLAIM, condition, in_trouble, is_ready
from tests.support.system import System
from tests.system.test_drift import DRIFTS, Drift, is_corrected_and_reported, ready

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.apiserver, pytest.mark.postgres]


@pytest.mark.parametrize("case", DRIFTS.values(), ids=DRIFTS.keys())
async def test_every_drift_is_corrected_and_reported(sweeping: System, namespace: str, case: Drift) -> None:
    await is_corrected_and_reported(sweeping, namespace, case)


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
