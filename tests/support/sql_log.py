"""PostgreSQL's own log as an oracle: what one login sent, and what of it changed something."""

import re
from dataclasses import dataclass
from pathlib import Path

_CHANGES = re.compile(
    r"(?:\A|;)\s*(CREATE|ALTER|DROP|GRANT|REVOKE|INSERT|UPDATE|DELETE|COMMENT|TRUNCATE|REASSIGN"
    r"|SELECT\s+pg_(catalog\.pg_)?(terminate|cancel)_backend|WITH\b.*\b(INSERT|UPDATE|DELETE)\b)",
    re.IGNORECASE | re.DOTALL,
)
_STATEMENT = re.compile(r"LOG:  (?:statement|execute [^:]*): (.*)\Z", re.DOTALL)
_LINE = re.compile(r"^(?=\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3} UTC \[)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class SqlLog:
    """What one login sent to a server, from the server's own log (log_statement=all)."""

    path: Path
    login: str

    def mark(self) -> int:
        """Return the present end of the log, to look at what comes after it."""
        return self.path.stat().st_size

    def statements(self, since: int = 0) -> list[str]:
        with self.path.open("rb") as file:
            file.seek(since)
            text = file.read().decode(errors="replace")
        lines = (line for line in _LINE.split(text) if f" {self.login}@" in line.partition("LOG:")[0])
        return [statement[1].strip() for line in lines if (statement := _STATEMENT.search(line))]

    def changes(self, since: int = 0) -> list[str]:
        """Return the statements that change something."""
        return [statement for statement in self.statements(since) if _CHANGES.search(statement)]
