"""The roles of an instance, by SQL as its administrator: observed, put in order, given passwords, switched off.

Impure: it speaks SQL, and calls the SDK.
"""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from dataclasses import replace

from providers.aws.account import AwsAccount
from providers.aws.instances.calls import set_administrator_password
from providers.aws.instances.facts import Facts
from providers.aws.instances.translate import wanted_roles
from providers.aws.models import RDSInstanceParameters
from providers.external.client import Fence, Target
from providers.external.credential import Credential
from providers.external.observation import Change, Observed
from providers.external.reachability import Reachability
from providers.external.sql.alternating import is_of_roles, is_shared, names_of
from providers.external.sql.role_sessions import (
    AdministratorRefused,
    AdministratorSessions,
    put_in_order,
    read_roles,
    retire,
    set_password,
)
from providers.external.sql.session import Session
from runtime.errors import Blocked, Failure

Seen = Observed[RDSInstanceParameters, Facts]
Where = Target[RDSInstanceParameters]


class RoleSessions:
    """Reads and changes the roles of instances in sessions as their administrator."""

    def __init__(self, account: AwsAccount, reachability: Reachability) -> None:
        self._account = account
        self._sessions = AdministratorSessions(reachability, "fairlead-provider-aws", "instance")

    async def observed(self, target: Where, observed: Seen) -> Seen:
        """Return what was observed with the roles, once the application has logins of its own.

        What RDS does with the administrator's password is no matter of theirs.
        """
        if target.active not in names_of(target.spec.master_username).logins or not target.incarnation:
            return observed
        observed = replace(observed, password_elsewhere=False)
        if not observed.usable or is_shared(target, target.spec.master_username):
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

    def _session(self, target: Where, observed: Seen) -> AbstractAsyncContextManager[Session]:
        """Open a session as the administrator: by the password that is published, or by the provider's own.

        Raises:
            AdministratorRefused: Neither opens one.
        """
        username, endpoint = target.spec.master_username, observed.endpoint
        published = [target.published] if target.active == username and target.published else []
        credentials = [Credential(username, password) for password in (*published, target.own_password)]
        return self._sessions.open(target.name, endpoint, credentials, endpoint.database)
