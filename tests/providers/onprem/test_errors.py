"""SQLSTATE codes as failures, nothing final where another look may show more; of several one is raised."""

from __future__ import annotations

from dataclasses import dataclass

import psycopg
import pytest
from hypothesis import given
from hypothesis import strategies as st

from providers.external.sql.errors import failure_of
from providers.onprem.refused_statements import Refusals
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
def test_code_has_its_class(case: Case) -> None:
    failure = failure_of(psycopg.OperationalError("x"), "look", code=case.code, at_home=case.at_home)

    assert isinstance(failure, case.failure)
    assert str(failure).count("cannot look: ") == 1


_AT = 'connection failed: connection to server at "10.0.0.1", port 5432 failed:'
_MULTIPLE = f"""Multiple connection attempts failed. All failures were:
- host: 'pg1', port: None, hostaddr: '10.0.0.1': {_AT} No route to host
- host: 'pg1', port: None, hostaddr: '10.0.0.2': {_AT} Connection refused
\tIs the server running on that host and accepting TCP/IP connections?"""
_NO_HOST = "failed to resolve host 'nosuch.invalid': [Errno -2] Name or service not known"
_OTHER_NAME = 'server certificate for "pg1" does not match host name "pg2"'
CAUSES: dict[str, tuple[str, str, str]] = {
    "nobody listens": (f"{_AT} Connection refused\n\tIs the server running?", "", "Connection refused"),
    "no such host": (_NO_HOST, "", _NO_HOST),
    "another authority": (f"{_AT} SSL error: certificate verify failed", "", "SSL error: certificate verify failed"),
    "another name": (f"{_AT} {_OTHER_NAME}", "", _OTHER_NAME),
    "several addresses": (_MULTIPLE, "", "Connection refused"),
    "the line was cut": ("server closed the connection unexpectedly\n\tThis probably means", "", "server closed the"),
    "all connections are taken": ("connection failed: FATAL", "53300", "max_connections"),
    "the server starts": ("connection failed: FATAL", "57P03", "starting"),
}


@pytest.mark.parametrize(("text", "code", "cause"), CAUSES.values(), ids=CAUSES.keys())
def test_failed_connection_has_its_cause(text: str, code: str, cause: str) -> None:
    failure = failure_of(psycopg.OperationalError(text), "log in", code=code)

    assert isinstance(failure, Transient)
    assert cause in str(failure)
    assert "\n" not in str(failure)


def test_unknown_collation_is_an_invalid_value() -> None:
    failure = failure_of(psycopg.errors.WrongObjectType("no such collation"), "create")

    assert isinstance(failure, Terminal)
    assert failure.reason == "InvalidValue"


FAILURES: list[Failure] = [
    Transient("a lock is held"),
    Terminal("InvalidValue", "no such value"),
    Terminal("AccessDenied", "no right"),
    Blocked("DeleteBlocked", "in use"),
    Conflict("made meanwhile"),
]
ORDER: list[type[Failure]] = [Transient, Terminal, Blocked, Conflict]


@given(st.lists(st.sampled_from(FAILURES), min_size=1))
def test_refusal_that_may_end_by_itself_is_raised_first_with_the_text_of_all(failures: list[Failure]) -> None:
    with pytest.raises(Failure) as raised:
        Refusals("change it", list(failures)).raise_if_any()

    expected = next(kind for kind in ORDER if any(type(failure) is kind for failure in failures))
    assert type(raised.value) is expected
    message = str(raised.value)
    assert all(str(failure) in message for failure in failures)
    assert all(message.count(str(failure)) == 1 for failure in failures)


def test_refusals_raise_nothing_where_nothing_was_refused() -> None:
    Refusals("change it").raise_if_any()


def test_refusals_beyond_the_first_are_counted() -> None:
    refusals = Refusals("change it", [Terminal("AccessDenied", f"no right {number}") for number in range(9)])

    with pytest.raises(Terminal, match="and 4 more"):
        refusals.raise_if_any()
