"""Few events: those of a pass are put together, those of a creation wait for its last wave."""

from __future__ import annotations

import asyncio

from composer.causes import Cause, cause
from composer.claim.outcomes import Note
from composer.claim.write import EventEmitter
from runtime.events import EventRecorder
from runtime.objects import EVENTS, Object
from tests.composer.factories import claim, snapshot
from tests.runtime.virtual_loop import run
from tests.support.memory_kube import MemoryKube
from tests.support.waiting import in_background


def _created(*names: str) -> tuple[Note, ...]:
    return tuple(Note("ChildCreated", f"created {name}") for name in names)


def _emitted(*passes: tuple[Object, tuple[Cause, ...], tuple[Note, ...], bool]) -> list[str]:
    """Emit the events of some passes; return the reasons and notes of the events that reached the API server."""

    async def scene() -> list[str]:
        kube = MemoryKube()
        recorder = EventRecorder(kube, controller="c", instance="i")
        emitter = EventEmitter(recorder)
        for owner, causes, notes, is_whole in passes:
            emitter.emit(snapshot(of=owner), causes, notes, is_whole=is_whole)
        async with in_background(recorder.run()):
            await asyncio.sleep(60)
        events = [obj for (resource, _), obj in kube.objects.items() if resource == EVENTS]
        return [f"{event['reason']}: {event['note']}" for event in events]

    return run(scene())


def test_a_note_of_no_creation_is_emitted_at_once() -> None:
    taken = Note("FieldTakenBack", "x was taken back", is_warning=True)

    assert _emitted((claim(), (), (taken, *_created("a")), False)) == ["FieldTakenBack: x was taken back"]


def test_a_stall_is_emitted_when_it_is_new() -> None:
    stalled = {"type": "Stalled", "status": "True", "reason": "NotOwned", "message": "", "observedGeneration": 1}
    why = cause("NotOwned", "another's")
    known = claim(status={"conditions": [stalled]})

    assert _emitted((claim(), (why,), (), True), (known, (why,), (), True)) == ["NotOwned: another's"]
    assert _emitted((known, (cause("InvalidValue", "no"),), (), True)) == ["InvalidValue: no"]
