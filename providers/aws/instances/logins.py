"""The logins of an instance: the administrator's by RDS's API, the two that alternate by SQL.

Impure: it calls the SDK and speaks SQL.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from providers.aws.account import AwsAccount
from providers.aws.instances import translate
from providers.aws.instances.calls import set_administrator_password
from providers.aws.instances.facts import Facts
from providers.aws.models import RDSInstanceParameters
from providers.external.client import Fence, Target
from providers.external.credential import Credential
from providers.external.observation import Observed
from providers.external.reachability import Reachability

if TYPE_CHECKING:
    from providers.aws.instances.role_sessions import RoleSessions

Seen = Observed[RDSInstanceParameters, Facts]
Where = Target[RDSInstanceParameters]


class InstanceLogins:
    """Logins of instances; `reachability` is shared with all who connect to one."""

    def __init__(self, account: AwsAccount, reachability: Reachability) -> None:
        self._account = account
        self._reachability = reachability

    @property
    def roles(self) -> RoleSessions:
        """Return what reads and changes the roles of an instance by SQL."""
        from providers.aws.instances.role_sessions import RoleSessions  # noqa: PLC0415 - loads psycopg, rarely needed

        return RoleSessions(self._account, self._reachability)

    async def set(self, target: Where, observed: Seen, credential: Credential, fence: Fence) -> None:
        """Set the password of a login: the administrator's by RDS, any other by SQL."""
        if credential.username != target.spec.master_username:
            await self.roles.set_password(target, observed, credential, fence)
            return
        kept_elsewhere = observed.facts.kept_elsewhere
        await set_administrator_password(
            self._account, observed.name, credential.password, fence, kept_elsewhere=kept_elsewhere
        )

    async def disable(self, target: Where, observed: Seen, username: str, fence: Fence) -> None:
        """Disable a former login: one of two by SQL; the administrator stays, and its password is changed."""
        fence.check()
        if username != target.spec.master_username:
            await self.roles.retire(target, observed, username, fence)
        elif translate.alternates(target):
            await set_administrator_password(
                self._account, target.name, target.own_password, fence, kept_elsewhere=False
            )
