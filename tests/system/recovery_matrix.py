"""Claims that come anew, and databases that outlive their claims: the commands by which a person has them."""

from __future__ import annotations

import msgspec
import pytest

from tests.support.home import claim, move_in, poke, until_gone
from tests.support.kinds import CLAIM, NAMESPACE, PROVIDER_CONFIG
from tests.support.staff import Staff
from tests.system.test_recovery import INSTALLATION, run_command

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.apiserver, pytest.mark.postgres]


async def test_claims_that_come_anew_have_their_databases_again_by_one_command(staff: Staff) -> None:
    system = staff.system
    installation = (await system.api.get(INSTALLATION))["data"]["id"]
    async with system.namespace() as namespace:
        bodies = [claim(namespace, name, deletionPolicy="Delete") for name in ("first", "second")]
        homes = [await move_in(system, body) for body in bodies]
        await system.api.delete(NAMESPACE.path("", namespace))
        await until_gone(system, NAMESPACE.path("", namespace))
        await system.namespaced(namespace)
        for body in bodies:
            await system.create(CLAIM, body)
        for home in homes:
            await home.until_stalled("PredecessorFound")
        await system.api.merge(PROVIDER_CONFIG.path("", "default"), {"spec": {"allowAdoption": True}})

        assert await run_command(staff, "adopt", "--installation", installation) == 0

        for home in homes:
            # The passwords went with the namespace's Secrets.
            await home.until_stalled("PasswordUnknown")
            await system.api.merge(home.path, {"spec": {"passwordRotation": {"token": "adopted"}}})
            await home.until_home()
            assert (home.creates(), home.drops()) == (1, 0)


async def test_a_database_that_outlives_its_claim_is_listed_on_request_and_nothing_is_listed_at_rest(
    staff: Staff, namespace: str, capsys: pytest.CaptureFixture[str]
) -> None:
    system = staff.system
    left, living = [
        await move_in(system, claim(namespace, name, deletionPolicy="Orphan")) for name in ("left", "living")
    ]
    await left.delete()

    assert await run_command(staff, "orphans", "onprempc/default", "-o", "json") == 0
    (account,) = msgspec.json.decode(capsys.readouterr().out)["accounts"]
    before = await system.api.get(PROVIDER_CONFIG.path("", "default"))
    await poke(system, living.path)
    await living.until_home()

    assert account["complete"] is True
    named = {item["name"]: item for item in account["items"]}
    assert living.database not in named
    assert named[left.database]["claim"] == "left"
    assert named[left.database]["namespace"] == namespace
    after = await system.api.get(PROVIDER_CONFIG.path("", "default"))
    assert after["status"]["orphans"] == before["status"]["orphans"]
    assert after["status"]["lastHandledReconcileAt"].startswith("orphans-")
