"""Databases and users inside instances, over the wire."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from apis.teardown import Policy
from providers.external.client import NotCreated, Target
from providers.external.credential import Credential
from providers.external.observation import Absent, Change, Present, ServerNotOwned
from providers.external.ownership import Owner
from providers.gcp.account import GcpAccount
from providers.gcp.inside import databases, logins, users
from providers.gcp.models import CloudSQLDatabaseParameters, CloudSQLUserParameters
from providers.gcp.names import owner_labels
from runtime.errors import Blocked, Terminal, Transient
from tests.providers.gates import OPEN
from tests.providers.gcp.answers import OWNER, instance
from tests.providers.gcp.wire import Wire, operation, refused

SERVER = "instances/fl-a"
NO_LOGIN = Credential("", "")


def _instance(**settings: Any) -> dict[str, Any]:
    """Return an instance that was made for the namespace of what is inside it."""
    return {**instance(**{"userLabels": owner_labels(OWNER), **settings}), "name": "fl-a"}


def _database(**more: Any) -> Target[CloudSQLDatabaseParameters]:
    return Target("fl-a/app", CloudSQLDatabaseParameters(instance="fl-a", name="app"), OWNER, "", **more)


def _user(*, leaving: bool = False, incarnation: str = "", **fields: Any) -> Target[CloudSQLUserParameters]:
    spec = CloudSQLUserParameters(**{"instance": "fl-a", "name": "app", "database": "fl-a/orders", **fields})
    return Target("fl-a/app", spec, OWNER, "", own_password="only-ours", leaving=leaving, incarnation=incarnation)


def _serving(wire: Wire, *names: str, server: dict[str, Any] | None = None, **roles: list[str]) -> None:
    wire.answer(f"GET {SERVER}", server or _instance())
    wire.answer(f"GET {SERVER}/listServerCas", {"certs": [{"cert": "PEM-1\n"}, {"cert": "PEM-2\n"}]})
    items = [{"name": name, "databaseRoles": roles.get(name, [])} for name in names]
    wire.answer(f"GET {SERVER}/users", {"items": items})


_GONE, _STOPPED, _FAILED = "DatabaseLost", "DatabaseStopped", "DatabaseFailed"
_LISTED = {"GET instances": {"items": [_instance()]}}
_SILENT = {"GET instances": {"items": [], "warnings": [{"code": "REGION_UNREACHABLE", "region": "europe-west1"}]}}
_NONE: dict[str, Any] = {"GET instances": {"items": []}}
_LEAVING = {"leaving": True}
_THERE_ONCE = {"incarnation": "fl-a/app"}
_AT_WORK = {**_instance(), "state": "MAINTENANCE"}
_SUSPENDED = {**_instance(), "state": "SUSPENDED", "suspensionReason": ["BILLING_ISSUE"]}
# What is answered, of what target: None for a proven absence, else the reason, "" for one that passes.
ABSENCES: list[tuple[str, dict[str, Any], dict[str, Any], dict[str, str] | str | None]] = [
    ("its instance serves", {f"GET {SERVER}": _instance()}, {}, None),
    ("its instance is stopped", {f"GET {SERVER}": _instance(activationPolicy="NEVER")}, {}, _STOPPED),
    ("its instance is suspended", {f"GET {SERVER}": _SUSPENDED}, {}, _FAILED),
    ("its instance is suspended, and it leaves", {f"GET {SERVER}": _SUSPENDED}, _LEAVING, _FAILED),
    ("its instance is at work", {f"GET {SERVER}": _AT_WORK}, {}, {"database": "Updating", "user": ""}),
    ("its instance is gone", _NONE, _THERE_ONCE, _GONE),
    ("its instance was never there", _NONE, {}, "ReferenceNotFound"),
    ("its instance is gone, and it leaves", _NONE, _LEAVING, None),
    ("its instance is not found and is listed", _LISTED, _THERE_ONCE, ""),
    ("its instance is not found and is listed, and it leaves", _LISTED, _LEAVING, ""),
    ("its instance is not found in a list without a region", _SILENT, _LEAVING, ""),
]


@pytest.mark.parametrize("kind", ["database", "user"])
@pytest.mark.parametrize(("answers", "more", "reason"), [row[1:] for row in ABSENCES], ids=[row[0] for row in ABSENCES])
async def test_what_is_inside_is_absent_where_its_instance_proves_it(
    wire: Wire,
    account: GcpAccount,
    *,
    kind: str,
    answers: dict[str, Any],
    more: dict[str, Any],
    reason: dict[str, str] | str | None,
) -> None:
    wire.answer(f"GET {SERVER}/users", {"items": []})
    wire.answer(f"GET {SERVER}/listServerCas", {"certs": []})
    for path, answer in answers.items():
        wire.answer(path, answer)
    is_database = kind == "database"
    seen = (
        databases.clients(account).external.observe(_database(**more))
        if is_database
        else users.clients(account).external.observe(_user(**more))
    )
    if reason is None:
        assert await seen == Absent()
        return
    expected = reason if isinstance(reason, str) else reason[kind]
    with pytest.raises(Blocked if expected else Transient) as refusal:
        await seen
    assert getattr(refusal.value, "reason", "") == expected


async def test_instance_that_others_replaced_is_none_that_lost_its_labels(wire: Wire, account: GcpAccount) -> None:
    wire.answer(f"GET {SERVER}", _instance(userLabels={}))
    for created, reason in ((_instance()["createTime"], "AdoptionRefused"), ("2020-01-01T00:00:00Z", "Replaced")):
        where = _database(**_THERE_ONCE, last_answer=json.dumps({"created": created}).encode())
        with pytest.raises((ServerNotOwned, Blocked)) as refusal:
            await databases.clients(account).external.observe(where)
        assert getattr(refusal.value, "reason", "") == reason


@pytest.mark.parametrize("owner", [replace(OWNER, namespace_uid="of-another"), replace(OWNER, installation="another")])
async def test_a_forged_incarnation_learns_nothing_of_a_server_of_others(
    wire: Wire, account: GcpAccount, owner: Owner
) -> None:
    theirs = {**_SUSPENDED, "settings": {**_SUSPENDED["settings"], "userLabels": owner_labels(owner)}}
    wire.answer(f"GET {SERVER}", theirs)

    with pytest.raises(ServerNotOwned) as refusal:
        await databases.clients(account).external.observe(_database(**_THERE_ONCE))
    assert "SUSPENDED" not in str(refusal.value)


async def test_users_of_an_instance_at_work_that_lists_none_are_not_usable(wire: Wire, account: GcpAccount) -> None:
    wire.answer(f"GET {SERVER}", _AT_WORK)
    wire.answer(f"GET {SERVER}/listServerCas", {"certs": []})
    wire.answer(f"GET {SERVER}/users", refused(400, "invalid", "Invalid request since instance is not running"))
    with pytest.raises(Blocked, match="the cloud is at work on its server fl-a"):
        await users.clients(account).external.observe(_user(incarnation="fl-a/app"))


async def test_a_database_is_made_and_seen(wire: Wire, account: GcpAccount) -> None:
    wire.answer(f"GET {SERVER}", _instance())
    wire.answer(f"POST {SERVER}/databases", operation())
    wire.answer(f"GET {SERVER}/databases/app", {"name": "app", "charset": "UTF8", "collation": "en_US.UTF8"})
    external = databases.clients(account).external
    account.database_ids._oids["fl-a"] = {"app": 100}
    started = await external.create(_database(), NO_LOGIN, OPEN)
    observation = await external.observe(_database())
    assert account.database_ids.incarnation("fl-a", "app", "fl-a/app", "") == ("fl-a/app", ())
    assert (started is not None, wire.requests[0].body) == (True, {"name": "app"})
    assert isinstance(observation, Present)
    assert observation.observed.at_provider == {"charset": "UTF8", "collation": "en_US.UTF8"}


async def test_a_database_that_appeared_meanwhile_is_not_ours_by_its_name(wire: Wire, account: GcpAccount) -> None:
    wire.answer(f"POST {SERVER}/databases", refused(409, "databaseAlreadyExists"))
    with pytest.raises(NotCreated):
        await databases.clients(account).external.create(_database(), NO_LOGIN, OPEN)


async def test_a_database_with_sessions_in_it_is_not_forced(wire: Wire, account: GcpAccount) -> None:
    wire.answer(f"GET {SERVER}", _instance())
    wire.answer(f"GET {SERVER}/databases/app", {"name": "app"})
    wire.answer(f"DELETE {SERVER}/databases/app", refused(409, "operationInProgress"))
    external = databases.clients(account).external
    observation = await external.observe(_database())
    assert isinstance(observation, Present)
    with pytest.raises(Blocked):
        await external.delete(_database(), observation.observed, Policy.DELETE, OPEN)


async def _seen(account: GcpAccount, target: Target[CloudSQLUserParameters]) -> logins.Seen:
    observation = await users.clients(account).external.observe(target)
    assert isinstance(observation, Present)
    return observation.observed


async def test_a_user_publishes_its_instances_address_and_every_authority(wire: Wire, account: GcpAccount) -> None:
    _serving(wire, "app")
    observed = await _seen(account, _user())
    endpoint = observed.endpoint
    assert (endpoint.host, endpoint.port, endpoint.database) == ("203.0.113.7", 5432, "orders")
    assert endpoint.sslmode == "verify-ca"
    assert endpoint.ca == "PEM-1\nPEM-2\n"


AUTHORITIES = [
    ("one follows", "PEM-1", ("PEM-1", "PEM-2")),
    ("the next one is active, and the former still listed", "PEM-2", ("PEM-1", "PEM-2")),
    ("another one is listed", "PEM-2", ("PEM-2", "PEM-3")),
    ("the active one alone", "PEM-3", ()),
]


async def test_an_authority_that_was_added_or_replaced_is_seen_at_once(wire: Wire, account: GcpAccount) -> None:
    _serving(wire, "app")
    external = users.clients(account).external
    for case, active, listed in AUTHORITIES:
        wire.answer(f"GET {SERVER}", {**_instance(), "serverCaCert": {"cert": f"{active}\n"}})
        wire.answer(f"GET {SERVER}/listServerCas", {"certs": [{"cert": f"{pem}\n"} for pem in listed]})
        observation = await external.observe(_user())
        assert isinstance(observation, Present)
        assert observation.observed.endpoint.ca == "".join(f"{pem}\n" for pem in listed or (active,)), case


OWNERS: list[tuple[str, dict[str, Any], dict[str, str], bool]] = [
    ("the spec says nothing of a backup", {}, owner_labels(OWNER), False),
    ("in an instance of this namespace", {"from_backup": True}, owner_labels(OWNER), True),
    ("in another claim's of this namespace", {"from_backup": True}, owner_labels(replace(OWNER, claim="other")), True),
    ("of another namespace", {"from_backup": True}, owner_labels(replace(OWNER, namespace_uid="other")), False),
    ("in a person's instance", {"from_backup": True}, {}, False),
]


@pytest.mark.parametrize(("fields", "labels", "ours"), [row[1:] for row in OWNERS], ids=[row[0] for row in OWNERS])
async def test_a_user_that_came_with_a_backup_is_ours_where_the_spec_says_so(
    wire: Wire, account: GcpAccount, fields: dict[str, Any], labels: dict[str, str], *, ours: bool
) -> None:
    _serving(wire, "app", server=_instance(userLabels=labels))
    # The platform team agreed to the instance: that makes nobody's user ours.
    observed = await _seen(account, replace(_user(**fields), agreed_servers=("fl-a",)))
    assert observed.owner == (OWNER if ours else None)


def test_a_user_of_another_installations_instance_is_not_ours_even_where_nothing_refused_the_instance() -> None:
    labels = owner_labels(replace(OWNER, installation="other"))
    assert users._owner(_instance(userLabels=labels), _user(from_backup=True)) is None


FOREIGN: list[tuple[str, dict[str, str]]] = [
    ("nobody's", {}),
    ("another namespace's", owner_labels(replace(OWNER, namespace_uid="other"))),
    ("made before there were uids", owner_labels(replace(OWNER, namespace_uid=""))),
    ("another installation's", owner_labels(replace(OWNER, installation="other"))),
]


@pytest.mark.parametrize("labels", [row[1] for row in FOREIGN], ids=[row[0] for row in FOREIGN])
async def test_nothing_inside_an_instance_of_somebody_else_is_asked_for(
    wire: Wire, account: GcpAccount, labels: dict[str, str]
) -> None:
    _serving(wire, "app", server=_instance(userLabels=labels))
    wire.answer(f"GET {SERVER}/databases/app", {"name": "app"})
    for observe in (
        users.clients(account).external.observe(_user(from_backup=True)),
        databases.clients(account).external.observe(_database()),
        databases.clients(account).external.observe(_database(leaving=True)),
    ):
        with pytest.raises(ServerNotOwned, match="nothing inside"):
            await observe
    assert {(request.verb, request.path.rpartition("/")[2]) for request in wire.requests} == {("GET", "fl-a")}


ROLES: list[tuple[str, tuple[str, ...], str]] = [
    ("a role without a login", ("owner",), ""),
    ("its own login", ("app",), ""),
    ("a login of the same claim", ("of_claim",), ""),
    ("a login of somebody else's", ("owner", "victim"), "victim"),
]


@pytest.mark.parametrize(("roles", "refused_role"), [row[1:] for row in ROLES], ids=[row[0] for row in ROLES])
async def test_a_login_of_somebody_else_is_no_role_of_a_user(
    wire: Wire, account: GcpAccount, roles: tuple[str, ...], refused_role: str
) -> None:
    _serving(wire, "app", "victim", "of_claim")
    sibling = CloudSQLUserParameters(instance="fl-a", name="of_claim")
    target = replace(_user(database_roles=roles), siblings=(sibling,))
    observe = users.clients(account).external.observe(target)
    if not refused_role:
        assert isinstance(await observe, Present)
        return
    with pytest.raises(Terminal, match=f"databaseRoles names {refused_role}"):
        await observe


@pytest.mark.parametrize("role", ["postgres", "pg_read_all_data", "cloudsqladmin", "CloudSQLAgent"])
def test_a_role_that_reaches_into_every_database_is_refused(role: str) -> None:
    spec = CloudSQLUserParameters(instance="fl-a", name="app", database_roles=("owner", role))
    reason, text = logins.is_refused(spec) or ("", "")
    assert (reason, role in text) == ("InvalidValue", True)


ADDRESSES = [
    ({}, {}, "203.0.113.7", "verify-ca"),
    ({"ipAddresses": [{"type": "PRIMARY", "ipAddress": "203.0.113.7"}, {"type": "PRIVATE", "ipAddress": "10.0.0.3"}]},
     {}, "10.0.0.3", "verify-ca"),
    ({"ipAddresses": [{"type": "PRIMARY", "ipAddress": "203.0.113.7"}, {"type": "PRIVATE", "ipAddress": "10.0.0.3"}]},
     {"address_type": "PRIMARY"}, "203.0.113.7", "verify-ca"),
    ({"ipAddresses": []}, {}, "", ""),
    ({"ipAddresses": [{"type": "PRIMARY", "ipAddress": "203.0.113.7", "timeToRetire": "2026-12-01T00:00:00Z"}]}, {}, "",
     ""),
    ({"dnsName": "x.europe-west1.sql.goog.",
      "settings": {"ipConfiguration": {"serverCaMode": "GOOGLE_MANAGED_CAS_CA"}}}, {}, "x.europe-west1.sql.goog",
     "verify-full"),
]  # fmt: skip


@pytest.mark.parametrize(("server", "fields", "host", "sslmode"), ADDRESSES)
def test_endpoint_is_the_address_that_is_asked_for(
    server: dict[str, Any], fields: dict[str, Any], host: str, sslmode: str
) -> None:
    spec = CloudSQLUserParameters(**{"instance": "fl-a", "name": "app", **fields})
    endpoint = logins.endpoint_of({**instance(), **server}, "PEM-1\n", spec)
    assert (endpoint.host, endpoint.sslmode) == (host, sslmode)


NAMES = [
    ({}, ("app", "app")),
    ({"logins": "Alternating", "database_roles": ("owner",)}, ("app_a", "app_b")),
    ({"type": "CLOUD_IAM_USER", "logins": "Alternating"}, ("app", "app")),
]


@pytest.mark.parametrize(("fields", "names"), NAMES)
def test_logins_of_a_user(fields: dict[str, Any], names: tuple[str, str]) -> None:
    assert logins.logins(_user(**fields)) == names


@pytest.mark.parametrize(
    ("name", "refused_"), [("postgres", True), ("cloudsqladmin", True), ("pg_x", True), ("a", False)]
)
def test_names_of_cloud_sql_are_nobodys(name: str, *, refused_: bool) -> None:
    spec = CloudSQLUserParameters(instance="fl-a", name=name)
    assert (logins.is_refused(spec) is not None) is refused_


async def test_a_user_is_made_with_password_and_roles(wire: Wire, account: GcpAccount) -> None:
    _serving(wire, "postgres")
    wire.answer(f"POST {SERVER}/users", operation())
    credential = Credential("app_a", "s3cret-word")
    await users.clients(account).external.create(
        _user(logins="Alternating", database_roles=("owner",)), credential, OPEN
    )
    assert wire.requests[-1].body == {
        "name": "app_a",
        "password": "s3cret-word",
        "databaseRoles": ["owner"],
    }


async def test_a_user_that_appeared_meanwhile_keeps_its_password(wire: Wire, account: GcpAccount) -> None:
    _serving(wire, "app")
    with pytest.raises(NotCreated):
        await users.clients(account).external.create(_user(), Credential("app", "s3cret-word"), OPEN)
    assert wire.changes == []


async def test_a_password_is_set_on_the_login_that_is_there_and_the_other_is_made(
    wire: Wire, account: GcpAccount
) -> None:
    _serving(wire, "app_a")
    wire.answer(f"PUT {SERVER}/users", operation())
    wire.answer(f"POST {SERVER}/users", operation())
    target = _user(logins="Alternating", database_roles=("owner",))
    served, observed = users.clients(account), await _seen(account, target)
    assert served.logins is not None
    await served.logins.set(target, observed, Credential("app_a", "one"), OPEN)
    await served.logins.set(target, observed, Credential("app_b", "two"), OPEN)
    changing, making = wire.requests[-2:]
    assert (changing.verb, changing.query, changing.body) == (
        "PUT",
        {"name": "app_a"},
        {"name": "app_a", "password": "one"},
    )
    assert (making.verb, making.body["name"], making.body["password"]) == ("POST", "app_b", "two")


async def test_a_former_login_gets_a_password_that_nobody_has(wire: Wire, account: GcpAccount) -> None:
    _serving(wire, "app_a", "app_b")
    wire.answer(f"PUT {SERVER}/users", operation())
    target = _user(logins="Alternating", database_roles=("owner",))
    served, observed = users.clients(account), await _seen(account, target)
    assert served.logins is not None
    started = await served.logins.disable(target, observed, "app_a", OPEN)
    assert await served.logins.disable(target, observed, "postgres", OPEN) is None
    assert started is not None
    assert wire.requests[-1].body == {"name": "app_a", "password": "only-ours"}


async def test_roles_that_one_login_lacks_are_granted_to_it(wire: Wire, account: GcpAccount) -> None:
    _serving(wire, "app_a", "app_b", app_a=["owner"], app_b=[])
    wire.answer(f"PUT {SERVER}/users", operation())
    target = _user(logins="Alternating", database_roles=("owner",))
    observed = await _seen(account, target)
    assert observed.spec.database_roles == ()
    change = Change(("databaseRoles", "owner"), "present", "absent")
    await users.clients(account).external.update(target, observed, (change,), OPEN)
    assert wire.requests[-1].query == {"name": "app_b", "databaseRoles": "owner"}


async def test_secrets_stand_in_no_failure(wire: Wire, account: GcpAccount) -> None:
    _serving(wire, "postgres")
    wire.answer(f"POST {SERVER}/users", refused(400, "invalid", "Invalid request: s3cret-word is too short."))
    with pytest.raises(Exception, match="redacted") as failed:
        await users.clients(account).external.create(_user(), Credential("app", "s3cret-word"), OPEN)
    assert "s3cret-word" not in str(failed.value)


async def test_both_logins_of_a_user_are_deleted_one_after_the_other(wire: Wire, account: GcpAccount) -> None:
    _serving(wire, "app_a", "app_b")
    wire.answer(f"DELETE {SERVER}/users", operation())
    target = _user(logins="Alternating", database_roles=("owner",))
    external = users.clients(account).external
    await external.delete(target, await _seen(account, target), Policy.DELETE, OPEN)
    wire.answer(f"GET {SERVER}/users", {"items": [{"name": "app_b"}]})
    await external.delete(target, await _seen(account, target), Policy.DELETE, OPEN)
    assert [request.query["name"] for request in wire.requests if request.verb == "DELETE"] == ["app_a", "app_b"]
