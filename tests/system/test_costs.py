"""What a claim costs: the exact requests of composer and provider for a creation, an edit and a deletion, in order."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from tests.support.audit import WRITES, Request
from tests.support.kinds import CLAIM, DATABASE, claim, is_ready
from tests.support.system import COMPOSER, PROVIDER, System

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.apiserver, pytest.mark.postgres]

Step = tuple[str, str, str]
CLAIM_STATUS: Step = ("patch", "postgresqlinstances", "status")
_CHILD: Step = ("patch", "postgresdatabases", "")
_CHILD_STATUS: Step = ("patch", "postgresdatabases", "status")


async def requests_during(system: System, namespace: str, act: Callable[[], Awaitable[Any]]) -> list[Request]:
    """Do something; return what both processes asked of that namespace until rest. Events are best effort, apart."""
    requests = await system.writes_until_rest(act)
    return [
        request
        for request in requests
        if request.namespace == namespace and request.resource != "events" and request.verb != "watch"
    ]


def steps(requests: list[Request], user: str, *resources: str) -> list[Step]:
    return [
        (request.verb, request.resource, request.subresource)
        for request in requests
        if request.user == user and request.verb in WRITES and (not resources or request.resource in resources)
    ]


def secret_reads(requests: list[Request], user: str) -> list[str]:
    return [
        request.name
        for request in requests
        if request.user == user and request.resource == "secrets" and request.verb not in WRITES
    ]


def _object_reads(requests: list[Request], resource: str) -> list[str]:
    """Return what the composer read by name of a resource, each object once."""
    reads = (request for request in requests if request.user == COMPOSER and request.resource == resource)
    return sorted({request.name for request in reads if request.verb == "get"})


async def creation(system: System, namespace: str, **spec: Any) -> list[Request]:
    async def act() -> None:
        await system.create(CLAIM, claim(namespace, "shop", **spec))
        await system.until(CLAIM, namespace, "shop", is_ready)

    return await requests_during(system, namespace, act)


def writes_of_a_creation(children: int) -> list[list[Step]]:
    """Return the writes of a new claim, in order: where its provider answers within half a second, and where not.

    Where not, the claim gets one more status, which says what it waits for; with a second child, whose answer comes
    apart, one more again.
    """
    created: list[Step] = [("patch", "postgresqlinstances", ""), *[("create", "postgresdatabases", "")] * children]
    ready: list[Step] = [("create", "secrets", ""), CLAIM_STATUS]
    return [[*created, *[CLAIM_STATUS] * waits, *ready] for waits in range(children + 1)]


async def test_a_new_claim_with_one_child_costs_four_writes_or_five_and_one_secret_read_and_its_provider_six(
    warm: System, namespace: str
) -> None:
    requests = await creation(warm, namespace)
    assert all(request.code < 400 for request in requests if request.verb in WRITES)
    assert steps(requests, COMPOSER) in writes_of_a_creation(children=1)
    (child,) = await warm.children(namespace, "shop")
    assert secret_reads(requests, COMPOSER) == [f"{child['metadata']['name']}-credentials"]
    marks_intent_incarnation_report = [_CHILD, _CHILD_STATUS, _CHILD, _CHILD_STATUS]
    assert steps(requests, PROVIDER, "postgresdatabases") == marks_intent_incarnation_report
    assert steps(requests, PROVIDER, "secrets") == [("create", "secrets", ""), ("update", "secrets", "")]
    assert len(steps(requests, PROVIDER)) == 6


async def test_an_edit_costs_three_writes_one_that_asks_nothing_one_status_and_a_label_nothing(
    warm: System, namespace: str
) -> None:
    await creation(warm, namespace)
    (child,) = await warm.children(namespace, "shop")

    async def edited(**spec: Any) -> list[Request]:
        async def act() -> None:
            await warm.edit(CLAIM, namespace, "shop", {"spec": spec})
            await warm.until(CLAIM, namespace, "shop", is_ready)

        return await requests_during(warm, namespace, act)

    async def label() -> None:
        for kind, name in ((CLAIM, "shop"), (DATABASE, child["metadata"]["name"])):
            await warm.edit(kind, namespace, name, {"metadata": {"labels": {"team": "blue"}}})

    # The first edit of a child costs what a later one does.
    first, second = await edited(size="medium"), await edited(size="large")
    assert steps(first, COMPOSER) == steps(second, COMPOSER) == [_CHILD, CLAIM_STATUS, CLAIM_STATUS]
    intent_report = [_CHILD_STATUS, _CHILD_STATUS]
    assert steps(first, PROVIDER) == steps(second, PROVIDER) == intent_report
    assert secret_reads(second, COMPOSER) == []
    of_the_claim_alone = await edited(deletionProtection=True)
    assert (steps(of_the_claim_alone, COMPOSER), steps(of_the_claim_alone, PROVIDER)) == ([CLAIM_STATUS], [])
    labelled = await requests_during(warm, namespace, label)
    assert steps(labelled, COMPOSER) == steps(labelled, PROVIDER) == []


async def test_a_deletion_costs_four_writes_and_its_provider_three_and_one(warm: System, namespace: str) -> None:
    await creation(warm, namespace, deletionPolicy="Delete")
    (child,) = await warm.children(namespace, "shop")
    old = {"status": {"madeAt": "2020-01-01T00:00:00Z"}}
    await warm.api.merge(f"{DATABASE.path(namespace, child['metadata']['name'])}/status", old)
    await warm.at_rest()

    async def act() -> None:
        await warm.delete(CLAIM, namespace, "shop")

    writes = await warm.writes_until_rest(act)
    requests = [request for request in writes if request.namespace == namespace and request.resource != "events"]
    word_then_delete = [_CHILD, ("delete", "postgresdatabases", "")]
    assert steps(requests, COMPOSER) == [CLAIM_STATUS, *word_then_delete, ("patch", "postgresqlinstances", "")]
    # The claim before its Secrets go with it, the child that its provider held: all else is proven by writes.
    assert _object_reads(requests, "postgresqlinstances") == ["shop"]
    assert _object_reads(requests, "postgresdatabases") == [child["metadata"]["name"]]
    intent_report_finalizer = [_CHILD_STATUS, _CHILD_STATUS, _CHILD]
    assert steps(requests, PROVIDER, "postgresdatabases") == intent_report_finalizer
    assert steps(requests, PROVIDER, "secrets") == [("delete", "secrets", "")]
    assert len(steps(requests, PROVIDER)) == 4
    # The destroy rate limit counts it where a restart finds it.
    assert steps(writes, PROVIDER, "providerconfigs") == [("patch", "providerconfigs", "status")]
