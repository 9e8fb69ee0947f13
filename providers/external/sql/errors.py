"""PostgreSQL's SQLSTATE codes as the five failure classes. The codes are those of the manual's appendix A."""

from __future__ import annotations

import psycopg

from runtime.errors import Blocked, Conflict, Failure, Terminal, Transient

_TERMINAL = {
    "28P01": ("CredentialsInvalid", "the server refused the administrator's password; renew the Secret"),
    "28000": ("CredentialsInvalid", "the server refused the administrator's login; see its pg_hba.conf"),
    "42501": (
        "AccessDenied",
        "the administrator's login may not do this; its cloud's page lists the grants",
    ),
    "22023": ("InvalidValue", "the server refused a value"),
    "42704": ("InvalidValue", "the server does not know something that the spec names"),
    "0A000": ("InvalidValue", "the server does not support something that the spec asks for"),
    "22P02": ("InvalidValue", "the server refused a value"),
    "58P01": ("InvalidValue", "the server has no such extension installed"),
    "42P22": ("InvalidValue", "the server does not know this collation"),
    "42809": ("InvalidValue", "the server does not know this collation or object type"),
    "54000": ("LimitReached", "a limit of the server is reached"),
}
_BLOCKED = {
    "55006": ("DeleteBlocked", "sessions or replication slots still use the database"),
    "2BP01": ("DeleteBlocked", "other objects still depend on it"),
    "53100": ("QuotaExceeded", "the server's disk is full"),
}
_TRANSIENT = {
    "53300": "all connections that this login may have are taken: of the server (max_connections), of the database, or"
    " of the login; raise the limit or end sessions",
    "57P03": "the server is starting, stopping or in recovery",
}
_CONFLICT = frozenset({"42P04", "42710", "40001", "40P01", "42P06", "23505"})
_NO_SUCH_DATABASE = "3D000"
_FAILED = "failed: "


def failure_of(error: psycopg.Error, action: str, *, code: str = "", at_home: bool = False) -> Failure:
    """Return the failure class of an error, by `code` where libpq hid it; `action` says what was tried.

    `at_home`: it was the login to the administrator's own database; any other may vanish between two observations.

    The server's detail is left out: it may quote data.
    """
    known = code or error.sqlstate or ""
    first = error.diag.message_primary or _TRANSIENT.get(known) or ("it was refused" if known else _unreached(error))
    text = f"cannot {action}: {first}"[:400]
    if known == _NO_SUCH_DATABASE and at_home:
        remedy = "the administrator's own database does not exist; make it or name another"
        return Terminal("CredentialsInvalid", f"{text}; {remedy}")
    if known in _CONFLICT or known == _NO_SUCH_DATABASE:
        return Conflict(text)
    if known in _TERMINAL:
        reason, remedy = _TERMINAL[known]
        return Terminal(reason, f"{text}; {remedy}")
    if known in _BLOCKED:
        reason, remedy = _BLOCKED[known]
        return Blocked(reason, f"{text}; {remedy}")
    return Transient(text)


def _unreached(error: psycopg.Error) -> str:
    """Return why no session came about or was lost, in libpq's words, which quote no data."""
    lines = [line.strip() for line in str(error).splitlines()]
    causes = [line.rpartition(_FAILED)[2] for line in lines if _FAILED in line]
    cause = causes[-1] if causes else next(filter(None, lines), "")
    return f"the server could not be reached: {cause}" if cause else "the server could not be reached"
