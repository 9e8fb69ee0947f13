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
