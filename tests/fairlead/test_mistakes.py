"""What newcomers type and hand over by mistake: each gets one sentence with its place, and never a traceback."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from fairlead.cli import run
from fairlead.exits import Exit
from tests.architecture import tree

HEAD = "apiVersion: database.fairlead.dev/v1alpha1\nkind: PostgreSQLInstance\n"
SPEC = 'spec:\n  version: "16"\n  size: small\n'
GOOD = f"{HEAD}metadata: {{name: orders, namespace: shop}}\n{SPEC}"


def _meta(text: str) -> str:
    return f"{HEAD}metadata: {text}\n{SPEC}"


FILES: dict[str, tuple[bytes | str, str]] = {
    "metadata is a text": (_meta("orders"), "file.yaml:3:1: metadata: wants an object, found a text"),
    "metadata is a list": (_meta("[orders]"), "file.yaml:3:1: metadata: wants an object, found a list"),
    "a name is a number": (_meta("{name: 7}"), "file.yaml:3:12: metadata.name: wants a text, found a number; quote it"),
    "a namespace is a number": (
        _meta("{name: a, namespace: 7}"),
        "file.yaml:3:21: metadata.namespace: wants a text, found a number; quote it",
    ),
    "a name is a word that YAML reads as no text": (
        _meta("{name: true}"),
        "file.yaml:3:12: metadata.name: wants a text, found true or false; quote it",
    ),
    "labels are a list": (
        _meta("{name: a, labels: [b]}"),
        "file.yaml:3:21: metadata.labels: wants an object, found a list",
    ),
    "annotations are a text": (
        _meta("{name: a, annotations: b}"),
        "file.yaml:3:21: metadata.annotations: wants an object, found a text",
    ),
    "apiVersion is a number": ("apiVersion: 1\nkind: Pod\n", "file.yaml:1:1: apiVersion: wants a text, found a number"),
    "kind is a list": ("apiVersion: v1\nkind: [Pod]\n", "file.yaml:2:1: kind: wants a text, found a list"),
    "one object twice": (
        f"{GOOD}---\n{GOOD}",
        "file.yaml:8:1: PostgreSQLInstance shop/orders is in this file already, in line 1: kubectl would",
    ),
    "UTF-16": (GOOD.encode("utf-16"), "file.yaml: this is UTF-16: save it as UTF-8"),
    "a picture": (b"\x89PNG\r\n\x1a\n\0\0", "file.yaml: no text: not UTF-8 at byte 0"),
    "a zero byte": (b"a: b\0\n", "file.yaml: no text: a zero byte at byte 4"),
    "a control character": (b"a: b\x07\n", "file.yaml:1:5: not YAML: character U+0007 is not allowed"),
    "nothing": ("", "file.yaml: is empty, or holds comments alone"),
    "comments alone": ("# a claim follows\n---\n", "file.yaml: is empty, or holds comments alone"),
    "a bracket that is not closed": (
        '{"apiVersion": "v1",\n',
        "not YAML: the file ends before a bracket or a quote is closed",
    ),
    "a quote that is not closed": (
        "apiVersion: 'v1\n",
        "not YAML: the file ends before a bracket or a quote is closed",
    ),
    "no spec": (f"{HEAD}metadata: {{name: a}}\n", "file.yaml:1:1: spec: version is missing"),
    "a text": ("hello\n", "file.yaml: a document is no Kubernetes object: 'hello'"),
}


@pytest.mark.parametrize(("content", "message"), FILES.values(), ids=FILES)
def test_a_file_that_is_wrong_is_refused_with_its_place(
    content: bytes | str,
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("file.yaml").write_bytes(content if isinstance(content, bytes) else content.encode())

    code = run(["validate", "file.yaml"])
    shown = capsys.readouterr()

    assert (code, message in shown.err) == (Exit.INVALID_INPUT, True), shown.err
    for command in ("render", "plan"):
        assert run([command, "file.yaml"]) in {Exit.INVALID_INPUT, Exit.TOOL_FAILED}


@pytest.mark.parametrize("command", ["validate", "render", "plan", "test", "crd check"])
def test_a_folder_without_files_for_us_is_no_success(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "notes.txt").write_text("hello")

    assert run([*command.split(), str(tmp_path)]) == Exit.INVALID_INPUT
    assert "holds no file that ends in .json, .yaml or .yml" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        (
            "onprem.fairlead.dev/v1alpha1 PostgresDatabase",
            "is what claims become, no claim; claims are",
        ),
        ("fairlead.dev/v1alpha1 CompositionRevision", "is a setting, no claim; claims are"),
        ("database.fairlead.dev/v1alpha1 PostgresInstance", "is no kind of claim; did you mean 'PostgreSQLInstance'?"),
        ("v1 Pod", "is no kind of claim; there is PostgreSQLInstance"),
    ],
)
def test_an_object_that_is_no_claim_is_called_by_its_kind(
    kind: str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    api_version, _, name = kind.partition(" ")
    file = tmp_path / "file.yaml"
    file.write_text(f"apiVersion: {api_version}\nkind: {name}\nmetadata: {{name: orders}}\n{SPEC}")

    assert run(["render", str(file)]) == Exit.INVALID_INPUT
    assert f"{kind} {message}" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"hello\n", "is no kubeconfig: wants an object, found a text"),
        (b"", "is no kubeconfig: it is empty"),
        (b"\x7fELF\xd0\0", "is no kubeconfig: no text"),
        (b"[", "is no kubeconfig"),
        (b"contexts: 7\n", "is no kubeconfig: Expected `array | null`, got `int` - at `$.contexts`"),
        (None, "is a folder, no kubeconfig"),
    ],
)
def test_a_kubeconfig_that_is_none_is_named(
    content: bytes | None, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "config"
    if content is None:
        path.mkdir()
    else:
        path.write_bytes(content)

    assert run(["trace", "orders", "--kubeconfig", str(path)]) == Exit.TOOL_FAILED
    assert f"{path} {message}" in capsys.readouterr().err


def test_a_reason_that_nobody_knows_leads_to_all_of_them(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["explain", "Xyzzy"]) == Exit.USAGE
    assert "`fairlead explain` lists them all" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.parametrize("arguments", [[], ["--help"], ["explain"]])
def test_a_reader_that_ends_early_is_no_failure(arguments: list[str]) -> None:
    """The pipe is closed before anything is written, as by `| head -0`."""
    reading, writing = os.pipe()
    os.close(reading)
    try:
        ended = subprocess.run(
            [sys.executable, "-m", "fairlead", *arguments],
            cwd=tree.ROOT,
            stdout=writing,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
            timeout=60,
        )
    finally:
        os.close(writing)

    assert (ended.returncode, ended.stderr) == (Exit.DONE, "")
