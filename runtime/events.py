"""Events of events.k8s.io/v1: best effort, beside the work, never in its way.

Guarantees: `emit` never raises, never waits; one token bucket and one bounded queue for the process; at most a few
events per object in an hour, so that a pass that fails a thousand times does not speak a thousand times.
Source: KEP-383, events API graduation.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final, Literal, TypeAlias

import structlog
from aiolimiter import AsyncLimiter

from runtime import clock, metrics, randomness
from runtime.errors import ApiError
from runtime.kube import Kube
from runtime.objects import EVENTS, Object, metadata, uid_of
from runtime.text import readable

EventType: TypeAlias = Literal["Normal", "Warning"]

# Limits of the API (validation of events.k8s.io/v1): note 1024 bytes, reason and action 128.
_NOTE_BYTES: Final = 1024
_NAME_CHARS: Final = 200

_log = structlog.get_logger("runtime.events")


@dataclass(frozen=True, slots=True)
class EventSettings:
    """How much may be said: per object in `window_seconds`, in the queue, and per second over all.

    Source of burst and rate: KubeletConfiguration (kubelet.config.k8s.io/v1beta1), `eventBurst`, `eventRecordQPS`.
    """

    per_object: int = 10
    window_seconds: float = 3600.0
    queued: int = 1000
    burst: int = 100
    per_second: float = 50.0
    objects: int = 10_000


@dataclass(slots=True)
class _Said:
    """What was said of one object in its present window."""

    since: float
    count: int = 0
    last: dict[str, str] = field(default_factory=dict)


class EventRecorder:
    """Queues events and sends them from `run`."""

    def __init__(
        self,
        kube: Kube,
        *,
        controller: str,
        instance: str,
        settings: EventSettings | None = None,
        now: Callable[[], datetime] = clock.now,
    ) -> None:
        metrics.begin_events()
        self._kube = kube
        self._controller = controller
        self._instance = instance[:128]
        self._settings = settings or EventSettings()
        self._now = now
        self._waiting: deque[Object] = deque()
        self._wake = asyncio.Event()
        self._said: OrderedDict[str, _Said] = OrderedDict()
        self._bucket = AsyncLimiter(self._settings.burst, self._settings.burst / self._settings.per_second)

    def emit(
        self, regarding: Object, *, type_: EventType, reason: str, message: str, action: str = "Reconcile"
    ) -> None:
        """Say once that something happened to `regarding` (an object, or what names one).

        The same reason with the same message said last about that object is not repeated within the hour.
        """
        if not self._worth_saying(uid_of(regarding) or str(metadata(regarding).get("name")), reason, message):
            metrics.EVENTS_DROPPED.labels("repeated").inc()
            return
        if len(self._waiting) >= self._settings.queued:
            metrics.EVENTS_DROPPED.labels("queue full").inc()
            return
        self._waiting.append(self._event(regarding, type_, reason, message, action))
        self._wake.set()

    async def run(self) -> None:
        """Send what is queued until cancelled. An event that the API server does not take is dropped."""
        while True:
            while self._waiting:
                await self._bucket.acquire()
                await self._send(self._waiting.popleft())
            self._wake.clear()
            await self._wake.wait()

    async def _send(self, event: Object) -> None:
        try:
            await self._kube.create(EVENTS, event, manager=self._controller)
        except ApiError as error:
            metrics.EVENTS_DROPPED.labels("refused").inc()
            _log.debug("event not taken", reason=event["reason"], error=str(error))

    def _worth_saying(self, about: str, reason: str, message: str) -> bool:
        moment = clock.monotonic()
        said = self._said.pop(about, None)
        if said is None or moment - said.since > self._settings.window_seconds:
            said = _Said(since=moment)
        self._said[about] = said
        while len(self._said) > self._settings.objects:
            self._said.popitem(last=False)
        if said.count >= self._settings.per_object or said.last.get(reason) == message:
            return False
        said.count += 1
        said.last[reason] = message
        return True

    def _event(self, regarding: Object, type_: EventType, reason: str, message: str, action: str) -> Object:
        meta = metadata(regarding)
        # Events about cluster-scoped objects live in the default namespace.
        namespace = str(meta.get("namespace") or "default")
        name = f"{str(meta['name'])[:_NAME_CHARS]}.{randomness.token_hex(8)}"
        return {
            "apiVersion": EVENTS.api_version,
            "kind": EVENTS.kind,
            "metadata": {"name": name, "namespace": namespace},
            "eventTime": self._now().astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
            "reportingController": self._controller,
            "reportingInstance": self._instance,
            "action": action,
            "reason": reason,
            "note": readable(message).encode()[:_NOTE_BYTES].decode(errors="ignore"),
            "type": type_,
            "regarding": _reference(regarding),
        }


def _reference(obj: Object) -> Object:
    meta = metadata(obj)
    named = {
        "apiVersion": obj.get("apiVersion", ""),
        "kind": obj.get("kind", ""),
        "name": meta.get("name", ""),
        "namespace": meta.get("namespace", ""),
        "uid": meta.get("uid", ""),
        "resourceVersion": meta.get("resourceVersion", ""),
    }
    return {name: value for name, value in named.items() if value}
