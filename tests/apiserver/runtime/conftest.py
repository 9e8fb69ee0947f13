"""The runtime's own client on the real API server, straight and through a line that can fail."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from devcloud.controlplane.plane import Plane
from runtime.errors import AlreadyExists, NotFound
from runtime.kube import Selection
from runtime.kube_client import KubeClient
from runtime.objects import CRDS, Object
from tests.runtime.tcp_proxy import TcpProxy, through
from tests.support.memory_kube import WIDGETS
from tests.support.waiting import eventually


@pytest.fixture
async def kube(plane: Plane, namespace: str) -> AsyncIterator[KubeClient]:
    """Yield the administrator's client; the namespace exists."""
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


_SCHEMA: Object = {
    "type": "object",
    "properties": {
        "spec": {"type": "object", "properties": {"size": {"type": "integer"}}},
        "status": {"type": "object", "properties": {"phase": {"type": "string"}, "a": {"type": "integer"}}},
    },
}


@pytest.fixture
async def widgets(kube: KubeClient) -> None:
    """Install a made-up kind with a status; it stays for the session."""
    names = {"plural": WIDGETS.plural, "singular": "widget", "kind": WIDGETS.kind}
    version = {
        "name": WIDGETS.version,
        "served": True,
        "storage": True,
        "subresources": {"status": {}},
        "schema": {"openAPIV3Schema": _SCHEMA},
    }
    definition = {
        "apiVersion": CRDS.api_version,
        "kind": CRDS.kind,
        "metadata": {"name": f"{WIDGETS.plural}.{WIDGETS.group}"},
        "spec": {"group": WIDGETS.group, "scope": "Namespaced", "names": names, "versions": [version]},
    }
    with suppress(AlreadyExists):
        await kube.create(CRDS, definition, manager="test")

    async def served() -> bool:
        try:
            await kube.list_page(WIDGETS, Selection())
        except NotFound:
            return False
        return True

    await eventually(served, "the made-up kind is served")
