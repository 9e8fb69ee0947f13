import asyncio
from typing import Any

from fairlead.simulation.virtual_time import VirtualLoop
from runtime.events import EventRecorder, EventSettings
from runtime.objects import EVENTS, Object
from tests.support.memory_kube import MemoryKube
from tests.support.waiting import in_background

LOOP = VirtualLoop


def about(name: str = "w", **meta: Any) -> Object:
    return {
        "apiVersion": "example.dev/v1",
        "kind": "Widget",
        "metadata": {"name": name, "namespace": "ns", "uid": f"uid-{name}", **meta},
    }


def created_events(kube: MemoryKube) -> list[Object]:
    return [obj for (resource, _), obj in kube.objects.items() if resource == EVENTS]


async def test_one_bucket_holds_back_all_objects_together() -> None:
    kube = MemoryKube()
    settings = EventSettings(burst=20, per_second=2, queued=500)
    recorder = EventRecorder(kube, controller="c", instance="i", settings=settings)
    for number in range(1_000):
        recorder.emit(about(f"w{number}"), type_="Normal", reason="Created", message="m")
    async with in_background(recorder.run()):
        counts = []
        for _ in range(2):
            await asyncio.sleep(10)
            counts.append(len(created_events(kube)))
    first, second = counts

    assert first <= 20 + 10 * 2 + 1
    assert second - first <= 10 * 2 + 1
