"""40,000 objects through the real client and reflector into a store: memory, time, longest stall of the loop."""

from __future__ import annotations

import asyncio
import gc
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

import uvloop

from benchmarks.list_server import OBJECTS
from benchmarks.loop_stall import measured
from benchmarks.report import Figure
from runtime.cache import Cache
from runtime.kube_client import KubeClient
from runtime.objects import Object, Resource, labels_of
from runtime.serve import freeze_imports

WIDGETS = Resource("example.dev", "v1", "Widget", "widgets")

_KUBECONFIG = """\
apiVersion: v1
kind: Config
clusters: [{{name: bench, cluster: {{server: "http://127.0.0.1:{port}"}}}}]
users: [{{name: bench, user: {{}}}}]
contexts: [{{name: bench, context: {{cluster: bench, user: bench}}}}]
current-context: bench
"""


def by_owner(obj: Object) -> tuple[str, ...]:
    """Index by the owner's label, as controllers do."""
    return (labels_of(obj).get("example.dev/owner", ""),)


def figures() -> list[Figure]:
    """Run the benchmark in this process; best in a fresh one, since it measures resident memory."""
    with _list_server() as port, tempfile.TemporaryDirectory() as folder:
        kubeconfig = Path(folder) / "kubeconfig"
        kubeconfig.write_text(_KUBECONFIG.format(port=port))
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            return runner.run(_measure(kubeconfig))


async def _measure(kubeconfig: Path) -> list[Figure]:
    kube = await KubeClient.connect(user_agent="benchmark", kubeconfig=kubeconfig)
    cache = Cache(kube)
    informer = cache.informer(WIDGETS, indexes={"owner": by_owner})
    freeze_imports()
    before = _resident_bytes()
    began = time.perf_counter()
    async with measured() as listing:
        running = asyncio.create_task(cache.run())
        await cache.wait_synced(timedelta(minutes=2))
    took = time.perf_counter() - began
    gc.collect()
    held = _resident_bytes() - before
    changed: list[int] = []
    informer.subscribe(lambda _: changed.append(1))
    async with measured() as collecting:
        gc.collect()
    async with measured() as replaying:
        await informer.replay(lambda change: changed.append(len(change.key.name)))
    running.cancel()
    await asyncio.wait((running,))
    await kube.close()
    stored = len(informer.store)
    return [
        Figure("store: objects", stored, "", OBJECTS, at_least=True),
        Figure("store: memory per object", held / stored / 1024, "KiB", 6.0),
        Figure("store: longest stall while listing", listing.longest_ms, "ms", 50.0),
        Figure("store: stall of a full collection", collecting.longest_ms, "ms", 50.0),
        Figure("store: longest stall while replaying all", replaying.longest_ms, "ms", 50.0),
        Figure("store: time to list all", took, "s", 60.0),
    ]


@contextmanager
def _list_server() -> Iterator[int]:
    command = [sys.executable, "-m", "benchmarks.list_server"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        if server.stdout is None or server.stdin is None:
            raise RuntimeError("the list server has no pipes")
        yield int(server.stdout.readline())
        server.stdin.close()


def _resident_bytes() -> int:
    status = Path("/proc/self/status").read_text(encoding="ascii")
    kibibytes = next(line for line in status.splitlines() if line.startswith("VmRSS"))
    return int(kibibytes.split()[1]) * 1024
