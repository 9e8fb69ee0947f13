"""Rules in CEL, as far as they are read without an API server: what they say, and what is passed over."""

from __future__ import annotations

from typing import Any

import pytest

from composer.render.cel import broken
from composer.render.schema_limits import excesses

CASES: dict[str, tuple[str, dict[str, Any], str]] = {
    "a field that must be there is": ("has(self.a)", {"a": 1}, "good"),
    "a field that must be there is not": ("has(self.a)", {}, "broken"),
    "a mark of exclamation binds tighter than a comparison": ("!has(self.a) == has(self.b)", {"b": 1}, "good"),
    "one of two, and both are there": ("has(self.a) != (has(self.b) || has(self.c))", {"a": 1, "c": 1}, "broken"),
    "what comes after an or is not asked": ("!has(self.a) || self.a.b > 1", {}, "good"),
    "an and of two": ("self.a >= 1 && self.a < 5", {"a": 5}, "broken"),
    "a mark of exclamation in a text is a text": ("self.a != 'x && !y'", {"a": "x && !y"}, "broken"),
    "a text in a list": ("!(self.a in ['p', 'q']) && !self.a.startsWith('pg_')", {"a": "q"}, "broken"),
    "every name of a map": ("self.a.all(n, n.matches('^[a-z]+$'))", {"a": {"B": 1}}, "broken"),
    "texts as numbers": ("int(self.a) >= 15", {"a": "9"}, "broken"),
    "the size of a list": ("size(self.a) <= 1", {"a": [1, 2]}, "broken"),
    "a rule on the former value is the API server's": ("self.a == oldSelf.a", {"a": 1}, "good"),
    "a function that is not read is the API server's": ("self.a.all(c, isCIDR(c))", {"a": ["x"]}, "good"),
    "a conditional is the API server's": ("has(self.a) ? self.a > 1 : false", {"a": 1}, "good"),
    "a text's function of a number is the API server's": ("self.a.startsWith('x')", {"a": 1}, "good"),
    "a pattern that is RE2's alone is the API server's": ("self.a.matches('\\\\p{L}')", {"a": "x"}, "good"),
    "a comparison of two types is the API server's": ("self.a > 'x'", {"a": 1}, "good"),
}  # fmt: skip


@pytest.mark.parametrize(("rule", "value", "outcome"), CASES.values(), ids=CASES)
def test_a_breach_of_a_rule_is_named(rule: str, value: dict[str, Any], outcome: str) -> None:
    schema = {"x-kubernetes-validations": [{"rule": rule, "message": "so it is", "fieldPath": ".a"}]}

    breaches = [(breach.path, breach.message) for breach in broken(value, schema, "spec")]

    assert breaches == ([("spec.a", "so it is")] if outcome == "broken" else [])


def test_a_pattern_that_python_does_not_read_is_the_api_servers() -> None:
    assert list(excesses("x", {"type": "string", "pattern": r"^\p{L}+$"}, "spec.a")) == []
