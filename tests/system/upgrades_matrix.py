"""All of Fairlead taken away and installed again."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.api import JsonObject
from tests.support.home import claim, move_in, until_gone
from tests.support.kinds import (
    CLAIM,
    CONFIG_MAP,
    CRD,
    DATABASE,
    NAMESPACE,
    PROVIDER_CONFIG,
    SECRET,
    Kind,
)
from tests.support.staff import Staff
from tests.support.system import ADMIN_SECRET, System
from tests.system.test_upgrades import (
    BASE,
    COMPOSITIONS,
    CRDS,
    INSTALLATION,
    LIMIT_S,
    adopt,
)

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.apiserver, pytest.mark.postgres]


@pytest.fixture(scope="module")
def system(own_system: System) -> System:
    """Return a platform that only this module has: all of Fairlead is taken away."""
    return own_system


async def test_all_of_fairlead_taken_away_and_installed_again_finds_the_databases_of_its_claims(staff: Staff) -> None:
    system = staff.system
    async with system.namespace() as namespace:
        homes = [
            await move_in(system, claim(namespace, policy.lower(), deletionPolicy=policy))
            for policy in ("Orphan", "Delete")
        ]
        installation = (await system.api.get(INSTALLATION))["data"]

        await _take_away(system, staff)
        for home in homes:
            await home.untouched()
        await _install(system, staff, installation)

        for home in homes:
            await adopt(system, home)
            await home.untouched()


async def _take_away(system: System, staff: Staff) -> None:
    """Delete the claims' definition while the processes run, then the processes, then all else."""
    await _delete_crd(system, CLAIM)
    await _delete_crd(system, DATABASE)
    await staff.stop()
    for path in await _of_ours(system, CRD):
        definition = await system.api.get(path)
        names = definition["spec"]["names"]
        kind = Kind(
            definition["spec"]["group"],
            definition["spec"]["versions"][0]["name"],
            names["kind"],
            names["plural"],
            namespaced=definition["spec"]["scope"] == "Namespaced",
        )
        # Nobody is left to take our finalizers off Compositions and ProviderConfigs.
        for obj in await system.api.items(kind.path()):
            await system.api.merge(
                kind.path(obj["metadata"].get("namespace", ""), obj["metadata"]["name"]),
                {"metadata": {"finalizers": []}},
            )
        await system.api.delete(path)
        await until_gone(system, path)
    await system.kubectl.run("delete", "--kustomize", str(BASE), "--wait=false", limit_s=120.0)
    for name in ("fairlead-system", "fairlead-onprem"):
        await system.api.until_gone(NAMESPACE.path("", name), limit_s=LIMIT_S)
    assert await _of_ours(system, CRD) == []


async def _delete_crd(system: System, kind: Kind) -> None:
    path = CRD.path("", f"{kind.plural}.{kind.group}")
    await system.api.delete(path)
    await system.api.until_gone(path, limit_s=LIMIT_S)


async def _of_ours(system: System, kind: Kind) -> list[str]:
    names = [obj["metadata"]["name"] for obj in await system.api.items(kind.path())]
    return [kind.path("", name) for name in names if name.endswith("fairlead.dev")]


async def _install(system: System, staff: Staff, installation: JsonObject) -> None:
    """Install as deploy/README.md says, with the id of the former installation."""
    await system.kubectl.run("apply", "--server-side", "--filename", str(CRDS))
    for kind in (CLAIM, DATABASE, PROVIDER_CONFIG):
        await system.api.until_served(kind.path())
    await system.kubectl.run("apply", "--server-side", "--kustomize", str(BASE))
    data: dict[str, Any] = dict(installation)
    await system.create(CONFIG_MAP, CONFIG_MAP.new("fairlead-system", "fairlead-installation", data=data))
    await system.create(SECRET, SECRET.new("fairlead-onprem", ADMIN_SECRET, stringData=system.admin_login()))
    await system.create(PROVIDER_CONFIG, system.provider_config("default"))
    await system.kubectl.run("apply", "--server-side", "--filename", str(COMPOSITIONS))
    await staff.complete()
