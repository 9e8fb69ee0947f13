"""More costs: where Secrets are watched, and of a second child."""

import pytest

from tests.support.grants import let_watch_secrets
from tests.support.kinds import CLAIM, COMPOSITION, DATABASE, claim, composition, is_ready
from tests.support.system import COMPOSER, System
from tests.system.test_costs import creation, requests_during, secret_reads, steps, writes_of_a_creation

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.apiserver, pytest.mark.postgres]


async def test_where_secrets_are_watched_a_new_claim_costs_its_writes_alone(warm: System, namespace: str) -> None:
    await let_watch_secrets(warm, namespace)
    await warm.create(CLAIM, claim(namespace, "first"))
    await warm.until(CLAIM, namespace, "first", is_ready)
    await warm.at_rest()
    names = [f"shop-{number}" for number in range(5)]

    async def act() -> None:
        for name in names:
            await warm.create(CLAIM, claim(namespace, name))
            await warm.until(CLAIM, namespace, name, is_ready)

    requests = await requests_during(warm, namespace, act)
    # A watch that is behind costs a read.
    assert len(secret_reads(requests, COMPOSER)) < len(names)
    assert steps(requests, COMPOSER, "secrets") == [("create", "secrets", "")] * len(names)


async def test_a_second_child_costs_one_write_more_at_creation(warm: System, namespace: str) -> None:
    resources = [
        {
            "name": name,
            "template": {
                "apiVersion": DATABASE.api_version,
                "kind": DATABASE.kind,
                "spec": {"forProvider": {"databaseName": name, "username": name}},
            },
        }
        for name in ("one", "two")
    ]
    async with warm.composition(composition(f"{namespace}-pair", *resources, connection={"from": "one"})) as name:
        await warm.until(COMPOSITION, "", name, is_ready)
        requests = await creation(warm, namespace, compositionRef={"name": name})
        assert steps(requests, COMPOSER) in writes_of_a_creation(children=2)
        await warm.delete(CLAIM, namespace, "shop")
