"""Azure's servers and databases are killed at every moment; its firewall rules in all clauses: by `make faults`."""

from __future__ import annotations

import pytest

from tests.providers.adapter import Clause
from tests.providers.azure.azure_adapter import AzureServers
from tests.providers.azure.azure_children_adapter import AzureDatabases, AzureRules
from tests.providers.azure.simulated_arm import Arm
from tests.providers.contract import at_every_moment, clauses_for, keep

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("clause", clauses_for(AzureRules), ids=lambda clause: clause.name)
async def test_rules_of_one_server_keep_the_clause(arm: Arm, clause: Clause) -> None:
    await keep(clause, AzureRules(arm=arm))


@pytest.mark.parametrize("clause", at_every_moment(AzureServers), ids=lambda clause: clause.name)
async def test_servers_keep_the_clause(arm: Arm, clause: Clause) -> None:
    await keep(clause, AzureServers(arm=arm))


@pytest.mark.parametrize("clause", at_every_moment(AzureDatabases), ids=lambda clause: clause.name)
async def test_databases_of_one_server_keep_the_clause(arm: Arm, clause: Clause) -> None:
    await keep(clause, AzureDatabases(arm=arm))
