"""A claim through ACK's DBInstance and the simulated RDS behind it, to psql."""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from devcloud.aws.platform import SECURITY_GROUP, SUBNETS
from devcloud.controlplane import Programs
from tests.apiserver.operators.conftest import LIMIT_S, LOGIN, install, psql_prints
from tests.support.aws import Aws, simulated_rds
from tests.support.kinds import CLAIM, COMPOSITION, CONFIG_MAP, SECRET, claim, is_ready
from tests.support.operators.ack_on_rds import controlling
from tests.support.operators.played import ACK, INSTANCE
from tests.support.system import decoded, rig
from tests.support.waiting import eventually

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.apiserver, pytest.mark.rds]

_GROUP = "databases"
_NAMESPACE = "shop"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def rds(tmp_path_factory: pytest.TempPathFactory, control_plane_programs: Programs) -> AsyncIterator[Aws]:
    """Yield a simulated RDS with a subnet group, ACK's controller and the composer at work beside it."""
    folder = tmp_path_factory.mktemp(f"rig-{secrets.token_hex(2)}")
    async with rig(folder, control_plane_programs) as system, simulated_rds(system) as aws:
        await install(system, ACK, {})
        network = {"subnetGroupName": _GROUP, "securityGroupID": SECURITY_GROUP}
        await system.api.merge(CONFIG_MAP.path("fairlead-system", ACK.name), {"data": network})
        await aws.person(
            "create_db_subnet_group",
            DBSubnetGroupName=_GROUP,
            DBSubnetGroupDescription="of the shop",
            SubnetIds=list(SUBNETS),
        )
        await system.namespaced(_NAMESPACE, cloud=ACK.name)
        await system.start_composer("--no-elect", "--resync", "3600")
        await system.until(COMPOSITION, "", f"postgres-{ACK.name}", is_ready, limit_s=LIMIT_S)
        async with controlling(aws):
            yield aws


async def _ready(rds: Aws, name: str, **spec: str) -> str:
    """Return the identifier in RDS of a new claim's instance, once the claim is Ready."""
    await rds.system.create(CLAIM, claim(_NAMESPACE, name, **LOGIN, **spec))
    await rds.system.until(CLAIM, _NAMESPACE, name, is_ready, limit_s=LIMIT_S)
    instance = await ACK.child(rds.system.api, _NAMESPACE, name)
    return str(instance["spec"]["dbInstanceIdentifier"])


async def test_psql_logs_in_with_what_a_claim_publishes_before_and_after_a_rotation(rds: Aws) -> None:
    system = rds.system
    await _ready(rds, "orders")
    before = await system.binding(_NAMESPACE, "orders")
    assert await psql_prints(system, before) == "orders_app in orders"
    # ACK wrote the whole version into the spec; it is the claim's again, and there is peace.
    await system.at_rest()
    assert (await ACK.child(system.api, _NAMESPACE, "orders"))["spec"]["engineVersion"] == "16"

    await system.edit(CLAIM, _NAMESPACE, "orders", {"spec": {"passwordRotation": {"token": "2026-12"}}})

    async def is_rotated() -> bool:
        return (await system.binding(_NAMESPACE, "orders"))["password"] != before["password"]

    await eventually(is_rotated, "another password is published", limit_s=LIMIT_S)

    async def logs_in() -> bool:
        return await psql_prints(system, await system.binding(_NAMESPACE, "orders")) == "orders_app in orders"

    # RDS may take the password moments after it is published: the status of ACK names no generation.
    await eventually(logs_in, "psql logs in with the other password", limit_s=LIMIT_S)
    assert await psql_prints(system, before) == ""


async def test_an_edit_is_carried_out_in_rds(rds: Aws) -> None:
    identifier = await _ready(rds, "edited")

    await rds.system.edit(CLAIM, _NAMESPACE, "edited", {"spec": {"storageGiB": 40}})

    await rds.until(identifier, lambda instance: instance["AllocatedStorage"] == 40, limit_s=LIMIT_S)
    await rds.system.until(CLAIM, _NAMESPACE, "edited", is_ready, limit_s=LIMIT_S)


async def test_under_orphan_the_instance_stays_in_rds_even_when_its_object_is_deleted(rds: Aws) -> None:
    identifier = await _ready(rds, "kept")
    await rds.system.delete(CLAIM, _NAMESPACE, "kept")
    (left,) = await ACK.children(rds.system.api, _NAMESPACE, "kept")

    await rds.system.delete(INSTANCE, _NAMESPACE, left["metadata"]["name"])

    instance = await rds.instance(identifier)
    assert instance is not None
    assert instance["DBInstanceStatus"] == "available"


async def test_under_delete_the_instance_goes_with_the_claim(rds: Aws) -> None:
    identifier = await _ready(rds, "gone", deletionPolicy="Delete")

    await rds.system.delete(CLAIM, _NAMESPACE, "gone")

    await rds.until_gone(identifier, limit_s=LIMIT_S)


async def test_a_claim_takes_over_the_instance_of_its_former_self(rds: Aws) -> None:
    system = rds.system
    identifier = await _ready(rds, "again")
    await system.delete(CLAIM, _NAMESPACE, "again")
    former = await system.api.get(SECRET.path(_NAMESPACE, "again-connection"))
    await system.api.delete(SECRET.path(_NAMESPACE, "again-connection"))
    (left,) = await ACK.children(system.api, _NAMESPACE, "again")

    adopt = {"annotations": {"fairlead.dev/adopt": left["metadata"]["uid"]}}
    obj = claim(_NAMESPACE, "again", **LOGIN)
    await system.create(CLAIM, {**obj, "metadata": {**obj["metadata"], **adopt}})
    await system.until(CLAIM, _NAMESPACE, "again", is_ready, limit_s=LIMIT_S)

    (taken,) = await ACK.children(system.api, _NAMESPACE, "again")
    assert taken["metadata"]["uid"] == left["metadata"]["uid"]
    assert taken["spec"]["dbInstanceIdentifier"] == identifier

    async def logs_in() -> bool:
        return await psql_prints(system, await system.binding(_NAMESPACE, "again")) == "orders_app in orders"

    await eventually(logs_in, "psql logs in with the password that the new claim made", limit_s=LIMIT_S)
    assert await psql_prints(system, decoded(former)) == ""
