"""The on-prem cloud keeps the contract of clouds, on a real server; `make faults` kills it at every moment, too."""

from __future__ import annotations

import pytest

from devcloud.onprem import OnPremServer
from tests.postgres.onprem_adapter import OnPremAdapter
from tests.providers.adapter import Clause
from tests.providers.contract import in_one_life, keep


@pytest.mark.parametrize("clause", in_one_life(OnPremAdapter), ids=lambda clause: clause.name)
async def test_onprem_keeps_the_clause(onprem_server: OnPremServer, clause: Clause) -> None:
    await keep(clause, OnPremAdapter(server=onprem_server))
