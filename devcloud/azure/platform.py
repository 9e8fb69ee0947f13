"""The simulated Azure as a part of `fairlead up`: a process at a loop-back address, its databases at others beside it.

The one subscription has one resource group, and one application whose secret only this platform's files hold. ARM and
Entra answer over TLS, as nobody sends a token over anything else.
"""

import importlib.util
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from devcloud.addresses import Lease
from devcloud.azure.databases import AUTHORITY
from devcloud.azure.entra.directory import CLIENT_ID, SUBSCRIPTION, TENANT
from devcloud.azure.state.catalog import FIRST_LOCATION
from devcloud.azure.story import STORY
from devcloud.certificates import authority_in
from devcloud.clouds import Cloud, RunningCloud
from devcloud.errors import DevcloudError
from devcloud.paths import private_folder, write_private
from devcloud.programs import Program
from devcloud.simulator import launch
from devcloud.simulator.launch import Simulation
from devcloud.simulator.server import AUTHORITY as API_AUTHORITY

RESOURCE_GROUP = "databases"
_NETWORK = f"/subscriptions/{SUBSCRIPTION}/resourceGroups/network/providers/Microsoft.Network"
ENVIRONMENT: Mapping[str, str] = {
    "resourceGroup": RESOURCE_GROUP,
    "location": FIRST_LOCATION,
    "delegatedSubnetId": f"{_NETWORK}/virtualNetworks/main/subnets/databases",
    "privateDnsZoneId": f"{_NETWORK}/privateDnsZones/fairlead.private.postgres.database.azure.com",
}
"""What the shipped Composition reads from ConfigMap `azure`."""
_DURATIONS = 0.02  # six minutes of creation take eight seconds
_NAMESPACE = "fairlead-azure"
_CLIENT_SECRET = "azure-client"  # noqa: S105 - a Secret's name
_CA_SECRET = "azure-ca"  # noqa: S105 - a Secret's name
_BUNDLE = "ca-bundle.crt"
SIMULATION = Simulation(cloud="azure", title="simulated Azure", name="simulated-azure")


async def _start(folder: Path, lease: Lease) -> RunningCloud:
    if not _is_installed("azure.mgmt.rdbms"):
        raise DevcloudError(
            "Azure's provider needs its SDK, which is not installed: install fairlead[cli,devcloud,azure]"
        )
    private_folder(folder)
    # Here and not there: whoever is given them need not wait for who uses them.
    private_folder(launch.databases_in(folder))
    write_private(private_folder(_tls_in(folder)) / _BUNDLE, _certificates(folder))
    own = (
        f"--client-secret-file={launch.secret_in(folder, 'client-secret')}",
        f"--tls={_tls_in(folder)}",
        f"--resource-group={RESOURCE_GROUP}",
        f"--durations={_DURATIONS:g}",
    )
    await SIMULATION.start(folder, lease, *own)
    return _describe(folder, lease.octet)


def _is_installed(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:
        # A package around it is missing.
        return False


def _find(folder: Path, octet: int) -> RunningCloud | None:
    return _describe(folder, octet) if launch.is_running(folder) else None


def _tls_in(folder: Path) -> Path:
    return folder / "tls"


def _certificates(folder: Path) -> str:
    """Return the PEM of whoever answers: the servers, then ARM and Entra; the authorities are made when absent."""
    servers = authority_in(launch.databases_in(folder), AUTHORITY)
    return (servers.pem + authority_in(_tls_in(folder), API_AUTHORITY).pem).decode()


def _describe(folder: Path, octet: int) -> RunningCloud:
    location = launch.location_of(octet)
    url = f"https://{location}"
    client = {
        "AZURE_TENANT_ID": TENANT,
        "AZURE_CLIENT_ID": CLIENT_ID,
        "AZURE_CLIENT_SECRET": launch.secret_in(folder, "client-secret").read_text(),
    }
    return RunningCloud(
        says=f"azure: simulated Azure at {url}, subscription {SUBSCRIPTION}, for namespaces labelled cloud=azure",
        objects=objects(url, client, _certificates(folder)),
        logs={"simulated-azure": launch.log_of(folder)},
        flags=(f"--endpoint-override={location}",),
        variables={
            **client,
            "AZURE_SUBSCRIPTION_ID": SUBSCRIPTION,
            "AZURE_AUTHORITY_HOST": url,
            "AZURE_ENDPOINT_URL": url,
            "AZURE_CA_BUNDLE": str(_tls_in(folder) / _BUNDLE),
        },
    )


def config_spec(url: str) -> Mapping[str, Any]:
    """Return the spec of a ProviderConfig for a simulated Azure at a URL, open to every namespace."""
    return {
        "subscriptionID": SUBSCRIPTION,
        "endpoint": url,
        "authorityHost": url,
        "credentials": {"source": "ClientSecret", "secretRef": {"name": _CLIENT_SECRET}},
        "caBundleRef": {"name": _CA_SECRET, "key": "ca.crt"},
        "allowedNamespaces": {"selector": {}},
        "limits": {"publicAccess": True},
    }


def objects(url: str, client: Mapping[str, str], certificates: str) -> tuple[Mapping[str, Any], ...]:
    """Return what a cluster holds of a simulated Azure at a URL.

    `client` are the application's three keys, `certificates` the PEM of whoever answers: ARM, Entra, the servers.
    """
    return (
        _secret(_CLIENT_SECRET, client),
        _secret(_CA_SECRET, {"ca.crt": certificates}),
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "azure", "namespace": "fairlead-system"},
            "data": dict(ENVIRONMENT),
        },
        {
            "apiVersion": "azure.fairlead.dev/v1alpha1",
            "kind": "ProviderConfig",
            "metadata": {"name": "default"},
            "spec": config_spec(url),
        },
    )


def _secret(name: str, data: Mapping[str, str]) -> Mapping[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": name, "namespace": _NAMESPACE},
        "stringData": dict(data),
    }


CLOUD = Cloud(
    name="azure",
    story=STORY,
    # What takes minutes there takes seconds here, so it is looked at more often.
    program=Program(
        "provider-azure",
        ("providers", "azure", "--sweep=5", "--grace=15", "--settle=10"),
        _NAMESPACE,
        "fairlead-provider-azure",
    ),
    start=_start,
    find=_find,
    stop=launch.stop,
    erase=launch.erase,
)
