"""Paths of fields: which of a manager's differ from what is wanted, and how one is left out."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from runtime.field_paths import differing_fields, without_fields

LIVE = {
    "metadata": {"labels": {"app.example.org/tier": "theirs"}},
    "spec": {
        "limit": 7,
        "same": 1,
        "theirs": 9,
        "atomic": {"a": 2},
        "maps": {"inner": {"a": 2, "b": 1}},
        "ports": [{"name": "sql", "port": 5432}, {"name": "http", "port": 81}],
        "numbers": [1, 2],
        "set": ["a", "b"],
    },
}
WANTED = {
    "metadata": {"labels": {"app.example.org/tier": "ours"}},
    "spec": {
        "limit": 20,
        "same": 1,
        "atomic": {"a": 1},
        "maps": {"inner": {"a": 1, "b": 1}},
        "ports": [{"name": "http", "port": 80}, {"name": "sql", "port": 5432}],
        "numbers": [1],
        "set": ["a"],
    },
}


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"f:spec": {"f:limit": {}}}, (".spec.limit",)),
        ({"f:spec": {"f:same": {}}}, ()),
        ({"f:spec": {"f:theirs": {}}}, ()),
        ({"f:spec": {"f:gone": {"f:below": {}}}}, ()),
        ({"f:spec": {"f:atomic": {}}}, (".spec.atomic",)),
        ({"f:spec": {"f:maps": {".": {}, "f:inner": {"f:a": {}, "f:b": {}}}}}, (".spec.maps.inner.a",)),
        ({"f:spec": {"f:ports": {'k:{"name":"sql"}': {".": {}, "f:name": {}, "f:port": {}}}}}, ()),
        ({"f:spec": {"f:ports": {'k:{"name":"http"}': {"f:port": {}}}}}, ('.spec.ports[name="http"].port',)),
        ({"f:spec": {"f:ports": {'k:{"name":"other"}': {"f:port": {}}}}}, ()),
        ({"f:spec": {"f:numbers": {}}}, (".spec.numbers",)),
        ({"f:spec": {"f:set": {'v:"b"': {}}}}, ()),
        ({"f:metadata": {"f:labels": {"f:app.example.org/tier": {}}}}, ('.metadata.labels."app.example.org/tier"',)),
        ({"f:spec": {"f:limit": {"f:below": {}}}}, (".spec.limit",)),
        ({"f:metadata": {"f:finalizers": {".": {}, 'v:"a"': {}}}}, ()),
    ],
)
def test_the_fields_of_a_manager_that_differ_are_named(fields: dict[str, Any], expected: tuple[str, ...]) -> None:
    paths = differing_fields(fields, WANTED, LIVE)

    assert paths == expected
    for path in paths:
        assert differing_fields(fields, without_fields(WANTED, [path]), LIVE) == ()


@pytest.mark.parametrize(
    ("field", "left"),
    [
        (".spec.a", {"b": {"c": 1, "d.e": 2}, "l": [{"name": "x", "v": 1}]}),
        (".spec.b.c", {"a": 1, "b": {"d.e": 2}, "l": [{"name": "x", "v": 1}]}),
        ('.spec.b."d.e"', {"a": 1, "b": {"c": 1}, "l": [{"name": "x", "v": 1}]}),
        ('.spec.l[name="x"].v', {"a": 1, "b": {"c": 1, "d.e": 2}, "l": [{"name": "x"}]}),
        ('.spec.l[name="x"]', {"a": 1, "b": {"c": 1, "d.e": 2}, "l": []}),
        (".spec.nowhere.x", {"a": 1, "b": {"c": 1, "d.e": 2}, "l": [{"name": "x", "v": 1}]}),
    ],
)
def test_a_field_is_left_out(field: str, left: object) -> None:
    whole = {"spec": {"a": 1, "b": {"c": 1, "d.e": 2}, "l": [{"name": "x", "v": 1}]}}
    before = copy.deepcopy(whole)

    assert without_fields(whole, [field]) == {"spec": left}
    assert whole == before
