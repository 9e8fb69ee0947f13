"""What Cloud SQL offers: versions, tiers, regions. Pure.

Sources: the recorded instances (POSTGRES_15_7, POSTGRES_16_9 with their maintenance versions); Cloud SQL for
PostgreSQL, "Machine series overview" (tiers).
"""

import re

VERSIONS = {
    "POSTGRES_13": "13_21",
    "POSTGRES_14": "14_18",
    "POSTGRES_15": "15_13",
    "POSTGRES_16": "16_9",
    "POSTGRES_17": "17_5",
    "POSTGRES_18": "18_1",
}
"""The minor version that is installed of each; it is Google's to choose."""
_RELEASE = "R20250302.00_31"
REGIONS = {
    "us-central1": "abcf",
    "us-east1": "bcd",
    "europe-west1": "bcd",
    "europe-west3": "abc",
    "europe-west4": "abc",
    "asia-northeast1": "abc",
}
"""The regions that there are, and the last letters of their zones."""
_CUSTOM = re.compile(r"db-custom-(\d+)-(\d+)")
_PERFORMANCE = re.compile(r"db-perf-optimized-N-(2|4|8|16|32|48|64|80|96|128)")
_SHARED = frozenset({"db-f1-micro", "db-g1-small"})
_MIB_STEP = 256
_MIB_PER_CPU = (922, 6656)
_LEAST_MIB = 3840
_MOST_CPUS = 96


def installed_version(version: str) -> str:
    """Return the version with its minor, as `POSTGRES_16_9`."""
    return f"POSTGRES_{VERSIONS[version]}"


def maintenance_version(version: str) -> str:
    """Return the release that an instance of a version runs."""
    return f"{installed_version(version)}.{_RELEASE}"


def major(version: str) -> int:
    """Return the number of a version: 16 of `POSTGRES_16`."""
    return int(version.removeprefix("POSTGRES_"))


def upgrades(version: str) -> list[dict[str, str]]:
    """Return what an instance may be upgraded to, as the API shows it."""
    newer = (name for name in VERSIONS if major(name) > major(version))
    return [{"displayName": f"PostgreSQL {major(name)}", "majorVersion": name, "name": name} for name in newer]


def zone_in(region: str) -> str:
    """Return the first zone of a region."""
    return f"{region}-{REGIONS[region][0]}"


def refusal_of_tier(tier: str, edition: str) -> str:
    """Return why a tier is none, or none of an edition; empty when it is one."""
    performance = _PERFORMANCE.fullmatch(tier) is not None
    if performance != (edition == "ENTERPRISE_PLUS"):
        return f"Invalid Tier ({tier}) for ({edition}) Edition."
    custom = _CUSTOM.fullmatch(tier)
    if performance or tier in _SHARED:
        return ""
    if custom is None:
        return f"Invalid tier: {tier}."
    cpus, mib = int(custom[1]), int(custom[2])
    if not 1 <= cpus <= _MOST_CPUS or (cpus > 1 and cpus % 2):
        return f"Invalid tier: {tier}. The number of vCPUs must be 1 or an even number between 2 and {_MOST_CPUS}."
    low, high = (bound * cpus for bound in _MIB_PER_CPU)
    if mib % _MIB_STEP or mib < max(_LEAST_MIB, low) or mib > high:
        return f"Invalid tier: {tier}. Memory must be a multiple of {_MIB_STEP} MB and 0.9 to 6.5 GB for each vCPU."
    return ""
