"""Server parameters ("configurations") of flexible servers, a cut of them: defaults, types, what is allowed. Pure.

`pgaudit.log` is recorded; the others follow "Server parameters" of Azure Database for PostgreSQL.
"""

from typing import Literal

import msgspec

from devcloud.azure.state.extensions import offered_in

DataType = Literal["Boolean", "Enumeration", "Integer", "Numeric", "Set", "String"]
TLS_REQUIRED = "require_secure_transport"
EXTENSIONS = "azure.extensions"


class Configuration(msgspec.Struct, frozen=True, kw_only=True):
    """A parameter.

    Attributes:
        default: Its value where nobody chose one.
        data_type: What a value is.
        allowed: A range `least-most`, or the values with commas; empty is everything.
        is_dynamic: Whether a value counts at once; else from the next restart on.
        is_read_only: Whether nobody may choose it.
        description: What it does.
        link: Where it is documented.
        unit: Of the value, None for none.
    """

    default: str
    data_type: DataType
    allowed: str = ""
    is_dynamic: bool = True
    is_read_only: bool = False
    description: str = ""
    link: str = "https://www.postgresql.org/docs/current/runtime-config.html"
    unit: str | None = None


_AUDIT_LINK = "https://github.com/pgaudit/pgaudit/blob/master/README.md"
_MILLISECONDS = "0-2147483647"
CONFIGURATIONS = {
    "autovacuum": Configuration(default="on", data_type="Boolean", allowed="on,off"),
    "backslash_quote": Configuration(default="safe_encoding", data_type="Enumeration", allowed="safe_encoding,on,off"),
    EXTENSIONS: Configuration(default="", data_type="Set"),
    "idle_in_transaction_session_timeout": Configuration(default="0", data_type="Integer", allowed=_MILLISECONDS),
    "jit": Configuration(default="on", data_type="Boolean", allowed="on,off"),
    "log_connections": Configuration(default="on", data_type="Boolean", allowed="on,off"),
    "log_min_duration_statement": Configuration(default="-1", data_type="Integer", allowed="-1-2147483647", unit="ms"),
    "max_connections": Configuration(default="859", data_type="Integer", allowed="25-5000", is_dynamic=False),
    "max_wal_senders": Configuration(default="10", data_type="Integer", allowed="5-100", is_dynamic=False),
    "pgaudit.log": Configuration(
        default="none",
        data_type="Set",
        allowed="none,read,write,function,role,ddl,misc,all",
        description="Specifies which classes of statements will be logged by session audit logging.",
        link=_AUDIT_LINK,
    ),
    "random_page_cost": Configuration(default="2", data_type="Numeric", allowed="0-1.79769e+308"),
    TLS_REQUIRED: Configuration(default="on", data_type="Boolean", allowed="on,off"),
    "server_version": Configuration(default="", data_type="String", is_read_only=True),
    "shared_buffers": Configuration(
        default="524288", data_type="Integer", allowed="16-1073741823", is_dynamic=False, unit="8KB"
    ),
    "shared_preload_libraries": Configuration(
        default="pg_cron,pg_stat_statements",
        data_type="Set",
        allowed=",pg_cron,pg_stat_statements,pgaudit,timescaledb",
        is_dynamic=False,
    ),
    "ssl_min_protocol_version": Configuration(default="TLSv1.2", data_type="Enumeration", allowed="TLSv1.2,TLSv1.3"),
    "statement_timeout": Configuration(default="0", data_type="Integer", allowed=_MILLISECONDS, unit="ms"),
    "timezone": Configuration(default="UTC", data_type="String"),
    "wal_level": Configuration(default="replica", data_type="Enumeration", allowed="replica,logical", is_dynamic=False),
    "work_mem": Configuration(default="4096", data_type="Integer", allowed="4096-2097151", unit="KB"),
}


def in_version(name: str, version: str) -> Configuration:
    """Return a parameter as the servers of a version, `16`, have it: which extensions may be allowed differs."""
    configuration = CONFIGURATIONS[name]
    if name != EXTENSIONS:
        return configuration
    return msgspec.structs.replace(configuration, allowed=",".join(("", *offered_in(version))))


def allows(configuration: Configuration, value: str) -> bool:
    """Return whether a parameter may have a value, in any letter case."""
    match configuration.data_type:
        case "Integer" | "Numeric":
            return _in_range(configuration, value)
        case "Boolean" | "Enumeration":
            return value.lower() in configuration.allowed.lower().split(",")
        case "Set":
            allowed = configuration.allowed.lower().split(",")
            return all(part.strip() in allowed for part in value.lower().split(","))
        case "String":
            return True


def _in_range(configuration: Configuration, value: str) -> bool:
    # A minus sign may lead either bound.
    position = configuration.allowed.index("-", 1)
    least, most = configuration.allowed[:position], configuration.allowed[position + 1 :]
    try:
        number = int(value) if configuration.data_type == "Integer" else float(value)
    except ValueError:
        return False
    return float(least) <= number <= float(most)
