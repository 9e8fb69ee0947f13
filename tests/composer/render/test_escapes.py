"""No template leaves its sandbox; and one that did would find nothing outside of it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import jinja2
import pytest

from composer.render import template
from composer.render.errors import CompositionError, PendingError
from composer.render.request import Request
from composer.render.sandbox import Sandbox, evaluate
from composer.render.scope import Composed, Elements, Variables
from composer.render.values import ExpressionError
from composer.workers import worker
from composer.workers.pool import RenderPool
from tests.composer.factories import claim
from tests.composer.render.escapes import ESCAPES, PUBLISHED

_IN_TIME_S = 60.0
_REFUSALS = {"TemplateForbidden", "TemplateInvalid", "RenderFailed", "NotJson"}


def _request(text: str) -> Request:
    manifest = {"apiVersion": "onprem.fairlead.dev/v1alpha1", "kind": "PostgresDatabase", "spec": {"x": text}}
    composition = {
        "compositeTypeRef": {"apiVersion": "db/v1", "kind": "K"},
        "variables": {"name": "a"},
        "resources": [
            {"name": "database", "template": manifest},
            {"name": "other", "template": {**manifest, "spec": {}}},
            {"name": "many", "forEach": "{{ ['x'] }}", "template": {**manifest, "spec": {}}},
        ],
    }
    owner = claim(annotations={"way": "__class__"})
    owner["metadata"]["labels"] = {"x": "y"}
    return Request("c", composition, owner, "claim-uid@shop/orders")


def test_the_corpus_is_large() -> None:
    assert len(ESCAPES) >= 80
    assert len(set(ESCAPES.values())) == len(ESCAPES)
    assert [published for published in PUBLISHED if not any(name.startswith(published) for name in ESCAPES)] == []


def test_compiled_templates_are_not_kept_in_files_and_have_no_name() -> None:
    """What CVE-2014-0012, CVE-2014-1402 and CVE-2024-56201 need is not there at all."""
    sandbox = Sandbox()

    assert sandbox.bytecode_cache is None
    assert sandbox.loader is None
    assert sandbox.compile_expression("1", undefined_to_none=False)._template.filename == "<template>"


async def test_an_escape_is_refused_by_a_real_worker() -> None:
    """All go to one worker: none may kill it, and none may leave something behind for the next."""
    pool = RenderPool(workers=1)
    escaped: dict[str, Any] = {}
    try:
        for name, text in ESCAPES.items():
            try:
                rendered = await pool.render(_request(text))
            except CompositionError as error:
                reasons = {problem.reason for problem in error.problems}
                if not reasons <= _REFUSALS:
                    escaped[name] = reasons
            else:
                escaped[name] = rendered.children
        healthy = await pool.render(_request("{{ claim.spec.size }}"))
    finally:
        await pool.close()

    assert escaped == {}
    assert healthy.children[0].object["spec"] == {"x": "small", "deletionPolicy": "Orphan"}


@pytest.mark.parametrize("name", [name for name, text in ESCAPES.items() if text.startswith("{{") and "{%" not in text])
def test_an_escape_that_is_compiled_all_the_same_reads_data_alone(name: str) -> None:
    """The refusals before compilation are the first wall; this is what stands behind it."""
    sandbox = Sandbox()
    source = ESCAPES[name].removeprefix("{{").removesuffix("}}").strip()
    scope: dict[str, Any] = {
        "claim": {"metadata": {"labels": {"x": "y"}, "annotations": {"way": "__class__"}}, "spec": {"size": "small"}},
        "resources": {
            **{name: Composed(name, None, None) for name in ("database", "other")},
            "many": Elements("many", {"x": {"metadata": {"name": "a"}, "spec": {}}}, {}),
        },
        "env": {},
    }
    scope["vars"] = Variables({"name": "a"}, scope)
    try:
        function = sandbox.compile_expression(source, undefined_to_none=False)
        value = evaluate(function, scope)
    except (jinja2.TemplateError, PendingError, ExpressionError, SyntaxError):
        return
    # Some are harmless in themselves: what they give is written out, of the language's own data alone.
    assert value in (["a"], [1], "a", ""), value


# With the sandbox off: jinja2 as it comes, every attribute, call and global of Python.

_OUTSIDE = {
    "reads a token": "{{ lipsum.__globals__.__builtins__.open(claim.metadata.annotations.token).read() }}",
    "reads a token by its number": (
        "{{ lipsum.__globals__.os.read(lipsum.__globals__.os.open(claim.metadata.annotations.token, 0), 99) | string }}"
    ),
    "opens a socket": (
        "{{ lipsum.__globals__.__builtins__.__import__('socket').create_connection("
        "('127.0.0.1', claim.metadata.annotations.port | int), 9).getpeername() | string }}"
    ),
    "runs a program": "{{ lipsum.__globals__.os.popen('cat ' ~ claim.metadata.annotations.token).read() }}",
    "lists a folder": "{{ lipsum.__globals__.os.listdir(claim.metadata.annotations.folder) | string }}",
    "writes a file": (
        "{{ lipsum.__globals__.__builtins__.open(claim.metadata.annotations.folder ~ '/new', 'w').write('token-x') }}"
    ),
}
_TOKEN = "token-of-a-service-account"


@pytest.fixture
async def listening() -> AsyncIterator[tuple[int, list[str]]]:
    """A server on this machine, and who called it."""
    callers: list[str] = []

    async def called(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        callers.append("somebody")
        writer.close()

    server = await asyncio.start_server(called, "127.0.0.1", 0)
    async with server:
        yield server.sockets[0].getsockname()[1], callers


async def _with_the_sandbox_off(
    monkeypatch: pytest.MonkeyPatch, outside: Path, port: int, *, is_confined: bool
) -> dict[str, Any]:
    """Render every way out in workers whose templates are plain jinja2; return what each gave, or why it did not."""
    monkeypatch.setattr(template, "SANDBOX", jinja2.Environment())  # noqa: S701 - unsafe, which is the point
    monkeypatch.setattr(template, "_forbidden", lambda _: None)
    monkeypatch.setattr(template, "_unknown_root", lambda _: None)
    # Nothing that was compiled safely before, and nothing unsafe is kept.
    monkeypatch.setattr(template, "_compiled", template._compiled.__wrapped__)
    # What the workers warm up with is as unsafe as the rest.
    monkeypatch.setattr(worker, "_WARMING", ("{{ 'a' | upper }}",))
    pool = RenderPool(workers=1, is_confined=is_confined)
    values: dict[str, Any] = {}
    annotations = {"token": str(outside / "token"), "folder": str(outside), "port": str(port)}
    try:
        for name, text in _OUTSIDE.items():
            request = _request(text)
            request.claim["metadata"]["annotations"] = annotations
            try:
                rendered = await asyncio.wait_for(pool.render(request), _IN_TIME_S)
                values[name] = rendered.children[0].object["spec"]["x"]
            except CompositionError as error:
                values[name] = error
    finally:
        await pool.close()
    return values


def _names_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


async def test_a_worker_without_its_sandbox_reads_no_token_and_opens_no_socket(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, listening: tuple[int, list[str]]
) -> None:
    port, callers = listening
    (tmp_path / "token").write_text(_TOKEN)

    values = await _with_the_sandbox_off(monkeypatch, tmp_path, port, is_confined=True)

    assert {name for name, value in values.items() if not isinstance(value, CompositionError)} == set()
    assert _TOKEN not in str(values)
    assert callers == []
    assert _names_in(tmp_path) == ["token"]


async def test_escapes_are_real_where_nothing_confines_them(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, listening: tuple[int, list[str]]
) -> None:
    """Without this the test before it could pass for the wrong reason."""
    port, callers = listening
    (tmp_path / "token").write_text(_TOKEN)

    values = await _with_the_sandbox_off(monkeypatch, tmp_path, port, is_confined=False)

    assert values["reads a token"] == _TOKEN
    assert _TOKEN in values["reads a token by its number"]
    assert values["runs a program"] == _TOKEN
    assert "token" in values["lists a folder"]
    assert values["writes a file"] == len("token-x")
    assert values["opens a socket"] == str(("127.0.0.1", port))
    assert callers == ["somebody"]
