"""The two logins of an instance: looked at, put in order, given passwords and switched off by its administrator.

Impure: it speaks SQL.
"""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from typing import Protocol

import msgspec
import psycopg

from providers.aws import roles
from providers.aws.models import RDSInstanceParameters
from providers.aws.roles import Roles, Wanted, is_of_roles, names_of
from providers.aws.translate import wanted_roles
from providers.external.client import Fence, Target
from providers.external.credential import Credential
from providers.external.login import Server
from providers.external.observation import Change, Observed
from providers.external.scram import verifier
from providers.external.sql_errors import failure_of
from providers.external.sql_session import Account, Session, Unreached, as_file, open_session
from runtime.errors import Blocked, Failure, Terminal, Transient

_SALT_BYTES = 16

Seen = Observed[RDSInstanceParameters]
Where = Target[RDSInstanceParameters]


class Reaching(Protocol):
    """What the instances of an account know about reaching one."""

    def place(self, target: Where) -> tuple[Server, str] | None:
        """Return server and database to log in to; None where nothing answers, or nothing proves that it is RDS."""

    def reached(self, target: Where, *, is_reached: bool) -> None:
        """Remember whether an instance answered."""

    async def take_administrator(self, target: Where, fence: Fence, *, managed: bool) -> None:
        """Give the administrator the password that the provider alone knows."""


class InstanceLogins:
    """What is done by SQL; the administrator's own password is RDS's to change."""

    def __init__(self, instances: Reaching) -> None:
        self._instances = instances

    async def seen(self, target: Where, seen: Seen) -> Seen:
        """Add what a session as the administrator shows, once the application has logins of its own.

        What RDS does with the administrator's password is no matter of theirs.
        """
        if target.active not in names_of(target.spec.master_username).logins or not target.incarnation:
            return seen
        seen = replace(seen, password_elsewhere=False)
        if not seen.usable or self._is_shared(target):
            return seen
        try:
            async with self._session(target) as session:
                roles = await look(session, names_of(target.spec.master_username))
        except AdministratorRefused:
            return replace(seen, facts=replace(seen.facts, administrator_refused=not seen.password_pending))
        except Failure:
            # Nothing was learnt.
            return seen
        return replace(seen, facts=replace(seen.facts, roles=roles))

    async def put_in_order(self, target: Where, observed: Seen, changes: tuple[Change, ...], fence: Fence) -> None:
        """End what differs about the roles and the administrator's password."""
        if any(change.path[0] == "administrator" for change in changes):
            await self._instances.take_administrator(target, fence, managed=observed.facts.kept_elsewhere)
        if any(is_of_roles(change) for change in changes):
            async with self._session(target) as session:
                await put_in_order(session, wanted_roles(target, observed.facts.database), fence)

    async def set_password(self, target: Where, observed: Seen, credential: Credential, fence: Fence) -> None:
        """Give one of the two logins its password.

        Raises:
            Blocked: `CloudBusy`: the administrator's password, with which that is done, has to be set first.
        """
        wanted = wanted_roles(target, observed.facts.database, setting=credential.username)
        try:
            async with self._session(target) as session:
                await set_password(session, wanted, credential, fence)
        except AdministratorRefused:
            if not observed.password_pending:
                await self._instances.take_administrator(target, fence, managed=observed.facts.kept_elsewhere)
            text = f"instance {observed.name} gets the administrator's password with which its logins are made"
            raise Blocked("CloudBusy", text) from None

    async def retire(self, target: Where, username: str, fence: Fence) -> None:
        """Switch one of the two logins off."""
        async with self._session(target) as session:
            await retire(session, username, names_of(target.spec.master_username), fence)

    @staticmethod
    def _is_shared(target: Where) -> bool:
        """Tell whether applications may still come as the administrator, whose password is theirs until then."""
        return target.spec.master_username in {target.active, target.retiring}

    @asynccontextmanager
    async def _session(self, target: Where) -> AsyncIterator[Session]:
        """Open a session as the administrator: by the password that is published, or by the provider's own.

        Raises:
            AdministratorRefused: Neither opens one.
        """
        place = self._instances.place(target)
        if place is None:
            raise Transient(f"instance {target.name} cannot be reached, and its logins are made by SQL")
        try:
            session = await self._opened(target, *place)
        except Unreached:
            self._instances.reached(target, is_reached=False)
            raise
        self._instances.reached(target, is_reached=True)
        async with lent(session, target.name):
            yield session

    @staticmethod
    async def _opened(target: Where, server: Server, database: str) -> Session:
        username = target.spec.master_username
        if target.active == username and target.published:
            with suppress(AdministratorRefused):
                return await opened(server, database, Credential(username, target.published))
        return await opened(server, database, Credential(username, target.own_password))


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
