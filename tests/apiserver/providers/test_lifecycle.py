"""A resource's way through the provider on the real API server and a real PostgreSQL, counted write by write."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from providers.cloud import Credential
from providers.onprem.login import Server, try_login
from providers.passwords import Login
from tests.support.api import JsonObject
from tests.support.audit import WRITES, Match, Request
from tests.support.kinds import DATABASE, SECRET, database, is_ready
from tests.support.system import PROVIDER, System

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.apiserver, pytest.mark.postgres]


async def ready(system: System, namespace: str, name: str) -> JsonObject:
    return await system.until(DATABASE, namespace, name, is_ready)


async def made(system: System, namespace: str, name: str, **spec: Any) -> JsonObject:
    await system.create(DATABASE, database(namespace, name, **spec))
    return await ready(system, namespace, name)


async def login(system: System, obj: JsonObject) -> Login:
    connection = obj["status"]["connection"]
    meta = obj["metadata"]
    secret = await system.api.get(SECRET.path(meta["namespace"], connection["passwordRef"]["name"]))
    kept = {key: base64.b64decode(value).decode() for key, value in secret["data"].items()}
    server = Server(connection["host"], connection["port"], kept["ca.crt"])
    answer, _ = await try_login(server, connection["database"], Credential(kept["username"], kept["current"]))
    return answer


def writes(requests: list[Request]) -> tuple[list[Request], list[Request]]:
    """Split into writes of objects and of Secrets; events are neither."""
    objects = [one for one in requests if one.resource == "postgresdatabases"]
    return objects, [one for one in requests if one.resource == "secrets"]


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
    assert (len(objects), len(secrets)) == (4, 2), [one.uri for one in audit.requests(match)]

    audit = system.audit()
    await system.edit(DATABASE, namespace, "counted", {"spec": {"forProvider": {"connectionLimit": 7}}})
    obj = await ready(system, namespace, "counted")
    await audit.until_quiet(match)
    objects, secrets = writes(audit.requests(match))
    assert (len(objects), len(secrets)) == (2, 0), [one.uri for one in audit.requests(match)]
    assert await system.connection_limit(obj["status"]["externalName"]) == 7

    audit = system.audit()
    await system.delete(DATABASE, namespace, "counted")
    await audit.until_quiet(match)
    objects, secrets = writes(audit.requests(match))
    assert (len(objects), len(secrets)) == (3, 1), [one.uri for one in audit.requests(match)]
    assert await system.api.find(SECRET.path(namespace, "counted-credentials")) is None
