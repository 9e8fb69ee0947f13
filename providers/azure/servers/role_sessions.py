"""The roles of a server, by SQL as its administrator: observed, put in order, given passwords, switched off.

Roles are the whole server's, and may be made before the application's database, which is made once its server is
Ready: until then the database that every server has stands in, and rights in the application's own follow.

Impure: it speaks SQL.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from typing import NamedTuple

from providers.azure.awaited import AwaitedRights
from providers.azure.models import FlexibleServerParameters
from providers.azure.names import server_in
from providers.azure.servers import roles
from providers.azure.servers.facts import DEFAULT_DATABASE, Facts
from providers.external.client import Fence, Target
from providers.external.credential import Credential
from providers.external.observation import Observed
from providers.external.reachability import Reachability
from providers.external.sql.alternating import is_shared, names_of
from providers.external.sql.role_sessions import (
    AdministratorRefused,
    AdministratorSessions,
    put_in_order,
    read_roles,
    retire,
    set_password,
)
from providers.external.sql.session import Session
from runtime.errors import Conflict, Failure

Seen = Observed[FlexibleServerParameters, Facts]
Where = Target[FlexibleServerParameters]


class _Opened(NamedTuple):
    """A session, and the application's database; that is empty where it is not there and another one stands in."""

    session: Session
    database: str


class RoleSessions:
    """Reads and changes the roles of servers in sessions as their administrator."""

    def __init__(self, awaited: AwaitedRights, reachability: Reachability) -> None:
        self._awaited = awaited
        self._sessions = AdministratorSessions(reachability, "fairlead-provider-azure", "server")

    async def observed(self, target: Where, observed: Seen) -> Seen:
        """Return what was observed with the roles, once the application has logins of its own."""
        administrator = target.spec.administrator_login
        names, server = names_of(administrator), server_in(target.name)
        if not target.incarnation or not observed.usable:
            return observed
        if is_shared(target, administrator):
            # The administrator, who has every right, is a login of the application still.
            self._awaited.record_none(server)
            return observed
        if target.active not in names.logins:
            return observed
        try:
            async with self._open(target, observed) as (session, database):
                present = await read_roles(session, names)
        except AdministratorRefused:
            return replace(observed, facts=replace(observed.facts, administrator_refused=True))
        except Failure:
            return replace(observed, incomplete=True)
        is_awaited = bool(database) and (self._awaited.awaits(server, database) or not present.privileges)
        if is_awaited:
            # Of a process that was killed before the rights were there, nothing is remembered.
            self._awaited.record(server, database)
        facts = replace(observed.facts, roles=present, database_missing=not database, rights_awaited=is_awaited)
        seen = replace(observed, facts=facts)
        if database and not (is_awaited and roles.differences(target, seen)):
            self._awaited.record_none(server)
        return seen

    async def put_in_order(self, target: Where, observed: Seen, fence: Fence) -> None:
        """End what differs about the roles."""
        async with self._open(target, observed) as (session, database):
            await put_in_order(session, roles.wanted(target, database), fence)

    async def set_password(self, target: Where, observed: Seen, credential: Credential, fence: Fence) -> None:
        """Set the password of one of the two logins.

        Raises:
            AdministratorRefused: The administrator's password, with which that is done, has to be set first.
        """
        async with self._open(target, observed) as (session, database):
            wanted = roles.wanted(target, database, setting=credential.username)
            await set_password(session, wanted, credential, fence)

    async def retire(self, target: Where, observed: Seen, username: str, fence: Fence) -> None:
        """Switch one of the two logins off."""
        async with self._open(target, observed) as (session, _):
            await retire(session, username, names_of(target.spec.administrator_login), fence)

    @asynccontextmanager
    async def _open(self, target: Where, observed: Seen) -> AsyncIterator[_Opened]:
        """Open a session as the administrator in the application's database, or where there is none yet in another.

        Raises:
            AdministratorRefused: Neither the published password opens one, nor the provider's own.
        """
        username, endpoint = target.spec.administrator_login, replace(observed.endpoint, database=DEFAULT_DATABASE)
        published = [target.published] if target.active == username and target.published else []
        credentials = [Credential(username, password) for password in (*published, roles.own_password(target))]
        wanted = observed.endpoint.database
        async with AsyncExitStack() as stack:
            try:
                opening = self._sessions.open(target.name, endpoint, credentials, wanted)
                opened = _Opened(await stack.enter_async_context(opening), wanted)
            except Conflict:
                self._awaited.record(server_in(target.name), wanted)
                opening = self._sessions.open(target.name, endpoint, credentials, DEFAULT_DATABASE)
                opened = _Opened(await stack.enter_async_context(opening), "")
            yield opened
