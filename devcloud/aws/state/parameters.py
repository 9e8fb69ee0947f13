"""The parameters of PostgreSQL as RDS shows them: a cut of those that users set. Pure.

After DescribeEngineDefaultParameters and "Working with parameters on your RDS for PostgreSQL DB instance".
"""

import re

import msgspec

from devcloud.aws.refusals import invalid_combination, invalid_value
from devcloud.aws.state.extensions import offered_in

_FORMULA = re.compile(r"\{[A-Za-z0-9/*+(),\-]+\}|(?:GREATEST|LEAST|SUM)\(.*\)")


class Parameter(msgspec.Struct, frozen=True, kw_only=True):
    """A parameter: static ones need a restart; `allowed` is a range `1-100`, a list `on,off`, or None for any text."""

    name: str
    static: bool = False
    data_type: str = "string"
    allowed: str | None = None
    default: str | None = None
    modifiable: bool = True


def _number(name: str, allowed: str, *, static: bool = False, default: str | None = None) -> Parameter:
    return Parameter(name=name, static=static, data_type="integer", allowed=allowed, default=default)


def _switch(name: str, *, static: bool = False, default: str | None = None) -> Parameter:
    return Parameter(name=name, static=static, data_type="boolean", allowed="0,1", default=default)


PARAMETERS = {
    definition.name: definition
    for definition in (
        _switch("autovacuum", default="1"),
        _number(
            "autovacuum_max_workers", "1-262143", static=True, default="GREATEST({DBInstanceClassMemory/64371566592},3)"
        ),
        _number("autovacuum_naptime", "1-2147483", default="15"),
        _number("checkpoint_timeout", "30-86400"),
        Parameter(name="client_encoding"),
        Parameter(name="data_directory", static=True, default="/rdsdbdata/db", modifiable=False),
        _number("deadlock_timeout", "1-2147483647"),
        _number("default_statistics_target", "1-10000"),
        _number("effective_cache_size", "1-2147483647", default="{DBInstanceClassMemory/16384}"),
        _number("idle_in_transaction_session_timeout", "0-2147483647", default="86400000"),
        _number("idle_session_timeout", "0-2147483647"),
        _switch("jit"),
        _number("lock_timeout", "0-2147483647"),
        _switch("log_connections"),
        _switch("log_disconnections"),
        _switch("log_lock_waits"),
        _number("log_min_duration_statement", "-1-2147483647"),
        Parameter(name="log_statement", allowed="none,ddl,mod,all"),
        _number("log_temp_files", "-1-2147483647"),
        _number("logical_decoding_work_mem", "64-2147483647"),
        _number(
            "maintenance_work_mem", "1024-2147483647", default="GREATEST({DBInstanceClassMemory*1024/63963136},65536)"
        ),
        _number("max_connections", "6-262143", static=True, default="LEAST({DBInstanceClassMemory/9531392},5000)"),
        _number("max_locks_per_transaction", "10-2147483647", static=True),
        _number("max_logical_replication_workers", "0-262143", static=True),
        _number("max_parallel_workers", "0-1024", default="GREATEST({DBInstanceVCPU/2},8)"),
        _number("max_parallel_workers_per_gather", "0-1024"),
        _number("max_prepared_transactions", "0-262143", static=True, default="0"),
        _number("max_replication_slots", "5-500", static=True, default="20"),
        _number("max_slot_wal_keep_size", "-1-2147483647"),
        _number("max_wal_senders", "5-100", static=True, default="20"),
        _number("max_wal_size", "128-201326592"),
        _number("max_worker_processes", "1-262143", static=True, default="GREATEST({DBInstanceVCPU*2},8)"),
        Parameter(name="password_encryption", allowed="md5,scram-sha-256"),
        Parameter(name="pg_stat_statements.track", allowed="none,top,all"),
        _number("pg_stat_statements.max", "100-2147483647", static=True),
        Parameter(name="random_page_cost", data_type="float", allowed="0-1.79769e+308"),
        Parameter(name="rds.extensions", modifiable=False),
        Parameter(name="rds.allowed_extensions", data_type="list", default="*"),
        _switch("rds.force_ssl", default="1"),
        _number("rds.log_retention_period", "1440-10080", default="4320"),
        _switch("rds.logical_replication", static=True, default="0"),
        _switch("rds.restrict_password_commands", static=True, default="0"),
        Parameter(name="search_path"),
        _number("shared_buffers", "16-1073741823", static=True, default="{DBInstanceClassMemory/32768}"),
        Parameter(name="shared_preload_libraries", static=True, data_type="list", default="pg_stat_statements"),
        _number("statement_timeout", "0-2147483647"),
        _number("tcp_keepalives_idle", "0-2147483647", default="300"),
        _number("temp_buffers", "100-1073741823"),
        Parameter(name="timezone", default="UTC"),
        Parameter(
            name="track_activity_query_size", static=True, data_type="integer", allowed="100-1048576", default="4096"
        ),
        _switch("track_io_timing", default="1"),
        Parameter(name="wal_level", static=True, modifiable=False, default="replica"),
        _number("work_mem", "64-2147483647"),
    )
}


def in_version(definition: Parameter, version: str) -> Parameter:
    """Return a parameter as the groups of a version, `16`, have it: those that name extensions differ."""
    match definition.name:
        case "rds.extensions":
            return msgspec.structs.replace(definition, default=", ".join(offered_in(version)))
        case "rds.allowed_extensions":
            return msgspec.structs.replace(definition, allowed=",".join(("*", *offered_in(version))))
        case _:
            return definition


def parameter(name: str) -> Parameter:
    """Return a parameter that may be changed.

    Raises:
        Refusal: `InvalidParameterValue`.
    """
    definition = PARAMETERS.get(name.lower())
    if definition is None:
        raise invalid_value(f"Could not find parameter with name: {name}")
    if not definition.modifiable:
        raise invalid_value(f"The parameter {name} cannot be modified.")
    return definition


def refuse_value(definition: Parameter, value: str, method: str) -> None:
    """Refuse a value or the way in which it is to be applied (ModifyDBParameterGroup).

    Raises:
        Refusal: `InvalidParameterValue` or `InvalidParameterCombination`.
    """
    if method not in {"immediate", "pending-reboot"}:
        raise invalid_value(f"Invalid apply method: {method}")
    if definition.static and method == "immediate":
        raise invalid_combination(f"cannot use immediate apply method for static parameter: {definition.name}")
    if _FORMULA.fullmatch(value) or _fits(definition, value):
        return
    raise invalid_value(
        f"Invalid parameter value: {value} for: {definition.name} allowed values are: {definition.allowed}"
    )


def _fits(definition: Parameter, value: str) -> bool:
    if definition.allowed is None:
        return True
    if definition.data_type in {"integer", "float"} and "," not in definition.allowed:
        low, _, high = definition.allowed.rpartition("-")
        try:
            return float(low) <= float(value) <= float(high)
        except ValueError:
            return False
    allowed = definition.allowed.split(",")
    if definition.data_type == "list":
        return all(part.strip() in allowed for part in value.split(",") if part.strip())
    return value in allowed
