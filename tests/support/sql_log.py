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
_PROCESS = re.compile(r" UTC \[(\d+)\] ")
_REFUSED = re.compile(r" (ERROR|FATAL):  ")
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
        """Return all statements in the order of the log, also those that the server refused."""
        return [statement for statement, _ in self._with_outcomes(since)]

    def carried_out(self, since: int = 0) -> list[str]:
        """Return the statements that the server did not refuse."""
        return [statement for statement, is_refused in self._with_outcomes(since) if not is_refused]

    def changes(self, since: int = 0) -> list[str]:
        """Return the statements that change something."""
        return [statement for statement in self.statements(since) if _CHANGES.search(statement)]

    def _with_outcomes(self, since: int) -> list[tuple[str, bool]]:
        """Return each statement, and whether the next line of its server process is an error."""
        with self.path.open("rb") as file:
            file.seek(since)
            text = file.read().decode(errors="replace")
        outcomes: list[tuple[str, bool]] = []
        last_of_process: dict[str, int] = {}
        for line in _LINE.split(text):
            process = _PROCESS.search(line)
            if process is None or f" {self.login}@" not in re.split(r" (?:LOG|ERROR|FATAL):", line, maxsplit=1)[0]:
                continue
            if statement := _STATEMENT.search(line):
                last_of_process[process[1]] = len(outcomes)
                outcomes.append((statement[1].strip(), False))
            elif _REFUSED.search(line) and (index := last_of_process.pop(process[1], None)) is not None:
                outcomes[index] = (outcomes[index][0], True)
        return outcomes
