"""A simulated Cloud SQL beside a rig: its instances, a person's own calls, what the cluster holds of it."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, ClassVar

from devcloud.gcp.platform import ACCOUNT, NETWORK, PROJECT, REGION
from tests.support.api import JsonObject
from tests.support.kinds import CONFIG_MAP, SECRET, Kind, is_ready
from tests.support.simulated_cloud import SimulatedCloud, place_beside, running
from tests.support.system import System
from tests.support.waiting import eventually

CLOUD_SQL_INSTANCE = Kind("gcp.fairlead.dev", "v1alpha1", "CloudSQLInstance", "cloudsqlinstances")
CLOUD_SQL_DATABASE = Kind("gcp.fairlead.dev", "v1alpha1", "CloudSQLDatabase", "cloudsqldatabases")
CLOUD_SQL_USER = Kind("gcp.fairlead.dev", "v1alpha1", "CloudSQLUser", "cloudsqlusers")
GCP_CONFIG = Kind("gcp.fairlead.dev", "v1alpha1", "ProviderConfig", "providerconfigs", namespaced=False)
FLAGS = ("--sweep=4", "--grace=6", "--settle=2", "--resync=600")
"""Flags of a provider that looks often, and leaves most of its two reads a second to passes."""
NAMESPACE = "fairlead-gcp"
KEY_SECRET = "gcp-key"
PERSON = "alice@example.com"
_LIMIT_S = 180.0


@dataclass(slots=True, kw_only=True)
class Gcp(SimulatedCloud):
    """A simulated Cloud SQL and what its judges do to it; its URL is that of Google's token endpoints too."""

    cloud: ClassVar[str] = "gcp"
    person_principal: ClassVar[str] = PERSON
    key: str = field(repr=False)
    person_token: str = field(default="", repr=False)

    async def instances(self) -> list[JsonObject]:
        """Return every instance of every project, with the fields of the wire."""
        instances: list[JsonObject] = await self.control("GET", "instances")
        return instances

    async def instance(self, name: str) -> JsonObject | None:
        """Return the instance of that name as the simulator has it, without lag."""
        return next((instance for instance in await self.instances() if instance["name"] == name), None)

    # A person with rights of his own

    async def admit_person(self) -> None:
        """Let the person own the project, with a token."""
        binding = {"project": PROJECT, "member": PERSON, "roles": ["roles/owner"]}
        await self.control("POST", "bindings", binding)
        self.person_token = (await self.control("POST", "tokens", {"principal": PERSON}))["token"]

    async def person(self, method: str, path: str, body: object = None) -> JsonObject:
        """Call Cloud SQL as a person does, below the project; return the answer, of an operation once it is DONE."""
        answer = await self._request(method, path, body)
        if answer.get("kind") != "sql#operation":
            return answer

        async def done() -> JsonObject | None:
            operation = await self._request("GET", f"operations/{answer['name']}")
            return operation if operation["status"] == "DONE" else None

        operation = await eventually(done, f"operation {answer['operationType']} of {PERSON} is DONE", limit_s=60)
        assert "error" not in operation, operation
        return operation

    async def _request(self, method: str, path: str, body: object = None) -> JsonObject:
        headers = {"Authorization": f"Bearer {self.person_token}"}
        url = f"{self.url}/v1/projects/{PROJECT}/{path}"
        async with self.session.request(method, url, json=body, headers=headers) as reply:
            answer: JsonObject = await reply.json(content_type=None)
            assert reply.status == 200, f"{method} {path}: {reply.status} {answer}"
            return answer

    # Objects

    def config(self, name: str = "default", **changes: Any) -> JsonObject:
        """Return a ProviderConfig for this simulator, open to every namespace; None leaves a field out."""
        spec = {
            "project": PROJECT,
            "endpoint": self.url,
            "credentials": {"source": "ServiceAccountKey", "secretRef": {"name": KEY_SECRET}},
            "allowedNamespaces": {"selector": {}},
            # The destroy rate limit has tests of its own; here it would stop the fourth test that deletes.
            "limits": {"destroysPerHour": 10_000},
            **changes,
        }
        return GCP_CONFIG.new("", name, spec={key: value for key, value in spec.items() if value is not None})

    async def external(self, kind: Kind, namespace: str, name: str) -> str:
        """Return the name in the cloud of a resource's object."""
        obj = await self.system.api.get(kind.path(namespace, name))
        return str(obj["metadata"]["annotations"]["fairlead.dev/external-name"])

    # Logins

    async def make_role(self, server: str, role: str) -> None:
        """Have a person make a role without a login that owns tables, by SQL as the administrator."""
        await self.person("PUT", f"instances/{server}/users?name=postgres", {"password": "of-the-administrator"})
        shown = await self.instance(server)
        assert shown is not None
        administrator = {
            "host": shown["ipAddresses"][0]["ipAddress"],
            "port": "5432",
            "database": "postgres",
            "username": "postgres",
            "password": "of-the-administrator",
            "provider": "gcp",
            "sslmode": "verify-ca",
            "certificates": shown["serverCaCert"]["cert"],
        }
        async with await self.system.login_by(administrator) as connection:
            await connection.execute(f"CREATE ROLE {role} NOLOGIN".encode())
            await connection.execute(f"GRANT CREATE ON SCHEMA public TO {role}".encode())


def instance(namespace: str, name: str, **spec: Any) -> JsonObject:
    """Return a CloudSQLInstance that no claim stands behind; its deletion deletes it. `forProvider` is merged."""
    parameters = {
        "region": REGION,
        "databaseVersion": "POSTGRES_16",
        "edition": "ENTERPRISE",
        "tier": "db-custom-1-3840",
        "activationPolicy": "ALWAYS",
        "ipv4Enabled": False,
        "privateNetwork": NETWORK,
        **spec.pop("forProvider", {}),
    }
    return CLOUD_SQL_INSTANCE.new(namespace, name, spec={"forProvider": parameters, "deletionPolicy": "Delete", **spec})


def user(namespace: str, name: str, /, *, server: str, **parameters: Any) -> JsonObject:
    """Return a CloudSQLUser in an instance of the namespace; its deletion deletes it."""
    whole = {"instanceRef": {"name": server}, "name": "app", **parameters}
    return CLOUD_SQL_USER.new(namespace, name, spec={"forProvider": whole, "deletionPolicy": "Delete"})


@asynccontextmanager
async def simulated_cloud_sql(system: System, *, real: bool = True) -> AsyncIterator[Gcp]:
    """Run a simulator on a rig's addresses and write its address into the cluster; no provider runs yet.

    `real` gives its instances databases, and itself a memory beyond its process.
    """
    place = place_beside(system, "gcp")
    key = place.folder / "key.json"
    own = (f"--project={PROJECT}", f"--account={ACCOUNT}", f"--key-file={key}")
    simulator = place.program("gcp", *own, real=real)
    async with running(system, place, simulator) as session:
        gcp = Gcp(
            system=system,
            url=place.url,
            session=session,
            simulator=simulator,
            control_token=place.control_token,
            key=await asyncio.to_thread(key.read_text),
        )
        await gcp.admit_person()
        await _publish(gcp)
        yield gcp


async def _publish(gcp: Gcp) -> None:
    """Install Google Cloud's roles and what its ProviderConfig names, as a platform team does."""
    system = gcp.system
    await system.install_cloud("gcp")
    await system.apply(SECRET, SECRET.new(NAMESPACE, KEY_SECRET, stringData={"credentials.json": gcp.key}))
    places = {"region": REGION, "privateNetwork": NETWORK}
    await system.apply(CONFIG_MAP, CONFIG_MAP.new("fairlead-system", "gcp", data=places))
    await system.apply(GCP_CONFIG, gcp.config())


async def at_work(gcp: Gcp) -> None:
    """Start composer and provider, and wait until the project was met."""
    await asyncio.gather(gcp.system.start_composer(), gcp.start_provider(*FLAGS))
    await gcp.system.until(GCP_CONFIG, "", "default", is_ready)
