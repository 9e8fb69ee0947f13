"""What a ProviderConfig and a managed resource may not say: each gets its reason, and the server is not touched."""

import base64
import secrets
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest

from tests.support.api import ApiError
from tests.support.kinds import (
    DATABASE,
    PROVIDER_CONFIG,
    SECRET,
    condition,
    database,
    in_trouble,
    is_ready,
)
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
    "a Secret for another host": Config(
        "EndpointNotAllowed", ("nothing was sent",), secret={"host": "pg1.example.org"}
    ),
    "an empty password": Config(
        "CredentialsMissing", ("password",), secret={"password": ""}, also=frozenset({"CredentialsInvalid"})
    ),
    "a wrong password": Config("CredentialsInvalid", ("password",), secret={"password": _WRONG_PASSWORD}),
    "a namespace that is not allowed": Config("NotAllowed", spec={"allowedNamespaces": {"names": ["some-other"]}}),
    "nobody allowed": Config("NotAllowed", spec={"allowedNamespaces": None}),
    "a limit that is reached": Config("LimitReached", ("at most 0 databases",), spec={"limits": {"instances": 0}}),
    "an authority that is none": Config(
        "CredentialsInvalid", ("caBundle",), spec={"caBundle": "-----BEGIN NONSENSE-----"}
    ),
}


@asynccontextmanager
async def config(system: System, name: str, case: Config) -> AsyncIterator[None]:
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


@pytest.mark.parametrize("case", _CONFIGS.values(), ids=_CONFIGS.keys())
async def test_a_bad_provider_config_is_answered(serving: System, namespace: str, case: Config) -> None:
    mark = serving.sql.mark()
    async with config(serving, namespace, case):
        await serving.create(DATABASE, database(namespace, "answered", config=namespace))
        resource = await serving.until(DATABASE, namespace, "answered", in_trouble(case.reason, *case.also))
        message = condition(resource, "Synced")["message"]
        assert condition(resource, "Ready")["status"] == "False"
        assert len(message) <= _MESSAGE_MAX_CHARS
        for words in case.says:
            assert words in message
        assert _WRONG_PASSWORD not in str(resource)
        await serving.at_rest(for_s=1.0)
        # What never reached the server holds nobody up.
        await serving.delete(DATABASE, namespace, "answered")
    assert serving.sql.changes(mark) == []


async def test_a_missing_provider_config_is_answered_and_taken_when_it_comes(serving: System, namespace: str) -> None:
    await serving.create(DATABASE, database(namespace, "early", config=namespace))
    resource = await serving.until(DATABASE, namespace, "early", in_trouble("ProviderConfigNotFound"))
    assert namespace in condition(resource, "Synced")["message"]
    async with config(serving, namespace, Config("")):
        await serving.until(DATABASE, namespace, "early", is_ready, limit_s=15.0)
        await serving.delete(DATABASE, namespace, "early")


_HOSTS = {
    "a link-local address by URL": "http://169.254.169.254",
    "a URL": "https://evil.example",
    "a socket's folder": "/var/run/postgresql",
    "an abstract socket": "@fairlead",
    "a user before the host": "user:pass@127.0.0.1",
    "a list of hosts": "127.0.0.1,evil.example",
    "a line end": "127.0.0.1\n",
    "another parameter": "127.0.0.1 sslmode=disable",
}


@pytest.mark.parametrize("host", _HOSTS.values(), ids=_HOSTS.keys())
async def test_a_host_that_is_none_is_refused_at_admission(system: System, host: str) -> None:
    name = f"host-{secrets.token_hex(4)}"
    with pytest.raises(ApiError) as refusal:
        await system.create(PROVIDER_CONFIG, system.provider_config(name, host=host))
    assert refusal.value.status == 422
    assert "spec.host" in str(refusal.value)


async def test_one_destroy_too_many_within_an_hour_is_held_also_after_a_restart(
    serving: System, namespace: str
) -> None:
    async with config(serving, namespace, Config("", spec={"limits": {"destroysPerHour": 1}})):
        for name in ("one", "two"):
            await serving.create(DATABASE, database(namespace, name, config=namespace))
            await serving.until(DATABASE, namespace, name, is_ready)
            # What was made within the hour does not count.
            old = {"status": {"madeAt": "2020-01-01T00:00:00Z"}}
            await serving.api.merge(f"{DATABASE.path(namespace, name)}/status", old)
        await serving.delete(DATABASE, namespace, "one")
        mark = serving.sql.mark()
        await serving.api.delete(DATABASE.path(namespace, "two"))
        held = await serving.until(DATABASE, namespace, "two", in_trouble("Brake"))
        assert condition(held, "Stalled")["status"] == "True"

        assert await serving.started[-1].terminate() == 0
        await serving.start_provider()
        await serving.ask_for_a_pass(DATABASE, namespace, "two")
        token = (await serving.api.get(DATABASE.path(namespace, "two")))["metadata"]["annotations"][_REQUESTED]
        held = await serving.until(DATABASE, namespace, "two", lambda obj: obj["status"].get(_HANDLED) == token)
        assert in_trouble("Brake")(held)
        assert serving.sql.changes(mark) == []
        released = {"fairlead.dev/brake-released": "2999-01-01T00:00:00Z"}
        await serving.edit(PROVIDER_CONFIG, "", namespace, {"metadata": {"annotations": released}})
        await serving.ask_for_a_pass(DATABASE, namespace, "two")
        await serving.api.until_gone(DATABASE.path(namespace, "two"))


_PASSWORDS = {
    "an empty password": "",
    "a password of seven characters": "short12",
    "a password with a zero byte": "zero\0byte-inside",
    "a password with a line end": "line-end-inside\nhere",
}


@pytest.mark.parametrize("password", _PASSWORDS.values(), ids=_PASSWORDS.keys())
async def test_a_password_that_cannot_be_used_is_refused_by_its_rule(
    serving: System, namespace: str, password: str
) -> None:
    mark = serving.sql.mark()
    data = {"it": base64.b64encode(password.encode()).decode()}
    await serving.create(SECRET, SECRET.new(namespace, "chosen", data=data))
    reference = {"name": "chosen", "key": "it"}
    await serving.create(DATABASE, database(namespace, "chosen", passwordSecretRef=reference))
    resource = await serving.until(DATABASE, namespace, "chosen", in_trouble("InvalidPassword"))
    if password:
        assert password not in str(resource["status"])
    assert serving.sql.changes(mark) == []
