"""What a tenant or a Composition puts into texts, names and Secrets stays data: no loop, no panic, no other path."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
import pytest_asyncio

from tests.security.builders import composed_settings, database, databases_of, panics, says, settings
from tests.support.api import JsonObject
from tests.support.audit import Match, Request
from tests.support.kinds import CLAIM, COMPOSITION, DATABASE, SECRET, composition, condition, is_ready
from tests.support.kinds import database as direct
from tests.support.shared import at_work
from tests.support.system import COMPOSER, PROVIDER, System
from tests.support.tenants import Person
from tests.support.waiting import eventually

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.apiserver, pytest.mark.postgres]

_TEXTS = {
    "string": "{{ resources.database.status | string }}",
    "tilde": "{{ resources.database.status ~ '' }}",
    "join": "{{ [resources.database.status] | join(',') }}",
    "unique": "{{ [resources.database.status.connection.host] | unique | string }}",
    "nested": "{{ [resources.database.status.connection] | string }}",
}


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def written(running: System, mallory: Person, platform: Person) -> dict[str, str]:
    """Return what claims of each form wrote, once nobody writes any more, as they would without end."""
    for form, text in _TEXTS.items():
        name = f"text-{form}"
        body = composition(name, database(), settings(text=text), connection={"from": "database"})
        await platform.create(COMPOSITION, body)
        await running.until(COMPOSITION, "", name, lambda obj: bool(condition(obj, "Ready")))
        await mallory.claim(name, compositionRef={"name": name})

    def answered(obj: JsonObject) -> bool:
        return is_ready(obj) or condition(obj, "Synced").get("status") == "False"

    for form in _TEXTS:
        await running.until(CLAIM, "mallory", f"text-{form}", answered)
    await running.at_rest(for_s=2.0, limit_s=40.0)
    made = await composed_settings(running, "mallory")
    return {obj["metadata"]["annotations"]["fairlead.dev/claim-name"]: obj["data"].get("text", "") for obj in made}


@pytest.mark.parametrize("form", _TEXTS)
async def test_a_status_as_text_is_written_once_and_shows_no_address_of_memory(
    written: dict[str, str], form: str
) -> None:
    assert " at 0x" not in written.get(f"text-{form}", "")


async def test_bytes_that_are_no_text_are_a_missing_key_and_no_panic(
    running: System, mallory: Person, platform: Person
) -> None:
    keys = {name: name for name in ("host", "port", "database", "username", "password", "sslmode")}
    source = {"secretRef": {"resource": "settings", "name": "{{ claim.metadata.name }}-source", "keys": keys}}
    await platform.create(COMPOSITION, composition("bytes", settings(), connection=source))
    login = {"host": "127.0.0.1", "port": "5432", "database": "d", "username": "u", "sslmode": "require"}
    await mallory.secret("bytes-source", **login, password="first")
    await mallory.api.merge(SECRET.path("mallory", "bytes-source"), {"data": {"password": "//79"}})

    await mallory.claim("bytes", compositionRef={"name": "bytes"})

    obj = await running.until(
        CLAIM, "mallory", "bytes", says("Synced", "SecretNotFound", "ConnectionIncomplete", "CredentialsMissing")
    )
    assert "password" in condition(obj, "Synced")["message"]
    await mallory.api.merge(SECRET.path("mallory", "bytes-source"), {"stringData": {"password": "first"}})
    await running.ask_for_a_pass(CLAIM, "mallory", "bytes")
    await running.until(CLAIM, "mallory", "bytes", is_ready)
    assert await panics(running) == 0


async def test_bytes_in_the_secrets_of_a_claim_are_no_panic(running: System, mallory: Person) -> None:
    await mallory.claim("garbled")
    await running.until(CLAIM, "mallory", "garbled", is_ready)
    [child] = await databases_of(running, "mallory", "garbled")
    for name in ("garbled-connection", f"{child['metadata']['name']}-credentials"):
        for key in ("password", "username", "current", "pending", "host"):
            # Where a tenant may not write it, the attack ends here.
            await mallory.is_accepted("PATCH", SECRET.path("mallory", name), {"data": {key: "//79"}})
    await running.ask_for_a_pass(CLAIM, "mallory", "garbled")
    await running.ask_for_a_pass(DATABASE, "mallory", child["metadata"]["name"])
    await running.at_rest()

    assert await panics(running) == 0


_NAMES = ("x?y#z", "../alice/app-connection", "..", "a/b", "%2e%2e/app-connection")


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def asked_for(running: System, mallory: Person, platform: Person) -> list[Request]:
    """Return what our processes asked for of Secrets while objects named such that are none."""
    audit = running.audit()
    await asyncio.gather(*(_named(running, mallory, platform, number) for number in range(len(_NAMES))))
    await running.at_rest(for_s=1.0)
    return [request for request in audit.requests(Match(resource="secrets")) if request.user in {COMPOSER, PROVIDER}]


async def _named(running: System, mallory: Person, platform: Person, number: int) -> None:
    """Have a claim and a resource name a Secret, where they may."""

    def is_refused(obj: JsonObject) -> bool:
        return condition(obj, "Synced").get("status") == "False"

    # An expression gives it: no schema has seen it before.
    authority = {"kind": "Secret", "name": f"{{{{ '{_NAMES[number]}' }}}}", "key": "ca.crt"}
    body = composition(f"path-{number}", database(), connection={"from": "database", "caRef": authority})
    if await platform.is_accepted("POST", COMPOSITION.path(), body):
        await mallory.claim(f"path-{number}", compositionRef={"name": f"path-{number}"})
        await running.until(CLAIM, "mallory", f"path-{number}", is_refused)
    made = direct("mallory", f"direct-{number}", passwordSecretRef={"name": _NAMES[number], "key": "password"})
    if await platform.is_accepted("POST", DATABASE.path("mallory"), made):
        obj = await running.until(DATABASE, "mallory", f"direct-{number}", is_refused)
        assert "Secret" in condition(obj, "Synced")["message"]


@pytest.mark.parametrize("name", _NAMES)
async def test_a_name_that_is_none_is_never_asked_for(asked_for: list[Request], name: str) -> None:
    odd = {"x", "a", "app-connection", name}

    assert [request.uri for request in asked_for if request.name in odd or ".." in request.uri] == []


def _open_files(pid: int) -> int:
    return len(list(Path(f"/proc/{pid}/fd").iterdir()))


async def test_idle_connections_to_the_health_port_hold_no_file_and_no_probe(running: System) -> None:
    port, (program,) = running.ports["composer"], at_work(running, "composer")
    before = _open_files(program.pid)
    opened = await asyncio.gather(*(asyncio.open_connection("127.0.0.1", port) for _ in range(300)))
    try:

        async def bounded() -> bool:
            return _open_files(program.pid) - before <= 64

        await eventually(bounded, "few connections are held", limit_s=4.0)
        await program.until_healthy(port, limit_s=20.0)
    finally:
        for _reader, writer in opened:
            writer.close()
    await program.until_healthy(port)
