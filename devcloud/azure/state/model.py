"""Resource groups, servers and their children, locks: as they are kept, with ARM's names of fields. Pure."""

from datetime import datetime
from typing import Literal

import msgspec


class Group(msgspec.Struct, frozen=True, kw_only=True):
    """A resource group."""

    subscription: str
    name: str
    location: str
    tags: dict[str, str] | None = None


class Sku(msgspec.Struct, frozen=True, kw_only=True):
    """The size of a server's compute."""

    name: str
    tier: str


class Storage(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A server's disk; `type` is empty for Premium SSD, as Azure shows it."""

    storage_size_gb: int = msgspec.field(name="storageSizeGB")
    auto_grow: str = "Disabled"
    tier: str = ""
    iops: int | None = None
    throughput: int | None = None
    type: str = ""


class Backup(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """How long backups are kept; `earliest_restore_date` is there from the first one on."""

    backup_retention_days: int = 7
    geo_redundant_backup: str = "Disabled"
    earliest_restore_date: str | None = None


class Network(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Public access with firewall rules, or a subnet that the server lives in."""

    public_network_access: str = "Enabled"
    delegated_subnet_resource_id: str | None = None
    private_dns_zone_arm_resource_id: str | None = None


class HighAvailability(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A standby, in the same zone or another one."""

    mode: str = "Disabled"
    state: str = "NotEnabled"
    standby_availability_zone: str | None = None


class MaintenanceWindow(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """When Azure maintains; days count from Sunday, 0."""

    custom_window: str = "Disabled"
    day_of_week: int = 0
    start_hour: int = 0
    start_minute: int = 0


class AuthConfig(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Which logins there are."""

    active_directory_auth: str = "Disabled"
    password_auth: str = "Enabled"  # noqa: S105 - a switch
    tenant_id: str | None = None


class DataEncryption(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Whose key encrypts the data."""

    type: str = "SystemManaged"
    primary_key_uri: str | None = msgspec.field(default=None, name="primaryKeyURI")
    primary_user_assigned_identity_id: str | None = None


class Properties(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What a server's `properties` hold in the newest api-version; `state` is the one between operations."""

    fully_qualified_domain_name: str
    version: str
    minor_version: str
    administrator_login: str | None = None
    state: str = "Ready"
    availability_zone: str = "1"
    storage: Storage
    backup: Backup = Backup()
    network: Network = Network()
    high_availability: HighAvailability = HighAvailability()
    maintenance_window: MaintenanceWindow = MaintenanceWindow()
    auth_config: AuthConfig = AuthConfig()
    data_encryption: DataEncryption = DataEncryption()
    source_server_resource_id: str | None = None
    replication_role: str = "Primary"
    replica_capacity: int = 5


class Database(msgspec.Struct, frozen=True, kw_only=True):
    """A database of a server."""

    charset: str = "UTF8"
    collation: str = "en_US.utf8"


class Rule(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A firewall rule: the addresses from and to which it lets in."""

    start_ip_address: str
    end_ip_address: str


SYSTEM_DATABASES = {"azure_maintenance": Database(), "postgres": Database(), "azure_sys": Database()}


class Server(msgspec.Struct, frozen=True, kw_only=True):
    """A flexible server.

    Attributes:
        name: In small letters; a DNS name, so nobody else has it.
        resource_id: What no other server ever has, also none of the same name.
        location: As `uksouth`.
        tags: None where none were ever sent.
        host: Where its database answers, empty where there is none.
        is_created: Whether its creation has ended well.
        rules: By name, as it was written.
        overrides: The parameters that somebody chose.
        pending_restart: Which of them wait for a restart.
        backups: Those that somebody asked for, by name, with the time of each.
        in_vnet: Whether it lives in a subnet, without public access.
    """

    name: str
    subscription: str
    group: str
    resource_id: str
    location: str
    tags: dict[str, str] | None = None
    sku: Sku
    properties: Properties
    created_at: datetime
    host: str = ""
    is_created: bool = False
    databases: dict[str, Database] = msgspec.field(default_factory=lambda: dict(SYSTEM_DATABASES))
    rules: dict[str, Rule] = {}
    overrides: dict[str, str] = {}
    pending_restart: tuple[str, ...] = ()
    backups: dict[str, datetime] = {}

    @property
    def in_vnet(self) -> bool:
        """Whether it lives in a subnet, without public access."""
        return self.properties.network.delegated_subnet_resource_id is not None

    @property
    def arm_id(self) -> str:
        """Its id in ARM."""
        return server_id(self.subscription, self.group, self.name)


class Dropped(msgspec.Struct, frozen=True, kw_only=True):
    """A server that was deleted and can be revived."""

    server: Server
    until: datetime


class Lock(msgspec.Struct, frozen=True, kw_only=True):
    """A management lock."""

    scope: str
    name: str
    level: Literal["CanNotDelete", "ReadOnly"]


def group_id(subscription: str, group: str) -> str:
    """Return the id of a resource group."""
    return f"/subscriptions/{subscription}/resourceGroups/{group}"


def server_id(subscription: str, group: str, server: str) -> str:
    """Return the id of a server."""
    return f"{group_id(subscription, group)}/providers/Microsoft.DBforPostgreSQL/flexibleServers/{server}"
