"""A rotation with a kill -9 of the provider on each cloud, under an application that never stops logging in.

Each login is by what the Secret says at that moment. There are two logins, which alternate.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import psycopg
import pytest
import pytest_asyncio
from psycopg.conninfo import make_conninfo

from tests.security.builders import at_once, expect
from tests.support.aws import AWS_CONFIG, simulated_rds
from tests.support.azure import AZURE_CONFIG, simulated_azure
from tests.support.gcp import CLOUD_SQL_INSTANCE, CLOUD_SQL_USER, GCP_CONFIG, Gcp, instance, simulated_cloud_sql, user
from tests.support.gcp import FLAGS as GCP_FLAGS
from tests.support.kinds import CLAIM, PROVIDER_CONFIG, SECRET, Kind, claim, is_ready
from tests.support.processes import Program
from tests.support.simulated_cloud import QUICK, SimulatedCloud
from tests.support.staff import QUICK_LEASE
from tests.support.system import System, decoded
from tests.support.waiting import eventually

pytestmark = pytest.mark.asyncio(loop_scope="session")

# The former login works longer than an application takes from reading the Secret to the login.
_FLAGS = (*QUICK_LEASE, "--rotation-grace=3")
_TWO_LOGINS = {"loginCheck": "Required", "logins": "Alternating"}
_ROLE = "shop_owner"
_LIMIT_S = 180.0
_LOGIN_EVERY_S = 0.25


@dataclass(frozen=True, slots=True)
class Application:
    """An application of a claim, or of a user of an instance, whose name and password stand in its credentials."""

    system: System
    namespace: str
    kind: Kind = CLAIM
    refusals: list[str] = field(default_factory=list)

    @property
    def authority(self) -> Path:
        """The file of whom it trusts."""
        return self.system.folder / f"{self.namespace}.pem"

    async def binding(self) -> dict[str, str]:
        """Return what the Secret says now."""
        api = self.system.api
        if self.kind is CLAIM:
            return decoded(await api.get(SECRET.path(self.namespace, "app-connection")))
        connection = (await api.get(self.kind.path(self.namespace, "app")))["status"]["connection"]
        kept = decoded(await api.get(SECRET.path(self.namespace, "app-credentials")))
        place = {key: str(connection[key]) for key in ("host", "port", "database", "sslmode")}
        return {**place, "username": kept["username"], "password": kept["current"], "certificates": kept["ca.crt"]}

    async def refusal(self, binding: dict[str, str]) -> str:
        """Log in; return why that did not work, empty where it did."""
        login = {key: binding[key] for key in ("host", "port", "password", "sslmode")}
        names = {"dbname": binding["database"], "user": binding["username"], "sslrootcert": str(self.authority)}
        try:
            await (await psycopg.AsyncConnection.connect(make_conninfo(**login, **names))).close()
        except psycopg.OperationalError as error:
            return str(error).strip()[-160:] or "refused"
        return ""

    async def until_ready(self) -> None:
        await self.system.until(self.kind, self.namespace, "app", is_ready, limit_s=_LIMIT_S)

    @asynccontextmanager
    async def at_work(self) -> AsyncIterator[None]:
        """Log in again and again for the length of a block."""

        async def run() -> None:
            while True:
                self.refusals.extend(filter(None, [await self.refusal(await self.binding())]))
                await asyncio.sleep(_LOGIN_EVERY_S)

        async with asyncio.TaskGroup() as group:
            logins = group.create_task(run())
            yield
            logins.cancel()


async def _claimed(application: Application) -> None:
    await application.system.create(CLAIM, claim(application.namespace, "app", deletionPolicy="Delete"))


def _shared(gcp: Gcp) -> Callable[[Application], Awaitable[None]]:
    """Return what makes an instance with a user of two logins, who need a role that both have."""

    async def make(application: Application) -> None:
        system, namespace = gcp.system, application.namespace
        await system.create(CLOUD_SQL_INSTANCE, instance(namespace, "shared"))
        await system.until(CLOUD_SQL_INSTANCE, namespace, "shared", is_ready, limit_s=_LIMIT_S)
        await gcp.make_role(await gcp.external(CLOUD_SQL_INSTANCE, namespace, "shared"), _ROLE)
        made = user(namespace, "app", server="shared", logins="Alternating", databaseRoles=[_ROLE])
        await system.create(CLOUD_SQL_USER, made)

    return make


async def _rotates(
    application: Application,
    config: Kind,
    start: Callable[[], Awaitable[Program]],
    make: Callable[[Application], Awaitable[None]] = _claimed,
) -> None:
    """Rotate with a kill of the provider, until the former login has ended; no other login may have failed."""
    system, provider = application.system, await start()
    await system.until(config, "", "default", is_ready)
    await make(application)
    await application.until_ready()
    before = await application.binding()
    await asyncio.to_thread(application.authority.write_text, before["certificates"])
    async with application.at_work():
        spec = {"passwordRotation": {"token": "next"}}
        await system.edit(application.kind, application.namespace, "app", {"spec": spec})
        await provider.kill9()
        provider = await start()

        async def has_ended() -> bool:
            return bool(await application.refusal(before))

        await eventually(has_ended, "the former login has ended", limit_s=_LIMIT_S)
        await application.until_ready()
    assert (await application.binding())["username"] != before["username"]
    assert application.refusals == []
    await provider.terminate()


async def _rotates_by_config(cloud: SimulatedCloud, config: Kind) -> None:
    """Rotate where the ProviderConfig says that a claim has two logins; later modules find it as it was."""
    api, path = cloud.system.api, config.path("", "default")
    usual = (await api.get(path))["spec"]
    await cloud.system.edit(config, "", "default", {"spec": _TWO_LOGINS})
    try:
        async with cloud.namespace() as namespace:
            start = partial(cloud.start_provider, *QUICK, *_FLAGS)
            await _rotates(Application(cloud.system, namespace), config, start)
    finally:
        await api.merge(path, {"spec": {name: usual.get(name) for name in _TWO_LOGINS}})


async def _on_premises(system: System) -> None:
    async with system.namespace() as namespace:
        start = partial(system.start_provider, *_FLAGS)
        await _rotates(Application(system, namespace), PROVIDER_CONFIG, start)


async def _on_aws(system: System) -> None:
    async with simulated_rds(system) as aws:
        await _rotates_by_config(aws, AWS_CONFIG)


async def _on_azure(system: System) -> None:
    async with simulated_azure(system) as azure:
        await _rotates_by_config(azure, AZURE_CONFIG)


async def _on_gcp(system: System) -> None:
    async with simulated_cloud_sql(system) as gcp, gcp.namespace() as namespace:
        application = Application(system, namespace, CLOUD_SQL_USER)
        await _rotates(application, GCP_CONFIG, partial(gcp.start_provider, *GCP_FLAGS, *_FLAGS), _shared(gcp))


_CLOUDS = {"onprem": _on_premises, "aws": _on_aws, "azure": _on_azure, "gcp": _on_gcp}


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def outcomes(system: System, one_composer: Program) -> dict[str, BaseException | None]:
    """Return what went wrong in each cloud; all rotate beside each other."""
    del one_composer
    return await at_once({cloud: rotates(system) for cloud, rotates in _CLOUDS.items()})


@pytest.mark.parametrize("cloud", _CLOUDS)
async def test_a_rotation_of_two_logins_fails_no_login(outcomes: dict[str, BaseException | None], cloud: str) -> None:
    expect(outcomes[cloud])
