"""Values of parameters as people write them and as RDS does; units and switches as a real server has them."""

from __future__ import annotations

import msgspec
import pytest

from devcloud.postgres.server import Server
from providers.aws.groups.parameters import SWITCHES, UNIT_OF, as_rds_writes


class Case(msgspec.Struct, frozen=True):
    says: str
    name: str
    value: str
    written: str


CASES = (
    Case("memory in another unit", "work_mem", "64MB", "65536"),
    Case("memory in pages", "shared_buffers", "1GB", "131072"),
    Case("memory in its own unit", "max_wal_size", "4096MB", "4096"),
    Case("time in another unit", "statement_timeout", "2min", "120000"),
    Case("time with a space", "statement_timeout", " 30 s ", "30000"),
    Case("a bare number", "work_mem", "65536", "65536"),
    Case("a bare number below zero", "log_min_duration_statement", "-1", "-1"),
    Case("no whole number of units", "work_mem", "100B", "100B"),
    Case("a time for memory", "work_mem", "5min", "5min"),
    Case("a unit that PostgreSQL does not know", "work_mem", "64mb", "64mb"),
    Case("a switch that is on", "jit", "ON", "1"),
    Case("a switch that is off", "jit", "false", "0"),
    Case("a switch as RDS writes it", "jit", "1", "1"),
    Case("no switch's value", "jit", "maybe", "maybe"),
    Case("a formula of RDS's", "shared_buffers", "{DBInstanceClassMemory/32768}", "{DBInstanceClassMemory/32768}"),
    Case("a parameter of RDS's own", "rds.force_ssl", "on", "on"),
    Case("a list", "shared_preload_libraries", "pgaudit,pg_cron", "pgaudit,pg_cron"),
)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.says)
def test_value_is_written_as_rds_writes_it(case: Case) -> None:
    written = as_rds_writes(case.name, case.value)

    assert written == case.written
    assert as_rds_writes(case.name, written) == written


async def test_units_and_switches_are_the_servers(postgres_server: Server) -> None:
    rows = await postgres_server.execute("SELECT name, COALESCE(unit, ''), vartype FROM pg_catalog.pg_settings")
    known = {name: (unit, kind) for name, unit, kind in rows}

    assert {name: known[name][0] for name in UNIT_OF} == UNIT_OF
    assert {known[name][1] for name in SWITCHES} == {"bool"}
