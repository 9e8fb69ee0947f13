"""Spans of passes, of what they ask the API server, and of what they ask a cloud; none unless a collector is named.

All passes of one owner and of its children within an hour are one trace. Its id follows from the owner's uid and the
hour: processes that know nothing of each other write into the same trace, and no object is written for it. A span holds
names, verbs and codes; no body, no message of an error. `runtime.tracing_export` speaks to the collector.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Final, Protocol, TypeAlias

import structlog

from runtime.trace_ids import Subject

_log = structlog.get_logger("runtime.tracing")

# https://opentelemetry.io/docs/specs/otel/protocol/exporter/ and .../configuration/sdk-environment-variables/
_ENDPOINTS: Final = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
_DISABLED: Final = "OTEL_SDK_DISABLED"

Finish: TypeAlias = Callable[[str], None]
"""Takes the outcome of a span in a word, before the span ends."""


class Spans(Protocol):
    """What makes spans."""

    def of_pass(
        self, title: str, subject: Subject | None, attributes: Mapping[str, Any]
    ) -> AbstractContextManager[Finish]:
        """Have a span of a pass for the length of a block."""

    def of_call(self, title: str, attributes: Mapping[str, Any]) -> AbstractContextManager[Finish]:
        """Have a span of a call within a pass for the length of a block; outside of a pass there is none."""

    def end(self) -> None:
        """Send what was not sent yet."""


def is_asked_for(environment: Mapping[str, str]) -> bool:
    """Return whether OpenTelemetry's variables name a collector, and do not switch it off."""
    return any(environment.get(name) for name in _ENDPOINTS) and environment.get(_DISABLED, "").lower() != "true"


class Tracing:
    """The spans of a process; none before `begin`, and none after `end`."""

    def __init__(self) -> None:
        self._spans: Spans | None = None

    @property
    def is_on(self) -> bool:
        """Whether spans are made."""
        return self._spans is not None

    def begin(self, name: str, version: str) -> None:
        """Send spans of the process `name` to the collector that its environment names; without one, do nothing.

        Where the packages of the extra `tracing` are missing, the log says so, and nothing is sent.
        """
        if self._spans is not None or not is_asked_for(os.environ):
            return
        try:
            from runtime.tracing_export import Exported  # noqa: PLC0415 - its packages are an extra
        except ImportError as error:
            text = "a collector of traces is named, and the packages that speak to it are missing: no trace is sent"
            _log.warning(text, error=str(error), install="the extra `tracing`")
            return
        self._spans = Exported(name, version)

    def end(self) -> None:
        """Send what was not sent yet, and make no more spans."""
        spans, self._spans = self._spans, None
        if spans is not None:
            spans.end()

    def of_pass(self, title: str, subject: Subject | None, /, **attributes: Any) -> AbstractContextManager[Finish]:
        """Have a span of a pass for the length of a block, in the trace of its owner."""
        return nullcontext(_ignore) if self._spans is None else self._spans.of_pass(title, subject, attributes)

    def of_call(self, title: str, /, **attributes: Any) -> AbstractContextManager[Finish]:
        """Have a span of a call for the length of a block, below that of the pass that makes it."""
        return nullcontext(_ignore) if self._spans is None else self._spans.of_call(title, attributes)


TRACING: Final = Tracing()


def _ignore(_: str) -> None:
    return
