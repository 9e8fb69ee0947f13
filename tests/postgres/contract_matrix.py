"""The on-prem cloud is killed at every moment of its contract, on a real server: run by `make faults`."""

from __future__ import annotations

import pytest

from devcloud.onprem import OnPremServer
from tests.postgres.onprem_adapter import OnPremAdapter
from tests.providers.adapter import Clause
from tests.providers.contract import at_every_moment, keep


@pytest.mark.parametrize("clause", at_every_moment(OnPremAdapter), ids=lambda clause: clause.name)
async def test_onprem_keeps_the_clause(onprem_server: OnPremServer, clause: Clause) -> None:
    await keep(clause, OnPremAdapter(server=onprem_server))
