"""What a server refuses, as psycopg raises it; the codes are those of the manual's appendix A."""

from __future__ import annotations

import psycopg
from psycopg.pq import DiagnosticField

DENIED = "42501"
NO_OBJECT = "42704"
DUPLICATE = "42710"
DEPENDENT = "2BP01"
IN_USE = "55006"
WRONG_STATE = "55000"
NO_DATABASE = "3D000"
DUPLICATE_DATABASE = "42P04"
INVALID_VALUE = "22023"
WRONG_TYPE = "42809"
UNSUPPORTED = "0A000"
NO_SCHEMA = "3F000"
DUPLICATE_SCHEMA = "42P06"
INVALID_GRANT = "0LP01"
NO_TABLE = "42P01"


class UnmodelledError(Exception):
    """The model does not know what a server would answer: the statement, or a case of it."""


def refusal(code: str, message: str) -> psycopg.Error:
    """Return an error of the server."""
    info = {DiagnosticField.MESSAGE_PRIMARY: message.encode(), DiagnosticField.SQLSTATE: code.encode()}
    return psycopg.errors.lookup(code)(message, info=info)  # type: ignore[arg-type]  # a dict is taken as well, as psycopg pickles errors by it
