"""Who may call: Entra's token endpoint, the metadata service, role definitions action by action."""

from __future__ import annotations

import base64
import json
import time
import urllib.parse
from typing import Any

import pytest

from devcloud.azure.api.routes import match
from devcloud.azure.entra.directory import CONTRIBUTOR, Role
from devcloud.azure.server import Options, running
from tests.devcloud.azure.conftest import SCOPE, SERVER, Arm, Reply, send, token_of

ISSUER, SUBJECT = "https://issuer.example", "system:serviceaccount:fairlead-azure:provider"
# Assertions are made when the tests are collected, which may be hours before they are used.
_LATER = time.time() + 24 * 3600
ASSERTION_TYPE = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
IDENTITY = {
    "client_id": "11111111-0000-4000-8000-000000000001",
    "object_id": "22222222-0000-4000-8000-000000000001",
    "secrets": ["a-secret"],
    "federations": [{"issuer": ISSUER, "subject": SUBJECT}],
}


def assertion(**changed: Any) -> str:
    claims = {"iss": ISSUER, "sub": SUBJECT, "aud": ["api://AzureADTokenExchange"], "exp": _LATER, **changed}
    part = base64.urlsafe_b64encode(json.dumps(claims).encode()).decode().rstrip("=")
    return f"e30.{part}.c2ln"


def ask(arm: Arm, tenant: str = "", **changed: str) -> Reply:
    form = {"grant_type": "client_credentials", "client_id": IDENTITY["client_id"], "scope": SCOPE, **changed}
    data = urllib.parse.urlencode(form).encode()
    return send(f"{arm.served.url}/{tenant or arm.served.tenant}/oauth2/v2.0/token", "POST", data=data)


@pytest.fixture
def known(arm: Arm) -> Arm:
    """Return a client of a cloud that knows one more identity, which may do nothing."""
    arm.control("POST", "principals", IDENTITY)
    arm.control("DELETE", f"roles/{IDENTITY['object_id']}")
    return arm


def test_secret_and_federated_assertion_get_a_token(known: Arm) -> None:
    known.control("POST", "roles", _role(known, "*"))
    by_secret = ask(known, client_secret="a-secret")
    by_assertion = ask(known, client_assertion_type=ASSERTION_TYPE, client_assertion=assertion())

    for reply in (by_secret, by_assertion):
        assert reply.body["token_type"] == "Bearer"
        assert reply.body["expires_in"] == 3599
        other = Arm(known.served, reply.body["access_token"])
        assert other.call("GET", other.group_path, version="2020-06-01").status == 200
    claims = json.loads(base64.urlsafe_b64decode(by_secret.body["access_token"].split(".")[1] + "=="))
    assert (claims["oid"], claims["tid"]) == (IDENTITY["object_id"], known.served.tenant)


@pytest.mark.parametrize(
    ("changed", "status", "error", "code"),
    [
        ({"client_secret": "wrong"}, 401, "invalid_client", "AADSTS7000215"),
        ({}, 401, "invalid_client", "AADSTS7000215"),
        ({"client_id": "nobody"}, 400, "unauthorized_client", "AADSTS700016"),
        ({"scope": "https://graph.example/.default"}, 400, "invalid_resource", "AADSTS500011"),
        ({"grant_type": "password"}, 400, "unsupported_grant_type", "AADSTS70003"),
        ({"tenant": "nowhere"}, 400, "invalid_request", "AADSTS90002"),
        ({"client_assertion": "none"}, 400, "invalid_client", "AADSTS50027"),
        (
            {"client_assertion": assertion(sub="system:serviceaccount:other:provider")},
            401,
            "invalid_client",
            "AADSTS700213",
        ),
        ({"client_assertion": assertion(iss="https://other.example")}, 401, "invalid_client", "AADSTS700213"),
        ({"client_assertion": assertion(aud="api://other")}, 401, "invalid_client", "AADSTS700213"),
        ({"client_assertion": assertion(exp=1.0)}, 401, "invalid_client", "AADSTS700024"),
    ],
)
def test_credentials_that_are_none_get_no_token(
    changed: dict[str, str], status: int, error: str, code: str, known: Arm
) -> None:
    """The AADSTS codes of Microsoft Entra's own list."""
    if "client_assertion" in changed:
        changed = {"client_assertion_type": ASSERTION_TYPE, **changed}

    reply = ask(known, **changed)

    assert (reply.status, reply.body["error"]) == (status, error)
    assert reply.body["error_description"].startswith(f"{code}:")


@pytest.mark.parametrize(
    ("header", "code"),
    [
        (None, "AuthenticationFailed"),
        ("Bearer made-up", "InvalidAuthenticationToken"),
        ("Basic b3duZXI6", "InvalidAuthenticationToken"),
    ],
)
def test_call_without_a_good_token_is_refused(header: str | None, code: str, arm: Arm) -> None:
    headers = {} if header is None else {"Authorization": header}

    reply = send(f"{arm.served.url}{arm.path()}?api-version=2025-08-01", headers=headers)

    assert reply.refusal == (401, code)
    assert reply.headers["www-authenticate"].startswith("Bearer ")


def test_expired_token_is_refused_and_a_new_one_is_not() -> None:
    with running(Options()) as served:
        late = Arm(served, token_of(served))
        late.control("POST", "tokens", {"expired": True})
        groups = f"/subscriptions/{served.subscription}/resourceGroups"

        assert late.call("GET", groups, version="2020-06-01").refusal == (401, "ExpiredAuthenticationToken")
        assert Arm(served, token_of(served)).call("GET", groups, version="2020-06-01").status == 200


def _role(arm: Arm, *actions: str, scope: str = "", not_actions: tuple[str, ...] = ()) -> dict[str, Any]:
    return {
        "object_id": IDENTITY["object_id"],
        "scope": scope or f"/subscriptions/{arm.served.subscription}",
        "role": {"name": "r", "actions": actions, "notActions": not_actions},
    }


def _narrow(known: Arm) -> Arm:
    return Arm(known.served, ask(known, client_secret="a-secret").body["access_token"])


@pytest.mark.parametrize(
    ("method", "rest", "body", "action"),
    [
        ("GET", "pg1", None, "flexibleServers/read"),
        ("PUT", "pg1", SERVER, "flexibleServers/write"),
        ("PATCH", "pg1", {"properties": {}}, "flexibleServers/write"),
        ("DELETE", "pg1", None, "flexibleServers/delete"),
        ("POST", "pg1/start", None, "flexibleServers/start/action"),
        ("POST", "pg1/stop", None, "flexibleServers/stop/action"),
        ("POST", "pg1/restart", None, "flexibleServers/restart/action"),
        ("GET", "pg1/databases/app", None, "flexibleServers/databases/read"),
        ("PUT", "pg1/databases/app", {"properties": {}}, "flexibleServers/databases/write"),
        ("DELETE", "pg1/databases/app", None, "flexibleServers/databases/delete"),
        ("PUT", "pg1/firewallRules/r", {"properties": {}}, "flexibleServers/firewallRules/write"),
        ("DELETE", "pg1/firewallRules/r", None, "flexibleServers/firewallRules/delete"),
        ("PUT", "pg1/configurations/work_mem", {"properties": {}}, "flexibleServers/configurations/write"),
        ("GET", "pg1/backups", None, "flexibleServers/backups/read"),
    ],
)
def test_action_needs_its_own_right(method: str, rest: str, body: Any, action: str, known: Arm) -> None:
    known.created()
    named = f"Microsoft.DBforPostgreSQL/{action}"
    known.control("POST", "roles", _role(known, "*", not_actions=(named.upper(),)))

    reply = _narrow(known).call(method, known.path(rest), body)

    assert reply.refusal == (403, "AuthorizationFailed")
    message = reply.body["error"]["message"]
    assert f"'{named}'" in message
    assert IDENTITY["object_id"] in message
    known.control("DELETE", f"roles/{IDENTITY['object_id']}")
    known.control("POST", "roles", _role(known, named))
    assert _narrow(known).call(method, known.path(rest), body).status != 403


def test_role_counts_at_its_scope_and_below(known: Arm) -> None:
    known.created()
    known.call("PUT", f"{known.group_path}-2", {"location": "uksouth"}, version="2020-06-01")
    known.control("POST", "roles", _role(known, "*/read", scope=known.group_path.upper()))
    narrow = _narrow(known)

    assert narrow.call("GET", known.path()).status == 200
    assert narrow.call("GET", f"{known.group_path}-2", version="2020-06-01").refusal == (403, "AuthorizationFailed")
    servers = f"/subscriptions/{known.served.subscription}/providers/Microsoft.DBforPostgreSQL/flexibleServers"
    assert narrow.call("GET", servers).refusal == (403, "AuthorizationFailed")


def test_subscription_says_its_tenant_and_those_of_nobody_and_of_another_are_refused(arm: Arm) -> None:
    shown = arm.call("GET", f"/subscriptions/{arm.served.subscription}", version="2022-12-01").body

    assert (shown["tenantId"], shown["state"]) == (arm.served.tenant, "Enabled")

    arm.control("POST", "subscriptions/44444444-0000-4000-8000-000000000001", {"tenant": "another"})
    path = "/subscriptions/{}/resourceGroups"

    unknown = arm.call("GET", path.format("55555555-0000-4000-8000-000000000001"), version="2020-06-01")
    foreign = arm.call("GET", path.format("44444444-0000-4000-8000-000000000001"), version="2020-06-01")

    assert unknown.refusal == (404, "SubscriptionNotFound")
    assert foreign.refusal == (401, "InvalidAuthenticationTokenTenant")


@pytest.mark.parametrize(
    ("headers", "query", "status"),
    [
        ({"Metadata": "true"}, "api-version=2018-02-01&resource=https://management.azure.com/", 200),
        ({}, "api-version=2018-02-01&resource=https://management.azure.com/", 400),
        (
            {"Metadata": "true", "X-Forwarded-For": "1"},
            "api-version=2018-02-01&resource=https://management.azure.com",
            400,
        ),
        ({"Metadata": "true"}, "api-version=2018-02-01", 400),
        ({"Metadata": "true"}, "resource=https://management.azure.com", 400),
        ({"Metadata": "true"}, "api-version=2018-02-01&resource=https://management.azure.com&client_id=x", 400),
    ],
)
def test_metadata_service_gives_the_machine_its_token(
    headers: dict[str, str], query: str, status: int, arm: Arm
) -> None:
    """ "How to use managed identities for Azure resources on an Azure VM to acquire an access token"."""
    url = f"{arm.served.url}/metadata/identity/oauth2/token?{query}"
    closed = send(url, headers=headers)
    arm.control("POST", "metadata", {"client_id": arm.served.credentials[0]})
    reply = send(url, headers=headers)

    assert (closed.status, closed.body["error"]) == (400, "invalid_request")
    assert reply.status == status
    if status == 200:
        machine = Arm(arm.served, reply.body["access_token"])
        assert machine.call("GET", machine.group_path, version="2020-06-01").status == 200
        assert reply.body["expires_in"].isdecimal()
    else:
        assert reply.body["error"] == "invalid_request"


@pytest.mark.parametrize(
    ("role", "action", "allowed"),
    [
        (CONTRIBUTOR, "Microsoft.DBforPostgreSQL/flexibleServers/write", True),
        (CONTRIBUTOR, "Microsoft.Authorization/locks/write", False),
        (CONTRIBUTOR, "Microsoft.Authorization/locks/read", True),
        (
            Role(name="r", actions=("Microsoft.DBforPostgreSQL/flexibleServers/*/read",)),
            "microsoft.dbforpostgresql/flexibleservers/databases/read",
            True,
        ),
        (
            Role(name="r", actions=("Microsoft.DBforPostgreSQL/flexibleServers/*/read",)),
            "Microsoft.DBforPostgreSQL/flexibleServers/read",
            False,
        ),
        (Role(name="r", actions=()), "Microsoft.DBforPostgreSQL/flexibleServers/read", False),
    ],
)
def test_role_allows_by_patterns_less_those_that_it_excludes(role: Role, action: str, *, allowed: bool) -> None:
    assert role.allows(action) is allowed


def test_polls_need_rights_of_their_own() -> None:
    place = "/subscriptions/s/providers/Microsoft.DBforPostgreSQL/locations/UK South"
    for kind in ("azureAsyncOperation", "operationResults"):
        matched = match("GET", f"{place}/{kind}/x")
        assert matched is not None
        assert matched.rights.action == f"Microsoft.DBforPostgreSQL/locations/{kind}/read"
