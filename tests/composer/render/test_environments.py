"""What templates see of an environment: texts as they are, YAML where a key says so, and no bomb."""

from __future__ import annotations

from typing import Any

import pytest

from composer.render.environments import read
from composer.render.errors import CompositionError


@pytest.mark.parametrize(
    ("data", "seen"),
    [
        pytest.param({"zone": "no"}, {"zone": "no"}, id="a text stays a text"),
        pytest.param({"zones.yaml": "[a, b]"}, {"zones": ["a", "b"]}, id="a list"),
        pytest.param({"a": "1", "b.yaml": "1"}, {"a": "1", "b": 1}, id="side by side"),
        pytest.param({"on.yaml": "no"}, {"on": "no"}, id="YAML 1.2: no is a text"),
        pytest.param({"since.yaml": "{day: 2026-11-21}"}, {"since": {"day": "2026-11-21"}}, id="a date is a text"),
        pytest.param({"none.yaml": ""}, {"none": None}, id="nothing"),
        pytest.param({"m.yaml": '{"small": {"cpu": 0.5}}'}, {"m": {"small": {"cpu": 0.5}}}, id="JSON is YAML"),
    ],
)
def test_an_environment_is_read_as_texts_and_yaml(data: dict[str, str], seen: dict[str, Any]) -> None:
    assert read({"defaults": data}) == {"defaults": seen}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param("a: &x [1]\nb: *x", "line 2, column 4: aliases are refused", id="an alias"),
        pytest.param("a: 1\na: 2", "duplicate key", id="a key twice"),
        pytest.param("a: [1", "line 1, column", id="not closed"),
        pytest.param("1: a", "a key is no text", id="a number as a key"),
        pytest.param("!!python/object/apply:os.system [id]", "could not determine a constructor", id="a tag"),
        pytest.param("!!binary aGk=", "bytes", id="bytes"),
        pytest.param("a: .inf", "JSON cannot hold", id="infinity"),
        pytest.param("--- 1\n--- 2", "another document", id="two documents"),
        pytest.param("[" * 18 + "]" * 18, "nested deeper", id="deep"),
        pytest.param("[" * 500, "not YAML", id="deeper than the reader goes"),
        pytest.param("a" * 20_000, "longer than", id="long"),
        pytest.param("a: hunter2 : hunter2", "line 1", id="a value that must not be shown"),
    ],
)
def test_yaml_that_is_refused_names_its_place(text: str, message: str) -> None:
    with pytest.raises(CompositionError) as caught:
        read({"defaults": {"x.yaml": text}})

    (problem,) = caught.value.problems
    assert problem.reason == "YamlRefused"
    assert problem.message.startswith("environment 'defaults', key 'x.yaml'")
    assert message in problem.message
    assert "hunter2" not in problem.message


def test_a_key_that_is_given_twice_is_refused() -> None:
    with pytest.raises(CompositionError, match="there is a key 'x' too"):
        read({"defaults": {"x": "1", "x.yaml": "1"}})
