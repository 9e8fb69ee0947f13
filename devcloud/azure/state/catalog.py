"""What Azure offers for PostgreSQL flexible servers: regions, versions, sizes of compute and storage. Pure.

After the pages "Compute options", "Storage options" and "Supported versions" of Azure Database for PostgreSQL, and the
enums of the models of azure-mgmt-rdbms 10.1.1 and azure-mgmt-postgresqlflexibleservers 3.0.0. A cut of them.
"""

import msgspec

LOCATIONS = {
    "eastus": "East US",
    "westus2": "West US 2",
    "northeurope": "North Europe",
    "westeurope": "West Europe",
    "uksouth": "UK South",
    "germanywestcentral": "Germany West Central",
    "swedencentral": "Sweden Central",
}
FIRST_LOCATION = "uksouth"
# Minor versions are the vendor's; 13.23 is recorded (2026-01).
MINORS = {"13": "23", "14": "20", "15": "15", "16": "11", "17": "7", "18": "1"}
TIERS = ("Burstable", "GeneralPurpose", "MemoryOptimized")
_BURSTABLE = ("B1ms", "B2s", "B2ms", "B4ms", "B8ms", "B12ms", "B16ms", "B20ms")
_SERIES = ("s_v3", "ds_v4", "ds_v5", "ads_v5")
_CORES = (2, 4, 8, 16, 32, 48, 64)
SKUS = {
    "Burstable": tuple(f"Standard_{size}" for size in _BURSTABLE),
    "GeneralPurpose": tuple(f"Standard_D{cores}{series}" for cores in _CORES for series in _SERIES),
    "MemoryOptimized": tuple(f"Standard_E{cores}{series}" for cores in (*_CORES, 20) for series in _SERIES),
}
ZONES = ("1", "2", "3")
RETENTION_DAYS = range(7, 36)
REVIVABLE_DAYS = 5
"""How long a dropped server can be revived ("Restore a dropped server")."""


class Disk(msgspec.Struct, frozen=True):
    """The tier of a Premium SSD, and its IOPS."""

    tier: str
    iops: int


DISKS = {
    32: Disk("P4", 120),
    64: Disk("P6", 240),
    128: Disk("P10", 500),
    256: Disk("P15", 1_100),
    512: Disk("P20", 2_300),
    1_024: Disk("P30", 5_000),
    2_048: Disk("P40", 7_500),
    4_095: Disk("P50", 7_500),
    4_096: Disk("P50", 7_500),
    8_192: Disk("P60", 16_000),
    16_384: Disk("P70", 18_000),
    32_767: Disk("P80", 20_000),
}
"""The sizes of a Premium SSD, in GiB."""
DISK_TIERS = ("P1", "P2", "P3", "P4", "P6", "P10", "P15", "P20", "P30", "P40", "P50", "P60", "P70", "P80")
_IOPS = {disk.tier: disk.iops for disk in DISKS.values()}


def location_key(name: str) -> str:
    """Return a region as it is compared: `uksouth` of `UK South`."""
    return name.replace(" ", "").lower()


def location_name(key: str) -> str:
    """Return a region as servers show it: `UK South` of `uksouth`."""
    return LOCATIONS.get(key, key)


def iops_of(tier: str) -> int:
    """Return the IOPS of a disk tier."""
    return _IOPS.get(tier, 120)


def sku_name(tier: str, name: str) -> str | None:
    """Return a size in Azure's own letter case; None when the tier does not have it."""
    return next((known for known in SKUS[tier] if known.lower() == name.lower()), None)
