"""The roles of a managed server, by SQL as its administrator: read, put in order, given passwords, switched off.

Impure: it speaks SQL.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

import msgspec
import psycopg

from providers.external.client import Fence
from providers.external.credential import Credential
from providers.external.endpoint import Endpoint
from providers.external.reachability import Reachability
from providers.external.sql import alternating
from providers.external.sql.alternating import Roles, Wanted
from providers.external.sql.errors import failure_of
from providers.external.sql.scram import verifier
from providers.external.sql.session import ConnectionSettings, Session, Unreached, open_session, roots_of
from runtime import randomness
from runtime.errors import Terminal, Transient

_SALT_BYTES = 16


class AdministratorRefused(Terminal):
    """The server refuses the administrator's password: somebody else set it, or it was never set from here."""


@dataclass(frozen=True, slots=True)
class AdministratorSessions:
    """Sessions as the administrators of a cloud's servers.

    `application` names the provider to the server, `noun` is what people call a server, `reachability` is shared with
    all who connect to one.
    """

    reachability: Reachability
    application: str
    noun: str

    @asynccontextmanager
    async def open(
        self, server: str, endpoint: Endpoint, credentials: Sequence[Credential], database: str
    ) -> AsyncIterator[Session]:
        """Open a session in a database by the first of the administrator's credentials that the server takes.

        Raises:
            AdministratorRefused: It takes none of them.
            Conflict: There is no such database, unless it is the endpoint's own.
            Failure: By the server's SQLSTATE, also out of what is done in the session.
        """
        if not endpoint.is_verified or self.reachability.is_unreachable(endpoint):
            raise Transient(f"{self.noun} {server} cannot be reached, and its logins are made by SQL")
        try:
            session = await self._opened(endpoint, credentials, database)
        except Unreached:
            self.reachability.record(endpoint, is_reached=False)
            raise
        self.reachability.record(endpoint, is_reached=True)
        try:
            yield session
        except psycopg.Error as error:
            raise failure_of(error, f"set the logins of {self.noun} {server}") from None
        finally:
            await session.close()

    async def _opened(self, endpoint: Endpoint, credentials: Sequence[Credential], database: str) -> Session:
        refusal = AdministratorRefused("CredentialsInvalid", f"no password of the administrator of {endpoint} is known")
        with roots_of(endpoint) as file:
            for credential in credentials:
                settings = ConnectionSettings(endpoint, credential, file, application=self.application)
                try:
                    return await open_session(settings, database)
                except Terminal as failure:
                    if failure.reason != "CredentialsInvalid":
                        raise
                    refusal = AdministratorRefused(failure.reason, failure.message)
        raise refusal


async def read_roles(session: Session, names: alternating.Names) -> Roles:
    """Read what the rules of the roles are about; raises Terminal `UnsupportedVersion` before PostgreSQL 16."""
    ((version,),) = await session.rows("SHOW server_version_num")
    if int(version) // 10_000 < alternating.OLDEST_MAJOR:
        text = (
            f"two logins need PostgreSQL {alternating.OLDEST_MAJOR} or newer, where CREATEROLE is not as good as"
            " superuser"
        )
        raise Terminal("UnsupportedVersion", text)
    parameters = {"roles": [names.owner, *names.logins], "owner": names.owner}
    return msgspec.convert((await session.rows(alternating.ROLES_QUERY, parameters))[0][0], Roles)


async def put_in_order(session: Session, wanted: Wanted, fence: Fence) -> None:
    """End all differences by one transaction, then the sessions of logins that were switched off."""
    present = await read_roles(session, wanted.names)
    statements = alternating.in_order(wanted, present)
    if statements:
        await session.change(statements, fence)
    shut = {
        change.path[1]
        for change in alternating.broken(wanted, present)
        if change.path[2:] == ("login",) and change.have
    }
    for login in alternating.logins_in(shut, wanted.names):
        await session.rows(alternating.END_SESSIONS, {"login": login})


async def set_password(session: Session, wanted: Wanted, credential: Credential, fence: Fence) -> None:
    """Set the password of a login as a verifier, so that no log has it."""
    await put_in_order(session, wanted, fence)
    stored = verifier(credential.password, randomness.token_bytes(_SALT_BYTES))
    await session.change(alternating.password(credential.username, stored, wanted.names), fence)


async def retire(session: Session, login: str, names: alternating.Names, fence: Fence) -> None:
    """Switch a former login off and end its sessions."""
    if (await read_roles(session, names)).role(login) is not None:
        await session.change(alternating.retirement(login, names), fence)
    await session.rows(alternating.END_SESSIONS, {"login": login})
