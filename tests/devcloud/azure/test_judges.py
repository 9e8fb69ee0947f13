"""Microsoft's own packages drive the simulator: the successor of azure-mgmt-rdbms, with a token of azure-identity."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from azure.identity import ClientSecretCredential
from azure.mgmt.postgresqlflexibleservers import PostgreSQLManagementClient
from azure.mgmt.postgresqlflexibleservers import models as successor

from devcloud.azure.server import Options, running
from tests.devcloud.azure.conftest import PASSWORD, Arm, token_of

# They load two SDKs and log in over TLS, which takes seconds.
pytestmark = pytest.mark.slow


def test_successor_takes_a_server_through_its_life(tmp_path: Path) -> None:
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
    with running(Options(durations=0.0001, tls=tmp_path)) as served:
        arm = Arm(served, token_of(served))
        arm.behave(retry_after_s=0)
        arm.call("PUT", arm.group_path, {"location": "uksouth"}, version="2020-06-01")
        client, secret = served.credentials
        trusted: dict[str, Any] = {"connection_verify": str(served.authority), "retry_total": 0}
        login: dict[str, Any] = {"authority": served.url, "disable_instance_discovery": True}
        with (
            ClientSecretCredential(served.tenant, client, secret, **login, **trusted) as credential,
            PostgreSQLManagementClient(
                credential, served.subscription, base_url=served.url, polling_interval=0.02, **trusted
            ) as azure,
        ):
            azure.servers.begin_create_or_update("rg", "pg1", server).result()
            azure.servers.begin_update("rg", "pg1", change).result()
            shown = azure.servers.get("rg", "pg1")
            (listed,) = azure.servers.list_by_subscription()
            backups = list(azure.backups_automatic_and_on_demand.list_by_server("rg", "pg1"))
            azure.servers.begin_delete("rg", "pg1").result()
            remaining = list(azure.servers.list_by_resource_group("rg"))

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
