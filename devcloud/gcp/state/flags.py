"""The database flags of Cloud SQL for PostgreSQL that instances may set. Pure.

Which there are: those of "Configure database flags", as public programs list them that check flags before Cloud SQL
does; the page itself could not be read. `log_timezone` and `max_standby_archive_delay` are in recordings. What a flag
takes, and which one restarts the server, is PostgreSQL's own (`postgres --describe-config` of 15 and 18, context
`postmaster`): Cloud SQL narrows some ranges, and no flag is bound to a version here.

Not checked against any source: `cloudsql.max_failed_attempts_user`, the range of `pg_wait_sampling.history_size`, and
whether `cloudsql.iam_authentication`, `cloudsql.pg_shadow_select_role`, `cloudsql.enable_pgaudit` and
`cloudsql.allow_passwordless_local_connections` restart.
"""

import re
from typing import Literal

import msgspec


class Flag(msgspec.Struct, frozen=True, kw_only=True):
    """A database flag.

    Attributes:
        type: As flags.list says it.
        low: The least value of a number.
        high: The greatest.
        values: Those of a text that has a list of them, empty for any.
        restarts: Whether a change of it restarts the instance.
    """

    type: Literal["BOOLEAN", "INTEGER", "STRING", "FLOAT"]
    low: float = 0
    high: float = 0
    values: tuple[str, ...] = ()
    restarts: bool = False


_NUMBER, _FRACTION = re.compile(r"-?\d{1,10}"), re.compile(r"-?\d{1,15}(\.\d{1,15})?")
_SWITCHES = """
    auto_explain.log_analyze auto_explain.log_buffers auto_explain.log_nested_statements auto_explain.log_settings
    auto_explain.log_timing auto_explain.log_triggers auto_explain.log_verbose auto_explain.log_wal autovacuum
    cloudsql.allow_passwordless_local_connections cloudsql.enable_anon cloudsql.enable_auto_explain
    cloudsql.enable_index_advisor cloudsql.enable_pg_bigm cloudsql.enable_pg_cron cloudsql.enable_pg_hint_plan
    cloudsql.enable_pg_squeeze cloudsql.enable_pg_wait_sampling cloudsql.enable_pgaudit cloudsql.enable_pglogical
    cloudsql.iam_authentication cloudsql.logical_decoding cron.log_run cron.log_statement
    default_transaction_deferrable default_transaction_read_only enable_bitmapscan enable_hashagg enable_hashjoin
    enable_indexonlyscan enable_indexscan enable_material enable_mergejoin enable_nestloop
    enable_partitionwise_aggregate enable_partitionwise_join enable_seqscan enable_sort enable_tidscan geqo
    hot_standby_feedback jit log_checkpoints log_connections log_disconnections log_duration log_executor_stats
    log_hostname log_lock_waits log_parser_stats log_planner_stats log_replication_commands log_statement_stats
    pg_bigm.enable_recheck pg_hint_plan.enable_hint pg_hint_plan.enable_hint_table pg_stat_statements.save
    pg_stat_statements.track_utility pgaudit.log_catalog pgaudit.log_parameter pgaudit.log_relation
    pgaudit.log_statement_once pglogical.batch_inserts pglogical.synchronous_commit pglogical.use_spi
    standard_conforming_strings synchronize_seqscans trace_notify trace_sort track_activities track_commit_timestamp
    track_counts track_io_timing
"""
# Each with the least and the greatest value, in the flag's own unit.
_NUMBERS = """
    auto_explain.log_min_duration -1 2147483647; autovacuum_analyze_threshold 0 2147483647;
    autovacuum_freeze_max_age 100000 2000000000; autovacuum_max_workers 1 262143;
    autovacuum_multixact_freeze_max_age 10000 2000000000; autovacuum_naptime 1 2147483; autovacuum_vacuum_cost_limit
    -1 10000; autovacuum_vacuum_threshold 0 2147483647; autovacuum_work_mem -1 2147483647; bgwriter_delay 10 10000;
    bgwriter_lru_maxpages 0 1073741823; checkpoint_timeout 30 86400; checkpoint_warning 0 2147483647;
    cloudsql.max_failed_attempts_user 0 10000; commit_delay 0 100000; commit_siblings 0 1000; cron.max_running_jobs
    0 2147483647; deadlock_timeout 1 2147483647; default_statistics_target 1 10000; effective_cache_size 1
    2147483647; effective_io_concurrency 0 1000; from_collapse_limit 1 2147483647; geqo_effort 1 10;
    geqo_generations 0 2147483647; geqo_pool_size 0 2147483647; geqo_threshold 2 2147483647; gin_fuzzy_search_limit
    0 2147483647; gin_pending_list_limit 64 2147483647; idle_in_transaction_session_timeout 0 2147483647;
    idle_session_timeout 0 2147483647; join_collapse_limit 1 2147483647; lock_timeout 0 2147483647;
    log_autovacuum_min_duration -1 2147483647; log_min_duration_sample -1 2147483647; log_min_duration_statement -1
    2147483647; log_parameter_max_length -1 1073741823; log_parameter_max_length_on_error -1 1073741823;
    log_temp_files -1 2147483647; logical_decoding_work_mem 64 2147483647; maintenance_work_mem 1024 2147483647;
    max_connections 14 262143; max_files_per_process 64 2147483647; max_locks_per_transaction 10 2147483647;
    max_logical_replication_workers 0 262143; max_parallel_maintenance_workers 0 1024; max_parallel_workers 0 1024;
    max_parallel_workers_per_gather 0 1024; max_pred_locks_per_page 0 2147483647; max_pred_locks_per_relation
    -2147483648 2147483647; max_pred_locks_per_transaction 10 2147483647; max_prepared_transactions 0 262143;
    max_replication_slots 0 262143; max_slot_wal_keep_size -1 2147483647; max_stack_depth 100 2147483647;
    max_standby_archive_delay -1 2147483647; max_standby_streaming_delay -1 2147483647;
    max_sync_workers_per_subscription 0 262143; max_wal_senders 0 262143; max_wal_size 2 2147483647;
    max_worker_processes 8 262143; min_parallel_index_scan_size 0 715827882; min_parallel_table_scan_size 0
    715827882; min_wal_size 2 2147483647; old_snapshot_threshold -1 86400; pg_bigm.gin_key_limit 0 2147483647;
    pg_stat_statements.max 100 2147483647; pg_wait_sampling.history_size 100 2147483647; shared_buffers 16
    1073741823; statement_timeout 0 2147483647; tcp_keepalives_count 0 2147483647; tcp_keepalives_idle 0 2147483647;
    tcp_keepalives_interval 0 2147483647; temp_buffers 100 1073741823; temp_file_limit -1 2147483647;
    track_activity_query_size 100 1048576; vacuum_cost_limit 1 10000; vacuum_freeze_min_age 0 1000000000;
    vacuum_freeze_table_age 0 2000000000; vacuum_multixact_freeze_min_age 0 1000000000;
    vacuum_multixact_freeze_table_age 0 2000000000; wal_buffers -1 262143; wal_keep_size 0 2147483647;
    wal_receiver_timeout 0 2147483647; wal_sender_timeout 0 2147483647; wal_skip_threshold 0 2147483647; work_mem 64
    2147483647
"""
_FRACTIONS = """
    auto_explain.sample_rate 0 1; autovacuum_analyze_scale_factor 0 100; autovacuum_vacuum_cost_delay -1 100;
    autovacuum_vacuum_scale_factor 0 100; bgwriter_lru_multiplier 0 10; checkpoint_completion_target 0 1;
    cpu_index_tuple_cost 0 1e308; cpu_operator_cost 0 1e308; cpu_tuple_cost 0 1e308; cursor_tuple_fraction 0 1;
    geqo_seed 0 1; geqo_selection_bias 1.5 2; hash_mem_multiplier 1 1000; jit_above_cost -1 1e308;
    parallel_setup_cost 0 1e308; parallel_tuple_cost 0 1e308; pg_bigm.similarity_limit 0 1; random_page_cost 0
    1e308; seq_page_cost 0 1e308; vacuum_cost_delay 0 100
"""
_TEXTS = """
    cloudsql.pg_shadow_select_role cron.database_name datestyle default_tablespace log_timezone pgaudit.log
    pgaudit.role pglogical.conflict_log_level pglogical.extra_connection_options search_path timezone
"""
_CHOICES = {
    "auto_explain.log_format": "text xml json yaml",
    "auto_explain.log_level": "debug5 debug4 debug3 debug2 debug1 debug info notice warning log",
    "client_min_messages": "debug5 debug4 debug3 debug2 debug1 log notice warning error",
    "constraint_exclusion": "partition on off",
    "cron.log_min_messages": "debug5 debug4 debug3 debug2 debug1 debug info notice warning error log fatal panic",
    "default_transaction_isolation": "serializable repeatable_read read_committed read_uncommitted",
    "force_parallel_mode": "off on regress",
    "huge_pages": "try off",
    "intervalstyle": "postgres postgres_verbose sql_standard iso_8601",
    "log_error_verbosity": "terse default verbose",
    "log_min_error_statement": "debug5 debug4 debug3 debug2 debug1 info notice warning error log fatal panic",
    "log_min_messages": "debug5 debug4 debug3 debug2 debug1 info notice warning error log fatal panic",
    "log_statement": "none ddl mod all",
    "password_encryption": "md5 scram-sha-256",
    "pg_hint_plan.debug_print": "off on detailed verbose",
    "pg_hint_plan.message_level": "debug5 debug4 debug3 debug2 debug1 debug info notice warning error log",
    "pg_hint_plan.parse_messages": "debug5 debug4 debug3 debug2 debug1 debug info notice warning error log",
    "pg_stat_statements.track": "none top all",
    "pgaudit.log_level": "debug5 debug4 debug3 debug2 debug1 info notice warning log",
    "pglogical.conflict_resolution": "error apply_remote keep_local last_update_wins first_update_wins",
    "plan_cache_mode": "auto force_generic_plan force_custom_plan",
    "session_replication_role": "origin replica local",
    "ssl_max_protocol_version": "TLSv1 TLSv1.1 TLSv1.2 TLSv1.3",
    "ssl_min_protocol_version": "TLSv1 TLSv1.1 TLSv1.2 TLSv1.3",
    "synchronous_commit": "local remote_write remote_apply on off",
    "trace_recovery_messages": "debug5 debug4 debug3 debug2 debug1 log notice warning error",
    "track_functions": "none pl all",
    "wal_compression": "on off pglz lz4 zstd",
}
_RESTARTING = """
    autovacuum_freeze_max_age autovacuum_max_workers autovacuum_multixact_freeze_max_age
    cloudsql.allow_passwordless_local_connections cloudsql.enable_auto_explain cloudsql.enable_index_advisor
    cloudsql.enable_pg_bigm cloudsql.enable_pg_cron cloudsql.enable_pg_hint_plan cloudsql.enable_pg_squeeze
    cloudsql.enable_pg_wait_sampling cloudsql.enable_pgaudit cloudsql.enable_pglogical cloudsql.iam_authentication
    cloudsql.logical_decoding cloudsql.max_failed_attempts_user cloudsql.pg_shadow_select_role cron.database_name
    cron.max_running_jobs huge_pages max_connections max_files_per_process max_locks_per_transaction
    max_logical_replication_workers max_pred_locks_per_transaction max_prepared_transactions max_replication_slots
    max_wal_senders max_worker_processes old_snapshot_threshold pg_stat_statements.max shared_buffers
    track_activity_query_size track_commit_timestamp wal_buffers
"""


def _flags() -> dict[str, Flag]:
    restarting = frozenset(_RESTARTING.split())
    flags = {name: Flag(type="BOOLEAN", restarts=name in restarting) for name in _SWITCHES.split()}
    flags |= {name: Flag(type="STRING", restarts=name in restarting) for name in _TEXTS.split()}
    for name, values in _CHOICES.items():
        chosen = tuple(value.replace("_", " ") if "isolation" in name else value for value in values.split())
        flags[name] = Flag(type="STRING", values=chosen, restarts=name in restarting)
    for row in _NUMBERS.split(";"):
        name, low, high = row.split()
        flags[name] = Flag(type="INTEGER", low=int(low), high=int(high), restarts=name in restarting)
    for row in _FRACTIONS.split(";"):
        name, low, high = row.split()
        flags[name] = Flag(type="FLOAT", low=float(low), high=float(high), restarts=name in restarting)
    return flags


FLAGS = _flags()


def refusal_of_flag(name: str, value: str) -> str:
    """Return why a flag cannot have a value; empty when it can."""
    flag = FLAGS.get(name)
    if flag is None:
        return f"Invalid flag name: {name}."
    match flag.type:
        case "BOOLEAN":
            is_lawful = value in {"on", "off"}
        case "INTEGER":
            is_lawful = _NUMBER.fullmatch(value) is not None and flag.low <= int(value) <= flag.high
        case "FLOAT":
            is_lawful = _FRACTION.fullmatch(value) is not None and flag.low <= float(value) <= flag.high
        case _:
            is_lawful = value in flag.values if flag.values else bool(value)
    return "" if is_lawful else f"Invalid flag value: {value} for {name}."
