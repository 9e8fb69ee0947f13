"""Ends of claims under each policy and cascade, while processes are away, and with a namespace or a definition."""

from __future__ import annotations

import asyncio
import itertools

import pytest

from tests.support.home import claim, move_in, until_gone
from tests.support.kinds import (
    CRD,
    DATABASE,
    NAMESPACE,
)
from tests.support.staff import Staff
from tests.system.test_teardown import POLICIES, bare, ends_by_policy, moved_out_and_back, torn_down_wave_by_wave

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.apiserver, pytest.mark.postgres]


_CASCADES = ("Background", "Foreground", "Orphan")


async def test_a_deletion_follows_its_policy_under_every_cascade(staff: Staff, namespace: str) -> None:
    await ends_by_policy(staff.system, namespace, itertools.product(POLICIES, _CASCADES))


async def test_children_are_torn_down_wave_by_wave_under_every_cascade(staff: Staff, namespace: str) -> None:
    async with asyncio.TaskGroup() as group:
        for cascade in _CASCADES:
            group.create_task(torn_down_wave_by_wave(staff.system, namespace, cascade), name=cascade)


async def test_a_namespace_deleted_leaves_the_database_under_each_policy(staff: Staff) -> None:
    await asyncio.gather(*(moved_out_and_back(staff.system, policy) for policy in POLICIES))


async def test_an_ephemeral_namespace_deleted_follows_the_claims_policies(staff: Staff) -> None:
    system = staff.system
    async with system.namespace(**{"fairlead.dev/ephemeral": "true"}) as namespace:
        orphan, retired, dropped = await asyncio.gather(
            *(move_in(system, claim(namespace, policy.lower(), deletionPolicy=policy)) for policy in POLICIES)
        )
        await system.api.delete(NAMESPACE.path("", namespace))
        await until_gone(system, NAMESPACE.path("", namespace))

    await orphan.untouched()
    assert await retired.names() not in ([], [retired.database])
    assert await retired.rows_behind() == [retired.row]
    assert await dropped.names() == []
    assert (orphan.drops(), retired.drops(), dropped.drops_carried_out()) == (0, 0, 1)


async def test_the_childrens_definition_deleted_leaves_every_database(staff: Staff, namespace: str) -> None:
    system = staff.system
    homes = [
        await move_in(system, claim(namespace, policy.lower(), deletionPolicy=policy))
        for policy in ("Orphan", "Delete")
    ]
    definition = CRD.path("", f"{DATABASE.plural}.{DATABASE.group}")
    kept = await bare(system, definition)

    await system.api.delete(definition)
    await until_gone(system, definition)
    for home in homes:
        await home.untouched()
        await home.until_out_of_sync("KindNotInstalled")

    await system.create(CRD, kept)
    for home in homes:
        await home.until_home()
        await home.untouched()
