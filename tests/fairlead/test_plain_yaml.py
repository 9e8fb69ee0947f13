"""The parser in C takes a text as the reader that keeps the places does, or leaves it to that one."""

from __future__ import annotations

from typing import Any

import pytest
from ruamel.yaml import YAML

from fairlead import plain_yaml
from fairlead.marked_yaml import _plain


def _doubted(text: str) -> bool:
    """Return whether the text is left to the other reader; fail where both read it and do not agree."""
    try:
        content: Any = [document.content for document in plain_yaml.documents(text)]
    except plain_yaml.DoubtError:
        return True
    assert content == [_plain(marked) for marked in YAML().load_all(text) if marked is not None]
    return False


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


def test_an_empty_item_of_a_list_is_no_empty_document() -> None:
    text = "apiVersion: v1\nkind: List\nitems:\n- kind: A\n-\n"

    assert [document.content for document in plain_yaml.documents(text)] == [{"kind": "A"}, None]
