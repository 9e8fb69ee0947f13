"""Traces: off by default; one trace a claim within an hour over processes; no message of an error."""

from __future__ import annotations

import builtins
from collections.abc import Mapping
from types import ModuleType
from typing import Any

import pytest
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from structlog.testing import capture_logs

from runtime.trace_ids import Subject, ids_of
from runtime.tracing import Tracing, is_asked_for
from runtime.tracing_export import OUTCOME, Exported
from tests.support.collector import collector

_CLAIM = Subject("7c1e", is_owner=True)
_CHILD = Subject("7c1e", is_owner=False)
_ENDPOINT = "OTEL_EXPORTER_OTLP_ENDPOINT"


class Process:
    """A process whose spans are kept, on a clock of its own."""

    def __init__(self, name: str, now: float = 7200.0) -> None:
        self.now = now
        self.exporter = InMemorySpanExporter()
        self.spans = Exported(name, "0.1.0", exporter=self.exporter, clock=lambda: self.now)

    def work(self, subject: Subject | None, *calls: str) -> None:
        """Make a pass with calls."""
        with self.spans.of_pass("pass", subject, {}) as finish:
            for call in calls:
                with self.spans.of_call(call, {}) as answered:
                    answered("ok")
            finish("Result")

    def made(self) -> tuple[ReadableSpan, ...]:
        """Return the spans that were made, in the order of their ends."""
        self.spans.end()
        return self.exporter.get_finished_spans()


def _ids(span: ReadableSpan) -> tuple[int, int]:
    assert span.context is not None
    return span.context.trace_id, span.context.span_id


def _above(span: ReadableSpan) -> int | None:
    return None if span.parent is None else span.parent.span_id


def test_two_processes_write_into_one_trace_of_a_claim_and_its_calls_are_below_their_pass() -> None:
    composer, provider = Process("composer"), Process("provider")
    composer.work(_CLAIM, "kubernetes POST")
    provider.work(_CHILD, "aws CreateDBInstance")
    composer.work(_CLAIM)

    posted, first, second = composer.made()
    created, passed = provider.made()
    trace_id, root = ids_of(_CLAIM, 7200.0)
    assert {_ids(span)[0] for span in (posted, first, second, created, passed)} == {trace_id}
    assert (_ids(first)[1], _above(first)) == (root, None)
    assert _above(posted) == root
    assert [_above(span) for span in (second, passed)] == [root, root]
    assert _above(created) == _ids(passed)[1]
    assert created.name == "aws CreateDBInstance"
    assert created.attributes == {OUTCOME: "ok"}


def test_each_hour_and_each_claim_has_a_trace_of_its_own() -> None:
    process = Process("composer")
    process.work(_CLAIM)
    process.work(Subject("another", is_owner=True))
    process.now += 3600
    process.work(_CLAIM)

    spans = process.made()
    assert len({_ids(span)[0] for span in spans}) == 3
    assert [_above(span) for span in spans] == [None] * 3


def test_a_pass_that_belongs_to_no_claim_has_a_trace_of_its_own() -> None:
    process = Process("composer")
    process.work(None)
    process.work(None)

    first, second = process.made()
    assert _ids(first)[0] != _ids(second)[0]


def test_a_call_outside_of_a_pass_makes_no_span() -> None:
    process = Process("composer")
    with process.spans.of_call("kubernetes PUT", {}):
        pass

    assert process.made() == ()


def test_of_an_error_its_type_is_kept_and_not_its_message() -> None:
    process = Process("provider")
    with (
        pytest.raises(ValueError, match="hunter2"),
        process.spans.of_pass("pass", _CHILD, {"name": "orders", "generation": None}),
        process.spans.of_call("onprem create", {}),
    ):
        raise ValueError("password hunter2 is too short")

    call, passed = process.made()
    assert (call.attributes, passed.attributes) == (
        {OUTCOME: "ValueError"},
        {OUTCOME: "ValueError", "name": "orders"},
    )
    assert "hunter2" not in call.to_json() + passed.to_json()


@pytest.mark.parametrize(
    ("environment", "is_on"),
    [
        pytest.param({}, False, id="nothing"),
        pytest.param({_ENDPOINT: ""}, False, id="empty"),
        pytest.param({_ENDPOINT: "http://collector:4318"}, True, id="for all signals"),
        pytest.param({"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://collector:4318/v1/traces"}, True, id="for traces"),
        pytest.param({_ENDPOINT: "http://collector:4318", "OTEL_SDK_DISABLED": "true"}, False, id="switched off"),
        pytest.param({"OTEL_SERVICE_NAME": "x"}, False, id="another variable"),
    ],
)
def test_traces_are_on_where_a_collector_is_named(environment: Mapping[str, str], *, is_on: bool) -> None:
    assert is_asked_for(environment) == is_on


def test_without_a_collector_nothing_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(_ENDPOINT, raising=False)
    tracing = Tracing()
    tracing.begin("fairlead-composer", "0.1.0")

    assert not tracing.is_on
    with tracing.of_pass("pass", _CLAIM) as finish, tracing.of_call("call"):
        finish("Result")
    tracing.end()


def test_without_the_packages_the_log_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(_ENDPOINT, "http://127.0.0.1:1")
    load = builtins.__import__

    def without(name: str, *rest: Any, **named: Any) -> ModuleType:
        if name == "runtime.tracing_export":
            raise ImportError("No module named 'opentelemetry'")
        return load(name, *rest, **named)

    monkeypatch.setattr(builtins, "__import__", without)
    tracing = Tracing()
    with capture_logs() as lines:
        tracing.begin("fairlead-composer", "0.1.0")

    assert not tracing.is_on
    assert [line["install"] for line in lines] == ["the extra `tracing`"]


def test_a_collector_is_sent_the_spans_by_otlp(monkeypatch: pytest.MonkeyPatch) -> None:
    with collector() as (address, sent):
        monkeypatch.setenv(_ENDPOINT, address)
        tracing = Tracing()
        tracing.begin("fairlead-provider-aws", "0.1.0")
        with tracing.of_pass("rdsinstances pass", _CHILD, name="orders"), tracing.of_call("aws CreateDBInstance"):
            pass
        tracing.end()

    ((path, request),) = sent
    (resource_spans,) = request.resource_spans
    about = {pair.key: pair.value.string_value for pair in resource_spans.resource.attributes}
    assert (path, about["service.name"]) == ("/v1/traces", "fairlead-provider-aws")
    names = [span.name for scope in resource_spans.scope_spans for span in scope.spans]
    assert names == ["aws CreateDBInstance", "rdsinstances pass"]
