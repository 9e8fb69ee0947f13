"""Informers on the real API server, over a line that fails."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path

from runtime.backoff import Backoff
from runtime.cache import Cache, Informer
from runtime.kube import Selection
from runtime.kube_client import KubeClient
from runtime.objects import CONFIG_MAPS, Key, key_of, uid_of, version_of
from runtime.reflector import Timing
from tests.apiserver.runtime.test_kube_client import config_map
from tests.runtime.tcp_proxy import Line, TcpProxy
from tests.support.waiting import eventually

# The pauses are the promise of tests/runtime/test_reflector.py, on a clock of its own; here they are short.
HASTY = Timing(idle=timedelta(seconds=3), backoff=Backoff(timedelta(milliseconds=50), timedelta(milliseconds=500)))


@asynccontextmanager
async def informed(kubeconfig: Path, namespace: str, label: str) -> AsyncIterator[Informer]:
    client = await KubeClient.connect(
        user_agent="informer", kubeconfig=kubeconfig, request_timeout=timedelta(seconds=2)
    )
    cache = Cache(client, timing=HASTY)
    informer = cache.informer(CONFIG_MAPS, selection=Selection(namespace=namespace, labels=f"watched={label}"))
    running = asyncio.create_task(cache.run())
    try:
        await cache.wait_synced(timedelta(seconds=30))
        yield informer
    finally:
        running.cancel()
        await asyncio.wait((running,))
        await client.close()


async def test_changes_behind_a_broken_line_are_caught_up(
    kube: KubeClient, namespace: str, lines: Callable[[], Awaitable[tuple[TcpProxy, Path]]]
) -> None:
    async def catches_up(line: Line) -> None:
        label = line.name.lower()
        name, labelled = f"goes-{label}", {"labels": {"watched": label}}
        goes = await kube.create(CONFIG_MAPS, config_map(namespace, name, metadata=labelled), manager="m")
        proxy, kubeconfig = await lines()
        async with informed(kubeconfig, namespace, label) as informer:
            await proxy.become(line)
            await kube.delete(CONFIG_MAPS, Key(namespace, name), uid=uid_of(goes), resource_version=version_of(goes))
            made = [
                await kube.create(CONFIG_MAPS, config_map(namespace, made_name, metadata=labelled), manager="m")
                for made_name in (f"comes-{label}", name)
            ]
            await proxy.become(Line.OPEN)
            expected = {key_of(obj): uid_of(obj) for obj in made}

            async def caught_up() -> bool:
                return {record.key: record.uid for record in informer.store.records()} == expected

            await eventually(caught_up, f"the store equals the cluster after {label}", limit_s=60)

    await asyncio.gather(*(catches_up(line) for line in (Line.HUNG, Line.REFUSED, Line.DROPPED)))


async def test_our_write_is_read_before_the_watch_yields_it(
    kube: KubeClient, namespace: str, lines: Callable[[], Awaitable[tuple[TcpProxy, Path]]]
) -> None:
    proxy, kubeconfig = await lines()
    async with informed(kubeconfig, namespace, "yes") as informer:
        await proxy.become(Line.HUNG)
        body = config_map(namespace, "ours", metadata={"labels": {"watched": "yes"}})
        informer.store.remember(await kube.create(CONFIG_MAPS, body, manager="m"))

        assert informer.store.get(Key(namespace, "ours")) is not None
