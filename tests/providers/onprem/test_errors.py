"""SQLSTATE codes as failures: a word for a person, and nothing final where another look may show something else."""

from __future__ import annotations

from dataclasses import dataclass

import psycopg
import pytest

from providers.onprem.errors import failure_of
from runtime.errors import Blocked, Conflict, Failure, Terminal, Transient


@dataclass(frozen=True)
class Case:
    """A code, where it came up, and what it means."""

    code: str
    failure: type[Failure]
    at_home: bool = False


CASES: dict[str, Case] = {
    "a tenant's database vanished": Case("3D000", Conflict),
    "the administrator's own database is not there": Case("3D000", Terminal, at_home=True),
    "the administrator's password is refused": Case("28P01", Terminal),
    "a right is missing": Case("42501", Terminal),
    "a role was made by somebody else meanwhile": Case("42710", Conflict),
    "the disk is full": Case("53100", Blocked),
    "sessions are in the way": Case("55006", Blocked),
    "a lock is held": Case("55P03", Transient),
    "all connections are taken": Case("53300", Transient),
    "the statement took too long": Case("57014", Transient),
    "the server starts": Case("57P03", Transient),
    "nothing answers": Case("", Transient),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_a_code_means(case: Case) -> None:
    found = failure_of(psycopg.OperationalError("x"), "look", code=case.code, at_home=case.at_home)

    assert isinstance(found, case.failure)
    assert str(found).count("cannot look: ") == 1
