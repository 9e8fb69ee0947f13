"""What a ProviderConfig and a managed resource may not say: each gets its reason, and the server is not touched."""

import base64
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest
import pytest_asyncio

from tests.support.api import JsonObject
from tests.support.kinds import (
    DATABASE,
    PROVIDER_CONFIG,
    SECRET,
    condition,
    database,
    in_trouble,
    is_ready,
)
from tests.support.staff import Staff
from tests.support.system import System

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.apiserver, pytest.mark.postgres]

_MESSAGE_MAX_CHARS = 400
_REQUESTED, _HANDLED = "fairlead.dev/reconcile-requested-at", "lastHandledReconcileAt"
_WRONG_PASSWORD = "not-the-password-of-anybody"


@dataclass(frozen=True)
class Config:
    """A ProviderConfig with its Secret, the reason that a database of it must show, and words of its message."""

    reason: str
    says: tuple[str, ...] = ()
    spec: Mapping[str, Any] = field(default_factory=dict)
    secret: Mapping[str, str | None] | None = field(default_factory=dict)
    also: frozenset[str] = frozenset()


_CONFIGS: dict[str, Config] = {
    "no Secret": Config("CredentialsMissing", ("Secret",), secret=None),
    "a Secret without a password": Config("CredentialsMissing", ("password",), secret={"password": None}),
    "a Secret without a username": Config("CredentialsMissing", ("username",), secret={"username": None}),
    "a Secret without a host": Config(
        "CredentialsMissing", ("kubectl --namespace fairlead-onprem patch secret",), secret={"host": None}
    ),
    "a wrong password": Config("CredentialsInvalid", ("password",), secret={"password": _WRONG_PASSWORD}),
    "a limit that is reached": Config("LimitReached", ("at most 0 databases",), spec={"limits": {"instances": 0}}),
    "an authority that is none": Config(
        "CredentialsInvalid", ("caBundle",), spec={"caBundle": "-----BEGIN NONSENSE-----"}
    ),
}


@asynccontextmanager
async def _config(system: System, name: str, case: Config) -> AsyncIterator[None]:
    """Have a ProviderConfig for the length of a block, with an administrator's Secret of its own."""
    login = {**system.admin_login(), **(case.secret or {})}
    if case.secret is not None:
        data = {key: value for key, value in login.items() if value is not None}
        await system.create(SECRET, SECRET.new("fairlead-onprem", f"admin-{name}", stringData=data))
    reference = {"adminSecretRef": {"name": f"admin-{name}"}}
    await system.create(PROVIDER_CONFIG, system.provider_config(name, **reference, **case.spec))
    try:
        yield
    finally:
        if await system.api.find(PROVIDER_CONFIG.path("", name)) is not None:
            await system.delete(PROVIDER_CONFIG, "", name)


@dataclass(frozen=True)
class Answered:
    """What became of all cases, tried beside each other: databases by case, and the SQL that changed something."""

    databases: Mapping[str, JsonObject]
    sql: list[str]


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def answered(running: System) -> Answered:
    """Return a database of each ProviderConfig with what is wrong in its status, at rest and deleted again."""
    mark = running.sql.mark()
    async with running.namespace() as namespace, AsyncExitStack() as stack:
        names = {name: f"{namespace}-{number}" for number, name in enumerate(_CONFIGS)}
        for name, case in _CONFIGS.items():
            await stack.enter_async_context(_config(running, names[name], case))
            await running.create(DATABASE, database(namespace, names[name], config=names[name]))
        for name, case in _CONFIGS.items():
            await running.until(DATABASE, namespace, names[name], in_trouble(case.reason, *case.also))
        await running.at_rest(for_s=1.0)
        databases = {name: await running.api.get(DATABASE.path(namespace, names[name])) for name in _CONFIGS}
        # What never reached the server holds nobody up.
        for name in _CONFIGS:
            await running.delete(DATABASE, namespace, names[name])
    return Answered(databases, running.sql.changes(mark))


@pytest.mark.parametrize("name", _CONFIGS)
async def test_a_bad_provider_config_is_answered(answered: Answered, name: str) -> None:
    case, resource = _CONFIGS[name], answered.databases[name]
    message = condition(resource, "Synced")["message"]
    assert in_trouble(case.reason, *case.also)(resource)
    assert condition(resource, "Ready")["status"] == "False"
    assert len(message) <= _MESSAGE_MAX_CHARS
    for words in case.says:
        assert words in message
    assert _WRONG_PASSWORD not in str(resource)
    assert answered.sql == []


async def test_a_missing_provider_config_is_answered_and_taken_when_it_comes(running: System, namespace: str) -> None:
    await running.create(DATABASE, database(namespace, "early", config=namespace))
    resource = await running.until(DATABASE, namespace, "early", in_trouble("ProviderConfigNotFound"))
    assert namespace in condition(resource, "Synced")["message"]
    async with _config(running, namespace, Config("")):
        await running.until(DATABASE, namespace, "early", is_ready, limit_s=15.0)
        await running.delete(DATABASE, namespace, "early")


async def test_a_provider_config_in_use_is_held_with_the_count(running: System, namespace: str) -> None:
    async with _config(running, namespace, Config("")):
        for name in ("one", "two"):
            await running.create(DATABASE, database(namespace, name, config=namespace))
        for name in ("one", "two"):
            await running.until(DATABASE, namespace, name, is_ready)
        await running.api.delete(PROVIDER_CONFIG.path("", namespace))
        held = await running.until(PROVIDER_CONFIG, "", namespace, in_trouble("InUse"))
        assert "2" in condition(held, "Synced")["message"]
        for name in ("one", "two"):
            await running.delete(DATABASE, namespace, name)
        await running.api.until_gone(PROVIDER_CONFIG.path("", namespace))


async def test_one_destroy_too_many_within_an_hour_is_held_also_after_a_restart(staff: Staff, namespace: str) -> None:
    running = staff.system
    async with _config(running, namespace, Config("", spec={"limits": {"destroysPerHour": 1}})):
        for name in ("one", "two"):
            await running.create(DATABASE, database(namespace, name, config=namespace))
            await running.until(DATABASE, namespace, name, is_ready)
            # What was made within the hour does not count.
            old = {"status": {"madeAt": "2020-01-01T00:00:00Z"}}
            await running.api.merge(f"{DATABASE.path(namespace, name)}/status", old)
        await running.delete(DATABASE, namespace, "one")
        mark = running.sql.mark()
        await running.api.delete(DATABASE.path(namespace, "two"))
        held = await running.until(DATABASE, namespace, "two", in_trouble("Brake"))
        assert condition(held, "Stalled")["status"] == "True"

        await staff.stop_provider()
        await staff.start_provider()
        await running.ask_for_a_pass(DATABASE, namespace, "two")
        token = (await running.api.get(DATABASE.path(namespace, "two")))["metadata"]["annotations"][_REQUESTED]
        held = await running.until(DATABASE, namespace, "two", lambda obj: obj["status"].get(_HANDLED) == token)
        assert in_trouble("Brake")(held)
        assert running.sql.changes(mark) == []
        released = {"fairlead.dev/brake-released": "2999-01-01T00:00:00Z"}
        await running.edit(PROVIDER_CONFIG, "", namespace, {"metadata": {"annotations": released}})
        await running.ask_for_a_pass(DATABASE, namespace, "two")
        await running.api.until_gone(DATABASE.path(namespace, "two"))


_PASSWORDS = ("", "short12", "zero\0byte-inside", "line-end-inside\nhere")
"""One that is empty, one of seven characters, one with a zero byte, one with a line end."""


async def test_a_password_that_cannot_be_used_is_refused_by_its_rule(running: System, namespace: str) -> None:
    mark = running.sql.mark()
    names = {f"chosen-{number}": password for number, password in enumerate(_PASSWORDS)}
    for name, password in names.items():
        data = {"it": base64.b64encode(password.encode()).decode()}
        await running.create(SECRET, SECRET.new(namespace, name, data=data))
        await running.create(DATABASE, database(namespace, name, passwordSecretRef={"name": name, "key": "it"}))
    for name, password in names.items():
        resource = await running.until(DATABASE, namespace, name, in_trouble("InvalidPassword"))
        assert not password or password not in str(resource["status"])
    assert running.sql.changes(mark) == []
