"""A simulated Azure beside a rig: its servers, a person's own calls, what the cluster holds of it."""

import asyncio
import secrets
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, ClassVar

from devcloud.azure.entra.directory import CLIENT_ID, SUBSCRIPTION, TENANT
from devcloud.azure.platform import RESOURCE_GROUP, objects
from devcloud.certificates import authority_in
from tests.support.api import JsonObject
from tests.support.kinds import CONFIG_MAP, SECRET, Kind, is_ready
from tests.support.simulated_cloud import SimulatedCloud, place_beside, running
from tests.support.system import System
from tests.support.waiting import eventually

FLEXIBLE_SERVER = Kind("azure.fairlead.dev", "v1alpha1", "FlexibleServer", "flexibleservers")
SERVER_DATABASE = Kind("azure.fairlead.dev", "v1alpha1", "FlexibleServerDatabase", "flexibleserverdatabases")
FIREWALL_RULE = Kind("azure.fairlead.dev", "v1alpha1", "FlexibleServerFirewallRule", "flexibleserverfirewallrules")
CONFIGURATION = Kind("azure.fairlead.dev", "v1alpha1", "FlexibleServerConfiguration", "flexibleserverconfigurations")
AZURE_CONFIG = Kind("azure.fairlead.dev", "v1alpha1", "ProviderConfig", "providerconfigs", namespaced=False)
NAMESPACE = "fairlead-azure"
PERSON = "00000000-0000-4000-8000-00000000a11c"
SCOPE = f"/subscriptions/{SUBSCRIPTION}"
_PERSON_CLIENT = "11111111-0000-4000-8000-00000000a11c"
_VERSION = "2025-08-01"
_PROVIDER = "providers/Microsoft.DBforPostgreSQL/flexibleServers"
_KINDS = {"Secret": SECRET, "ConfigMap": CONFIG_MAP, "ProviderConfig": AZURE_CONFIG}


@dataclass(slots=True, kw_only=True)
class Azure(SimulatedCloud):
    """A simulated Azure and what its judges do to it; its URL is that of ARM and of Entra."""

    cloud: ClassVar[str] = "azure"
    person_principal: ClassVar[str] = PERSON
    person_secret: str = field(repr=False)
    certificates: str = field(repr=False)

    # A person with an application of their own

    async def admit_person(self) -> None:
        """Let a person with all rights in the subscription be known."""
        principal = {"client_id": _PERSON_CLIENT, "object_id": PERSON, "secrets": [self.person_secret]}
        await self.control("POST", "principals", principal)
        await self.control("DELETE", f"roles/{PERSON}")
        role = {"name": "Owner", "actions": ["*"]}
        await self.control("POST", "roles", {"object_id": PERSON, "scope": SCOPE, "role": role})

    async def person(self, method: str, path: str, body: object = None) -> JsonObject:
        """Call ARM as a person does; `path` is below the resource group's servers: `fl-orders/firewallRules/home`.

        What it began has ended when it returns; the answer is that of the call.
        """
        url = f"{self.url}{SCOPE}/resourceGroups/{RESOURCE_GROUP}/{_PROVIDER}/{path}?api-version={_VERSION}"
        headers = {"Authorization": f"Bearer {await self._token()}"}
        async with self.session.request(method, url, json=body, headers=headers) as answer:
            text = await answer.text()
            assert answer.status < 400, f"{method} {path}: {answer.status} {text}"
            content: JsonObject = await answer.json(content_type=None) if text else {}
            operation = answer.headers.get("Azure-AsyncOperation", "")
        if operation:
            await eventually(lambda: self._has_ended(operation, headers), f"{method} {path} has ended", limit_s=60)
        return content

    async def _has_ended(self, operation: str, headers: Mapping[str, str]) -> bool:
        async with self.session.get(operation, headers=headers) as answer:
            shown = await answer.json(content_type=None)
        assert shown["status"] in {"InProgress", "Succeeded"}, shown
        return bool(shown["status"] == "Succeeded")

    async def _token(self) -> str:
        form = {
            "grant_type": "client_credentials",
            "client_id": _PERSON_CLIENT,
            "client_secret": self.person_secret,
            "scope": "https://management.azure.com/.default",
        }
        async with self.session.post(f"{self.url}/{TENANT}/oauth2/v2.0/token", data=form) as answer:
            return str((await answer.json(content_type=None))["access_token"])

    # Objects


@asynccontextmanager
async def simulated_azure(system: System, *, real: bool = True) -> AsyncIterator[Azure]:
    """Run a simulator on a rig's addresses and write its address into the cluster; no provider runs yet.

    `real` gives its servers databases, and itself a memory beyond its process.
    """
    place, client_secret = place_beside(system, "azure", has_tls=True), secrets.token_urlsafe(30)
    certificates = authority_in(place.databases, "azure-ca").pem.decode() + place.authority
    (place.folder / "client-secret").write_text(client_secret)
    own = (
        f"--client-secret-file={place.folder / 'client-secret'}",
        f"--resource-group={RESOURCE_GROUP}",
    )
    simulator = place.program("azure", *own, real=real)
    async with running(system, place, simulator) as session:
        azure = Azure(
            system=system,
            url=place.url,
            session=session,
            simulator=simulator,
            control_token=place.control_token,
            person_secret=secrets.token_urlsafe(30),
            certificates=certificates,
        )
        await azure.admit_person()
        await _publish(azure, client_secret)
        yield azure


async def _publish(azure: Azure, client_secret: str) -> None:
    """Install Azure's roles and what its ProviderConfig names, as a platform team does."""
    system = azure.system
    await system.install_cloud("azure")
    client = {"AZURE_TENANT_ID": TENANT, "AZURE_CLIENT_ID": CLIENT_ID, "AZURE_CLIENT_SECRET": client_secret}
    for obj in objects(azure.url, client, azure.certificates):
        kind = _KINDS[obj["kind"]]
        whole = dict(obj)
        if kind is AZURE_CONFIG:
            # The destroy rate limit has tests of its own; here it would stop the fourth test that deletes.
            whole["spec"] = {**obj["spec"], "limits": {**obj["spec"]["limits"], "destroysPerHour": 10_000}}
        await system.apply(kind, whole)


async def at_work(azure: Azure) -> None:
    """Start composer and provider, and wait until the subscription was met."""
    await asyncio.gather(azure.system.start_composer(), azure.start_provider())
    await azure.system.until(AZURE_CONFIG, "", "default", is_ready)


def flexible_server(namespace: str, name: str, *, config: str = "default", **spec: Any) -> JsonObject:
    """Return a FlexibleServer that no claim stands behind; its deletion deletes it. `forProvider` is merged."""
    parameters = {
        "resourceGroupName": RESOURCE_GROUP,
        "location": "uksouth",
        "version": "16",
        "skuName": "Standard_B2s",
        "skuTier": "Burstable",
        "storageSizeGB": 32,
        "publicNetworkAccess": "Enabled",
        "administratorLogin": "boss",
        **spec.pop("forProvider", {}),
    }
    whole = {
        "forProvider": {key: value for key, value in parameters.items() if value is not None},
        "providerConfigRef": {"name": config},
        "deletionPolicy": "Delete",
        **spec,
    }
    return FLEXIBLE_SERVER.new(namespace, name, spec=whole)
