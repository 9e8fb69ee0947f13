"""Values that a claim may give to fields of other operators' kinds: parameters, logins, extensions, references. Pure.

Parameters: PostgreSQL 18, "Server Configuration". Extensions: those that are trusted there (`trusted = true` in their
control files), and a few that reach neither files nor other servers. Logins: `pkg/util/constants/roles.go` and
`pkg/util/config/config.go` of Zalando's operator, `pkg/postgres/configuration.go` of CloudNativePG.
"""

from __future__ import annotations

import re
from typing import Any, Final

from composer.render.operators.fields import Judge, Own, shown

_LOGIN: Final = re.compile(r"[a-z_][a-z0-9_]{0,62}")
_LOGINS_TEXT: Final = """
    postgres standby pooler streaming_replica cnpg_pooler_pgbouncer replication replicator zalandos robot_zmon
    cron_admin rdsadmin rdsrepladmin rdsproxyadmin rds_superuser rds_replication rds_password azuresu azure_superuser
    azure_pg_admin cloudsqladmin cloudsqlsuperuser cloudsqlagent cloudsqlimportexport cloudsqlreplica cloudsqliamuser
    cloudsqlobservabilityadmin admin administrator root guest public none user
"""
_LOGINS: Final = frozenset(_LOGINS_TEXT.split())
_FLAGS: Final = frozenset({"login", "nologin", "LOGIN", "NOLOGIN"})

_PARAMETERS_TEXT: Final = """
    work_mem hash_mem_multiplier maintenance_work_mem autovacuum_work_mem logical_decoding_work_mem temp_buffers
    temp_file_limit shared_buffers wal_buffers huge_pages effective_cache_size effective_io_concurrency
    maintenance_io_concurrency max_connections reserved_connections max_prepared_transactions
    max_locks_per_transaction max_pred_locks_per_transaction max_worker_processes max_parallel_workers
    max_parallel_workers_per_gather max_parallel_maintenance_workers parallel_leader_participation
    parallel_setup_cost parallel_tuple_cost min_parallel_table_scan_size min_parallel_index_scan_size seq_page_cost
    random_page_cost cpu_tuple_cost cpu_index_tuple_cost cpu_operator_cost default_statistics_target
    constraint_exclusion cursor_tuple_fraction from_collapse_limit join_collapse_limit geqo geqo_threshold
    geqo_effort plan_cache_mode jit jit_above_cost jit_inline_above_cost jit_optimize_above_cost enable_bitmapscan
    enable_gathermerge enable_hashagg enable_hashjoin enable_incremental_sort enable_indexonlyscan enable_indexscan
    enable_material enable_memoize enable_mergejoin enable_nestloop enable_parallel_append enable_parallel_hash
    enable_partition_pruning enable_partitionwise_aggregate enable_partitionwise_join enable_seqscan enable_sort
    enable_tidscan
    autovacuum autovacuum_max_workers autovacuum_naptime autovacuum_vacuum_threshold autovacuum_analyze_threshold
    autovacuum_vacuum_insert_threshold autovacuum_vacuum_scale_factor autovacuum_analyze_scale_factor
    autovacuum_vacuum_insert_scale_factor autovacuum_freeze_max_age autovacuum_multixact_freeze_max_age
    autovacuum_vacuum_cost_delay autovacuum_vacuum_cost_limit vacuum_cost_delay vacuum_cost_limit
    vacuum_cost_page_hit vacuum_cost_page_miss vacuum_cost_page_dirty vacuum_freeze_min_age vacuum_freeze_table_age
    vacuum_multixact_freeze_min_age vacuum_multixact_freeze_table_age vacuum_failsafe_age bgwriter_delay
    bgwriter_lru_maxpages bgwriter_lru_multiplier bgwriter_flush_after backend_flush_after wal_level wal_compression
    wal_writer_delay wal_writer_flush_after wal_keep_size max_wal_size min_wal_size checkpoint_timeout
    checkpoint_completion_target checkpoint_flush_after checkpoint_warning commit_delay commit_siblings
    synchronous_commit max_wal_senders max_replication_slots max_slot_wal_keep_size max_logical_replication_workers
    max_sync_workers_per_subscription wal_sender_timeout wal_receiver_timeout wal_receiver_status_interval
    hot_standby_feedback max_standby_archive_delay max_standby_streaming_delay track_commit_timestamp
    archive_timeout
    statement_timeout lock_timeout deadlock_timeout idle_in_transaction_session_timeout idle_session_timeout
    transaction_timeout tcp_keepalives_idle tcp_keepalives_interval tcp_keepalives_count tcp_user_timeout
    client_connection_check_interval default_transaction_isolation default_transaction_read_only
    default_transaction_deferrable search_path row_security datestyle intervalstyle timezone extra_float_digits
    bytea_output xmlbinary xmloption gin_fuzzy_search_limit gin_pending_list_limit lc_messages lc_monetary
    lc_numeric lc_time default_text_search_config client_encoding client_min_messages array_nulls backslash_quote
    escape_string_warning quote_all_identifiers standard_conforming_strings synchronize_seqscans
    transform_null_equals track_activities track_activity_query_size track_counts track_functions track_io_timing
    track_wal_io_timing compute_query_id log_min_messages log_min_error_statement log_min_duration_statement
    log_min_duration_sample log_statement_sample_rate log_transaction_sample_rate log_autovacuum_min_duration
    log_checkpoints log_connections log_disconnections log_duration log_error_verbosity log_hostname log_line_prefix
    log_lock_waits log_parameter_max_length log_parameter_max_length_on_error log_recovery_conflict_waits
    log_replication_commands log_statement log_temp_files log_timezone log_rotation_age log_rotation_size
    cluster_name application_name
"""
_PARAMETERS: Final = frozenset(_PARAMETERS_TEXT.split())
_PARAMETERS_OF_EXTENSIONS: Final = ("auto_explain.", "pg_stat_statements.", "pg_trgm.", "pgaudit.")
_EXTENSIONS_TEXT: Final = """
    plpgsql btree_gin btree_gist citext cube dict_int fuzzystrmatch hstore intarray isn lo ltree pgcrypto pg_trgm
    seg tablefunc tcn tsm_system_rows tsm_system_time unaccent uuid-ossp bloom earthdistance dict_xsyn intagg
    pg_stat_statements pgaudit vector postgis postgis_raster postgis_topology
"""
_EXTENSIONS: Final = frozenset(_EXTENSIONS_TEXT.split())
_CREATE_EXTENSION: Final = re.compile(r' *CREATE EXTENSION IF NOT EXISTS "?([a-z0-9_-]+)"?( CASCADE)? *;? *')
_POOLER_PARAMETERS_TEXT: Final = """
    application_name_add_host client_idle_timeout client_login_timeout default_pool_size idle_transaction_timeout
    ignore_startup_parameters log_connections log_disconnections log_pooler_errors log_stats max_client_conn
    max_db_connections max_prepared_statements max_user_connections min_pool_size query_timeout query_wait_timeout
    reserve_pool_size reserve_pool_timeout server_check_delay server_connect_timeout server_fast_close
    server_idle_timeout server_lifetime server_login_retry server_reset_query_always server_round_robin stats_period
    tcp_keepalive tcp_keepcnt tcp_keepidle tcp_keepintvl tcp_user_timeout
"""
_POOLER_PARAMETERS: Final = frozenset(_POOLER_PARAMETERS_TEXT.split())


def parameter(name: str, _value: Any, _own: Own) -> str:
    """Judge a parameter of a server: none that runs a command, loads a library, or names a file or another server."""
    if name.lower() in _PARAMETERS or name.lower().startswith(_PARAMETERS_OF_EXTENSIONS):
        return ""
    return f"parameter {shown(name)} is not among those that a claim may set"


def pooler_parameter(name: str, _value: Any, _own: Own) -> str:
    """Judge a parameter of PgBouncer: none that names a file, a query or another database."""
    return "" if name in _POOLER_PARAMETERS else f"parameter {shown(name)} is not among those that a claim may set"


def login(_name: str, value: Any, _own: Own) -> str:
    """Judge the name of a login: none of an operator's, a cloud's or PostgreSQL's own."""
    if not isinstance(value, str) or not _LOGIN.fullmatch(value):
        return f"{shown(value)} is no name of a login: small letters, digits and _"
    if value in _LOGINS or value.startswith("pg_"):
        return f"login {value} is reserved by PostgreSQL, an operator or a cloud; choose another one"
    return ""


def user(name: str, value: Any, own: Own) -> str:
    """Judge a user with its rights, as Zalando's operator takes them: none but that to log in."""
    why = login(name, name, own)
    if why:
        return why
    flags = value if isinstance(value, list) else [value]
    excess = [flag for flag in flags if flag not in _FLAGS]
    return f"user {name} may not be given {shown(excess[0])}" if excess else ""


def owner(name: str, value: Any, own: Own) -> str:
    """Judge a database with its owner: both are plain names."""
    return login(name, value, own) or ("" if _LOGIN.fullmatch(name) else f"{shown(name)} is no name of a database")


def extension(_name: str, value: Any, _own: Own) -> str:
    """Judge an extension that the superuser creates: none that reaches files, programs or other servers."""
    return "" if value in _EXTENSIONS else f"extension {shown(value)} is not among those that a claim may have"


def creation(name: str, value: Any, own: Own) -> str:
    """Judge a statement that the superuser runs: it creates an extension, and nothing else."""
    statement = _CREATE_EXTENSION.fullmatch(value) if isinstance(value, str) else None
    return extension(name, statement[1], own) if statement else f"{shown(value)} does more than create an extension"


def own_name(_name: str, value: Any, own: Own) -> str:
    """Judge a reference: it names an object of the claim, or the Secret of one of its passwords."""
    return "" if value in own.names else f"{shown(value)} is neither an object nor a password of this claim"


def own_namespace(_name: str, value: Any, own: Own) -> str:
    """Judge the namespace of a reference."""
    return "" if value == own.namespace else f"{shown(value)} is not the claim's namespace"


def beginning(*texts: str) -> Judge:
    """Return a judge of texts: each begins with one of these."""

    def judge(_name: str, value: Any, _own: Own) -> str:
        fits = isinstance(value, str) and value.startswith(texts)
        return "" if fits else f"{shown(value)} does not begin with {' or '.join(texts)}"

    return judge


def off(_name: str, value: Any, _own: Own) -> str:
    """Judge a switch that stays off."""
    return "" if value is False else f"{shown(value)} is not false"


def one_of(*values: str) -> Judge:
    """Return a judge of texts: each is one of these."""

    def judge(_name: str, value: Any, _own: Own) -> str:
        return "" if value in values else f"{shown(value)} is not {' or '.join(values)}"

    return judge


def address(_name: str, value: Any, _own: Own) -> str:
    """Judge an end of a range in Azure, where 0.0.0.0 lets in every customer's services."""
    return f"{value} lets in the services of all of Azure's customers" if value == "0.0.0.0" else ""  # noqa: S104 - refused
