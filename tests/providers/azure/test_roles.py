"""The shipped role definitions allow each request that the provider makes, and nothing that it does not make."""

from __future__ import annotations

import json
import re
from pathlib import Path

from providers.azure import FLEXIBLE_SERVERS
from providers.azure.children.kinds import CONFIGURATIONS, DATABASES, FIREWALL_RULES
from tests.providers.azure.arm_stub import ArmStub
from tests.providers.azure.azure_world import AzureWorld

ROLES = Path(__file__).resolve().parents[3] / "deploy" / "iam" / "azure"
# "Azure permissions for Databases": what each method of a type's path needs.
_VERBS = {"GET": "read", "PUT": "write", "PATCH": "write", "DELETE": "delete"}


def _action_of(line: str) -> str:
    """Return the action of Azure's roles that a request needs: types and no names, then the verb."""
    method, path = line.split(" ")
    if "/providers/" not in path:
        return f"Microsoft.Resources/subscriptions/{_VERBS[method]}"
    namespace, *parts = path.split("/providers/", 1)[1].split("/")
    if method == "POST":
        return f"{namespace}/{parts[-1]}/action"
    return "/".join((namespace, *parts[::2], _VERBS[method]))


def _allowed() -> dict[str, set[str]]:
    return {path.stem: set(json.loads(path.read_text())["Actions"]) for path in sorted(ROLES.glob("*.json"))}


async def test_roles_allow_what_is_asked_for_and_no_more(stub: ArmStub) -> None:
    stub.polls = 1
    server = AzureWorld(stub)
    server.ask()
    await server.settle()
    spec = {"server": server.external_name}
    for kind, fields in (
        (DATABASES, {"name": "orders"}),
        (FIREWALL_RULES, {"cidr": "203.0.113.0/24"}),
        (CONFIGURATIONS, {"name": "work_mem", "value": "64MB"}),
    ):
        child = AzureWorld(stub, kind=kind, spec={**spec, **fields})
        child.ask()
        await child.settle(most=40)
        child.delete()
        await child.settle(most=40)
    server.ask(parameters={"backupRetentionDays": 20})
    await server.settle(most=40)
    server.delete()
    await server.settle(most=40)
    asked_for = {_action_of(line) for line in stub.log}

    allowed = _allowed()
    of_subscription = {_action_of(line) for line in stub.log if "/resourceGroups/" not in line}

    assert sum(map(len, allowed.values())) == len(asked_for)
    assert of_subscription <= allowed["fairlead-provider-azure-subscription"]
    assert set().union(*allowed.values()) == asked_for
    assert {action for action in asked_for if re.search(r"(flexibleServers|databases)/delete$", action)} == allowed[
        "fairlead-provider-azure-delete"
    ]
    assert FLEXIBLE_SERVERS.resource.group == "azure.fairlead.dev"
