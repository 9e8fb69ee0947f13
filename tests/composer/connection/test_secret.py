"""The connection Secret: what it holds, whose it is, when it is written again."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from apis import names
from apis.connection import Connection, SecretRef
from composer.causes import Cause
from composer.connection.secret import (
    Origin,
    SecretTarget,
    Wanted,
    entries,
    is_ours,
    misnamed,
    missing_keys,
    of_contract,
    of_foreign,
    published,
    secret_object,
    wanted,
)
from runtime.objects import Key, Object
from tests.composer.factories import claim, desired, live

CONNECTION: Object = {
    "host": "db.example",
    "port": 5432,
    "database": "orders_x",
    "username": "orders_x_a",
    "sslmode": "verify-full",
    "passwordRef": {"name": "c-credentials", "key": "current", "hash": "h1"},
    "caRef": {"name": "ca", "key": "ca.crt", "kind": "ConfigMap"},
}
PASSWORD = {"password": "pw"}
_OWN_CA: Object = {"name": "c-credentials", "key": "ca.crt", "hash": "h1"}
SECRET = SecretTarget(Key("shop", "orders-connection"), "claim-uid", owned=True)


def _source(**changes: Any) -> Object:
    return {**live(desired()), "status": {"connection": {**CONNECTION, **changes}}}


def _wanted(*, secret: SecretTarget = SECRET, declared: dict[str, Any] | None = None, **changes: Any) -> Wanted:
    source = _source(**changes)
    connection = published(source)
    assert isinstance(connection, Connection)
    return wanted(claim(), declared or {"from": "database"}, source, of_contract(connection), secret)


def _fields(secret: Object) -> dict[str, str]:
    return {name: base64.b64decode(value).decode() for name, value in secret["data"].items()}


def test_the_keys_are_those_of_the_service_binding_specification() -> None:
    secret = secret_object(_wanted(), entries(_wanted(), {"password": "pw", "certificates": "PEM"}))

    assert secret["type"] == "servicebinding.io/postgresql"
    assert _fields(secret) == {
        "type": "postgresql",
        "provider": "onprem",
        "host": "db.example",
        "port": "5432",
        "database": "orders_x",
        "username": "orders_x_a",
        "password": "pw",
        "sslmode": "verify-full",
        "certificates": "PEM",
        "uri": "postgresql://orders_x_a:pw@db.example:5432/orders_x?sslmode=verify-full",
        "jdbc-url": "jdbc:postgresql://db.example:5432/orders_x?sslmode=verify-full&user=orders_x_a&password=pw",
    }


@pytest.mark.parametrize(
    ("changes", "declared", "sslrootcert", "in_uri", "in_jdbc"),
    [
        pytest.param(
            {}, {}, "system", "?sslmode=verify-full&sslrootcert=system",
            "?sslmode=verify-full&sslfactory=org.postgresql.ssl.DefaultJavaSSLFactory&user=", id="the system's roots",
        ),
        pytest.param({"caRef": _OWN_CA}, {}, None, "?sslmode=verify-full", "?sslmode=verify-full&user=", id="its own"),
        pytest.param(
            {"sslmode": "verify-ca", "caRef": _OWN_CA}, {}, None, "?sslmode=verify-ca", "?sslmode=verify-ca&user=",
            id="its own authority alone",
        ),
        pytest.param(
            {}, {"caRef": {"kind": "ConfigMap", "name": "company", "key": "ca.crt"}}, None, "?sslmode=verify-full",
            "?sslmode=verify-full&user=", id="the Composition's",
        ),
        pytest.param({"sslmode": "require"}, {}, None, "?sslmode=require", "?sslmode=require&user=", id="nothing"),
    ],
)  # fmt: skip
def test_urls_say_how_the_server_is_verified(
    changes: dict[str, Any], declared: dict[str, Any], sslrootcert: str | None, in_uri: str, in_jdbc: str
) -> None:
    source = _source(**changes)
    if "caRef" not in changes:
        del source["status"]["connection"]["caRef"]
    connection = published(source)
    assert isinstance(connection, Connection)
    want = wanted(claim(), {"from": "database", **declared}, source, of_contract(connection), SECRET)
    fields = entries(want, PASSWORD)

    assert fields.get("sslrootcert") == sslrootcert
    assert fields["uri"].endswith(in_uri)
    assert in_jdbc in fields["jdbc-url"]


@pytest.mark.parametrize(
    "changes",
    [{"host": None}, {"port": None}, {"passwordRef": {"name": "x", "key": "y"}}, {"port": "5432"}],
    ids=["no host", "no port", "no proven password", "a port that is a text"],
)
def test_an_incomplete_connection_is_not_published(changes: dict[str, Any]) -> None:
    reported = published(_source(**changes))

    assert isinstance(reported, Cause)
    assert reported.reason == "ConnectionIncomplete"


@pytest.mark.parametrize(
    ("labels", "kind", "ours"),
    [
        ({names.CLAIM_LABEL: "claim-uid"}, "servicebinding.io/postgresql", True),
        ({names.CLAIM_LABEL: "other"}, "servicebinding.io/postgresql", False),
        ({}, "servicebinding.io/postgresql", False),
        ({names.CLAIM_LABEL: "claim-uid"}, "fairlead.dev/credentials", False),
    ],
)
def test_a_secret_is_ours_by_its_label_and_type(labels: dict[str, str], kind: str, *, ours: bool) -> None:
    assert is_ours({"metadata": {"labels": labels}, "type": kind}, "claim-uid") == ours


FOREIGN: Object = {
    "secretRef": {
        "resource": "cluster",
        "name": "orders-cluster-app",
        "keys": {"host": "host", "port": "port", "database": "dbname", "username": "user", "password": "password"},
    },
    "sslmode": "require",
}
CLUSTER: Object = {"apiVersion": "postgresql.cnpg.io/v1", "kind": "Cluster", "metadata": {"name": "c"}}


def _foreign(**declared: Any) -> Wanted:
    whole = {**FOREIGN, **declared}
    origin = of_foreign(whole)
    assert isinstance(origin, Origin)
    return wanted(claim(), whole, CLUSTER, origin, SECRET)


def test_another_type_has_its_own_keys_and_no_url_of_ours() -> None:
    named = {"resource": "cluster", "name": "n", "keys": {"password": "auth"}}
    want = _foreign(secretRef=named, type="redis", host="cache.example", sslmode="none")
    secret = secret_object(want, entries(want, {"password": "p"}))

    assert missing_keys(want) == ()
    assert secret["type"] == "servicebinding.io/redis"
    assert _fields(secret) == {
        "type": "redis",
        "provider": "postgresql.cnpg.io",
        "host": "cache.example",
        "sslmode": "none",
        "password": "p",
    }
    assert is_ours(secret, "claim-uid")


@pytest.mark.parametrize("name", ["", "a/b", "..", "a?b", "../secrets/x", "A", "x" * 254])
def test_a_text_that_is_no_name_of_a_secret_is_never_read(name: str) -> None:
    reported = of_foreign({"secretRef": {**FOREIGN["secretRef"], "name": name}})

    assert isinstance(reported, Cause)
    assert reported.reason == "InvalidValue"


@pytest.mark.parametrize("name", ["x?y#z", "../alice/app-connection", "", "UPPER", 3, None])
def test_a_ca_with_an_invalid_name_is_reported(name: Any) -> None:
    origin = Origin({}, {"password": SecretRef("login", "password")})

    why = misnamed({"from": "database", "caRef": {"name": name, "key": "ca.crt"}}, origin, "orders-connection")

    assert why is not None
    assert why.reason == "InvalidValue"
    assert "certificates" in why.message or "caRef" in why.message
