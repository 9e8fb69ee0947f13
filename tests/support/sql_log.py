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
# After an error, and after that alone, comes a line with the statement (manual, log_min_error_statement).
_PREFIX = re.compile(r"\S+ \S+ UTC \[(?P<process>\d+)\] (?P<login>\S+)@\S* (?P<level>[A-Z]+):")
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
        """Return each statement, and whether its server process named it after an error."""
        with self.path.open("rb") as file:
            file.seek(since)
            text = file.read().decode(errors="replace")
        outcomes: list[tuple[str, bool]] = []
        last_of_process: dict[str, int] = {}
        for line in _LINE.split(text):
            prefix = _PREFIX.match(line)
            if prefix is None or prefix["login"] != self.login:
                continue
            if statement := _STATEMENT.search(line):
                last_of_process[prefix["process"]] = len(outcomes)
                outcomes.append((statement[1].strip(), False))
            elif prefix["level"] == "STATEMENT" and prefix["process"] in last_of_process:
                index = last_of_process[prefix["process"]]
                outcomes[index] = (outcomes[index][0], True)
        return outcomes
