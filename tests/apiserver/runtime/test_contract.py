import pytest

from runtime.kube_client import KubeClient
from tests.runtime.contract import CONTRACT, Clause


@pytest.mark.parametrize("clause", CONTRACT, ids=lambda clause: clause.__name__)
async def test_the_real_api_server_keeps_the_contract(kube: KubeClient, namespace: str, clause: Clause) -> None:
    await clause(kube, namespace)
