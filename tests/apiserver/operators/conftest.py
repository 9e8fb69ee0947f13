"""A composer beside operators that tests play, each installed as docs/operators.md says, on a real API server."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from devcloud.controlplane import Programs
from fairlead.psql import find_psql
from tests.support.api import JsonObject
from tests.support.grants import let_watch_secrets
from tests.support.kinds import CLAIM, COMPOSITION, CONFIG_MAP, CRD, SECRET, claim, in_trouble, is_ready
from tests.support.operators.converting import converting
from tests.support.operators.played import ALL, Played, crds
from tests.support.system import System, decoded, rig
from tests.support.waiting import eventually

_ROOT = Path(__file__).resolve().parents[3]
COMPOSITIONS = _ROOT / "compositions" / "operators"
LIMIT_S = 180.0
# The same for all claims, as the played operators write them.
LOGIN = {"databaseName": "orders", "username": "orders_app"}
WANTING = tuple(operator for operator in ALL if operator.password_ref)
"""The operators that want to be given a password."""


def watched(operator: str) -> str:
    """Return the name of an operator's namespace in which the composer watches Secrets."""
    return f"of-{operator}"


@dataclass(frozen=True, slots=True)
class Stage:
    """One operator at work beside the composer, and the namespace of its claims."""

    system: System
    operator: Played

    @property
    def namespace(self) -> str:
        return watched(self.operator.name)

    async def ready_claim(self, name: str, **spec: Any) -> JsonObject:
        """Return a new claim once its operator has brought it up."""
        await self.system.create(CLAIM, claim(self.namespace, name, **{**LOGIN, **spec}))
        await self.operator.bring_up(self.system.api, self.namespace, name)
        return await self.until_ready(name)

    async def until_ready(self, name: str) -> JsonObject:
        return await self.system.until(CLAIM, self.namespace, name, is_ready, limit_s=LIMIT_S)

    async def passed(self, name: str) -> JsonObject:
        """Return a claim after one more pass."""
        return await passed(self.system, self.namespace, name)

    async def binding(self, name: str) -> dict[str, str]:
        return await self.system.binding(self.namespace, name)

    async def passwords(self, name: str) -> dict[str, str]:
        """Return the passwords that the composer made for a claim, by the names of their Secrets."""
        items = await self.system.api.items(SECRET.path(self.namespace))
        made = [secret for secret in items if secret.get("type") == "fairlead.dev/password"]
        return {
            secret["metadata"]["name"]: decoded(secret)["password"]
            for secret in made
            if secret["metadata"]["name"].startswith(f"{name}-password-")
        }

    async def rotate(self, name: str, token: str) -> None:
        """Ask for another password, and have the operator carry it out once its object names the new Secret."""
        api, before = self.system.api, await self.passwords(name)
        await self.system.edit(CLAIM, self.namespace, name, {"spec": {"passwordRotation": {"token": token}}})

        async def made() -> list[str]:
            return [secret for secret in await self.passwords(name) if secret not in before]

        (secret,) = await eventually(made, "another password is made", limit_s=LIMIT_S)
        await self.operator.until_named(api, self.namespace, name, secret)
        await self.operator.bring_up(api, self.namespace, name)

    async def until_in_trouble(self, name: str, *reasons: str) -> JsonObject:
        return await self.system.until(CLAIM, self.namespace, name, in_trouble(*reasons), limit_s=LIMIT_S)


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def operating(
    tmp_path_factory: pytest.TempPathFactory, control_plane_programs: Programs
) -> AsyncIterator[System]:
    """Yield a rig with all operators installed and a composer that looks at nothing by itself; most tests share it."""
    folder = tmp_path_factory.mktemp(f"rig-{secrets.token_hex(2)}")
    async with rig(folder, control_plane_programs) as made, converting(folder) as webhook:
        for operator in ALL:
            await install(made, operator, webhook)
        await made.start_composer("--no-elect", "--resync", "3600")
        yield made


async def install(system: System, operator: Played, webhook: JsonObject) -> None:
    """Install an operator's CRDs, and what Fairlead needs for it; `webhook` leads to who converts its versions."""
    for crd in crds(operator.name):
        if "webhook" in crd["spec"].get("conversion", {}):
            crd["spec"]["conversion"]["webhook"]["clientConfig"] = webhook
        await system.apply(CRD, crd)
    for kind in operator.kinds:
        await system.api.until_served(kind.path())
    folder = _ROOT / "deploy" / "kustomize" / "operators" / operator.name
    await system.kubectl.run("apply", "--server-side", "--kustomize", str(folder))
    if operator.environment:
        data = dict(operator.environment)
        await system.create(CONFIG_MAP, CONFIG_MAP.new("fairlead-system", operator.name, data=data))
    namespace = watched(operator.name)
    await system.namespaced(namespace, cloud=operator.name)
    await let_watch_secrets(system, namespace)
    composition = COMPOSITIONS / f"postgres-{operator.name}.yaml"
    await system.kubectl.run("apply", "--server-side", "--filename", str(composition))


@pytest_asyncio.fixture(loop_scope="session", params=ALL, ids=lambda operator: operator.name)
async def stage(request: pytest.FixtureRequest, operating: System) -> Stage:
    """Return each operator in turn, its Composition accepted."""
    return await _stage(request.param, operating)


@pytest_asyncio.fixture(loop_scope="session", params=WANTING, ids=lambda operator: operator.name)
async def wanting(request: pytest.FixtureRequest, operating: System) -> Stage:
    """Return each operator in turn that wants to be given a password, its Composition accepted."""
    return await _stage(request.param, operating)


async def _stage(operator: Played, operating: System) -> Stage:
    await operating.until(COMPOSITION, "", f"postgres-{operator.name}", is_ready, limit_s=LIMIT_S)
    return Stage(operating, operator)


async def passed(system: System, namespace: str, name: str) -> JsonObject:
    """Have a claim looked at as a resync does; return it once that pass has ended, as its answer says."""
    token = secrets.token_hex(4)
    annotation = {"metadata": {"annotations": {"fairlead.dev/reconcile-requested-at": token}}}
    await system.api.merge(CLAIM.path(namespace, name), annotation)

    def is_answered(obj: JsonObject) -> bool:
        return bool(obj.get("status", {}).get("lastHandledReconcileAt") == token)

    return await system.until(CLAIM, namespace, name, is_answered, limit_s=LIMIT_S)


async def psql_prints(system: System, binding: Mapping[str, str], *, hostaddr: str = "") -> str:
    """Return what psql prints of itself with the `uri` and the CA of a connection Secret; empty where it is refused.

    `hostaddr` is where the host of the URI is, where no resolver knows it.
    """
    psql, query = find_psql(), "SELECT session_user || ' in ' || current_database()"
    environment = {**psql.environment, "HOME": str(system.folder)}
    if hostaddr:
        environment["PGHOSTADDR"] = hostaddr
    if "certificates" in binding:
        authority = system.folder / f"ca-{secrets.token_hex(4)}.pem"
        await asyncio.to_thread(authority.write_text, binding["certificates"])
        environment["PGSSLROOTCERT"] = str(authority)
    process = await asyncio.create_subprocess_exec(
        *(str(psql.program), binding["uri"], "-Atc", query),
        env=environment,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
    )
    printed, _ = await process.communicate()
    return printed.decode().strip()
