"""Values of PostgreSQL's parameters as RDS writes them. Pure.

RDS takes bare numbers in each parameter's own unit, and 1 or 0 for switches ("Working with parameters on your RDS for
PostgreSQL DB instance"); people write 64MB and on, as postgresql.conf does. Units and switches are `pg_settings.unit`
and `vartype = 'bool'`; a test compares them with a real server. RDS's own parameters (rds.*) go as they are.
"""

from __future__ import annotations

from collections.abc import Mapping

from providers.external.cloud_api.quantities import in_units

_UNITS = {
    "8kB": "effective_cache_size min_parallel_index_scan_size min_parallel_table_scan_size shared_buffers temp_buffers"
    " wal_buffers",
    "MB": "max_slot_wal_keep_size max_wal_size min_dynamic_shared_memory min_wal_size wal_keep_size",
    "kB": "autovacuum_work_mem gin_pending_list_limit log_temp_files logical_decoding_work_mem maintenance_work_mem"
    " temp_file_limit vacuum_buffer_usage_limit wal_skip_threshold work_mem",
    "B": "log_parameter_max_length log_parameter_max_length_on_error track_activity_query_size",
    "ms": "autovacuum_vacuum_cost_delay bgwriter_delay client_connection_check_interval deadlock_timeout"
    " idle_in_transaction_session_timeout idle_session_timeout lock_timeout log_autovacuum_min_duration"
    " log_min_duration_sample log_min_duration_statement log_startup_progress_interval max_standby_archive_delay"
    " max_standby_streaming_delay statement_timeout tcp_user_timeout vacuum_cost_delay wal_receiver_timeout"
    " wal_sender_timeout wal_writer_delay",
    "s": "archive_timeout authentication_timeout autovacuum_naptime checkpoint_timeout checkpoint_warning"
    " tcp_keepalives_idle tcp_keepalives_interval wal_receiver_status_interval",
    "min": "log_rotation_age",
}
UNIT_OF: Mapping[str, str] = {name: unit for unit, names in _UNITS.items() for name in names.split()}
_SWITCHES = """
    array_nulls autovacuum check_function_bodies default_transaction_deferrable default_transaction_read_only
    enable_async_append enable_bitmapscan enable_gathermerge enable_hashagg enable_hashjoin enable_incremental_sort
    enable_indexonlyscan enable_indexscan enable_material enable_memoize enable_mergejoin enable_nestloop
    enable_parallel_append enable_parallel_hash enable_partition_pruning enable_partitionwise_aggregate
    enable_partitionwise_join enable_presorted_aggregate enable_seqscan enable_sort enable_tidscan
    escape_string_warning geqo hot_standby_feedback jit krb_caseins_users lo_compat_privileges log_checkpoints
    log_connections log_disconnections log_duration log_executor_stats log_hostname log_lock_waits log_parser_stats
    log_planner_stats log_replication_commands log_statement_stats parallel_leader_participation
    quote_all_identifiers row_security standard_conforming_strings synchronize_seqscans track_activities
    track_commit_timestamp track_counts track_io_timing track_wal_io_timing transform_null_equals
    update_process_title
"""
SWITCHES = frozenset(_SWITCHES.split())
_ON, _OFF = frozenset({"on", "true", "yes", "1"}), frozenset({"off", "false", "no", "0"})


def as_rds_writes(name: str, value: str) -> str:
    """Return a parameter's value as RDS wants and shows it; what is no quantity and no switch stays as it is.

    A quantity that is no whole number of units stays as well: RDS refuses it with the range that it allows.
    """
    text = value.strip()
    if name in SWITCHES:
        word = text.lower()
        return "1" if word in _ON else "0" if word in _OFF else value
    return in_units(text, UNIT_OF.get(name, "")) or value
