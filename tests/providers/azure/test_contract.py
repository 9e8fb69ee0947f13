"""Azure keeps the contract of clouds, over ARM's wire."""

from __future__ import annotations

import pytest

from tests.providers.adapter import Clause
from tests.providers.azure.arm_stub import serving
from tests.providers.azure.azure_adapter import AzureAdapter, ContractArm
from tests.providers.contract import clauses_for, keep

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("clause", clauses_for(AzureAdapter), ids=lambda clause: clause.name)
async def test_azure_keeps_the_clause(clause: Clause) -> None:
    async with serving(ContractArm()) as stub:
        await keep(clause, AzureAdapter(stub=stub))
