"""What a tenant writes into the credentials Secret of a database of its own, and what comes of it: nothing for others.

The Secret lies in the tenant's namespace. A policy keeps a tenant from writing it; the attacks are written here as
somebody whom the policy lets through, since the provider must be safe without it.
"""

from __future__ import annotations

import asyncio
import secrets
from dataclasses import dataclass

import psycopg
import pytest
import pytest_asyncio

from tests.security.builders import at_once, expect, panics
from tests.support.api import JsonObject
from tests.support.home import Home, claim, move_in
from tests.support.kinds import CLAIM, DATABASE, SECRET, is_ready
from tests.support.system import System, decoded
from tests.support.tenants import Person
from tests.support.waiting import eventually

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.apiserver, pytest.mark.postgres]

PASSWORD = "Attackers1own2password3chosen456"
# A dozen attacks at a time wait for their turns in one namespace.
_LIMIT_S = 240.0
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

        await self.system.until(DATABASE, home.namespace, name, handled, limit_s=_LIMIT_S)

    async def rotate(self) -> None:
        """Ask for a new password of the attacker's, and wait until the claim is in sync with it."""
        token = {"spec": {"passwordRotation": {"token": secrets.token_hex(4)}}}
        await self.system.api.merge(self.attacker.path, token)
        await self.system.until(CLAIM, self.attacker.namespace, self.attacker.name, is_ready, limit_s=_LIMIT_S)

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


async def _homes(system: System, person: Person, number: int) -> list[Home]:
    """Return databases of a tenant's own: one an attack, for a second rotation waits for an hour."""
    names = [f"m{secrets.token_hex(2)}" for _ in range(number)]
    return await asyncio.gather(*(move_in(system, claim(person.namespace, name)) for name in names))


async def _is_usable(duel: Duel) -> None:
    """Wait until the attacker's own claim has recovered: Ready, with a login that works and is one of its own two."""

    async def usable() -> bool:
        await duel.look(duel.attacker)
        obj = await duel.system.api.get(duel.attacker.path)
        return is_ready(obj) and await duel.system.logs_in(duel.attacker.namespace, duel.attacker.name)

    await eventually(usable, "the attacker's claim works again", limit_s=_LIMIT_S)
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


_CURRENT: dict[str, dict[str, str | None]] = {"kept": {}, "removed": {"current": None}}
_CASES = (
    *((form, "kept") for form in _FORMS),
    ("the other login of a neighbour", "removed"),
    ("the published login of a neighbour", "removed"),
)
"""A username, and whether the password of now stays beside it: without it the one in the connection Secret counts."""


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def usernames(running: System, victim: Home, mallory: Person) -> dict[tuple[str, str], BaseException | None]:
    """Return by what each attack with a username failed; all are made beside each other."""
    homes = await _homes(running, mallory, len(_CASES))
    duels = {case: Duel(running, victim, home) for case, home in zip(_CASES, homes, strict=True)}
    any_duel = duels[_CASES[0]]
    before, names = await any_duel.of_the_victim(), set(await any_duel.roles())

    tampered = await at_once({case: _with_username(duel, *case) for case, duel in duels.items()})
    await any_duel.look(victim)
    rotated = await at_once({case: duel.rotate() for case, duel in duels.items()})
    await any_duel.look(victim)

    assert await any_duel.of_the_victim() == before
    assert set(await any_duel.roles()) - names <= {f"{home.database}_b" for home in homes}
    judged = await at_once({case: _has_gained_nothing(duel) for case, duel in duels.items()})
    await victim.until_home()
    return {case: tampered[case] or rotated[case] or judged[case] for case in _CASES}


async def _with_username(duel: Duel, form: str, current: str) -> None:
    username = _FORMS[form].format(victim=duel.victim.database, own=duel.attacker.database)
    await duel.tamper(username=username, pending=PASSWORD, **_CURRENT[current])
    await duel.look(duel.attacker)


async def _has_gained_nothing(duel: Duel) -> None:
    roles = await duel.roles()
    assert not any(rest[2] or rest[3] for name, rest in roles.items() if name.startswith(duel.attacker.database))
    await _is_usable(duel)
    published = await duel.system.binding(duel.victim.namespace, duel.victim.name)
    with pytest.raises(psycopg.OperationalError):
        await duel.system.login_by(published | {"username": f"{duel.victim.database}_b", "password": PASSWORD})


@pytest.mark.parametrize(("form", "current"), _CASES, ids=lambda text: text.replace(" ", "-"))
async def test_a_username_that_is_not_derived_is_never_acted_on(
    usernames: dict[tuple[str, str], BaseException | None], form: str, current: str
) -> None:
    expect(usernames[form, current])


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


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def contents(running: System, mallory: Person) -> dict[str, BaseException | None]:
    """Return by what a tenant lost the own database with each content; all are written beside each other."""
    homes = await _homes(running, mallory, len(_CONTENTS))
    duels = {content: Duel(running, home, home) for content, home in zip(_CONTENTS, homes, strict=True)}
    published = {
        name: await running.binding(home.namespace, home.name) for name, home in zip(duels, homes, strict=True)
    }
    before = await duels["nothing"].roles()

    tampered = await at_once({content: _with_content(duel, content) for content, duel in duels.items()})

    after = await duels["nothing"].roles()
    assert {name: rest[:8] for name, rest in after.items()} == {name: rest[:8] for name, rest in before.items()}
    judged = await at_once({content: _goes_on(duel, published[content]) for content, duel in duels.items()})
    assert await panics(running) == 0
    return {content: tampered[content] or judged[content] for content in duels}


async def _with_content(duel: Duel, content: str) -> None:
    own = duel.attacker.database
    await duel.tamper(**{key: text and text.format(own=own) for key, text in _CONTENTS[content].items()})
    await duel.look(duel.attacker)


async def _goes_on(duel: Duel, published: dict[str, str]) -> None:
    assert await duel.system.logs_in_by(published)
    await duel.rotate()
    await _is_usable(duel)


@pytest.mark.parametrize("content", _CONTENTS, ids=lambda content: content.replace(" ", "-"))
async def test_a_secret_with_foreign_content_locks_nobody_out(
    contents: dict[str, BaseException | None], content: str
) -> None:
    expect(contents[content])


_WRITES: dict[str, JsonObject] = {
    "a login": {"stringData": {"username": "alice_b"}},
    "a password": {"stringData": {"current": PASSWORD}},
    "a key taken away": {"data": {"current": None}},
    "its claim": {"metadata": {"labels": {"fairlead.dev/claim": "another"}}},
    "that it stays as it is": {"immutable": True},
}


async def test_a_tenant_may_label_and_delete_a_credentials_secret_and_is_refused_its_content(
    running: System, mallory: Person
) -> None:
    (home,) = await _homes(running, mallory, 1)
    attacker = Duel(running, home, home)
    path, _ = await attacker.credentials(home)
    before, published = await running.api.get(path), await running.binding(home.namespace, home.name)
    for says, write in _WRITES.items():
        assert await mallory.is_refused("PATCH", path, write), says
    assert (await running.api.get(path))["data"] == before["data"]
    body = SECRET.new(mallory.namespace, "to-be-credentials", type="fairlead.dev/credentials", stringData={"a": "b"})
    assert await mallory.is_refused("POST", SECRET.path(mallory.namespace), body)

    await mallory.api.merge(path, {"metadata": {"labels": {"team": "red"}}})
    await mallory.api.delete(path)
    await attacker.look(home)
    assert await running.logs_in_by(published)
    await _is_usable(attacker)

    # One that cannot be changed any more is made anew.
    await running.api.merge(path, {"immutable": True})
    await attacker.rotate()
    await _is_usable(attacker)
