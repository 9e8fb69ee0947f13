"""`status.connection` as a provider writes it and the composer reads it."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from msgspec import UNSET

from apis import connection
from apis.connection import Connection, SecretRef

PASSWORD = SecretRef("db-credentials", "current", hash="h1")
CA = SecretRef("db-credentials", "ca.crt", hash="h2")
PLAIN: dict[str, Any] = {
    "host": "db.example.org",
    "port": 5432,
    "database": "orders",
    "username": "app",
    "sslmode": "verify-full",
}


@pytest.mark.parametrize("ca", [UNSET, CA])
def test_a_connection_is_read_as_it_was_written(ca: Any) -> None:
    published = Connection(**PLAIN, password_ref=PASSWORD, ca_ref=ca)

    assert connection.load({"connection": connection.dump(published)}) == published


def test_a_connection_is_written_as_stored_statuses_have_it() -> None:
    # Another form would rewrite the status of every database in the field.
    assert connection.dump(Connection(**PLAIN, password_ref=PASSWORD, ca_ref=CA)) == {
        **PLAIN,
        "passwordRef": {"name": "db-credentials", "key": "current", "hash": "h1"},
        "caRef": {"kind": "Secret", "name": "db-credentials", "key": "ca.crt", "hash": "h2"},
    }


def test_a_connection_without_a_part_says_which() -> None:
    with pytest.raises(msgspec.ValidationError, match="passwordRef"):
        connection.load({"connection": PLAIN})
