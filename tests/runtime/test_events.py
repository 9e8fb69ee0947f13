import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from fairlead.simulation.virtual_time import VirtualLoop
from runtime.errors import Forbidden
from runtime.events import EventRecorder, EventSettings
from runtime.objects import EVENTS, Object
from tests.runtime.virtual_loop import run
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


def emitted(emit: Callable[[EventRecorder], None], *, seconds: float = 60) -> list[Object]:
    """Let a recorder run for a while with what was emitted; return the events that it made."""

    async def scene() -> list[Object]:
        kube = MemoryKube()
        recorder = EventRecorder(kube, controller="c", instance="i")
        emit(recorder)
        async with in_background(recorder.run()):
            await asyncio.sleep(seconds)
        return created_events(kube)

    return run(scene())


@pytest.mark.parametrize(
    ("reasons", "message", "most"),
    [
        pytest.param(("CloudUnreachable", "Throttled", "InternalError"), "attempt {}", 12, id="in other words"),
        pytest.param(("SecretNotFound",), "Secret x is missing", 1, id="in the same words"),
    ],
)
def test_a_thousand_failing_passes_say_little(reasons: tuple[str, ...], message: str, most: int) -> None:
    def emit(recorder: EventRecorder) -> None:
        for number in range(1_000):
            reason = reasons[number % len(reasons)]
            recorder.emit(about(), type_="Warning", reason=reason, message=message.format(number))

    assert len(emitted(emit, seconds=600)) in range(1, most + 1)


def test_an_event_is_what_the_api_wants() -> None:
    obj = about(resourceVersion="9")
    (event,) = emitted(
        lambda recorder: recorder.emit(obj, type_="Normal", reason="Created", message="é" * 2_000, action="Create")
    )

    named = {"name": "w", "namespace": "ns", "uid": "uid-w", "resourceVersion": "9"}
    assert event["regarding"] == {"apiVersion": "example.dev/v1", "kind": "Widget", **named}
    assert event["metadata"]["namespace"] == "ns"
    assert (event["type"], event["reason"], event["action"]) == ("Normal", "Created", "Create")
    assert len(event["note"].encode()) <= 1024
    assert event["reportingController"] == "c"


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


async def test_an_api_server_that_takes_no_events_harms_nothing() -> None:
    kube = MemoryKube(refuse_writes=Forbidden("no", status=403))
    recorder = EventRecorder(kube, controller="c", instance="i")
    running = asyncio.create_task(recorder.run())
    recorder.emit(about("a"), type_="Normal", reason="Created", message="m")
    await asyncio.sleep(1)
    kube.refuse_writes = None
    recorder.emit(about("b"), type_="Normal", reason="Created", message="m")
    await asyncio.sleep(1)
    alive = not running.done()
    running.cancel()
    await asyncio.wait((running,))

    assert (len(created_events(kube)), alive) == (1, True)


def test_an_event_about_a_cluster_scoped_object_is_in_default() -> None:
    obj = about()
    del obj["metadata"]["namespace"]
    events = emitted(lambda recorder: recorder.emit(obj, type_="Normal", reason="Accepted", message="m"))

    assert [event["metadata"]["namespace"] for event in events] == ["default"]
