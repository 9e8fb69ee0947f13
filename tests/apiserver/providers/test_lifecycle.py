"""A resource's way through the provider on the real API server and a real PostgreSQL, counted write by write."""

from __future__ import annotations

import pytest

from providers.external.credential import Login
from tests.apiserver.providers.actions import login, made, ready
from tests.support.audit import WRITES, Match, Request
from tests.support.kinds import DATABASE, SECRET
from tests.support.system import PROVIDER, System

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.apiserver, pytest.mark.postgres]


def writes(requests: list[Request]) -> tuple[list[Request], list[Request]]:
    """Split into writes of objects and of Secrets; events are neither."""
    objects = [request for request in requests if request.resource == "postgresdatabases"]
    return objects, [request for request in requests if request.resource == "secrets"]


async def test_a_new_resource_becomes_a_database_that_its_secret_opens(system: System, namespace: str) -> None:
    obj = await made(system, namespace, "first")

    assert await login(system, obj) is Login.OK
    status = obj["status"]
    assert status["connection"]["sslmode"] == "verify-full"
    annotations = obj["metadata"]["annotations"]
    assert annotations["fairlead.dev/external-name"] == status["externalName"] == status["connection"]["database"]
    assert annotations["fairlead.dev/incarnation"] == status["incarnation"]
    assert "intent" not in status


async def test_create_update_and_deletion_cost_what_they_may(system: System, namespace: str) -> None:
    await made(system, namespace, "warm")
    match = Match(user=PROVIDER, namespace=namespace, verbs=WRITES)
    audit = system.audit()
    await audit.until_quiet(match)

    audit = system.audit()
    await made(system, namespace, "counted")
    await audit.until_quiet(match)
    objects, secrets = writes(audit.requests(match))
    assert (len(objects), len(secrets)) == (4, 2), [request.uri for request in audit.requests(match)]

    audit = system.audit()
    await system.edit(DATABASE, namespace, "counted", {"spec": {"forProvider": {"connectionLimit": 7}}})
    obj = await ready(system, namespace, "counted")
    await audit.until_quiet(match)
    objects, secrets = writes(audit.requests(match))
    assert (len(objects), len(secrets)) == (2, 0), [request.uri for request in audit.requests(match)]
    assert await system.connection_limit(obj["status"]["externalName"]) == 7

    audit = system.audit()
    await system.delete(DATABASE, namespace, "counted")
    await audit.until_quiet(match)
    objects, secrets = writes(audit.requests(match))
    assert (len(objects), len(secrets)) == (3, 1), [request.uri for request in audit.requests(match)]
    assert await system.api.find(SECRET.path(namespace, "counted-credentials")) is None
