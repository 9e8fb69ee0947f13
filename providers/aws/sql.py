"""An instance's roles by SQL, as its administrator, whose password the provider alone knows. Impure: it speaks SQL."""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import msgspec
import psycopg

from providers.aws import roles
from providers.aws.roles import Roles, Wanted
from providers.external.client import Fence
from providers.external.credential import Credential
from providers.external.login import Server
from providers.external.scram import verifier
from providers.external.sql_errors import failure_of
from providers.external.sql_session import Account, Session, as_file, open_session
from runtime.errors import Terminal

_SALT_BYTES = 16


class AdministratorRefused(Terminal):
    """The instance refuses the administrator's password: somebody else set it, or it was never set from here."""


async def opened(server: Server, database: str, credential: Credential) -> Session:
    """Open a session as the administrator.

    Raises:
        AdministratorRefused: The password is not the administrator's.
        Failure: By the server's SQLSTATE.
    """
    with as_file(server.ca) as file:
        account = Account(server, database, credential, file, application="fairlead-provider-aws")
        try:
            return await open_session(account, database)
        except Terminal as failure:
            if failure.reason == "CredentialsInvalid":
                raise AdministratorRefused(failure.reason, failure.message) from None
            raise


@asynccontextmanager
async def lent(session: Session, name: str) -> AsyncIterator[None]:
    """Close a session in the end; errors come out as Failures."""
    try:
        yield
    except psycopg.Error as error:
        raise failure_of(error, f"set the logins of instance {name}") from None
    finally:
        await session.close()


async def look(session: Session, names: roles.Names) -> Roles:
    """Read what the rules of the roles are about; raises Terminal `UnsupportedVersion` before PostgreSQL 16."""
    ((version,),) = await session.rows("SHOW server_version_num")
    if int(version) // 10_000 < roles.OLDEST_MAJOR:
        text = f"two logins need PostgreSQL {roles.OLDEST_MAJOR} or newer, where CREATEROLE is not as good as superuser"
        raise Terminal("UnsupportedVersion", text)
    parameters = {"roles": [names.owner, *names.logins], "owner": names.owner}
    return msgspec.convert((await session.rows(roles.LOOK, parameters))[0][0], Roles)


async def put_in_order(session: Session, wanted: Wanted, fence: Fence) -> None:
    """End all differences by one transaction, then the sessions of logins that were switched off."""
    seen = await look(session, wanted.names)
    statements = roles.in_order(wanted, seen)
    if statements:
        await session.change(statements, fence)
    shut = {change.path[1] for change in roles.broken(wanted, seen) if change.path[2:] == ("login",) and change.have}
    for login in roles.logins_in(shut, wanted.names):
        await session.rows(roles.END_SESSIONS, {"login": login})


async def set_password(session: Session, wanted: Wanted, credential: Credential, fence: Fence) -> None:
    """Give a login its password as a verifier, so that no log has it."""
    await put_in_order(session, wanted, fence)
    told = verifier(credential.password, secrets.token_bytes(_SALT_BYTES))
    await session.change(roles.password(credential.username, told, wanted.names), fence)


async def retire(session: Session, login: str, names: roles.Names, fence: Fence) -> None:
    """Switch a former login off and end its sessions."""
    if (await look(session, names)).role(login) is not None:
        await session.change(roles.retirement(login, names), fence)
    await session.rows(roles.END_SESSIONS, {"login": login})
