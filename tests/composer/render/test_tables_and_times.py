"""The filters that pick a row of a table, and those that shift times: what they give, and what they say otherwise."""

from __future__ import annotations

from typing import Any

import pytest

from composer.render.errors import CompositionError
from composer.render.template import compile_tree, fill
from composer.render.values import Status

_CLASSES = [
    {"name": "small", "cpu": 2, "memoryGiB": 4},
    {"name": "medium", "cpu": 2, "memoryGiB": 8},
    {"name": "wide", "cpu": 2, "memoryGiB": 16},
    {"name": "large", "cpu": 4, "memoryGiB": 16},
]
SCOPE: dict[str, Any] = {
    "claim": {"spec": {"cpu": 2, "memoryGiB": 9, "day": "Sunday", "hour": 23, "wanted": ["c", "a"]}},
    "vars": {
        "classes": _CLASSES,
        "amounts": [{"name": "a", "storage": "10Gi", "cpu": 0.5}, {"name": "b", "storage": "1Ti", "cpu": "1500m"}],
        "odd": [{"name": "a", "cpu": 1}, {"name": "b", "cpus": 2}],
        "text": [{"name": "a", "cpu": "two"}],
    },
    "env": {"aws": Status("aws", "env.aws", {"classes": _CLASSES, "row": {"cpu": 1}})},
}


VALUES: dict[str, tuple[str, Any]] = {
    "the first row that holds both": (
        "{{ (vars.classes | first_that_holds(cpu=claim.spec.cpu, memoryGiB=claim.spec.memoryGiB)).name }}",
        "wide",
    ),
    "one field alone": ("{{ (vars.classes | first_that_holds(cpu=3)).name }}", "large"),
    "exactly as much": ("{{ (vars.classes | first_that_holds(memoryGiB=8)).name }}", "medium"),
    "a table of an environment": ("{{ (env.aws.classes | first_that_holds(cpu=2)).name }}", "small"),
    "a row as a whole": ("{{ vars.classes | first_that_holds(cpu=1) }}", _CLASSES[0]),
    "quantities": ("{{ (vars.amounts | first_that_holds(storage='20Gi')).name }}", "b"),
    "a field that is called like the table": ("{{ [{'table': 1}] | first_that_holds(table=1) }}", {"table": 1}),
    "a part of a number": ("{{ (vars.amounts | first_that_holds(cpu=0.5)).name }}", "a"),
    "a number and a quantity": ("{{ (vars.amounts | first_that_holds(cpu=1)).name }}", "b"),
    "what two lists have": ("{{ ['a', 'b', 'c', 'a'] | intersect(claim.spec.wanted) }}", ["a", "c"]),
    "what no two lists have": ("{{ ['b'] | intersect(claim.spec.wanted) }}", []),
    "a time": ("{{ '01:00' | shift(hours=2) }}", "03:00"),
    "a time across midnight": ("{{ '23:30' | shift(minutes=45) }}", "00:15"),
    "a time the day before": ("{{ '00:00' | shift(hours=1 - 2) }}", "23:00"),
    "a time of the week": ("{{ 'sun:23:00' | shift(hours=1) }}", "mon:00:00"),
    "a time of the week before": ("{{ 'mon:00:10' | shift(minutes=0 - 20) }}", "sun:23:50"),
    "a day by its whole name": ("{{ (claim.spec.day ~ ':00:00') | shift(hours=claim.spec.hour) }}", "sun:23:00"),
    "a window": ("{{ '23:30-00:30' | shift(hours=1) }}", "00:30-01:30"),
    "a window of the week": ("{{ 'sun:22:30-sun:23:30' | shift(hours=1) }}", "sun:23:30-mon:00:30"),
    "a window from a time": ("{{ '23:30' | window(hours=1) }}", "23:30-00:30"),
    "a window from a time of the week": ("{{ 'Sat:23:00' | window(minutes=90) }}", "sat:23:00-sun:00:30"),
    "a window of days": ("{{ 'fri:22:00' | window(hours=48) }}", "fri:22:00-sun:22:00"),
}


@pytest.mark.parametrize(("text", "expected"), VALUES.values(), ids=VALUES)
def test_an_expression_over_tables_and_times_is_evaluated(text: str, expected: Any) -> None:
    assert fill(compile_tree(text, "spec.x"), SCOPE) == expected


REFUSALS: dict[str, tuple[str, str]] = {
    "nothing holds it": (
        "{{ vars.classes | first_that_holds(cpu=4, memoryGiB=32) }}",
        "no row of the table holds cpu 4, memoryGiB 32; the most that one has: cpu 4, memoryGiB 16",
    ),
    "what is not served": ("{{ 'name a backup' | refuse }}", "name a backup"),
    "a refusal without a sentence": ("{{ 3 | refuse }}", "'3' is no sentence that says what is not served"),
    "no field is named": ("{{ vars.classes | first_that_holds }}", "name one, as first_that_holds(cpu=2)"),
    "a field that a row lacks": (
        "{{ vars.odd | first_that_holds(cpu=2) }}",
        "row 2 of the table has no field 'cpu', did you mean 'cpus'?",
    ),
    "a misspelt field": (
        "{{ vars.classes | first_that_holds(memoryGib=2) }}",
        "row 1 of the table has no field 'memoryGib', did you",
    ),
    "a row that says no amount": (
        "{{ vars.text | first_that_holds(cpu=2) }}",
        "row 1 of the table: cpu is 'two', which is neither a number nor a quantity like 20Gi",
    ),
    "no amount is wanted": (
        "{{ vars.classes | first_that_holds(cpu='two') }}",
        "cpu is 'two', which is neither a number nor a quantity",
    ),
    "true or false is wanted": ("{{ vars.classes | first_that_holds(cpu=true) }}", "cpu is 'True', which is"),
    "a map for a table": ("{{ env.aws.row | first_that_holds(cpu=2) }}", "is no table; a table is a list of"),
    "a list of texts for a table": ("{{ ['a'] | first_that_holds(cpu=2) }}", "is no table; a table is a list"),
    "an empty table": ("{{ [] | first_that_holds(cpu=2) }}", "is no table; a table is a list of maps"),
    "what is wanted is left out": (
        "{{ vars.classes | first_that_holds(cpu=claim.spec.vcpu) }}",
        "'vcpu' is undefined, did you mean 'cpu'?",
    ),
    "a text and a list": ("{{ 'abc' | intersect(['a']) }}", "'abc' is no list, and cannot be intersected"),
    "an hour that is none": ("{{ '24:00' | shift(hours=1) }}", "'24:00' is no time like 02:30 or sun:02:30"),
    "a time without its nought": ("{{ '2:30' | shift(hours=1) }}", "'2:30' is no time like"),
    "a day that is none": ("{{ 'son:02:30' | shift(hours=1) }}", "'son' is no day of the week; one is mon, "),
    "digits of another script": ("{{ '0\u0662:30' | shift(hours=1) }}", "is no time like"),
    "a number for a time": ("{{ 230 | shift(hours=1) }}", "'230' is no time or window like 02:30"),
    "three times": ("{{ '01:00-02:00-03:00' | shift(hours=1) }}", "is no time or window like"),
    "two forms in one window": ("{{ 'sun:01:00-02:00' | shift(hours=1) }}", "is no time or window like"),
    "half an hour": ("{{ '01:00' | shift(hours=0.5) }}", "hours is '0.5', and not a whole number"),
    "a window of a window": ("{{ '01:00-02:00' | window(hours=1) }}", "is no time like 02:30 or sun:02:30"),
    "a window of no length": ("{{ '01:00' | window }}", "a window of 0 minutes is not longer than nothing"),
    "a window of a day": ("{{ '01:00' | window(hours=24) }}", "shorter than a day"),
    "a window of a week": ("{{ 'sun:01:00' | window(hours=168) }}", "shorter than a week"),
}


@pytest.mark.parametrize(("text", "message"), REFUSALS.values(), ids=REFUSALS)
def test_a_refusal_says_what_is_wrong(text: str, message: str) -> None:
    with pytest.raises(CompositionError) as caught:
        fill(compile_tree(text, "spec.x"), SCOPE)

    (problem,) = caught.value.problems
    is_refused = message.startswith(("no row of the table holds", "name a backup"))
    assert problem.reason == ("UnsupportedValue" if is_refused else "RenderFailed")
    assert message in problem.message
