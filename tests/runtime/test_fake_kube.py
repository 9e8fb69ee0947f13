import pytest

from tests.runtime.contract import CONTRACT, Clause
from tests.support.fake_kube import FakeKube


@pytest.mark.parametrize("clause", CONTRACT, ids=lambda clause: clause.__name__)
async def test_the_fake_keeps_the_contract(clause: Clause) -> None:
    await clause(FakeKube(), "ns")
