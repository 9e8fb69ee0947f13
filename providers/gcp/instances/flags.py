"""Values of PostgreSQL's flags as Cloud SQL writes them. Pure.

Cloud SQL takes bare numbers in each flag's own unit, and on or off for switches
(https://cloud.google.com/sql/docs/postgres/flags); people write 64MB and true, as postgresql.conf does. Units and
switches are `pg_settings.unit` and `vartype = 'bool'`.
"""

from __future__ import annotations

from collections.abc import Mapping

from providers.external.cloud_api.quantities import in_units

_UNITS = {
    "8kB": "effective_cache_size min_parallel_index_scan_size min_parallel_table_scan_size shared_buffers temp_buffers"
    " wal_buffers",
    "MB": "max_slot_wal_keep_size max_wal_size min_wal_size wal_keep_size",
    "kB": "autovacuum_work_mem gin_pending_list_limit log_temp_files logical_decoding_work_mem maintenance_work_mem"
    " temp_file_limit wal_skip_threshold work_mem",
    "B": "log_parameter_max_length log_parameter_max_length_on_error track_activity_query_size",
    "ms": "autovacuum_vacuum_cost_delay bgwriter_delay deadlock_timeout idle_in_transaction_session_timeout"
    " idle_session_timeout lock_timeout log_autovacuum_min_duration log_min_duration_sample"
    " log_min_duration_statement max_standby_archive_delay max_standby_streaming_delay statement_timeout"
    " vacuum_cost_delay wal_receiver_timeout wal_sender_timeout",
    "s": "autovacuum_naptime checkpoint_timeout checkpoint_warning tcp_keepalives_idle tcp_keepalives_interval",
}
UNIT_OF: Mapping[str, str] = {name: unit for unit, names in _UNITS.items() for name in names.split()}
_ON, _OFF = frozenset({"on", "true", "yes"}), frozenset({"off", "false", "no"})


def as_cloud_sql_writes(name: str, value: str) -> str:
    """Return a flag's value as Cloud SQL wants and shows it; what is no quantity and no switch stays as it is.

    A quantity that is no whole number of units stays as well: Cloud SQL refuses it with the range that it allows.
    """
    text = value.strip()
    word = text.lower()
    if word in _ON or word in _OFF:
        return "on" if word in _ON else "off"
    return in_units(text, UNIT_OF.get(name, "")) or value
