"""The parser in C takes a text as the reader that keeps the places does, or leaves it to that one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from fairlead import plain_yaml
from fairlead.yaml_files import _plain

_ROOT = Path(__file__).resolve().parents[2]
_SHIPPED = sorted([*_ROOT.glob("crds/*.yaml"), *_ROOT.glob("compositions/*.yaml"), *_ROOT.glob("examples/*.yaml")])
_WORDS = ("~", "null", "true", "Yes", "on", "0x1F", "0o17", "017", "1e3", "1_000", ".5", "-.inf", "22:45", "2026-11-26")


def _doubted(text: str) -> bool:
    """Return whether the text is left to the other reader; fail where both read it and do not agree."""
    try:
        content: Any = [document.content for document in plain_yaml.documents(text)]
    except plain_yaml.DoubtError:
        return True
    assert content == [_plain(marked) for marked in YAML().load_all(text) if marked is not None]
    return False


@pytest.mark.parametrize("file", _SHIPPED, ids=lambda file: file.name)
def test_what_is_shipped_is_read_alike(file: Path) -> None:
    assert not _doubted(file.read_text())


@given(st.one_of(st.sampled_from(_WORDS), st.text("0123456789+-._:eExobTZ~nul%#'\"{}[], \n", max_size=12)))
@example("a: 1\n  b: 2")
def test_a_scalar_is_read_alike_or_left_to_the_other_reader(scalar: str) -> None:
    text = f"a: {scalar}\nb: 'x'\n"
    try:
        list(YAML().load_all(text))
    except YAMLError:
        assert _doubted(text)
    else:
        _doubted(text)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("a: 1\na: 2\n", id="a key that is there twice"),
        pytest.param("{x: &x 1, y: *x}\n", id="an alias"),
        pytest.param("a: !!binary aGk=\n", id="a tag"),
        pytest.param("1: a\n", id="a key that is a number"),
        pytest.param("? [a]\n: b\n", id="a key that is a list"),
        pytest.param("<<: {a: 1}\n", id="a merge"),
        pytest.param("a:\t1\n", id="a tab"),
        pytest.param("%YAML 1.1\n---\na: yes\n", id="a directive"),
        pytest.param("a: 'x\u2028y'\n", id="the end of a line in YAML 1.1"),
        pytest.param("a: [1\n", id="no YAML"),
        pytest.param("[" * 200_000 + "]" * 200_000, id="lists in lists without an end"),
        pytest.param("- " * 200_000 + "a", id="lists in lists on one line"),
    ],
)
def test_what_readers_may_take_differently_is_left_to_the_other_one(text: str) -> None:
    assert _doubted(text)


def test_documents_of_a_list_come_by_their_lines() -> None:
    text = "apiVersion: v1\nkind: List\nitems:\n- kind: A\n- kind: B\n---\n# nothing\n---\nkind: C\n"

    read = [(document.content["kind"], document.line) for document in plain_yaml.documents(text)]

    assert read == [("A", 3), ("B", 4), ("C", 8)]


def test_an_empty_item_of_a_list_is_no_empty_document() -> None:
    text = "apiVersion: v1\nkind: List\nitems:\n- kind: A\n-\n"

    assert [document.content for document in plain_yaml.documents(text)] == [{"kind": "A"}, None]
