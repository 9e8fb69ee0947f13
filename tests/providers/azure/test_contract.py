"""Azure keeps the contract of clouds, over ARM's wire: servers, and what is inside them.

`make faults` has the firewall rules, and the clauses that kill a process at every moment.
"""

from __future__ import annotations

import pytest

from tests.providers.adapter import Clause
from tests.providers.azure.azure_adapter import AzureServers
from tests.providers.azure.azure_children_adapter import AzureDatabases
from tests.providers.azure.simulated_arm import Arm
from tests.providers.contract import in_one_life, keep

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("clause", in_one_life(AzureServers), ids=lambda clause: clause.name)
async def test_servers_keep_the_clause(arm: Arm, clause: Clause) -> None:
    await keep(clause, AzureServers(arm=arm))


@pytest.mark.parametrize("clause", in_one_life(AzureDatabases), ids=lambda clause: clause.name)
async def test_databases_of_one_server_keep_the_clause(arm: Arm, clause: Clause) -> None:
    await keep(clause, AzureDatabases(arm=arm))


async def test_a_database_whose_server_others_replaced_is_not_ready(arm: Arm) -> None:
    cloud = AzureDatabases(arm=arm)
    await cloud.create()
    cloud.arm.steer("databases/fl-contract", replace=True)
    cloud.give_server(None)
    await cloud.until(lambda: cloud.world.condition("Ready")["status"] == "False")

    assert (cloud.world.reason(), cloud.writes()) == ("Replaced", [])
