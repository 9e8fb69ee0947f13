"""The runtime's own client on the real API server, straight and through a line that can fail."""

from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from devcloud.plane import Plane
from runtime.kube_client import KubeClient
from tests.runtime.tcp_proxy import TcpProxy, through


@pytest.fixture
async def kube(plane: Plane, namespace: str) -> AsyncIterator[KubeClient]:
    """The administrator's client; the namespace exists."""
    del namespace
    client = await KubeClient.connect(user_agent="test", kubeconfig=plane.kubeconfig)
    yield client
    await client.close()


@pytest.fixture
async def lines(plane: Plane, tmp_path: Path) -> AsyncIterator[Callable[[], Awaitable[tuple[TcpProxy, Path]]]]:
    """Make a line to the API server and the kubeconfig that leads through it."""
    proxies: list[TcpProxy] = []

    async def make() -> tuple[TcpProxy, Path]:
        proxy = TcpProxy(urlsplit(plane.server).port or 443)
        await proxy.start()
        proxies.append(proxy)
        return proxy, through(plane.kubeconfig, proxy.port, tmp_path)

    yield make
    for proxy in proxies:
        await proxy.close()
