"""What a PostgreSQL log says that one login sent, and what of it the server refused."""

from __future__ import annotations

from pathlib import Path

from tests.support.sql_log import SqlLog

_LINES = """\
2026-11-27 15:09:11.412 UTC [2048] admin@fairlead LOG:  statement: DROP DATABASE "busy"
2026-11-27 15:09:11.413 UTC [2049] admin@fairlead LOG:  statement: DROP DATABASE "free"
2026-11-27 15:09:16.412 UTC [2048] admin@fairlead ERROR:  database "busy" is being accessed by other users
2026-11-27 15:09:16.412 UTC [2048] admin@fairlead DETAIL:  There is 1 other session using the database.
2026-11-27 15:09:16.412 UTC [2048] admin@fairlead STATEMENT:  DROP DATABASE "busy"
2026-11-27 15:09:17.412 UTC [2049] admin@fairlead FATAL:  terminating connection due to administrator command
2026-11-27 15:09:18.412 UTC [2050] other@fairlead LOG:  statement: SELECT 'admin@fairlead'
"""


def test_a_refused_statement_was_sent_and_not_carried_out(tmp_path: Path) -> None:
    log = SqlLog(tmp_path / "server.log", "admin")
    log.path.write_text(_LINES)

    assert log.statements() == ['DROP DATABASE "busy"', 'DROP DATABASE "free"']
    assert log.carried_out() == ['DROP DATABASE "free"']
