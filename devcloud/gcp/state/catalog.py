"""What Cloud SQL offers: versions, tiers, flags, regions. Pure.

Sources: the recorded instances (POSTGRES_15_7, POSTGRES_16_9 with their maintenance versions); Cloud SQL for
PostgreSQL, "Machine series overview" (tiers) and "Configure database flags" (flags, and which of them restart).
"""

import re
from typing import Literal

import msgspec

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


class Flag(msgspec.Struct, frozen=True, kw_only=True):
    """A database flag.

    Attributes:
        type: As flags.list says it.
        low: The least value of a number.
        high: The greatest.
        restarts: Whether a change of it restarts the instance.
    """

    type: Literal["BOOLEAN", "INTEGER", "STRING", "FLOAT"] = "INTEGER"
    low: int = 0
    high: int = 2_147_483_647
    restarts: bool = False


FLAGS = {
    "autovacuum": Flag(type="BOOLEAN"),
    "cloudsql.enable_pgaudit": Flag(type="BOOLEAN", restarts=True),
    "cloudsql.iam_authentication": Flag(type="BOOLEAN", restarts=True),
    "cloudsql.logical_decoding": Flag(type="BOOLEAN", restarts=True),
    "default_statistics_target": Flag(low=1, high=10_000),
    "effective_cache_size": Flag(low=1),
    "idle_in_transaction_session_timeout": Flag(),
    "lock_timeout": Flag(),
    "log_connections": Flag(type="BOOLEAN"),
    "log_disconnections": Flag(type="BOOLEAN"),
    "log_lock_waits": Flag(type="BOOLEAN"),
    "log_min_duration_statement": Flag(low=-1),
    "log_statement": Flag(type="STRING"),
    "maintenance_work_mem": Flag(low=1024),
    "max_connections": Flag(low=14, high=262_143, restarts=True),
    "max_locks_per_transaction": Flag(low=10, restarts=True),
    "max_parallel_workers": Flag(high=1024),
    "max_wal_size": Flag(low=2),
    "max_worker_processes": Flag(low=8, high=262_143, restarts=True),
    "pg_stat_statements.track": Flag(type="STRING"),
    "random_page_cost": Flag(type="FLOAT"),
    "shared_buffers": Flag(low=16, restarts=True),
    "statement_timeout": Flag(),
    "temp_file_limit": Flag(low=-1),
    "timezone": Flag(type="STRING"),
    "work_mem": Flag(low=64),
}


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


def refusal_of_flag(name: str, value: str) -> str:
    """Return why a flag cannot have a value; empty when it can."""
    flag = FLAGS.get(name)
    if flag is None:
        return f"Invalid flag name: {name}."
    match flag.type:
        case "BOOLEAN":
            lawful = value in {"on", "off"}
        case "INTEGER":
            lawful = re.fullmatch(r"-?\d{1,10}", value) is not None and flag.low <= int(value) <= flag.high
        case "FLOAT":
            lawful = re.fullmatch(r"\d+(\.\d+)?", value) is not None
        case _:
            lawful = bool(value)
    return "" if lawful else f"Invalid flag value: {value} for {name}."
