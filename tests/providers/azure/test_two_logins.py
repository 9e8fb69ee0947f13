"""Two logins of a server: which it has, what differs about them, and a database that waits for their rights."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import msgspec
import pytest

from providers.azure.awaited import AwaitedRights
from providers.azure.models import FlexibleServerParameters
from providers.azure.names import ServerName
from providers.azure.servers import changes, create, roles
from providers.azure.servers.facts import Facts
from providers.azure.servers.translate import invariants, login_versions
from providers.external.client import Target
from providers.external.cloud_api.tags import owner_tags
from providers.external.credential import Credential
from providers.external.endpoint import VERIFIED, Endpoint
from providers.external.observation import Change, Observed, Phase
from providers.external.ownership import Owner
from providers.external.sql.alternating import Roles
from tests.providers.world import TEAM_UID

OWNER = Owner("home", "uid-1", "0123456789abcdef", "shop", "orders", "server", TEAM_UID)
SPEC = FlexibleServerParameters(
    resource_group_name="rg",
    location="uksouth",
    administrator_login="boss",
    sku_name="Standard_B2s",
    sku_tier="Burstable",
    version="16",
)


def _target(spec: FlexibleServerParameters = SPEC, **fields: object) -> Target[FlexibleServerParameters]:
    target = Target("rg/pg", spec, OWNER, "hash", own_password="Aboss1", alternates=True)
    return replace(target, **fields)  # type: ignore[arg-type]  # fields of a Target


@pytest.mark.parametrize(
    ("version", "password_auth", "alternates"),
    [("16", None, True), (None, None, True), ("15", None, False), ("16", "Disabled", False)],
)
def test_logins_alternate_from_postgresql_16_on_where_passwords_log_in(
    *, version: str | None, password_auth: str | None, alternates: bool
) -> None:
    assert roles.alternates(_target(msgspec.structs.replace(SPEC, version=version, password_auth=password_auth))) is (
        alternates
    )


def test_administrators_own_password_contains_no_name() -> None:
    password = roles.own_password(_target())
    assert "boss" not in password.lower()
    assert len(roles.own_password(_target(own_password="Ab3" * 11))) <= 128
    body = create.body_of(_target(), Credential("boss", password), source="", now=datetime(2026, 11, 24, tzinfo=UTC))
    assert body["properties"]["administratorLoginPassword"] == password


def _seen(**facts: object) -> Observed[FlexibleServerParameters, Facts]:
    tags = owner_tags(OWNER)
    base = Facts(
        id="id", state="Ready", location="uksouth", host="pg.example", version="16", minor_version="", storage_gib=32,
        storage_type="", public=True, injected=False, encrypted_by_key=False, window=None, tags=tags,
    )  # fmt: skip
    whole = replace(base, **facts)  # type: ignore[arg-type]  # fields of Facts
    endpoint = Endpoint("pg.example", 5432, "orders", VERIFIED)
    return Observed("rg/pg", "2026", OWNER, Phase.READY, SPEC, whole, {}, endpoint=endpoint)


def test_roles_that_were_not_read_differ_in_nothing() -> None:
    assert invariants(_target(active="boss_a", incarnation="2026"), _seen()) == ()


def test_rights_are_due_once_there_is_a_database() -> None:
    target, empty = _target(active="boss_a", incarnation="2026"), Roles("boss", schema_owner="pg_database_owner")
    early = {change.path[0] for change in invariants(target, _seen(roles=empty, database_missing=True))}
    due = {change.path[0] for change in invariants(target, _seen(roles=empty))}
    first = invariants(target, _seen(roles=empty, rights_awaited=True))
    assert all(change.first for change in first)
    assert early == {"roles", "members"}
    assert due == {"roles", "members", "grants", "schemas"}


def test_refused_administrator_gets_the_providers_password_beside_what_else_changed() -> None:
    target = _target(active="boss_a", incarnation="2026")
    seen = _seen(administrator_refused=True)
    (change,) = invariants(target, seen)
    assert roles.sets_administrator(change)
    assert changes.classify(change, seen) == change
    assert changes.request(SPEC, seen, (change,)) is None
    both = changes.request(SPEC, seen, (change, Change(("autoGrow",), "Enabled", "Disabled")))
    assert both is not None
    assert changes.with_password(both, "secret")["properties"] == {
        "storage": {"autoGrow": "Enabled"},
        "administratorLoginPassword": "secret",
    }


def test_each_login_is_proven_at_its_server() -> None:
    assert set(login_versions(_seen())) == {"boss", "boss_a", "boss_b"}


def test_awaited_rights_are_those_of_one_server_in_whatever_letter_case() -> None:
    awaited = AwaitedRights()
    awaited.record(ServerName("RG", "pg"), "orders")
    assert awaited.awaits(ServerName("rg", "pg"), "orders")
    assert not awaited.awaits(ServerName("rg", "pg"), "other")
    assert not awaited.knows(ServerName("rg", "other"))
    awaited.record_none(ServerName("rg", "PG"))
    assert not awaited.awaits(ServerName("rg", "pg"), "orders")
    assert awaited.knows(ServerName("rg", "pg"))
