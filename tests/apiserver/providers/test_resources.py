"""A resource without a claim whose password a user gives: it is waited for, used, and its new content rotates."""

from __future__ import annotations

import base64

import pytest

from tests.support.api import JsonObject
from tests.support.kinds import DATABASE, SECRET, condition, database, in_trouble, is_ready
from tests.support.system import System, decoded

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.apiserver, pytest.mark.postgres]


async def _logs_in_by(system: System, namespace: str, password: str) -> JsonObject:
    """Wait until the resource is Ready and an application logs in with what is published: this password."""

    def is_published(obj: JsonObject) -> bool:
        # The Secret is not watched: it is read again in a minute, or on request.
        token = obj["metadata"]["annotations"]["fairlead.dev/reconcile-requested-at"]
        return is_ready(obj) and bool(obj["status"].get("lastHandledReconcileAt") == token)

    await system.ask_for_a_pass(DATABASE, namespace, "given")
    obj = await system.until(DATABASE, namespace, "given", is_published)
    kept = decoded(await system.api.get(SECRET.path(namespace, "given-credentials")))
    login = {"username": kept["username"], "password": kept["current"], "certificates": kept["ca.crt"]}
    assert kept["current"] == password
    assert await system.logs_in_by({**obj["status"]["connection"], **login})
    return obj


async def test_a_missing_own_password_is_waited_for(running: System, namespace: str) -> None:
    await running.create(DATABASE, database(namespace, "given", passwordSecretRef={"name": "own", "key": "it"}))
    obj = await running.until(DATABASE, namespace, "given", in_trouble("SecretNotFound"))
    assert "own" in condition(obj, "Synced")["message"]

    data = {"it": base64.b64encode(b"chosen-by-me-1").decode()}
    await running.create(SECRET, SECRET.new(namespace, "own", data=data))
    await _logs_in_by(running, namespace, "chosen-by-me-1")
    data = {"it": base64.b64encode(b"chosen-by-me-2").decode()}
    await running.api.merge(SECRET.path(namespace, "own"), {"data": data})
    await _logs_in_by(running, namespace, "chosen-by-me-2")
