"""The connection Secret: what it holds, whose it is, when it is written again."""

from __future__ import annotations

import base64
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apis import names
from apis.connection import Connection, SecretRef
from composer.causes import Cause
from composer.connection.secret import (
    Origin,
    SecretTarget,
    Wanted,
    entries,
    is_of_another_login,
    is_ours,
    misnamed,
    missing_keys,
    of_contract,
    of_foreign,
    published,
    replacement,
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


def test_another_authority_is_another_secret_to_publish() -> None:
    first, second = (_wanted(caRef={**_OWN_CA, "hash": hash_}) for hash_ in ("h1", "h2"))

    assert first.hash != second.hash


@given(st.text(min_size=1, max_size=40).filter(lambda text: "\x00" not in text and text.isprintable()))
def test_a_url_parses_back_to_its_parts(text: str) -> None:
    fields = entries(_wanted(username=text, database=text), {"password": text})
    parts = urlsplit(fields["uri"])

    assert unquote(parts.username or "") == unquote(parts.password or "") == unquote(parts.path[1:]) == text
    query = parse_qs(urlsplit(fields["jdbc-url"].removeprefix("jdbc:")).query)
    assert (query["user"], query["password"]) == ([text], [text])


@pytest.mark.parametrize(
    "changes",
    [{"host": None}, {"port": None}, {"passwordRef": {"name": "x", "key": "y"}}, {"port": "5432"}],
    ids=["no host", "no port", "no proven password", "a port that is a text"],
)
def test_an_incomplete_connection_is_not_published(changes: dict[str, Any]) -> None:
    reported = published(_source(**changes))

    assert isinstance(reported, Cause)
    assert reported.reason == "ConnectionIncomplete"


def test_the_hash_depends_on_everything_that_the_content_depends_on() -> None:
    rotated = {**CONNECTION["passwordRef"], "hash": "h2"}
    variants = [
        _wanted(),
        _wanted(passwordRef=rotated),
        _wanted(host="other"),
        _wanted(declared={"from": "database", "host": "alias"}),
        _wanted(secret=SecretTarget(SECRET.key, "claim-uid", owned=False)),
        _wanted(secret=SecretTarget(SECRET.key, "other-uid", owned=True)),
    ]

    assert len({variant.hash for variant in variants}) == len(variants)
    assert _wanted().hash == _wanted().hash


FRESH = secret_object(_wanted(), entries(_wanted(), PASSWORD))


def _stored(**changes: Any) -> Object:
    meta = {**FRESH["metadata"], "uid": "s", "resourceVersion": "3", "creationTimestamp": "t", **changes}
    return {**FRESH, "metadata": meta}


def test_fields_that_others_wrote_on_the_secret_are_kept() -> None:
    stored = _stored(labels={**FRESH["metadata"]["labels"], "team": "a"}, annotations={"note": "b"})
    stored = {**stored, "data": {}}

    put = replacement(stored, FRESH)

    assert put is not None
    assert put["metadata"]["labels"]["team"] == "a"
    assert put["metadata"]["annotations"] == {"note": "b"}
    assert put["metadata"]["resourceVersion"] == "3"
    assert put["data"] == FRESH["data"]


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


@pytest.mark.parametrize(
    ("type_", "username", "expected"),
    [
        pytest.param("fairlead.dev/credentials", "app_a", False, id="the same login"),
        pytest.param("fairlead.dev/credentials", "app_b", True, id="the next login"),
        pytest.param("fairlead.dev/credentials", "", False, id="no login named"),
        pytest.param("Opaque", "app_b", False, id="a Secret of the user's own"),
    ],
)
def test_credentials_newer_than_the_status_are_recognized(type_: str, username: str, *, expected: bool) -> None:
    holder = {"type": type_, "data": {"username": base64.b64encode(username.encode()).decode()}}

    assert is_of_another_login(holder, "app_a") is expected


FOREIGN: Object = {
    "secretRef": {
        "resource": "cluster",
        "name": "orders-cluster-app",
        "keys": {"host": "host", "port": "port", "database": "dbname", "username": "user", "password": "password"},
    },
    "sslmode": "require",
}
CLUSTER: Object = {"apiVersion": "postgresql.cnpg.io/v1", "kind": "Cluster", "metadata": {"name": "c"}}
KEPT = {"host": "h", "port": "5432", "database": "d", "username": "u", "password": "p"}


def _foreign(**declared: Any) -> Wanted:
    whole = {**FOREIGN, **declared}
    origin = of_foreign(whole)
    assert isinstance(origin, Origin)
    return wanted(claim(), whole, CLUSTER, origin, SECRET)


def test_a_foreign_secret_gives_the_mapped_keys() -> None:
    want = _foreign(caRef={"name": "orders-cluster-ca", "key": "ca.crt"})

    assert missing_keys(want) == ()
    assert {ref.name for ref in want.kept.values()} == {"orders-cluster-app", "orders-cluster-ca"}
    assert entries(want, {**KEPT, "certificates": "PEM"}) == {
        **KEPT,
        "type": "postgresql",
        "provider": "postgresql.cnpg.io",
        "sslmode": "require",
        "certificates": "PEM",
        "uri": "postgresql://u:p@h:5432/d?sslmode=require",
        "jdbc-url": "jdbc:postgresql://h:5432/d?sslmode=require&user=u&password=p",
    }


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


def test_a_key_that_nothing_gives_is_named() -> None:
    named = {**FOREIGN["secretRef"], "keys": {"password": "password"}}

    assert missing_keys(_foreign(secretRef=named)) == ("host", "port", "database", "username")


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


def test_a_secret_knows_who_writes_what_it_is_made_of() -> None:
    ours, foreign = _wanted(), _foreign(caRef={"name": "company", "key": "ca.crt"})

    assert set(ours.makers.values()) == {f"the provider of PostgresDatabase {desired()['metadata']['name']}"}
    assert foreign.makers["password"] == "the operator of Cluster c"
    assert foreign.makers["certificates"].startswith("the platform team")
