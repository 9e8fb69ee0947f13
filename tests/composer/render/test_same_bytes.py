"""A render gives the same bytes in every process: no text of it says where something lies in memory."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import msgspec
import pytest

from composer.render.errors import MistypedError, PendingError
from composer.render.passwords import Passwords
from composer.render.scope import Composed, Variables
from composer.render.template import compile_tree, fill
from composer.render.values import Status
from tests.composer.render.test_expressions import SCOPE


def _evaluated(seed: int) -> dict[str, Any]:
    """Evaluate all expressions in a process of its own, whose sets have an order of their own."""
    command = (sys.executable, "-m", "tests.composer.render.made_texts")
    environment = dict(os.environ) | {"PYTHONHASHSEED": str(seed)}
    made = subprocess.run(command, env=environment, capture_output=True, check=True)
    return msgspec.json.decode(made.stdout, type=dict[str, Any])


@pytest.mark.slow
def test_filters_give_the_same_in_two_processes() -> None:
    first, second = _evaluated(1), _evaluated(2)

    assert len(first) > 800
    assert {name: (value, second[name]) for name, value in first.items() if value != second[name]} == {}
    assert [name for name, value in first.items() if " at 0x" in str(value)] == []


TEXTS = {
    "a status as a text": ("{{ resources.net.status | string }}", "{'id': {'v4': '10.0.0.0'}}"),
    "a status beside a text": ("{{ 'is ' ~ resources.net.status.id }}", "is {'v4': '10.0.0.0'}"),
    "joined statuses": ("{{ [resources.net.status.id] | join }}", "{'v4': '10.0.0.0'}"),
    "unique values as a text": ("{{ [2, 1, 2] | unique | string }}", "[2, 1]"),
    "unique values": ("{{ [2, 1, 2] | unique }}", [2, 1]),
    "a status in capital letters": ("{{ resources.net.status.id | upper }}", "{'V4': '10.0.0.0'}"),
}


@pytest.mark.parametrize(("text", "gives"), TEXTS.values(), ids=TEXTS)
def test_a_text_of_data_is_that_of_the_data(text: str, gives: Any) -> None:
    assert fill(compile_tree(text, "x"), SCOPE) == gives


@pytest.mark.parametrize("form", ["{{ %s | string }}", "{{ [%s] | join | upper }}", "{{ {'a': %s} ~ '' }}"])
@pytest.mark.parametrize("name", ["passwords", "vars", "resources", "resources.net"])
def test_what_is_no_data_is_no_text(form: str, name: str) -> None:
    views = {"passwords": Passwords({"passwords": [{"name": "admin"}]}, {}), "vars": Variables({"size": 1}, {})}
    scope = {**views, "resources": {"net": Composed("net", None, None)}}

    with pytest.raises(MistypedError, match="this is no text; name one of its fields"):
        fill(compile_tree(form % name, "x"), scope)


def test_a_missing_status_is_waited_for_beside_a_text_too() -> None:
    scope = {"resources": {"net": {"status": Status("net", "resources.net.status", {})}}}

    with pytest.raises(PendingError, match=r"resources\.net\.status\.id"):
        fill(compile_tree("{{ 'is ' ~ resources.net.status.id }}", "x"), scope)
