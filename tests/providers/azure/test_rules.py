"""Names, hosts, credentials, windows, values and ranges: tables of what is pure about Azure."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from providers.azure.activity import maker_in
from providers.azure.children import ranges
from providers.azure.children.values import as_azure_writes, same_value
from providers.azure.config import Limits, ProviderConfigSpec, hosts_of, is_of
from providers.azure.credentials import ClientSecret, ManagedIdentity, Source, WorkloadIdentity, source_of
from providers.azure.models import FlexibleServerFirewallRuleParameters, FlexibleServerParameters
from providers.azure.names import (
    NO_SERVER,
    ServerName,
    child_in,
    owner_in,
    same_location,
    server_in,
    server_of_id,
    spelled_tags,
)
from providers.azure.servers.refusal import refusal
from providers.azure.servers.states import Window, next_window, phase_of
from providers.external.cloud_api.tags import owner_tags
from providers.external.observation import Phase
from providers.external.ownership import Owner
from runtime.errors import Blocked, Terminal
from tests.providers.azure.arm_stub import SUBSCRIPTION

ARM = "https://management.azure.com"


def _config(**fields: Any) -> ProviderConfigSpec:
    spec = {"subscriptionID": SUBSCRIPTION, "credentials": {"source": "ManagedIdentity"}, **fields}
    return msgspec.convert(spec, ProviderConfigSpec)


def test_parts_of_external_names() -> None:
    assert server_in("rg/s") == server_in("rg/s/orders") == ServerName("rg", "s")
    assert server_in("/orders") == server_in("rg") == server_in("a/b/c/d") == NO_SERVER
    assert (child_in("rg/s/orders"), child_in("rg/s")) == ("orders", "")


@pytest.mark.parametrize("groups", ["resourceGroups", "resourcegroups"])
def test_id_is_read_in_any_letter_case(groups: str) -> None:
    path = f"/subscriptions/ABC/{groups}/RG/providers/microsoft.dbforpostgresql/FlexibleServers/s"

    assert server_of_id(path) == ("abc", ServerName("rg", "s"))
    assert server_of_id(f"{path}/databases/d") is None


def test_owner_comes_back_out_of_its_tags_in_any_letter_case() -> None:
    owner = Owner("home", "uid-1", "0123456789abcdef", "shop", "orders", "server", "ns-uid")

    assert owner_in({key.upper(): value for key, value in owner_tags(owner).items()}) == owner
    assert owner_in({**owner_tags(owner), "fairlead-claim": ""}) is None
    assert spelled_tags({"Team": "a", "x": "b"}, {"team": "c"}) == {"team": "a", "x": "b"}


def test_location_in_any_spelling() -> None:
    assert same_location("UK South", "uksouth")
    assert not same_location("ukwest", "uksouth")


@pytest.mark.parametrize(
    ("url", "allowed"),
    [
        (f"{ARM}/subscriptions/x?t=1", True),
        (f"{ARM}:443/x", True),
        ("https://MANAGEMENT.azure.com/x", True),
        ("http://management.azure.com/x", False),
        (f"{ARM}:444/x", False),
        ("https://management.azure.com.evil.example/x", False),
        ("https://management.azure.com@evil.example/x", False),
        ("https://evil.example/https://management.azure.com", False),
        ("https://management.azure.com:x/", False),
        ("", False),
    ],
)
def test_url_is_of_the_endpoint(url: str, *, allowed: bool) -> None:
    assert is_of(url, ARM) is allowed


@pytest.mark.parametrize(
    ("fields", "authority", "manager"),
    [
        ({}, "https://login.microsoftonline.com", ARM),
        ({"cloud": "AzureUSGovernment"}, "https://login.microsoftonline.us", "https://management.usgovcloudapi.net"),
        ({"cloud": "AzureChinaCloud"}, "https://login.chinacloudapi.cn", "https://management.chinacloudapi.cn"),
        (
            {"endpoint": "https://127.0.0.5:8443/", "authorityHost": "https://127.0.0.5:8444"},
            "https://127.0.0.5:8444",
            "https://127.0.0.5:8443",
        ),
        ({"endpoint": "http://127.0.0.1:80"}, "https://login.microsoftonline.com", "http://127.0.0.1:80"),
    ],
)
def test_hosts_of_a_cloud(fields: dict[str, str], authority: str, manager: str) -> None:
    hosts = hosts_of(_config(**fields))

    assert (hosts.authority, hosts.resource_manager) == (authority, manager)


@pytest.mark.parametrize(
    "fields",
    [
        {"endpoint": "http://10.0.0.1"},
        {"authorityHost": "https://evil.example"},
        {"authorityHost": "http://login.microsoftonline.com"},
        {"endpoint": "https://arm.example", "authorityHost": "https://other.example"},
    ],
)
def test_host_that_is_nobodys_gets_nothing(fields: dict[str, str]) -> None:
    with pytest.raises(Terminal) as refused:
        hosts_of(_config(**fields))

    assert refused.value.reason == "EndpointNotAllowed"


_POD = {"AZURE_CLIENT_ID": "c-1", "AZURE_TENANT_ID": "t-1", "AZURE_FEDERATED_TOKEN_FILE": "/var/t"}
_KEYS = {"AZURE_TENANT_ID": "t", "AZURE_CLIENT_ID": "c", "AZURE_CLIENT_SECRET": "s~3cret"}


@pytest.mark.parametrize(
    ("credentials", "environ", "source"),
    [
        ({"source": "WorkloadIdentity"}, _POD, WorkloadIdentity("t-1", "c-1", "/var/t")),
        ({"source": "WorkloadIdentity", "clientID": "c-2"}, _POD, WorkloadIdentity("t-1", "c-2", "/var/t")),
        ({"source": "ManagedIdentity"}, _POD, ManagedIdentity("")),
        ({"source": "ManagedIdentity", "clientID": "c-2"}, {}, ManagedIdentity("c-2")),
        ({"source": "ClientSecret", "secretRef": {"name": "keys"}}, _POD, ClientSecret("t", "c", "s~3cret")),
    ],
)
def test_source_is_the_one_that_is_named(credentials: Any, environ: dict[str, str], source: Source) -> None:
    config = _config(credentials=credentials).credentials

    assert source_of(config, {"keys": _KEYS}, environ) == source


@pytest.mark.parametrize(
    ("credentials", "secret", "environ", "reason"),
    [
        ({"source": "WorkloadIdentity"}, {}, {**_POD, "AZURE_FEDERATED_TOKEN_FILE": ""}, "CredentialsMissing"),
        ({"source": "WorkloadIdentity"}, {}, {**_POD, "AZURE_TENANT_ID": "../x"}, "CredentialsInvalid"),
        ({"source": "ClientSecret", "secretRef": {"name": "keys"}}, {}, {}, "CredentialsMissing"),
        (
            {"source": "ClientSecret", "secretRef": {"name": "keys"}},
            {**_KEYS, "AZURE_AUTHORITY_HOST": "https://evil"},
            {},
            "CredentialsForbidden",
        ),
        (
            {"source": "ClientSecret", "secretRef": {"name": "keys"}},
            {**_KEYS, "AZURE_CLIENT_SECRET": "s\n"},
            {},
            "CredentialsInvalid",
        ),
    ],
)
def test_source_that_is_missing_or_broken(credentials: Any, secret: Any, environ: Any, reason: str) -> None:
    with pytest.raises((Blocked, Terminal)) as refused:
        source_of(_config(credentials=credentials).credentials, {"keys": secret}, environ)

    assert getattr(refused.value, "reason", "") == reason


def test_secret_is_never_printed() -> None:
    assert "s~3cret" not in repr(ClientSecret("t", "c", "s~3cret"))


@pytest.mark.parametrize(
    ("state", "phase"),
    [
        ("Ready", Phase.READY),
        ("ready", Phase.READY),
        ("Stopped", Phase.STOPPED),
        ("Disabled", Phase.FAILED),
        ("Updating", Phase.BUSY),
        ("Contemplating", Phase.BUSY),
    ],
)
def test_phase_of_a_state(state: str, phase: Phase) -> None:
    assert phase_of(state) is phase


@pytest.mark.parametrize(
    ("window", "moment", "opens"),
    [
        (Window(0, 3, 0), "2026-11-22T03:00", "2026-11-22T03:00"),  # a Sunday
        (Window(0, 3, 0), "2026-11-22T04:00", "2026-11-29T03:00"),
        (Window(6, 23, 30), "2026-11-22T00:15", "2026-11-22T00:15"),
        (None, "2026-11-22T03:00", None),
    ],
)
def test_window(window: Window | None, moment: str, opens: str | None) -> None:
    expected = None if opens is None else datetime.fromisoformat(opens).replace(tzinfo=UTC)
    assert next_window(window, datetime.fromisoformat(moment).replace(tzinfo=UTC)) == expected


@pytest.mark.parametrize(
    ("value", "unit", "kind", "written"),
    [
        ("64MB", "KB", "Integer", "65536"),
        ("5min", "ms", "Integer", "300000"),
        ("1kB", "MB", "Integer", "1kB"),
        ("true", "", "Boolean", "on"),
        ("read,write", "", "Set", "read,write"),
    ],
)
def test_value_as_azure_writes_it(value: str, unit: str, kind: str, written: str) -> None:
    assert as_azure_writes(value, unit, kind) == written


def test_values_that_mean_the_same() -> None:
    assert same_value("READ, Write", "read,write")
    assert not same_value("read", "read,write")


@pytest.mark.parametrize(
    ("network", "start", "end"),
    [("203.0.113.0/24", "203.0.113.0", "203.0.113.255"), ("198.51.100.7/32", "198.51.100.7", "198.51.100.7")],
)
def test_range_of_a_network(network: str, start: str, end: str) -> None:
    spec = FlexibleServerFirewallRuleParameters(cidr=network)

    assert ranges.of_spec(spec) == (start, end)
    assert ranges.as_spec(spec, start, end) == {"cidr": network}
    assert ranges.as_spec(spec, start, "203.0.113.9") == {"cidr": f"{start}-203.0.113.9"}


@pytest.mark.parametrize("network", ["203.0.113.1/24", "2001:db8::/32", "everywhere"])
def test_no_range(network: str) -> None:
    with pytest.raises(Terminal, match="no IPv4 network"):
        ranges.of_spec(FlexibleServerFirewallRuleParameters(cidr=network))


_SPEC = FlexibleServerParameters(
    resource_group_name="Databases",
    location="uksouth",
    administrator_login="app",
    sku_name="Standard_D2ds_v5",
    sku_tier="GeneralPurpose",
    storage_size_gb=64,
)
_SUBNET = "/subscriptions/s/resourceGroups/n/providers/Microsoft.Network/virtualNetworks/v/subnets/p"


@pytest.mark.parametrize(
    ("limits", "fields", "reason"),
    [
        ({"publicAccess": True}, {}, None),
        ({}, {}, "LimitReached"),
        ({}, {"public_network_access": "Disabled"}, None),
        ({}, {"delegated_subnet_resource_id": _SUBNET}, None),
        ({"publicAccess": True, "resourceGroups": ["databases"]}, {}, None),
        ({"publicAccess": True, "resourceGroups": ["others"]}, {}, "LimitReached"),
        ({"publicAccess": True, "classes": ["Standard_B2s"]}, {}, "LimitReached"),
        ({"publicAccess": True, "storageGiB": 32}, {}, "LimitReached"),
        ({"publicAccess": True}, {"storage_size_gb": 100}, "InvalidValue"),
        ({"publicAccess": True}, {"storage_size_gb": 100, "storage_type": "PremiumV2_LRS"}, None),
    ],
)
def test_what_a_providerconfig_allows(limits: Any, fields: Any, reason: str | None) -> None:
    refused = refusal(msgspec.convert(limits, Limits), msgspec.structs.replace(_SPEC, **fields))

    assert (refused[0] if refused else None) == reason


def test_refusal_of_a_size_names_the_next_one() -> None:
    refused = refusal(Limits(public_access=True), msgspec.structs.replace(_SPEC, storage_size_gb=100))

    assert refused is not None
    assert "write 128" in refused[1]


def _event(at: int, request: str, verb: str = "write", status: str = "Succeeded") -> dict[str, Any]:
    name = f"Microsoft.DBforPostgreSQL/flexibleServers/databases/{verb}"
    return {
        "eventTimestamp": f"2026-11-28T12:00:{at:02}Z",
        "correlationId": request,
        "operationName": {"value": name},
        "status": {"value": status},
    }


@pytest.mark.parametrize(
    ("says", "events", "made_by"),
    [
        ("nothing is shown yet", [], ""),
        ("ours is not known to have ended", [_event(1, "ours", status="Accepted")], ""),
        ("ours", [_event(2, "ours"), _event(1, "ours", status="Accepted")], "ours"),
        ("another's changed nothing after it", [_event(2, "theirs"), _event(1, "OURS")], "ours"),
        ("another's came first", [_event(1, "theirs"), _event(2, "ours")], "theirs"),
        ("ours failed, and another's did not", [_event(1, "ours", status="Failed"), _event(2, "theirs")], "theirs"),
        ("ours was dropped", [_event(1, "ours"), _event(2, "x", "delete"), _event(3, "theirs")], "theirs"),
    ],
)
def test_maker_of_a_database_is_shown_by_the_log(says: str, events: list[dict[str, Any]], made_by: str) -> None:
    assert maker_in(events) == made_by, says
