"""Rotations on Google Cloud: of a claim's one login, and of a user with two logins that alternate."""

from __future__ import annotations

from dataclasses import dataclass

from tests.support.gcp import CLOUD_SQL_INSTANCE, CLOUD_SQL_USER, FLAGS, GCP_CONFIG, Gcp, instance, user
from tests.support.kinds import SECRET, is_ready
from tests.support.processes import Program
from tests.support.rotations import FLAGS as ROTATION_FLAGS
from tests.support.rotations import Application, Rotations, Size
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


async def cloud_sql(gcp: Gcp, size: Size, *, has_two_logins: bool) -> Rotations:
    """Rotate on Google Cloud; the composer is at work."""
    system = gcp.system

    async def start() -> Program:
        return await gcp.start_provider(*FLAGS, *ROTATION_FLAGS)

    rotations = Rotations(system, start, await start())
    await system.until(GCP_CONFIG, "", "default", is_ready)
    async with gcp.namespace() as namespace:
        try:
            if has_two_logins:
                await _move_in(gcp, rotations, namespace, size)
            else:
                await rotations.move_in(namespace, [f"app-{number}" for number in range(size.claims)])
            async with rotations.at_work():
                for number in range(size.rounds):
                    await rotations.rotate(number)
            title = "Cloud SQL, two logins" if has_two_logins else "Cloud SQL, one login"
            print(rotations.summary(title))  # noqa: T201 - the figures are the result
            return rotations
        finally:
            await rotations.provider.terminate()


async def _move_in(gcp: Gcp, rotations: Rotations, namespace: str, size: Size) -> None:
    """Make an instance with a user of two logins for each application."""
    system = gcp.system
    await system.create(CLOUD_SQL_INSTANCE, instance(namespace, "shared"))
    await system.until(CLOUD_SQL_INSTANCE, namespace, "shared", is_ready, limit_s=_LIMIT_S)
    await gcp.make_role(await gcp.external(CLOUD_SQL_INSTANCE, namespace, "shared"), _ROLE)
    for number in range(size.claims):
        name = f"app-{number}"
        obj = user(namespace, name, server="shared", logins="Alternating", databaseRoles=[_ROLE])
        obj["spec"]["forProvider"]["name"] = f"app_{number}"
        await system.create(CLOUD_SQL_USER, obj)
        await system.until(CLOUD_SQL_USER, namespace, name, is_ready, limit_s=_LIMIT_S)
        rotations.applications.append(UserApplication(system, namespace, name, kind=CLOUD_SQL_USER))
