"""The roles of an instance, by SQL as its administrator: observed, put in order, given passwords, switched off.

Impure: it speaks SQL, and calls the SDK.
"""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import replace

import msgspec
import psycopg

from providers.aws.account import AwsAccount
from providers.aws.instances import roles
from providers.aws.instances.calls import set_administrator_password
from providers.aws.instances.facts import Facts
from providers.aws.instances.roles import Roles, Wanted, is_of_roles, names_of
from providers.aws.instances.translate import wanted_roles
from providers.aws.models import RDSInstanceParameters
from providers.external.client import Fence, Target
from providers.external.credential import Credential
from providers.external.endpoint import Endpoint
from providers.external.observation import Change, Observed
from providers.external.reachability import Reachability
from providers.external.sql.errors import failure_of
from providers.external.sql.scram import verifier
from providers.external.sql.session import ConnectionSettings, Session, Unreached, open_session, roots_of
from runtime.errors import Blocked, Failure, Terminal, Transient

_SALT_BYTES = 16

Seen = Observed[RDSInstanceParameters, Facts]
Where = Target[RDSInstanceParameters]


class RoleSessions:
    """Reads and changes the roles of instances in sessions as their administrator."""

    def __init__(self, account: AwsAccount, reachability: Reachability) -> None:
        self._account = account
        self._reachability = reachability

    async def observed(self, target: Where, observed: Seen) -> Seen:
        """Return what was observed with the roles, once the application has logins of its own.

        What RDS does with the administrator's password is no matter of theirs.
        """
        if target.active not in names_of(target.spec.master_username).logins or not target.incarnation:
            return observed
        observed = replace(observed, password_elsewhere=False)
        if not observed.usable or _is_shared(target):
            return observed
        try:
            async with self._session(target, observed) as session:
                present = await read_roles(session, names_of(target.spec.master_username))
        except AdministratorRefused:
            refused = not observed.password_pending
            facts = replace(observed.facts, administrator_refused=refused)
            return replace(observed, facts=facts, incomplete=not refused)
        except Failure:
            return replace(observed, incomplete=True)
        return replace(observed, facts=replace(observed.facts, roles=present))

    async def put_in_order(self, target: Where, observed: Seen, changes: tuple[Change, ...], fence: Fence) -> None:
        """End what differs about the roles and the administrator's password."""
        if any(change.path[0] == "administrator" for change in changes):
            await self._set_administrator(target, observed, fence)
        if any(is_of_roles(change) for change in changes):
            async with self._session(target, observed) as session:
                await put_in_order(session, wanted_roles(target, observed.facts.database), fence)

    async def set_password(self, target: Where, observed: Seen, credential: Credential, fence: Fence) -> None:
        """Set the password of one of the two logins.

        Raises:
            Blocked: `CloudBusy`: the administrator's password, with which that is done, has to be set first.
        """
        wanted = wanted_roles(target, observed.facts.database, setting=credential.username)
        try:
            async with self._session(target, observed) as session:
                await set_password(session, wanted, credential, fence)
        except AdministratorRefused:
            if not observed.password_pending:
                await self._set_administrator(target, observed, fence)
            text = f"instance {observed.name} gets the administrator's password with which its logins are made"
            raise Blocked("CloudBusy", text) from None

    async def retire(self, target: Where, observed: Seen, username: str, fence: Fence) -> None:
        """Switch one of the two logins off."""
        async with self._session(target, observed) as session:
            await retire(session, username, names_of(target.spec.master_username), fence)

    async def _set_administrator(self, target: Where, observed: Seen, fence: Fence) -> None:
        """Set the administrator's password to the one that the provider alone knows."""
        kept_elsewhere = observed.facts.kept_elsewhere
        await set_administrator_password(
            self._account, target.name, target.own_password, fence, kept_elsewhere=kept_elsewhere
        )

    @asynccontextmanager
    async def _session(self, target: Where, observed: Seen) -> AsyncIterator[Session]:
        """Open a session as the administrator: by the password that is published, or by the provider's own.

        Raises:
            AdministratorRefused: Neither opens one.
        """
        endpoint = observed.endpoint
        if not endpoint.is_verified or self._reachability.is_unreachable(endpoint):
            raise Transient(f"instance {target.name} cannot be reached, and its logins are made by SQL")
        try:
            session = await _opened(target, endpoint)
        except Unreached:
            self._reachability.record(endpoint, is_reached=False)
            raise
        self._reachability.record(endpoint, is_reached=True)
        async with closed_in_the_end(session, target.name):
            yield session


def _is_shared(target: Where) -> bool:
    """Return whether applications may still come as the administrator, whose password is theirs until then."""
    return target.spec.master_username in {target.active, target.retiring}


async def _opened(target: Where, endpoint: Endpoint) -> Session:
    username = target.spec.master_username
    if target.active == username and target.published:
        with suppress(AdministratorRefused):
            return await opened(endpoint, Credential(username, target.published))
    return await opened(endpoint, Credential(username, target.own_password))


class AdministratorRefused(Terminal):
    """The instance refuses the administrator's password: somebody else set it, or it was never set from here."""


async def opened(endpoint: Endpoint, credential: Credential) -> Session:
    """Open a session as the administrator.

    Raises:
        AdministratorRefused: The password is not the administrator's.
        Failure: By the server's SQLSTATE.
    """
    with roots_of(endpoint) as file:
        settings = ConnectionSettings(endpoint, credential, file, application="fairlead-provider-aws")
        try:
            return await open_session(settings, endpoint.database)
        except Terminal as failure:
            if failure.reason == "CredentialsInvalid":
                raise AdministratorRefused(failure.reason, failure.message) from None
            raise


@asynccontextmanager
async def closed_in_the_end(session: Session, name: str) -> AsyncIterator[None]:
    """Close a session in the end; errors come out as Failures."""
    try:
        yield
    except psycopg.Error as error:
        raise failure_of(error, f"set the logins of instance {name}") from None
    finally:
        await session.close()


async def read_roles(session: Session, names: roles.Names) -> Roles:
    """Read what the rules of the roles are about; raises Terminal `UnsupportedVersion` before PostgreSQL 16."""
    ((version,),) = await session.rows("SHOW server_version_num")
    if int(version) // 10_000 < roles.OLDEST_MAJOR:
        text = f"two logins need PostgreSQL {roles.OLDEST_MAJOR} or newer, where CREATEROLE is not as good as superuser"
        raise Terminal("UnsupportedVersion", text)
    parameters = {"roles": [names.owner, *names.logins], "owner": names.owner}
    return msgspec.convert((await session.rows(roles.ROLES_QUERY, parameters))[0][0], Roles)


async def put_in_order(session: Session, wanted: Wanted, fence: Fence) -> None:
    """End all differences by one transaction, then the sessions of logins that were switched off."""
    present = await read_roles(session, wanted.names)
    statements = roles.in_order(wanted, present)
    if statements:
        await session.change(statements, fence)
    shut = {change.path[1] for change in roles.broken(wanted, present) if change.path[2:] == ("login",) and change.have}
    for login in roles.logins_in(shut, wanted.names):
        await session.rows(roles.END_SESSIONS, {"login": login})


async def set_password(session: Session, wanted: Wanted, credential: Credential, fence: Fence) -> None:
    """Set the password of a login as a verifier, so that no log has it."""
    await put_in_order(session, wanted, fence)
    stored = verifier(credential.password, secrets.token_bytes(_SALT_BYTES))
    await session.change(roles.password(credential.username, stored, wanted.names), fence)


async def retire(session: Session, login: str, names: roles.Names, fence: Fence) -> None:
    """Switch a former login off and end its sessions."""
    if (await read_roles(session, names)).role(login) is not None:
        await session.change(roles.retirement(login, names), fence)
    await session.rows(roles.END_SESSIONS, {"login": login})
