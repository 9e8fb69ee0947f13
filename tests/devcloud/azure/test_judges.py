"""Microsoft's own packages drive the simulator: azure-mgmt-rdbms, its successor, azure-identity."""

from __future__ import annotations

import gc
import time
import warnings
from collections.abc import Iterator
from typing import Any

import pytest
from azure.core.credentials import AccessToken
from azure.core.exceptions import ResourceNotFoundError
from azure.identity import ClientSecretCredential
from azure.mgmt.postgresqlflexibleservers import PostgreSQLManagementClient as Successor
from azure.mgmt.postgresqlflexibleservers import models as successor
from azure.mgmt.rdbms.postgresql_flexibleservers import PostgreSQLManagementClient as Rdbms
from azure.mgmt.rdbms.postgresql_flexibleservers import models as rdbms

from devcloud.azure.server import Options, Served, running
from tests.devcloud.azure.conftest import PASSWORD, SCOPE, Arm, token_of

# They load two SDKs and log in over TLS, which takes seconds.
pytestmark = pytest.mark.slow

QUICK = 0.0001


class Credential:
    """A token that is there already."""

    def __init__(self, token: str) -> None:
        self._token = AccessToken(token, int(time.time()) + 3600)

    def get_token(self, *scopes: str, **options: Any) -> AccessToken:
        del scopes, options
        return self._token


@pytest.fixture(scope="module")
def secure(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """Serve over HTTPS: the packages send tokens over nothing else."""
    with running(Options(durations=QUICK, tls=tmp_path_factory.mktemp("api"))) as served:
        yield served
    # Event loops that end leave TLS connections half closed; collected here, they disturb no later test.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()


@pytest.fixture
def judge(secure: Served) -> Arm:
    arm = Arm(secure, token_of(secure))
    arm.control("POST", "reset")
    arm.behave(retry_after_s=0)
    arm.call("PUT", arm.group_path, {"location": "uksouth"}, version="2020-06-01")
    return arm


def _options(judge: Arm) -> dict[str, Any]:
    return {
        "base_url": judge.served.url,
        "connection_verify": str(judge.served.authority),
        "polling_interval": 0.02,
        "retry_total": 0,
    }


def _server() -> rdbms.Server:
    return rdbms.Server(
        location="uksouth",
        sku=rdbms.Sku(name="Standard_D4s_v3", tier="GeneralPurpose"),
        administrator_login="myadmin",
        administrator_login_password=PASSWORD,
        version="14",
        storage=rdbms.Storage(storage_size_gb=128),
        tags={"team": "a"},
    )


def test_rdbms_takes_a_server_through_its_life(judge: Arm) -> None:
    with Rdbms(Credential(judge.token), judge.served.subscription, **_options(judge)) as client:
        with pytest.raises(ResourceNotFoundError) as missing:
            client.servers.get("rg", "pg1")
        created = client.servers.begin_create("rg", "pg1", _server()).result()
        assert (created.state, created.version, created.tags) == ("Ready", "14", {"team": "a"})
        update = rdbms.ServerForUpdate(storage=rdbms.Storage(storage_size_gb=256))
        updated = client.servers.begin_update("rg", "pg1", update).result()
        rule = rdbms.FirewallRule(start_ip_address="10.0.0.1", end_ip_address="10.0.0.1")
        client.firewall_rules.begin_create_or_update("rg", "pg1", "r", rule).result()
        client.databases.begin_create("rg", "pg1", "app", rdbms.Database(charset="utf8")).result()
        configuration = rdbms.Configuration(value="8192", source="user-override")
        client.configurations.begin_update("rg", "pg1", "work_mem", configuration).result()
        client.servers.begin_stop("rg", "pg1").result()
        stopped = client.servers.get("rg", "pg1").state
        client.servers.begin_start("rg", "pg1").result()
        client.servers.begin_restart("rg", "pg1").result()
        names = [server.name for server in client.servers.list()]
        rules = [rule.name for rule in client.firewall_rules.list_by_server("rg", "pg1")]
        databases = [database.name for database in client.databases.list_by_server("rg", "pg1")]
        work_mem = client.configurations.get("rg", "pg1", "work_mem")
        request = rdbms.NameAvailabilityRequest(name="pg1", type="Microsoft.DBforPostgreSQL/flexibleServers")
        is_free = client.check_name_availability.execute(request).name_available
        client.firewall_rules.begin_delete("rg", "pg1", "r").result()
        client.databases.begin_delete("rg", "pg1", "app").result()
        client.servers.begin_delete("rg", "pg1").result()
        with pytest.raises(ResourceNotFoundError):
            client.servers.get("rg", "pg1")

    assert missing.value.error is not None
    assert missing.value.error.code == "ResourceNotFound"
    assert updated.storage is not None
    assert updated.storage.storage_size_gb == 256
    assert (stopped, names, rules, is_free) == ("Stopped", ["pg1"], ["r"], False)
    assert databases == ["azure_maintenance", "postgres", "azure_sys", "app"]
    assert (work_mem.value, work_mem.source) == ("8192", "user-override")


def test_successor_takes_a_server_through_its_life(judge: Arm) -> None:
    server = successor.Server(
        location="uksouth",
        sku=successor.Sku(name="Standard_D4ds_v5", tier="GeneralPurpose"),
        properties=successor.ServerProperties(
            administrator_login="myadmin",
            administrator_login_password=PASSWORD,
            version="18",
            storage=successor.Storage(storage_size_gb=64, auto_grow="Enabled"),
            high_availability=successor.HighAvailability(mode="ZoneRedundant"),
        ),
    )
    change = successor.ServerForPatch(
        properties=successor.ServerPropertiesForPatch(backup=successor.BackupForPatch(backup_retention_days=14))
    )
    with Successor(Credential(judge.token), judge.served.subscription, **_options(judge)) as client:
        client.servers.begin_create_or_update("rg", "pg1", server).result()
        client.servers.begin_update("rg", "pg1", change).result()
        shown = client.servers.get("rg", "pg1")
        (listed,) = client.servers.list_by_subscription()
        backups = list(client.backups_automatic_and_on_demand.list_by_server("rg", "pg1"))
        client.servers.begin_delete("rg", "pg1").result()
        remaining = list(client.servers.list_by_resource_group("rg"))

    assert shown.properties is not None
    assert (shown.properties.version, shown.properties.state) == ("18", "Ready")
    assert shown.properties.storage is not None
    assert (shown.properties.storage.auto_grow, shown.properties.storage.tier) == ("Enabled", "P6")
    assert shown.properties.high_availability is not None
    assert shown.properties.high_availability.state == "Healthy"
    assert shown.properties.backup is not None
    assert shown.properties.backup.backup_retention_days == 14
    assert shown.system_data is not None
    assert shown.system_data.created_at is not None
    assert (listed.name, len(backups), remaining) == ("pg1", 1, [])


def test_client_secret_of_azure_identity_gets_a_token(judge: Arm) -> None:
    served = judge.served
    with ClientSecretCredential(
        served.tenant,
        *served.credentials,
        authority=served.url,
        disable_instance_discovery=True,
        connection_verify=str(served.authority),
        retry_total=0,
    ) as credential:
        token = credential.get_token(SCOPE).token

    assert Arm(served, token).call("GET", judge.group_path, version="2020-06-01").status == 200
