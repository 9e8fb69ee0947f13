"""Who may call: the metadata service, the shipped roles."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.devcloud.azure.conftest import Arm, send, token_of

IDENTITY = {
    "client_id": "11111111-0000-4000-8000-000000000001",
    "object_id": "22222222-0000-4000-8000-000000000001",
    "secrets": ["a-secret"],
}


@pytest.fixture
def known(arm: Arm) -> Arm:
    """Return a client of a cloud that knows one more identity, which may do nothing."""
    arm.control("POST", "principals", IDENTITY)
    arm.control("DELETE", f"roles/{IDENTITY['object_id']}")
    return arm


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
    arm.control("POST", "metadata", {"client_id": ""})
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


def test_a_group_is_shown_to_the_holder_of_a_good_token_alone(arm: Arm) -> None:
    none = send(f"{arm.served.url}{arm.group_path}?api-version=2020-06-01")
    wrong = Arm(arm.served, f"{arm.token}x").call("GET", arm.group_path, version="2020-06-01")

    assert arm.call("GET", arm.group_path, version="2020-06-01").status == 200
    assert none.refusal == (401, "AuthenticationFailed")
    assert wrong.refusal == (401, "InvalidAuthenticationToken")


def test_shipped_roles_need_another_one_on_what_a_server_is_linked_to(known: Arm) -> None:
    """ "Check linked access": the identity needs rights at what a request names outside of the server."""
    group = f"/subscriptions/{known.served.subscription}/resourceGroups"
    roles = Path(__file__).resolve().parents[3] / "deploy" / "iam" / "azure"

    def assign(path: str, scope: str) -> None:
        actions = json.loads((roles / path).read_text())["Actions"]
        role = {"name": path, "actions": actions}
        known.control("POST", "roles", {"object_id": IDENTITY["object_id"], "scope": scope, "role": role})

    assign("fairlead-provider-azure.json", known.group_path)
    ours = Arm(known.served, token_of(known.served, client_id=str(IDENTITY["client_id"]), secret="a-secret"))
    zone = f"{group}/net/providers/Microsoft.Network/privateDnsZones/z"
    subnet = f"{group}/net/providers/Microsoft.Network/virtualNetworks/v/subnets/d"
    network = {"delegatedSubnetResourceId": subnet, "privateDnsZoneArmResourceId": zone}
    for scope in (subnet, zone):
        refused = ours.put(network=network)
        assert refused.refusal == (403, "LinkedAuthorizationFailed")
        assert scope in refused.body["error"]["message"]
        assign("optional/fairlead-provider-azure-linked.json", scope)
    assert ours.put(network=network).status == 202
