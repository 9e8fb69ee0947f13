"""One trace from a claim to the calls that made its database, written by two processes; it holds no secret."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from tests.support.collector import collector
from tests.support.kinds import CLAIM, PROVIDER_CONFIG, SECRET, claim, is_ready
from tests.support.shared import at_work
from tests.support.system import System, decoded

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.apiserver, pytest.mark.postgres]


def _spans(sent: list[tuple[str, ExportTraceServiceRequest]]) -> Iterator[tuple[str, Span]]:
    """Yield each span with the name of its process."""
    for _, request in sent:
        for of_process in request.resource_spans:
            about = {pair.key: pair.value.string_value for pair in of_process.resource.attributes}
            for scope in of_process.scope_spans:
                for span in scope.spans:
                    yield about["service.name"], span


async def test_a_claims_trace_reaches_from_its_pass_to_the_call_that_made_its_database(
    system: System, monkeypatch: pytest.MonkeyPatch
) -> None:
    with collector() as (address, sent):
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", address)
        await system.start_composer()
        await system.start_provider()
        await system.until(PROVIDER_CONFIG, "", "default", is_ready)
        async with system.namespace() as namespace:
            made = await system.create(CLAIM, claim(namespace, "traced"))
            await system.until(CLAIM, namespace, "traced", is_ready)
            secrets = [decoded(secret) for secret in await system.api.items(SECRET.path(namespace))]
            children = await system.children(namespace, "traced")
            for program in at_work(system):
                assert await program.terminate() == 0

    spans = list(_spans(sent))
    by_id = {span.span_id: (process, span) for process, span in spans}
    (first,) = [span for _, span in spans if not span.parent_span_id and _says(span, "name", "traced")]
    assert by_id[first.span_id][0] == "fairlead-composer"
    creates = [span for _, span in spans if span.name == "onprem create"]
    assert [span.trace_id for span in creates] == [first.trace_id]
    process, above = by_id[creates[0].parent_span_id]
    assert process == "fairlead-provider-onprem"
    assert above.parent_span_id == first.span_id
    assert _says(above, "name", children[0]["metadata"]["name"])
    assert made["metadata"]["name"] == "traced"

    text = "".join(str(request) for _, request in sent)
    passwords = {secret[key] for secret in secrets for key in ("password", "current") if secret.get(key)}
    assert len(passwords) >= 1
    assert [password for password in {*passwords, system.server.password} if password in text] == []


def _says(span: Span, key: str, value: str) -> bool:
    return any(pair.key == key and pair.value.string_value == value for pair in span.attributes)
