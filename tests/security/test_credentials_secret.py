"""What a tenant writes into the credentials Secret of a database of its own, and what comes of it: nothing for others.

The Secret lies in the tenant's namespace. A policy keeps a tenant from writing it; the attacks are written here as
somebody whom the policy lets through, since the provider must be safe without it.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass

import psycopg
import pytest
import pytest_asyncio

from tests.security.builders import panics
from tests.support.api import JsonObject
from tests.support.home import Home, claim, move_in
from tests.support.kinds import CLAIM, DATABASE, SECRET, is_ready
from tests.support.system import System, decoded
from tests.support.tenants import Person
from tests.support.waiting import eventually

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.apiserver, pytest.mark.postgres]

PASSWORD = "Attackers1own2password3chosen456"
_ROLES = """
SELECT r.rolname, r.rolcanlogin, r.rolsuper, r.rolcreatedb, r.rolcreaterole, r.rolreplication, r.rolbypassrls,
    r.rolconnlimit, coalesce(a.rolpassword, ''), coalesce(r.rolconfig::text, '')
FROM pg_catalog.pg_roles r JOIN pg_catalog.pg_authid a ON a.oid = r.oid
WHERE r.rolname NOT LIKE 'pg\\_%' ORDER BY 1
"""
_MEMBERS = """
SELECT pg_catalog.pg_get_userbyid(roleid), pg_catalog.pg_get_userbyid(member), admin_option, inherit_option, set_option
FROM pg_catalog.pg_auth_members ORDER BY 1, 2, 3, 4, 5
"""


@dataclass(frozen=True, slots=True)
class Duel:
    """A victim and an attacker, each with a database on the same server."""

    system: System
    victim: Home
    attacker: Home

    async def credentials(self, home: Home) -> tuple[str, dict[str, str]]:
        """Return the path and the content of a claim's credentials Secret."""
        path = SECRET.path(home.namespace, f"{(await home.child())['metadata']['name']}-credentials")
        return path, decoded(await self.system.api.get(path))

    async def tamper(self, **data: str | None) -> None:
        """Write keys of the attacker's credentials Secret; None takes a key away."""
        path, _ = await self.credentials(self.attacker)
        changes = {key: None for key, value in data.items() if value is None}
        texts = {key: value for key, value in data.items() if value is not None}
        await self.system.api.merge(path, {"data": changes, "stringData": texts})

    async def look(self, home: Home) -> None:
        """Have a resource looked at, and wait until that was done."""
        name, token = (await home.child())["metadata"]["name"], secrets.token_hex(8)
        annotations = {"fairlead.dev/reconcile-requested-at": token}
        await self.system.api.merge(DATABASE.path(home.namespace, name), {"metadata": {"annotations": annotations}})

        def handled(obj: JsonObject) -> bool:
            return bool((obj.get("status") or {}).get("lastHandledReconcileAt") == token)

        await self.system.until(DATABASE, home.namespace, name, handled)

    async def rotate(self) -> None:
        """Ask for a new password of the attacker's, and wait until the claim is in sync with it."""
        token = {"spec": {"passwordRotation": {"token": secrets.token_hex(4)}}}
        await self.system.api.merge(self.attacker.path, token)
        await self.system.until(CLAIM, self.attacker.namespace, self.attacker.name, is_ready)

    async def roles(self) -> dict[str, tuple[object, ...]]:
        """Return all that the server knows of each role, its password's verifier too."""
        rows = await self.system.server.server.execute(_ROLES)
        return {str(name): tuple(rest) for name, *rest in rows}

    async def of_the_victim(self) -> tuple[object, ...]:
        """Return roles, memberships and settings of the victim's."""
        stem = f"{self.victim.namespace}_{self.victim.name}"
        roles = {name: rest for name, rest in (await self.roles()).items() if name.startswith(stem)}
        members = await self.system.server.server.execute(_MEMBERS)
        return roles, [row for row in members if any(str(name).startswith(stem) for name in row[:2])]


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def victim(running: System, alice: Person) -> Home:
    """Return the database of a neighbour, which no attack may change: one for all of them."""
    return await move_in(running, claim(alice.namespace, f"v{secrets.token_hex(2)}"))


@pytest_asyncio.fixture(loop_scope="session")
async def duel(running: System, victim: Home, mallory: Person) -> Duel:
    attacker = await move_in(running, claim(mallory.namespace, f"m{secrets.token_hex(2)}"))
    return Duel(running, victim, attacker)


@pytest_asyncio.fixture(loop_scope="session")
async def attacker(running: System, mallory: Person) -> Duel:
    """Return a database that its own tenant tampers with: one a test, for a second rotation waits for an hour."""
    home = await move_in(running, claim(mallory.namespace, f"tampered-{secrets.token_hex(2)}"))
    return Duel(running, home, home)


async def _is_usable(duel: Duel) -> None:
    """Wait until the attacker's own claim has recovered: Ready, with a login that works and is one of its own two."""

    async def usable() -> bool:
        await duel.look(duel.attacker)
        obj = await duel.system.api.get(duel.attacker.path)
        return is_ready(obj) and await duel.system.logs_in(duel.attacker.namespace, duel.attacker.name)

    await eventually(usable, "the attacker's claim works again")
    _, kept = await duel.credentials(duel.attacker)
    published = await duel.system.binding(duel.attacker.namespace, duel.attacker.name)
    stem = f"{duel.attacker.database}"
    assert kept["username"] in {f"{stem}_a", f"{stem}_b"}
    assert (kept["username"], kept["current"]) == (published["username"], published["password"])


_FORMS = {
    "the other login of a neighbour": "{victim}_b",
    "an attribute of a neighbour's login": "{victim}_b.login",
    "a right of its own login": "{own}_a.createrole",
    "the settings of a neighbour's login": "{victim}_a.settings",
    "another right of its own login": "{own}_a.createdb",
    "the published login of a neighbour": "{victim}_a",
}


@pytest.mark.parametrize("current", ["kept", "removed"])
@pytest.mark.parametrize("form", _FORMS, ids=lambda form: form.replace(" ", "-"))
async def test_a_username_that_is_not_derived_is_never_acted_on(duel: Duel, form: str, current: str) -> None:
    username = _FORMS[form].format(victim=duel.victim.database, own=duel.attacker.database)
    before, names = await duel.of_the_victim(), set(await duel.roles())

    gone = {"current": None} if current == "removed" else {}
    await duel.tamper(username=username, pending=PASSWORD, **gone)
    await duel.look(duel.attacker)
    await duel.look(duel.victim)
    await duel.rotate()
    await duel.look(duel.victim)

    assert await duel.of_the_victim() == before
    roles = await duel.roles()
    assert set(roles) - names <= {f"{duel.attacker.database}_b"}
    assert not any(rest[2] or rest[3] for name, rest in roles.items() if name.startswith(duel.attacker.database))
    await _is_usable(duel)
    await duel.victim.until_home()
    with pytest.raises(psycopg.OperationalError):
        await duel.system.login_by(
            await duel.system.binding(duel.victim.namespace, duel.victim.name)
            | {"username": f"{duel.victim.database}_b", "password": PASSWORD}
        )


_CONTENTS: dict[str, dict[str, str | None]] = {
    "the other of its own logins": {"username": "{own}_b"},
    "no login": {"username": None},
    "a login with a zero byte": {"username": "{own}_a\0"},
    "a pending password that nobody asked for": {"pending": PASSWORD},
    "a weak pending password": {"pending": "weak"},
    "a pending password that no verifier takes": {"pending": "pässwörter-ünd-mehr"},
    "a pending password with quotes": {"pending": "';ALTER ROLE x SUPERUSER;--\\"},
    "another password": {"current": PASSWORD},
    "another password of the other login": {"current": PASSWORD, "username": "{own}_b"},
    "a password that no verifier takes": {"current": "pässwörter-ünd-mehr"},
    "nothing": {"current": None, "pending": None, "username": None, "ca.crt": None},
}


@pytest.mark.parametrize("content", _CONTENTS, ids=lambda content: content.replace(" ", "-"))
async def test_a_secret_with_foreign_content_locks_nobody_out(attacker: Duel, content: str) -> None:
    duel, own = attacker, attacker.attacker.database
    before, published = await duel.roles(), await duel.system.binding(duel.attacker.namespace, duel.attacker.name)

    await duel.tamper(**{key: text and text.format(own=own) for key, text in _CONTENTS[content].items()})
    await duel.look(duel.attacker)

    assert {name: rest[:8] for name, rest in (await duel.roles()).items()} == {
        name: rest[:8] for name, rest in before.items()
    }
    assert await duel.system.logs_in_by(published)
    await duel.rotate()
    await _is_usable(duel)
    assert await panics(duel.system) == 0


async def test_a_credentials_secret_that_cannot_be_changed_any_more_is_made_anew(attacker: Duel) -> None:
    path, _ = await attacker.credentials(attacker.attacker)
    await attacker.system.api.merge(path, {"immutable": True})

    await attacker.rotate()

    await _is_usable(attacker)


_WRITES: dict[str, JsonObject] = {
    "a login": {"stringData": {"username": "alice_b"}},
    "a password": {"stringData": {"current": PASSWORD}},
    "a key taken away": {"data": {"current": None}},
    "its claim": {"metadata": {"labels": {"fairlead.dev/claim": "another"}}},
    "that it stays as it is": {"immutable": True},
}


@pytest.mark.parametrize("write", _WRITES, ids=lambda write: write.replace(" ", "-"))
async def test_a_tenant_is_refused_the_content_of_a_credentials_secret(
    attacker: Duel, mallory: Person, write: str
) -> None:
    path, _ = await attacker.credentials(attacker.attacker)
    before = await attacker.system.api.get(path)

    assert await mallory.is_refused("PATCH", path, _WRITES[write])

    assert (await attacker.system.api.get(path))["data"] == before["data"]


async def test_a_tenant_is_refused_a_credentials_secret_of_its_own(mallory: Person) -> None:
    body = SECRET.new(mallory.namespace, "to-be-credentials", type="fairlead.dev/credentials", stringData={"a": "b"})

    assert await mallory.is_refused("POST", SECRET.path(mallory.namespace), body)


async def test_a_tenant_may_label_and_delete_a_credentials_secret(attacker: Duel, mallory: Person) -> None:
    path, _ = await attacker.credentials(attacker.attacker)
    published = await attacker.system.binding(attacker.attacker.namespace, attacker.attacker.name)

    await mallory.api.merge(path, {"metadata": {"labels": {"team": "red"}}})
    await mallory.api.delete(path)
    await attacker.look(attacker.attacker)

    assert await attacker.system.logs_in_by(published)
    await _is_usable(attacker)
