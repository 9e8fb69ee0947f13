"""What a claim costs: the exact requests of composer and provider for a creation, an edit and a deletion, in order."""

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest
import pytest_asyncio

from tests.support.audit import WRITES, Request
from tests.support.grants import let_watch_secrets
from tests.support.kinds import CLAIM, COMPOSITION, DATABASE, claim, composition, is_ready
from tests.support.system import COMPOSER, PROVIDER, System

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.apiserver, pytest.mark.postgres]

Step = tuple[str, str, str]
_CLAIM_STATUS: Step = ("patch", "postgresqlinstances", "status")
_CHILD: Step = ("patch", "postgresdatabases", "")
_CHILD_STATUS: Step = ("patch", "postgresdatabases", "status")


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def warm(running: System) -> AsyncIterator[System]:
    """Yield the rig with a first claim: the server is prepared, Composition and ProviderConfig stay in use."""
    async with running.namespace() as name:
        await running.create(CLAIM, claim(name, "first"))
        await running.until(CLAIM, name, "first", is_ready)
        await running.at_rest()
        yield running


async def _requests(system: System, namespace: str, act: Callable[[], Awaitable[Any]]) -> list[Request]:
    """Do something; return what both processes asked of that namespace until rest. Events are best effort, apart."""
    requests = await system.writes_until_rest(act)
    return [
        request
        for request in requests
        if request.namespace == namespace and request.resource != "events" and request.verb != "watch"
    ]


def _steps(requests: list[Request], user: str, *resources: str) -> list[Step]:
    return [
        (request.verb, request.resource, request.subresource)
        for request in requests
        if request.user == user and request.verb in WRITES and (not resources or request.resource in resources)
    ]


def _secret_reads(requests: list[Request], user: str) -> list[str]:
    return [
        request.name
        for request in requests
        if request.user == user and request.resource == "secrets" and request.verb not in WRITES
    ]


def _object_reads(requests: list[Request], resource: str) -> list[str]:
    """Return what the composer read by name of a resource, each object once."""
    reads = (request for request in requests if request.user == COMPOSER and request.resource == resource)
    return sorted({request.name for request in reads if request.verb == "get"})


async def _creation(system: System, namespace: str, **spec: Any) -> list[Request]:
    async def act() -> None:
        await system.create(CLAIM, claim(namespace, "shop", **spec))
        await system.until(CLAIM, namespace, "shop", is_ready)

    return await _requests(system, namespace, act)


def _writes_of_a_creation(children: int) -> list[list[Step]]:
    """Return the writes of a new claim, in order: where its provider answers within half a second, and where not.

    Where not, the claim gets one more status, which says what it waits for; with a second child, whose answer comes
    apart, one more again.
    """
    created: list[Step] = [("patch", "postgresqlinstances", ""), *[("create", "postgresdatabases", "")] * children]
    ready: list[Step] = [("create", "secrets", ""), _CLAIM_STATUS]
    return [[*created, *[_CLAIM_STATUS] * waits, *ready] for waits in range(children + 1)]


async def test_a_new_claim_with_one_child_costs_four_writes_or_five_and_one_secret_read(
    warm: System, namespace: str
) -> None:
    requests = await _creation(warm, namespace)
    assert all(request.code < 400 for request in requests if request.verb in WRITES)
    assert _steps(requests, COMPOSER) in _writes_of_a_creation(children=1)
    (child,) = await warm.children(namespace, "shop")
    assert _secret_reads(requests, COMPOSER) == [f"{child['metadata']['name']}-credentials"]


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

    requests = await _requests(warm, namespace, act)
    # A watch that is behind costs a read.
    assert len(_secret_reads(requests, COMPOSER)) < len(names)
    assert _steps(requests, COMPOSER, "secrets") == [("create", "secrets", "")] * len(names)


async def test_a_new_database_costs_its_provider_four_object_writes_and_two_secret_writes(
    warm: System, namespace: str
) -> None:
    requests = await _creation(warm, namespace)
    marks_intent_incarnation_report = [_CHILD, _CHILD_STATUS, _CHILD, _CHILD_STATUS]
    assert _steps(requests, PROVIDER, "postgresdatabases") == marks_intent_incarnation_report
    assert _steps(requests, PROVIDER, "secrets") == [("create", "secrets", ""), ("update", "secrets", "")]
    assert len(_steps(requests, PROVIDER)) == 6


async def test_an_edit_costs_three_writes_the_first_of_a_child_too(warm: System, namespace: str) -> None:
    await _creation(warm, namespace)

    async def resized(size: str) -> list[Request]:
        async def act() -> None:
            await warm.edit(CLAIM, namespace, "shop", {"spec": {"size": size}})
            await warm.until(CLAIM, namespace, "shop", is_ready)

        return await _requests(warm, namespace, act)

    first, second = await resized("medium"), await resized("large")
    assert _steps(first, COMPOSER) == _steps(second, COMPOSER) == [_CHILD, _CLAIM_STATUS, _CLAIM_STATUS]
    intent_report = [_CHILD_STATUS, _CHILD_STATUS]
    assert _steps(first, PROVIDER) == _steps(second, PROVIDER) == intent_report
    assert _secret_reads(second, COMPOSER) == []


async def test_an_edit_that_asks_nothing_of_the_cloud_costs_one_status(warm: System, namespace: str) -> None:
    await _creation(warm, namespace)

    async def act() -> None:
        await warm.edit(CLAIM, namespace, "shop", {"spec": {"deletionProtection": True}})
        await warm.until(CLAIM, namespace, "shop", is_ready)

    requests = await _requests(warm, namespace, act)
    assert _steps(requests, COMPOSER) == [_CLAIM_STATUS]
    assert _steps(requests, PROVIDER) == []


async def test_somebodys_label_costs_nothing(warm: System, namespace: str) -> None:
    await _creation(warm, namespace)
    (child,) = await warm.children(namespace, "shop")

    async def act() -> None:
        for kind, name in ((CLAIM, "shop"), (DATABASE, child["metadata"]["name"])):
            await warm.edit(kind, namespace, name, {"metadata": {"labels": {"team": "blue"}}})

    requests = await _requests(warm, namespace, act)
    assert _steps(requests, COMPOSER) == _steps(requests, PROVIDER) == []


async def test_a_deletion_costs_four_writes_and_its_provider_three_and_one(warm: System, namespace: str) -> None:
    await _creation(warm, namespace, deletionPolicy="Delete")
    (child,) = await warm.children(namespace, "shop")
    old = {"status": {"madeAt": "2020-01-01T00:00:00Z"}}
    await warm.api.merge(f"{DATABASE.path(namespace, child['metadata']['name'])}/status", old)
    await warm.at_rest()

    async def act() -> None:
        await warm.delete(CLAIM, namespace, "shop")

    writes = await warm.writes_until_rest(act)
    requests = [request for request in writes if request.namespace == namespace and request.resource != "events"]
    word_then_delete = [_CHILD, ("delete", "postgresdatabases", "")]
    assert _steps(requests, COMPOSER) == [_CLAIM_STATUS, *word_then_delete, ("patch", "postgresqlinstances", "")]
    # The claim before its Secrets go with it, the child that its provider held: all else is proven by writes.
    assert _object_reads(requests, "postgresqlinstances") == ["shop"]
    assert _object_reads(requests, "postgresdatabases") == [child["metadata"]["name"]]
    intent_report_finalizer = [_CHILD_STATUS, _CHILD_STATUS, _CHILD]
    assert _steps(requests, PROVIDER, "postgresdatabases") == intent_report_finalizer
    assert _steps(requests, PROVIDER, "secrets") == [("delete", "secrets", "")]
    assert len(_steps(requests, PROVIDER)) == 4
    # The destroy rate limit counts it where a restart finds it.
    assert _steps(writes, PROVIDER, "providerconfigs") == [("patch", "providerconfigs", "status")]


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
        requests = await _creation(warm, namespace, compositionRef={"name": name})
        assert _steps(requests, COMPOSER) in _writes_of_a_creation(children=2)
        await warm.delete(CLAIM, namespace, "shop")
