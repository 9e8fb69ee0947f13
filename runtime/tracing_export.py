"""Spans by OpenTelemetry's SDK, sent over OTLP/HTTP; imported only where a collector is named.

Collector, headers, sampler and batches are OpenTelemetry's own variables. What an error says is not kept: `outcome` is
the type of what ended a span, or the word that its caller gave.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Final

from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter
from opentelemetry.sdk.trace.id_generator import RandomIdGenerator

from runtime import clock
from runtime.trace_ids import HOUR_SECONDS, Subject, ids_of
from runtime.tracing import Finish

OUTCOME: Final = "outcome"

_FIRST: ContextVar[tuple[int, int] | None] = ContextVar("first_span", default=None)


class _Ids(RandomIdGenerator):
    """Random ids, but for the first span of an owner's trace."""

    def generate_trace_id(self) -> int:
        first = _FIRST.get()
        return super().generate_trace_id() if first is None else first[0]

    def generate_span_id(self) -> int:
        first = _FIRST.get()
        return super().generate_span_id() if first is None else first[1]


class Exported:
    """The spans of a process, in batches to its collector."""

    def __init__(
        self,
        name: str,
        version: str,
        *,
        exporter: SpanExporter | None = None,
        clock: Callable[[], float] = clock.wall_seconds,
    ) -> None:
        resource = Resource.create({"service.name": name, "service.version": version})
        self._provider = TracerProvider(resource=resource, id_generator=_Ids(), shutdown_on_exit=False)
        self._provider.add_span_processor(BatchSpanProcessor(exporter or OTLPSpanExporter()))
        self._tracer = self._provider.get_tracer(name, version)
        self._clock = clock
        # The traces of which this process made the first span: those of this hour.
        self._begun: set[int] = set()
        self._hour = 0

    @contextmanager
    def of_pass(self, title: str, subject: Subject | None, attributes: Mapping[str, Any]) -> Iterator[Finish]:
        """Have a span of a pass; the owner's first pass within an hour is its trace's first span."""
        ids = None if subject is None else ids_of(subject, self._clock())
        is_first = ids is not None and subject is not None and subject.is_owner and self._begins(ids[0])
        token = _FIRST.set(ids if is_first else None)
        try:
            # Not the context of now: a pass is part of its owner's trace, whatever asked for it.
            context = Context() if ids is None or is_first else _below(ids)
            span = self._tracer.start_span(title, context, attributes=_known(attributes))
        finally:
            _FIRST.reset(token)
        with _current(span) as finish:
            yield finish

    @contextmanager
    def of_call(self, title: str, attributes: Mapping[str, Any]) -> Iterator[Finish]:
        """Have a span of a call below that of the pass; none outside of a pass, or where the pass is not sampled."""
        if not trace.get_current_span().is_recording():
            yield _ignore
            return
        span = self._tracer.start_span(title, kind=trace.SpanKind.CLIENT, attributes=_known(attributes))
        with _current(span) as finish:
            yield finish

    def end(self) -> None:
        """Send what was not sent yet."""
        self._provider.shutdown()

    def _begins(self, trace_id: int) -> bool:
        hour = int(self._clock() // HOUR_SECONDS)
        if hour != self._hour:
            self._hour, self._begun = hour, set()
        if trace_id in self._begun:
            return False
        self._begun.add(trace_id)
        return True


@contextmanager
def _current(span: trace.Span) -> Iterator[Finish]:
    def finish(outcome: str) -> None:
        span.set_attribute(OUTCOME, outcome)

    # The SDK would keep the error's message, which may hold anything.
    with trace.use_span(span, end_on_exit=True, record_exception=False, set_status_on_exception=False):
        try:
            yield finish
        except BaseException as error:
            finish(type(error).__name__)
            raise


def _below(ids: tuple[int, int]) -> Context:
    """Return the context of a span that another process may have made."""
    flags = trace.TraceFlags(trace.TraceFlags.SAMPLED)
    above = trace.NonRecordingSpan(trace.SpanContext(*ids, is_remote=True, trace_flags=flags))
    return trace.set_span_in_context(above, Context())


def _known(attributes: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in attributes.items() if value not in (None, "")}


def _ignore(_: str) -> None:
    return
