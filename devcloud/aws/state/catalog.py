"""What RDS offers for PostgreSQL: versions, upgrade paths, classes, storage. Pure.

After the pages "PostgreSQL versions" (release calendar), "DB instance classes" and "Amazon RDS DB instance storage" of
the RDS User Guide. A cut of them: enough minors for every path, the current families, the limits that requests meet.
"""

import msgspec

from devcloud.aws.refusals import invalid_combination, invalid_value
from devcloud.simulator.messages import Refusal

ENGINE = "postgres"
VERSIONS = (
    *("13.20", "13.21", "13.22"),
    *("14.15", "14.17", "14.18", "14.19"),
    *("15.4", "15.5", "15.7", "15.10", "15.12", "15.13", "15.14"),
    *("16.3", "16.4", "16.6", "16.8", "16.9", "16.10"),
    *("17.2", "17.4", "17.5", "17.6"),
    *("18.1",),
)
DEFAULT_VERSION = "17.6"
CERTIFICATES = ("rds-ca-rsa2048-g1", "rds-ca-rsa4096-g1", "rds-ca-ecc384-g1")
DEFAULT_CERTIFICATE = "rds-ca-rsa2048-g1"
LOG_TYPES = ("postgresql", "upgrade", "iam-db-auth-error")

_SIZES = ("large", "xlarge", "2xlarge", "4xlarge", "8xlarge", "12xlarge", "16xlarge")
_BURST_SIZES = ("micro", "small", "medium", "large", "xlarge", "2xlarge")
_BURST_FAMILIES = ("t3", "t4g")
_FAMILIES = ("m5", "m6g", "m6i", "m7g", "m7i", "m8g", "r5", "r6g", "r6i", "r7g", "r7i", "r8g", "x2g")
_LARGER = {
    **dict.fromkeys(("m5", "r5", "m7i", "r7i", "m8g", "r8g"), ("24xlarge",)),
    **dict.fromkeys(("m6i", "r6i"), ("24xlarge", "32xlarge")),
}
CLASSES = (
    *(f"db.{family}.{size}" for family in _BURST_FAMILIES for size in _BURST_SIZES),
    *(f"db.{family}.{size}" for family in _FAMILIES for size in (*_SIZES, *_LARGER.get(family, ()))),
)
# Known to the API, offered for versions that are gone: a request for one is a combination that does not exist.
RETIRED_CLASSES = ("db.t2.micro", "db.t2.small", "db.t2.medium", "db.m4.large", "db.m4.xlarge", "db.r4.large")


class Storage(msgspec.Struct, frozen=True, kw_only=True):
    """A storage type: GiB from and to, IOPS from and to (None: takes none), IOPS per GiB at most."""

    least_gib: int
    most_gib: int = 65_536
    least_iops: int | None = None
    most_iops: int | None = None
    most_per_gib: float = 0


STORAGE = {
    "standard": Storage(least_gib=5, most_gib=3_072),
    "gp2": Storage(least_gib=20),
    "gp3": Storage(least_gib=20, least_iops=12_000, most_iops=64_000, most_per_gib=500),
    "io1": Storage(least_gib=100, least_iops=1_000, most_iops=256_000, most_per_gib=50),
    "io2": Storage(least_gib=100, least_iops=1_000, most_iops=256_000, most_per_gib=1_000),
}
GP3_LARGE_GIB = 400
_GP3_MOST_THROUGHPUT = 4_000


def major(version: str) -> str:
    """Return the major version: `16` of `16.4`."""
    return version.split(".", 1)[0]


def option_group(version: str) -> str:
    """Return the option group of a version: `default:postgres-16` of `16.4`."""
    return f"default:{ENGINE}-{major(version)}"


def _order(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))


def version(wanted: str | None) -> str:
    """Return the version that a request means; a major version alone means its newest minor.

    Raises:
        Refusal: `InvalidParameterCombination`, it is not offered.
    """
    if wanted is None:
        return DEFAULT_VERSION
    if wanted in VERSIONS:
        return wanted
    minors = [name for name in VERSIONS if major(name) == wanted]
    if not minors:
        raise invalid_combination(f"Cannot find version {wanted} for {ENGINE}")
    return minors[-1]


def targets(present: str) -> tuple[str, ...]:
    """Return the versions to which one can be upgraded, oldest first."""
    return tuple(name for name in VERSIONS if _order(name) > _order(present))


def automatic_target(present: str) -> str | None:
    """Return the newest minor of the same major, if that is newer: where AutoMinorVersionUpgrade leads."""
    newer = [target for target in targets(present) if major(target) == major(present)]
    return newer[-1] if newer else None


def refuse_upgrade(present: str, wanted: str, *, major_allowed: bool) -> None:
    """Refuse a version that one cannot be changed to (User Guide, "Upgrading the PostgreSQL DB engine").

    Raises:
        Refusal: A downgrade, an unknown path, or a major upgrade without the flag.
    """
    if wanted not in targets(present):
        raise invalid_combination(f"Cannot upgrade {ENGINE} from {present} to {wanted}")
    if major(wanted) != major(present) and not major_allowed:
        raise invalid_combination(
            "The AllowMajorVersionUpgrade flag must be present when upgrading to a new major version."
        )


def refuse_class(wanted: str, engine_version: str) -> None:
    """Refuse a class that does not exist or is not offered for the version.

    Raises:
        Refusal: `InvalidParameterValue` or `InvalidParameterCombination`.
    """
    if wanted in CLASSES:
        return
    if wanted in RETIRED_CLASSES:
        raise invalid_combination(
            "RDS does not support creating a DB instance with the following combination: "
            f"DBInstanceClass={wanted}, Engine={ENGINE}, EngineVersion={engine_version}, "
            "LicenseModel=postgresql-license. For supported combinations of instance class and database engine "
            "version, see the documentation."
        )
    raise invalid_value(f"Invalid DB Instance class: {wanted}")


def refuse_storage(kind: str, gib: int, *, iops: int | None, throughput: int | None) -> None:
    """Refuse sizes and rates that a storage type does not have ("Amazon RDS DB instance storage").

    Raises:
        Refusal: `InvalidParameterValue`, `InvalidParameterCombination` or `StorageTypeNotSupported`.
    """
    storage = STORAGE.get(kind)
    if storage is None:
        raise invalid_value(f"Invalid storage type: {kind}")
    if not storage.least_gib <= gib <= storage.most_gib:
        raise invalid_value(f"Invalid storage size for engine name {ENGINE} and storage type {kind}: {gib}")
    if kind == "gp3" and gib < GP3_LARGE_GIB:
        if iops is not None or throughput is not None:
            raise invalid_combination(
                f"You can't specify IOPS or storage throughput for engine {ENGINE} and a storage size less than "
                f"{GP3_LARGE_GIB}."
            )
        return
    if throughput is not None and (kind != "gp3" or not 500 <= throughput <= _GP3_MOST_THROUGHPUT):  # noqa: PLR2004 - MiB/s of gp3 from 400 GiB on
        raise invalid_combination(f"Invalid storage throughput value for storage type {kind}: {throughput}")
    _refuse_iops(kind, storage, gib, iops)


def _refuse_iops(kind: str, storage: Storage, gib: int, iops: int | None) -> None:
    if storage.least_iops is None or storage.most_iops is None:
        if iops is not None:
            raise invalid_combination(f"You can't specify IOPS for storage type {kind}.")
        return
    if iops is None:
        if kind == "gp3":
            return
        raise invalid_combination(f"You must specify the IOPS for storage type {kind}.")
    if not storage.least_iops <= iops <= storage.most_iops or iops > gib * storage.most_per_gib:
        raise invalid_combination(f"Invalid iops value for storage type {kind} and size {gib}: {iops}")


def rates(kind: str, gib: int, *, iops: int | None, throughput: int | None) -> tuple[int | None, int | None]:
    """Return the IOPS and MiB/s that an instance then shows; gp3 has a base of its own, the others show 0 MiB/s."""
    if kind != "gp3":
        return iops if STORAGE[kind].least_iops else None, 0
    if gib < GP3_LARGE_GIB:
        return 3_000, 125
    return iops or 12_000, throughput or 500


def refuse_certificate(name: str) -> None:
    """Refuse a certificate authority that is not offered.

    Raises:
        Refusal: `CertificateNotFound`.
    """
    if name not in CERTIFICATES:
        raise Refusal("CertificateNotFound", f"Certificate {name} not found.")
