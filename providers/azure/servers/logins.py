"""The logins of a server: the administrator's by ARM, the two that alternate by SQL.

Impure: it calls the SDK and speaks SQL.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeAlias

from providers.azure.awaited import AwaitedRights
from providers.azure.models import FlexibleServerParameters
from providers.azure.servers import changes, roles
from providers.azure.servers.facts import DEFAULT_DATABASE, Facts
from providers.external.client import Fence, Operation, Target
from providers.external.credential import Credential, LoginAnswer
from providers.external.endpoint import Endpoint
from providers.external.observation import Observed
from providers.external.reachability import Reachability
from runtime.errors import Blocked, Terminal

if TYPE_CHECKING:
    from providers.azure.servers.role_sessions import RoleSessions

Seen = Observed[FlexibleServerParameters, Facts]
Where = Target[FlexibleServerParameters]
Patch: TypeAlias = Callable[[str, dict[str, Any], Fence, tuple[str, ...]], Awaitable[Operation | None]]
"""Sends the PATCH of a server by its external name: the body, the fence, and which secrets are in it."""


class ServerLogins:
    """Logins of servers; `reachability` is shared with all who connect to one."""

    def __init__(self, awaited: AwaitedRights, patch: Patch, reachability: Reachability) -> None:
        self._awaited = awaited
        self._patch = patch
        self._reachability = reachability

    @property
    def roles(self) -> RoleSessions:
        """Return what reads and changes the roles of a server by SQL."""
        from providers.azure.servers.role_sessions import RoleSessions  # noqa: PLC0415 - loads psycopg, rarely needed

        return RoleSessions(self._awaited, self._reachability)

    async def set(self, target: Where, observed: Seen, credential: Credential, fence: Fence) -> Operation | None:
        """Set the password of a login: the administrator's by ARM, any other by SQL.

        Raises:
            Blocked: `CloudBusy`: the administrator's password, with which that is done, has to be set first.
        """
        if credential.username == target.spec.administrator_login:
            return await self._set_administrator(observed, credential.password, fence)
        try:
            await self.roles.set_password(target, observed, credential, fence)
        except Terminal as failure:
            if failure.reason != "CredentialsInvalid":
                raise
            await self._set_administrator(observed, roles.own_password(target), fence)
            text = f"server {observed.name} gets the administrator's password with which its logins are made"
            raise Blocked("CloudBusy", text) from None
        return None

    async def disable(self, target: Where, observed: Seen, username: str, fence: Fence) -> Operation | None:
        """Disable a former login: one of two by SQL; the administrator stays, and its password is changed."""
        fence.check()
        if username != target.spec.administrator_login:
            await self.roles.retire(target, observed, username, fence)
        elif roles.alternates(target):
            return await self._set_administrator(observed, roles.own_password(target), fence)
        return None

    async def _set_administrator(self, observed: Seen, password: str, fence: Fence) -> Operation | None:
        return await self._patch(observed.name, changes.with_password({}, password), fence, (password,))

    async def try_login(self, endpoint: Endpoint, credential: Credential) -> LoginAnswer:
        """Try a login to the database that every server has: the application's is made after the server is Ready."""
        return await self._reachability.try_login(replace(endpoint, database=DEFAULT_DATABASE), credential)
