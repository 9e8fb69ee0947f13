"""What a template worker answers is compared with what its request can render to, before anything is written.

Each row is an answer as of a worker that was taken over: a true render with one part forged.
"""

from __future__ import annotations

import asyncio
import os
import struct
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
import structlog

from apis import names
from apis.identity import Identity, child_name
from composer.render.errors import CompositionError, Problem
from composer.render.floors import Floor
from composer.render.render import Observed, Rendered, Request, render
from composer.validation.validate import CheckRequest
from composer.workers import worker
from composer.workers.answer_check import AnswerError, refuse_excess, refuse_foreign
from composer.workers.pool import ANSWERS_REFUSED, RenderPool
from tests.composer.factories import claim

_IDENTITY = "claim-uid@shop/orders"
_COMPOSITION: dict[str, Any] = {
    "compositeTypeRef": {"apiVersion": "db/v1", "kind": "K"},
    "variables": {"size": "{{ claim.spec.size }}"},
    "resources": [
        {
            "name": "network",
            "template": {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": {"labels": {"team": "data"}, "annotations": {"note": "{{ claim.spec.size }}"}},
                "data": {"zone": "a", "size": "{{ vars.size }}", "list": [1, "{{ 2 }}", None]},
            },
        },
        {
            "name": "database",
            "dependsOn": ["network"],
            "floors": ["spec.storage.gib"],
            "template": {
                "apiVersion": "onprem.fairlead.dev/v1alpha1",
                "kind": "PostgresDatabase",
                "spec": {"providerConfigRef": {"name": "default"}, "name": "{{ resources.network.metadata.name }}"},
            },
        },
        {
            "name": "kept",
            "stateful": True,
            "readyWhen": "{{ resources.kept.status.phase == 'Running' }}",
            "template": {"apiVersion": "acid.zalan.do/v1", "kind": "postgresql", "spec": {}},
        },
        {
            "name": "each",
            "forEach": "{{ ['x', 'y'] }}",
            "template": {"apiVersion": "v1", "kind": "ConfigMap", "data": {"key": "{{ each.key }}"}},
        },
        {"name": "off", "when": "{{ false }}", "template": {"apiVersion": "v1", "kind": "ConfigMap"}},
        {
            "name": "later",
            "template": {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "data": {"of": "{{ resources.kept.status.address }}"},
            },
        },
    ],
    "connection": {"from": "database", "application": "{{ claim.metadata.name }}"},
    "status": {"endpoint": "{{ resources.kept.status.phase }}", "late": {"x": "{{ resources.kept.status.no }}"}},
}


def _live(resource: str, api_version: str, kind: str, **status: Any) -> Observed:
    name = child_name(Identity("claim-uid", "shop", "orders"), resource)
    return Observed(
        resource, "", {"apiVersion": api_version, "kind": kind, "metadata": {"name": name}, "status": status}
    )


def _request() -> Request:
    return Request(
        "postgres",
        _COMPOSITION,
        claim(),
        _IDENTITY,
        observed=(
            _live("network", "v1", "ConfigMap"),
            _live("kept", "acid.zalan.do/v1", "postgresql", phase="Running"),
        ),
        floors=(Floor("database", "", "PostgresDatabase.onprem.fairlead.dev", "spec.storage.gib", 20),),
    )


def test_what_a_render_gives_is_taken() -> None:
    request = _request()
    rendered = render(request)

    refuse_foreign(request, rendered)

    assert [child.resource for child in rendered.children] == ["network", "database", "kept", "each", "each"]
    assert [each.resource for each in rendered.waiting] == ["later"]
    assert rendered.children[1].object["spec"]["storage"] == {"gib": 20}


_Plain = dict[str, Any]


def _set(*path: Any, to: Any) -> Callable[[_Plain], None]:
    def forge(answer: _Plain) -> None:
        below: Any = answer
        for step in path[:-1]:
            below = below[step]
        below[path[-1]] = to

    return forge


def _without(*path: Any) -> Callable[[_Plain], None]:
    def forge(answer: _Plain) -> None:
        below: Any = answer
        for step in path[:-1]:
            below = below[step]
        del below[path[-1]]

    return forge


def _of(number: int, *path: Any, to: Any) -> Callable[[_Plain], None]:
    return _set("children", number, "object", *path, to=to)


def _meta(*path: Any, to: Any) -> Callable[[_Plain], None]:
    return _of(1, "metadata", *path, to=to)


def _twice(answer: _Plain) -> None:
    answer["children"].append(answer["children"][0])


def _many(answer: _Plain) -> None:
    answer["children"] *= 30


FORGED: dict[str, Callable[[_Plain], None]] = {
    "another namespace": _meta("namespace", to="alice"),
    "another name": _meta("name", to="app-database-aaaaaaaaaa"),
    "the name of another resource": _meta("name", to=child_name(Identity("claim-uid", "shop", "orders"), "network")),
    "a generateName": _meta("generateName", to="x-"),
    "another claim's label": _meta("labels", names.CLAIM_LABEL, to="other-uid"),
    "no label of ours": _without("children", 1, "object", "metadata", "labels", names.CLAIM_LABEL),
    "a label that the template lacks": _meta("labels", "argocd.argoproj.io/instance", to="x"),
    "a label with another text": _of(0, "metadata", "labels", "team", to="other"),
    "a label of Fairlead's": _meta("labels", "fairlead.dev/ephemeral", to="true"),
    "a mark": _meta("annotations", "fairlead.dev/external-name", to="alices-database"),
    "a mark of a cloud's group": _meta("annotations", "onprem.fairlead.dev/external-name", to="x"),
    "another deletion policy": _of(1, "spec", "deletionPolicy", to="Delete"),
    "no deletion policy": _without("children", 1, "object", "spec", "deletionPolicy"),
    "no data as it once was": _without("children", 2, "object", "metadata", "annotations", names.STATEFUL),
    "a teardown word": _meta("annotations", names.TEARDOWN, to="uid/Delete"),
    "leave to adopt": _meta("annotations", names.ADOPT, to="none"),
    "another claim's name": _meta("annotations", names.CLAIM_NAME, to="other"),
    "another resource's name": _meta("annotations", names.RESOURCE, to="network"),
    "another Composition's name": _meta("annotations", names.COMPOSITION, to="other"),
    "another owner": _meta("ownerReferences", 0, "uid", to="other"),
    "a second owner": _meta("ownerReferences", to=[]),
    "no owner": _without("children", 1, "object", "metadata", "ownerReferences"),
    "an owner of what has none": _of(2, "metadata", "ownerReferences", to=[]),
    "a finalizer": _meta("finalizers", to=["example.dev/never"]),
    "another finalizer": _of(2, "metadata", "finalizers", to=["example.dev/never"]),
    "no finalizer": _without("children", 2, "object", "metadata", "finalizers"),
    "a uid": _meta("uid", to="child-uid"),
    "a deletion": _meta("deletionTimestamp", to="2026-01-01T00:00:00Z"),
    "metadata that is a text": _of(1, "metadata", to="x"),
    "metadata without labels": _without("children", 1, "object", "metadata", "labels"),
    "another kind": _of(1, "kind", to="Secret"),
    "another version": _of(1, "apiVersion", to="v1"),
    "no kind": _without("children", 1, "object", "kind"),
    "a status": _of(1, "status", to={"connection": {}}),
    "a field that the template lacks": _of(1, "spec", "managementPolicy", to="Observe"),
    "a field with another value": _of(1, "spec", "providerConfigRef", "name", to="admin"),
    "a field without its value": _without("children", 1, "object", "spec", "providerConfigRef"),
    "a text instead of a map": _of(1, "spec", "providerConfigRef", to="admin"),
    "a list that is longer": _of(0, "data", "list", to=[1, 2, None, 3]),
    "another item of a list": _of(0, "data", "list", 0, to=2),
    "true instead of a number": _of(0, "data", "list", 0, to=True),
    "a floor that is no amount": _of(1, "spec", "storage", "gib", to="many"),
    "beside a floor": _of(1, "spec", "storage", "class", to="fast"),
    "a floor of its own": _set("children", 1, "floors", to={"spec.name": 3}),
    "a kept value of its own": _set("children", 1, "kept", to=[{"path": "spec.name", "value": 3, "wanted": 2}]),
    "a resource that there is not": _set("children", 1, "resource", to="other"),
    "a key of what is not repeated": _set("children", 1, "key", to="x"),
    "no key of what is repeated": _set("children", 3, "key", to=""),
    "no data where there are": _set("children", 2, "stateful", to=False),
    "data where there are none": _set("children", 1, "stateful", to=True),
    "an order of its own": _set("children", 1, "depends_on", to=["other"]),
    "no order": _set("children", 1, "depends_on", to=[]),
    "an order that ends nowhere": _set("children", 1, "depends_on", to=["network", "database"]),
    "readiness of what is not there": _set("children", 1, "ready", to=True),
    "one child twice": _twice,
    "more children than are allowed": _many,
    "nothing": _set("children", to=[]),
    "a resource left out": _without("children", 1),
    "a child that waits": _set("waiting", 0, "resource", to="network"),
    "waiting for what is not there": _set("waiting", 0, "waits_for", to="other"),
    "another source of the connection": _set("connection", "from", to="kept"),
    "a host": _set("connection", "host", to="evil.example.com"),
    "a Secret": _set("connection", "secretRef", to={"resource": "kept", "name": "x", "keys": {}}),
    "no source of the connection": _without("connection", "from"),
    "a field of the status": _set("status", "binding", to={"name": "other"}),
}


def _forged(request: Request, forge: Callable[[_Plain], None]) -> Rendered:
    answer = msgspec.json.decode(msgspec.json.encode(render(request)))
    forge(answer)
    return msgspec.json.decode(msgspec.json.encode(answer), type=Rendered)


@pytest.mark.parametrize("forge", FORGED.values(), ids=FORGED)
def test_what_no_render_gives_is_refused(forge: Callable[[_Plain], None]) -> None:
    request = _request()

    with pytest.raises(AnswerError):
        refuse_foreign(request, _forged(request, forge))


def test_a_refusal_names_the_part_and_is_short() -> None:
    request = _request()

    with pytest.raises(AnswerError, match=r"database: metadata.namespace is 'alice' instead of 'shop'"):
        refuse_foreign(request, _forged(request, FORGED["another namespace"]))
    with pytest.raises(AnswerError) as caught:
        refuse_foreign(request, _forged(request, _meta("namespace", to="x" * 10_000)))
    assert len(str(caught.value)) < 300


def test_what_is_larger_than_any_render_is_refused() -> None:
    refuse_excess(b'"' + b"," * 100_000 + b'"')
    for answer in (b'"' + b"x" * (1 << 20) + b'   "' * 20, b"[" + b"[]," * (1 << 17) + b"[]]"):
        with pytest.raises(AnswerError, match="larger"):
            refuse_excess(answer)


# What the pool does with such an answer. The workers are forked from here, and answer by what stands here then.


def _answering(answer: Callable[[Request], Rendered], monkeypatch: pytest.MonkeyPatch) -> RenderPool:
    monkeypatch.setattr("composer.workers.worker.render", answer)
    made = RenderPool(workers=1)
    monkeypatch.undo()
    return made


def _taken_over(request: Request) -> Rendered:
    """Answer truly, but in namespace shop: a worker that an earlier render took over."""
    if request.identity != _IDENTITY:
        return render(request)
    return _forged(request, FORGED["another namespace"])


def _refused() -> float:
    return float(ANSWERS_REFUSED.labels("render")._value.get())


async def test_a_forged_answer_ends_its_worker_and_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    pool = _answering(_taken_over, monkeypatch)
    before = _refused()
    try:
        with structlog.testing.capture_logs() as logs, pytest.raises(CompositionError) as caught:
            await pool.render(_request())
        assert pool._idle is not None
        left = pool._idle._queue[0].pid
        neighbour = msgspec.structs.replace(_request(), identity="other-uid@library/books", observed=())
        await pool.render(neighbour)
    finally:
        await pool.close()

    (problem,) = caught.value.problems
    audit = [each for each in logs if each["event"] == "audit"]
    assert problem.reason == "RenderRefused"
    assert "metadata.namespace is 'alice' instead of 'shop'" in problem.message
    # The first may have been another's victim: a second worker is asked, and both are ended.
    assert _refused() - before == 2
    assert [(each["action"], each["namespace"]) for each in audit] == [("WorkerEnded", "shop")] * 2
    assert left not in {each["worker"] for each in audit}


async def test_a_claim_whose_worker_another_took_over_is_rendered_by_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    serves: list[str] = []

    def second_is_forged(request: Request) -> Rendered:
        # Each worker has a list of its own, empty when it was forked; the server tries renders of another claim.
        if request.identity == _IDENTITY:
            serves.append(request.identity)
        return _forged(request, FORGED["another namespace"]) if len(serves) == 2 else render(request)

    pool = _answering(second_is_forged, monkeypatch)
    before = _refused()
    try:
        found = [await pool.render(_request()) for _ in range(2)]
    finally:
        await pool.close()

    assert found == [render(_request())] * 2
    assert _refused() - before == 1


async def test_a_worker_with_neither_result_nor_fault_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    def nothing(_: Request) -> Rendered:
        raise CompositionError

    pool = _answering(nothing, monkeypatch)
    try:
        with pytest.raises(CompositionError, match="neither a result nor a fault"):
            await pool.render(_request())
    finally:
        await pool.close()


@pytest.mark.parametrize("problem", [Problem("Ready or not", "x"), Problem("RenderFailed", "x", resource="other")])
async def test_a_fault_that_is_none_of_the_composition_ends_its_worker(
    problem: Problem, monkeypatch: pytest.MonkeyPatch
) -> None:
    def faulty(request: Request | CheckRequest) -> Any:
        # The server tries renders and checks of one resource before it serves anybody.
        raise CompositionError(*([problem] if len(request.composition["resources"]) > 1 else ()))

    def no_check(request: CheckRequest) -> Any:
        return faulty(request) if len(request.composition["resources"]) > 1 else ()

    monkeypatch.setattr("composer.workers.worker.check", no_check)
    pool = _answering(faulty, monkeypatch)
    try:
        with pytest.raises(CompositionError, match="no fault of this Composition"):
            await pool.render(_request())
        (told,) = await pool.check(CheckRequest(_COMPOSITION, {}))
    finally:
        await pool.close()

    assert told.reason == "RenderRefused"


async def test_a_worker_that_says_more_than_its_answer_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    """The rest would be read as the answer to the next request, which another namespace makes."""

    def talkative(pipe: int, payload: bytes) -> None:
        more = b"" if payload == worker.READY else struct.pack("!I", len(payload)) + payload
        os.write(pipe, struct.pack("!I", len(payload)) + payload + more)

    monkeypatch.setattr("composer.workers.worker._send", talkative)
    pool = _answering(render, monkeypatch)
    try:
        with pytest.raises(CompositionError, match="something follows it"):
            await pool.render(_request())
    finally:
        await pool.close()


async def test_what_a_worker_says_unasked_is_not_taken_for_an_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    pool = _answering(render, monkeypatch)
    before = _refused()
    try:
        await pool.render(_request())
        assert pool._idle is not None
        one = pool._idle._queue[0]
        one.pipe.data_received(b"\0\0\0\2{}")
        await asyncio.sleep(0)
        found = await pool.render(_request())
    finally:
        await pool.close()

    assert found == render(_request())
    assert _refused() - before == 1
