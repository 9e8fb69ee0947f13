"""Which values RDS takes, apart from any instance's state. Pure.

Each rule cites its page of the RDS API Reference by the action and parameter; sentences are the service's where they
are known from its answers.
"""

import re
from collections.abc import Iterable

from devcloud.aws.refusals import invalid_combination, invalid_value, missing
from devcloud.aws.state import catalog, windows
from devcloud.aws.state.model import Tag
from devcloud.aws.state.requests import InstanceRequest
from devcloud.simulator.messages import Refusal

_IDENTIFIER = re.compile(r"[A-Za-z](?:[A-Za-z0-9]|-(?!-))*(?<!-)")
_GROUP_NAME = re.compile(r"[A-Za-z](?:[A-Za-z0-9]|-(?!-))*(?<!-)")
_SUBNET_GROUP_NAME = re.compile(r"[A-Za-z0-9 ._-]{1,255}")
_USERNAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,62}")
_DATABASE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,62}")
_PASSWORD = re.compile(r"[!-~]+")
_PASSWORD_FORBIDDEN = re.compile(r'[/@" ]')
_PASSWORD_LENGTHS = range(8, 129)
_RESERVED = frozenset(
    {"admin", "all", "analyse", "analyze", "and", "any", "array", "as", "authorization", "both", "case", "check"}
    | {"column", "constraint", "create", "default", "desc", "distinct", "do", "else", "end", "except", "false", "for"}
    | {"from", "grant", "group", "having", "in", "into", "limit", "not", "null", "offset", "on", "only", "or", "order"}
    | {"pg_monitor", "primary", "public", "rdsadmin", "rds_superuser", "references", "select", "table", "then", "to"}
    | {"true", "union", "unique", "user", "using", "when", "where", "with", "db", "database"}
)
_TAGS_AT_MOST = 50
_KEY_AT_MOST = 128
_VALUE_AT_MOST = 256
_TAG_TEXT = re.compile(r"[\w\s.:/=+\-@]*")
_RETENTION_DAYS = range(36)
_PORTS = range(1150, 65536)
_INTERVALS_S = frozenset({0, 1, 5, 10, 15, 30, 60})
_NETWORKS = frozenset({"IPV4", "DUAL"})


def identifier(name: str, parameter: str = "DBInstanceIdentifier", *, longest: int = 63) -> str:
    """Return an identifier as RDS stores it, in lower case (CreateDBInstance, DBInstanceIdentifier).

    Raises:
        Refusal: `InvalidParameterValue`.
    """
    if len(name) > longest or not _IDENTIFIER.fullmatch(name):
        raise invalid_value(
            f"The parameter {parameter} is not a valid identifier. Identifiers must begin with a letter; must contain "
            "only ASCII letters, digits, and hyphens; and must not end with a hyphen or contain two consecutive "
            "hyphens."
        )
    return name.lower()


def group_name(name: str, parameter: str = "DBParameterGroupName") -> str:
    """Return a parameter group's name in lower case (CreateDBParameterGroup).

    Raises:
        Refusal: `InvalidParameterValue`.
    """
    return identifier(name, parameter, longest=255)


def subnet_group_name(name: str) -> str:
    """Return a subnet group's name in lower case (CreateDBSubnetGroup).

    Raises:
        Refusal: `InvalidParameterValue`.
    """
    if not _SUBNET_GROUP_NAME.fullmatch(name) or name.lower() == "default":
        raise invalid_value(
            "The parameter DBSubnetGroupName must contain no more than 255 letters, numbers, periods, underscores, "
            'spaces, or hyphens, and must not be "Default".'
        )
    return name.lower()


def refuse_username(name: str) -> None:
    """Refuse a master user's name (CreateDBInstance, MasterUsername).

    Raises:
        Refusal: `InvalidParameterValue`.
    """
    if name.lower() in _RESERVED or name.lower().startswith(("pg_", "rds")):
        raise invalid_value(f"MasterUsername {name} cannot be used as it is a reserved word used by the engine")
    if not _USERNAME.fullmatch(name):
        raise invalid_value(
            "The parameter MasterUsername must begin with a letter and contain only alphanumeric characters."
        )


def refuse_password(password: str) -> None:
    """Refuse a master password (CreateDBInstance, MasterUserPassword); the sentence never shows it.

    Raises:
        Refusal: `InvalidParameterValue`.
    """
    says = "The parameter MasterUserPassword is not a valid password"
    if len(password) < _PASSWORD_LENGTHS.start:
        raise invalid_value(f"{says} because it is shorter than {_PASSWORD_LENGTHS.start} characters.")
    if len(password) not in _PASSWORD_LENGTHS:
        raise invalid_value(f"{says} because it is longer than {_PASSWORD_LENGTHS.stop - 1} characters.")
    if not _PASSWORD.fullmatch(password) or _PASSWORD_FORBIDDEN.search(password):
        raise invalid_value(f"{says}. Only printable ASCII characters besides '/', '@', '\"', ' ' may be used.")


def refuse_tags(tags: Iterable[Tag]) -> None:
    """Refuse tags ("Tagging Amazon RDS resources": 50 at most, lengths, reserved prefix).

    Raises:
        Refusal: `InvalidParameterValue`.
    """
    keys = [tag.key for tag in tags]
    if len(keys) > _TAGS_AT_MOST:
        raise invalid_value(f"A resource can have at most {_TAGS_AT_MOST} tags.")
    if len(keys) != len(set(keys)):
        raise invalid_value("Tag keys must be unique.")
    for tag in tags:
        if tag.key.lower().startswith("aws:"):
            raise invalid_value("Tag keys beginning with aws: are reserved for system use.")
        lengths_fit = 1 <= len(tag.key) <= _KEY_AT_MOST and len(tag.value) <= _VALUE_AT_MOST
        if not lengths_fit or not _TAG_TEXT.fullmatch(tag.key) or not _TAG_TEXT.fullmatch(tag.value):
            raise invalid_value(f"Invalid tag key or value: {tag.key[:_KEY_AT_MOST]}")


def refuse_values(request: InstanceRequest) -> None:
    """Refuse single values of CreateDBInstance, ModifyDBInstance and the restores.

    Raises:
        Refusal: `InvalidParameterValue`, `InvalidParameterCombination`, `CertificateNotFound` or
            `NetworkTypeNotSupported`.
    """
    _refuse_retention(request.backup_retention_period)
    _refuse_port(request.port)
    _refuse_port(request.db_port_number)
    if request.preferred_backup_window is not None:
        windows.backup_window(request.preferred_backup_window)
    if request.preferred_maintenance_window is not None:
        windows.maintenance_window(request.preferred_maintenance_window)
    if request.master_user_password is not None:
        refuse_password(request.master_user_password)
    if request.manage_master_user_password and request.master_user_password is not None:
        raise invalid_combination(
            "You can't specify MasterUserPassword and ManageMasterUserPassword for the same DB instance."
        )
    if request.ca_certificate_identifier is not None:
        catalog.refuse_certificate(request.ca_certificate_identifier)
    if request.network_type is not None and request.network_type not in _NETWORKS:
        raise invalid_value(f"Invalid network type: {request.network_type}")
    if request.network_type == "DUAL":
        raise Refusal("NetworkTypeNotSupported", "The network type DUAL is not supported by the DB subnet group.")
    _refuse_monitoring(request)
    _refuse_exports(request)
    refuse_tags(request.tags or ())


def _refuse_retention(days: int | None) -> None:
    if days is not None and days not in _RETENTION_DAYS:
        raise invalid_value(f"Invalid backup retention period: {days}. Retention period must be between 0 and 35")


def _refuse_port(port: int | None) -> None:
    if port is not None and port not in _PORTS:
        raise invalid_value(
            f"Invalid database port: {port}. Valid ports are between {_PORTS.start} and {_PORTS.stop - 1}."
        )


def _refuse_monitoring(request: InstanceRequest) -> None:
    if request.monitoring_interval is not None and request.monitoring_interval not in _INTERVALS_S:
        raise invalid_value(f"Invalid MonitoringInterval: {request.monitoring_interval}")
    if request.monitoring_interval and not request.monitoring_role_arn:
        raise invalid_combination(
            "A MonitoringRoleARN value is required if you specify a MonitoringInterval value other than 0."
        )
    days = request.performance_insights_retention_period
    if days is not None and days not in {7, 731} and (days % 31 or not 31 <= days <= 23 * 31):  # noqa: PLR2004 - a week, two years, or months of 31 days
        raise invalid_value(f"Invalid Performance Insights retention period: {days}")


def _refuse_exports(request: InstanceRequest) -> None:
    exports = list(request.enable_cloudwatch_logs_exports or ())
    for names in (request.cloudwatch_logs_export_configuration or {}).values():
        exports.extend(names)
    unknown = sorted(set(exports) - set(catalog.LOG_TYPES))
    if unknown:
        raise invalid_combination(f"You cannot use the log types '{unknown[0]}' with engine {catalog.ENGINE}.")


def refuse_creation(request: InstanceRequest) -> None:
    """Refuse what CreateDBInstance alone takes.

    Raises:
        Refusal: `MissingParameter`, `InvalidParameterValue`, `InvalidParameterCombination`.
    """
    if request.engine != catalog.ENGINE:
        raise invalid_value(f"Invalid DB engine: {request.engine}")
    if request.allocated_storage is None:
        raise missing("AllocatedStorage")
    if request.master_username is None:
        raise missing("MasterUsername")
    refuse_username(request.master_username)
    if request.master_user_password is None and not request.manage_master_user_password:
        raise missing("MasterUserPassword")
    if request.db_name is not None and (
        not _DATABASE.fullmatch(request.db_name) or request.db_name.lower() in _RESERVED
    ):
        raise invalid_value(f"DBName {request.db_name} cannot be used: it is a reserved word or not a valid name.")
    if request.kms_key_id is not None and request.storage_encrypted is False:
        raise invalid_combination("You can't specify a KMS key for a DB instance that is not encrypted.")
    if request.db_security_groups:
        raise invalid_combination("DB security groups are not supported: use VPC security groups.")


def refuse_placement(*, multi_az: bool, availability_zone: str | None, region: str) -> None:
    """Refuse a zone that cannot be had (CreateDBInstance, AvailabilityZone).

    Raises:
        Refusal: `InvalidParameterCombination` or `InvalidVPCNetworkStateFault`.
    """
    if availability_zone is None:
        return
    if multi_az:
        raise invalid_combination("Requesting a specific availability zone is not valid for Multi-AZ instances.")
    if availability_zone not in {f"{region}{letter}" for letter in "abc"}:
        raise Refusal("InvalidVPCNetworkStateFault", f"Cannot create a DB instance in {availability_zone}.")


def refuse_autoscaling(most_gib: int | None, gib: int) -> None:
    """Refuse a MaxAllocatedStorage that is less than 10% above the storage ("Managing capacity automatically").

    Raises:
        Refusal: `InvalidParameterCombination`.
    """
    if most_gib is None:
        return
    if most_gib <= gib:
        raise invalid_combination("Max storage size must be greater than storage size")
    if most_gib < _a_tenth_above(gib):
        raise invalid_combination("The maximum allocated storage must be increased by at least 10 percent.")


def grown(present_gib: int, asked_gib: int) -> int:
    """Return the size that a growth leads to: 10% more at least (ModifyDBInstance, AllocatedStorage).

    Raises:
        Refusal: `InvalidParameterCombination`, it would shrink.
    """
    if asked_gib < present_gib:
        raise invalid_combination(
            f"Requested storage size ({asked_gib}) cannot be less than the current storage size ({present_gib})."
        )
    if asked_gib == present_gib:
        return present_gib
    return max(asked_gib, _a_tenth_above(present_gib))


def _a_tenth_above(gib: int) -> int:
    return -(-gib * 11 // 10)
