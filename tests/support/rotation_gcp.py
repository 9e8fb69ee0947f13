"""Rotations on Google Cloud: of a claim's one login, and of a user with two logins that alternate."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from tests.support.gcp import CLOUD_SQL_INSTANCE, CLOUD_SQL_USER, Gcp, instance, user
from tests.support.kinds import SECRET, is_ready
from tests.support.rotations import Application, Rotations
from tests.support.system import decoded

_LIMIT_S = 180.0
# Two logins need a role that both have.
_ROLE = "shop_owner"


@dataclass
class UserApplication(Application):
    """An application of a CloudSQLUser: name and password stand in one Secret, its credentials."""

    async def binding(self) -> dict[str, str]:
        """Return what status and credentials say now."""
        obj = await self.system.api.get(self.kind.path(self.namespace, self.name))
        kept = decoded(await self.system.api.get(SECRET.path(self.namespace, f"{self.name}-credentials")))
        connection = obj["status"]["connection"]
        place = {key: str(connection[key]) for key in ("host", "port", "database", "sslmode")}
        return {**place, "username": kept["username"], "password": kept["current"], "certificates": kept["ca.crt"]}


def move_users_in(gcp: Gcp) -> Callable[[Rotations, str, list[str]], Awaitable[None]]:
    """Return what makes an instance with a user of two logins for each application."""

    async def move_in(rotations: Rotations, namespace: str, names: list[str]) -> None:
        system = gcp.system
        await system.create(CLOUD_SQL_INSTANCE, instance(namespace, "shared"))
        await system.until(CLOUD_SQL_INSTANCE, namespace, "shared", is_ready, limit_s=_LIMIT_S)
        await gcp.make_role(await gcp.external(CLOUD_SQL_INSTANCE, namespace, "shared"), _ROLE)
        for name in names:
            obj = user(namespace, name, server="shared", logins="Alternating", databaseRoles=[_ROLE])
            obj["spec"]["forProvider"]["name"] = name.replace("-", "_")
            await system.create(CLOUD_SQL_USER, obj)
            await system.until(CLOUD_SQL_USER, namespace, name, is_ready, limit_s=_LIMIT_S)
            rotations.applications.append(UserApplication(system, namespace, name, kind=CLOUD_SQL_USER))

    return move_in
