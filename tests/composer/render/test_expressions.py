"""What an expression gives, and what it may not do."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import msgspec
import pytest

from composer.render.errors import CompositionError, PendingError
from composer.render.template import SANDBOX, compile_tree, fill
from composer.render.values import Status

SCOPE: dict[str, Any] = {
    "claim": {"metadata": {"name": "orders.db"}, "spec": {"size": "small", "items": [1, 2], "count": 3, "on": True}},
    "resources": {"net": {"status": Status("net", "resources.net.status", {"id": {"v4": "10.0.0.0"}})}},
}


VALUES: dict[str, tuple[Any, Any]] = {
    "a lone expression keeps its type": ("{{ claim.spec.count }}", 3),
    "an expression beside text is text": ("n-{{ claim.spec.count }}", "n-3"),
    "a field may be called like a method": ("{{ claim.spec.items }}", [1, 2]),
    "a field is read by brackets too": ("{{ claim['spec']['size'] }}", "small"),
    "text without braces stays as it is": ("0x10 {not} an expression", "0x10 {not} an expression"),
    "a text that looks like a number stays text": ("{{ '0x10' }}", "0x10"),
    "a text that says None stays text": ("{{ 'None' }}", "None"),
    "closing braces within a quoted text do not end it": ("{{ claim.spec.size ~ '}}' }}", "small}}"),
    "a mapping chooses": ("{{ {'small': 'db.t4g', 'large': 'db.m7g'}[claim.spec.size] }}", "db.t4g"),
    "a missing field has a default": ("{{ claim.spec.absent | default('x') }}", "x"),
    "a field of a map that the claim leaves out has a default": ("{{ claim.spec.backup.days | default(7) }}", 7),
    "a field of a field that the claim leaves out has a default": ("{{ claim.spec.a.b['c'].d | default(7) }}", 7),
    "a field of a map that the claim leaves out may be passed over": ("{{ claim.spec.backup.days | or_else(7) }}", 7),
    "a field of a map that the claim leaves out is distinguished from a present one": (
        "{{ claim.spec.backup.days is undefined and claim.spec['backup'].days is not defined }}",
        True,
    ),
    "one field that the claim leaves out is the default of another": (
        "{{ claim.spec.backup.days | default(claim.spec.keep.days) | default(7) }}",
        7,
    ),
    "a missing field is distinguished from a present one": ("{{ claim.spec.absent is defined }}", False),
    "a field whose expression is none is left out": ({"a": "{{ none }}", "b": 1}, {"b": 1}),
    "a written null stays": ({"a": None}, {"a": None}),
    "a status that is there is read": ("{{ resources.net.status.id.v4 }}", "10.0.0.0"),
    "a status that is not there may be passed over": ("{{ resources.net.status.x.y | or_else('z') }}", "z"),
    "a label is made": ("{{ claim.metadata.name | dns_label(8) }}", "orders-d"),
    "maps become one": ("{{ {'a': '1', 'b': '2'} | combine({'b': '3'}, {}) }}", {"a": "1", "b": "3"}),
    "a text becomes a list": ("{{ ' a, b ,' | split }}", ["a", "b"]),
    "a quantity is read in GiB, rounded up": ("{{ '1500Mi' | gib }}", 2),
    "a quantity may have a fraction": ("{{ '1.5Gi' | gib }}", 2),
    "a network gets its normal form": ("{{ '10.1.2.3/8' | cidr }}", "10.0.0.0/8"),
    "a piece of a text is cut": ("{{ claim.spec.size[:2] }}", "sm"),
    "a piece of a list is cut": ("{{ claim.spec.items[1:] }}", [2]),
    "a text is turned around": ("{{ claim.spec.size[::-1] }}", "llams"),
    "a comparison compares": ("{{ 1 < claim.spec.count <= 3 and 'm' in claim.spec.size }}", True),
    "what is not in a list": ("{{ 7 not in claim.spec.items }}", True),
    "a block text of one expression keeps its type": ("{{ claim.spec.count }}\n", 3),
    "a block text keeps its last line break": ("max={{ claim.spec.count }}\nmin=1\n", "max=3\nmin=1\n"),
    "a map whose key is computed is one expression": (
        {"users": "{{ {claim.spec.size: []} }}"},
        {"users": {"small": []}},
    ),
    "braces in a key": ({"{a}": 1}, {"{a}": 1}),
    "nested texts are filled in": ({"a": [{"b": "{{ claim.spec.size }}"}]}, {"a": [{"b": "small"}]}),
}


@pytest.mark.parametrize(("text", "expected"), VALUES.values(), ids=VALUES)
def test_an_expression_is_evaluated(text: Any, expected: Any) -> None:
    assert fill(compile_tree(text, "spec.x"), SCOPE) == expected


PENDING = {
    "read alone": "{{ resources.net.status.x }}",
    "beside text": "a-{{ resources.net.status.x }}",
    "compared": "{{ resources.net.status.x == 1 }}",
    "with a default": "{{ resources.net.status.x | default(1) }}",
    "asked whether it is defined": "{{ resources.net.status.x is defined }}",
    "asked whether it is undefined": "{{ resources.net.status.x is undefined }}",
    "within a list": "{{ [1, resources.net.status.x] }}",
    "within a map": "{{ {'a': resources.net.status.x.y} }}",
    "as a condition": "{{ 1 if resources.net.status.x else 2 }}",
    "through a filter": "{{ resources.net.status.x | upper }}",
    "added": "{{ 1 + resources.net.status.x }}",
    "searched": "{{ 'a' in resources.net.status.x }}",
    "as a key": "{{ {'a': 1}[resources.net.status.x] }}",
    "searched in an empty list": "{{ resources.net.status.x in [] }}",
    "searched in a text": "{{ resources.net.status.x in 'abc' }}",
    "not found in an empty list": "{{ resources.net.status.x not in [] }}",
    "asked whether it is none": "{{ resources.net.status.x is none }}",
    "asked whether it is a text": "{{ resources.net.status.x is string }}",
    "asked whether it is a list": "{{ resources.net.status.x is sequence }}",
    "asked whether it is a map": "{{ resources.net.status.x is mapping }}",
    "asked whether it is in a list": "{{ resources.net.status.x is in([]) }}",
    "as an absolute number": "{{ resources.net.status.x | abs }}",
    "rounded": "{{ resources.net.status.x | round }}",
    "as a number with a default of its own": "{{ resources.net.status.x | int(3) }}",
    "as the argument of a filter": "{{ 'abc' | replace('a', resources.net.status.x) }}",
    "as the end of a slice": "{{ 'abc'[:resources.net.status.x] }}",
    "sliced": "{{ resources.net.status.x[:2] }}",
    "added to a list": "{{ [1] + resources.net.status.x }}",
    "repeated": "{{ 'a' * resources.net.status.x }}",
    "as a label": "{{ resources.net.status.x | dns_label }}",
    "as a field of a status that is combined": "{{ (resources.net.status.id | combine({'a': 1})).v6 }}",
    "as the other value of another": "{{ resources.net.status.y | or_else(resources.net.status.x) }}",
}


@pytest.mark.parametrize("text", PENDING.values(), ids=PENDING)
def test_a_status_that_is_not_there_makes_its_reader_wait(text: str) -> None:
    with pytest.raises(PendingError) as caught:
        fill(compile_tree(text, "spec.x"), SCOPE)

    assert caught.value.waits_for == "net"


class Refusal(msgspec.Struct, frozen=True):
    text: Any
    reason: str
    column: int = 4
    says: str = ""


REFUSALS = {
    "a misspelt field, with the nearest name": Refusal("{{ claim.spec.sise }}", "RenderFailed", says="'size'"),
    "a misspelt field asked whether it is none": Refusal(
        "{{ claim.spec.sise is none }}", "RenderFailed", says="'size'"
    ),
    "a misspelt field searched in nothing": Refusal("{{ claim.spec.sise in [] }}", "RenderFailed", says="'size'"),
    "a misspelt field's absolute number": Refusal("{{ claim.spec.sise | abs }}", "RenderFailed", says="'size'"),
    "a misspelt root, with the nearest name": Refusal("{{ calim.spec.size }}", "RenderFailed", says="'claim'"),
    "a piece of a map": Refusal("{{ claim.spec[1:] }}", "RenderFailed", says="no order"),
    "an if without an else": Refusal("{{ 'a' if claim.spec.count == 4 }}", "RenderFailed", says="else"),
    "arguments by stars": Refusal("{{ ['a'] | join(*['b']) }}", "TemplateForbidden"),
    "an expression of many parentheses": Refusal("{{ " + "(" * 3000 + "1" + ")" * 3000 + " }}", "RenderLimit"),
    "an expression of many steps": Refusal("{{ claim" + ".a" * 400 + " }}", "RenderLimit"),
    "an expression of many signs": Refusal("{{ " + "-" * 5000 + "1 }}", "RenderLimit", 4),
    "a long chain of additions": Refusal("{{ " + "1+" * 3000 + "1 }}", "RenderLimit"),
    "a text of too many characters": Refusal("x" * 20_000 + "{{ 1 }}", "RenderLimit", 0),
    "a misspelt field within a list": Refusal("{{ [claim.spec.sise] }}", "RenderFailed"),
    "an expression as the key of a map, with the way to write it": Refusal(
        {"users": {"{{ claim.spec.size }}": []}}, "TemplateInvalid", 0, says='"{{ {key: value} }}"'
    ),
    "a key with an expression in it": Refusal({"a": [{"x-{{ claim.spec.size }}": 1}]}, "TemplateInvalid", 0),
    "a statement as a key": Refusal({"{% if true %}": 1}, "TemplateInvalid", 0),
    "a field of a map that the claim leaves out": Refusal("{{ claim.spec.sise.b }}", "RenderFailed", says="'size'"),
    "a field of a map that the claim leaves out, compared": Refusal(
        "{{ claim.spec.backup.days == 7 }}", "RenderFailed", says="'backup' is undefined"
    ),
    "a field of a map that the claim leaves out, through a filter": Refusal(
        "{{ claim.spec.backup.days | string }}", "RenderFailed", says="'backup' is undefined"
    ),
    "a field of a computed field": Refusal("{{ claim.spec[claim.spec.size].c | default(1) }}", "RenderFailed"),
    "a field of an undefined field of the claim, in parts": Refusal(
        "{{ (claim.spec.a | default(claim.spec.b)).c | default(1) }}", "RenderFailed"
    ),
    "a field of a missing field outside the spec": Refusal("{{ claim.metadata.a.b | default(1) }}", "RenderFailed"),
    "a field of a text of the claim": Refusal("{{ claim.spec.size.b | default(1) }}", "RenderFailed"),
    "python's own names": Refusal("{{ ''.__class__ }}", "TemplateForbidden"),
    "python's own names on data": Refusal("{{ claim.__class__ }}", "TemplateForbidden"),
    "python's own names by brackets": Refusal("{{ claim['__init__'] }}", "TemplateForbidden"),
    "a method": Refusal("{{ claim.spec.size.upper }}", "RenderFailed"),
    "a call": Refusal("{{ range(9) }}", "TemplateForbidden"),
    "a format": Refusal("{{ '{0.__class__}'.format(1) }}", "TemplateForbidden"),
    "a statement": Refusal("{% for a in [1] %}{% endfor %}", "TemplateForbidden", 1),
    "a comment": Refusal("{# hidden #}", "TemplateForbidden", 1),
    "a global of jinja": Refusal("{{ cycler }}", "RenderFailed"),
    "an unknown filter": Refusal("{{ 1 | attr('x') }}", "TemplateInvalid"),
    "a broken expression": Refusal("ab {{ claim. }}", "TemplateInvalid", 7),
    "an expression that does not end": Refusal("{{ claim", "TemplateInvalid", 3),
    "a list beside text": Refusal("x {{ claim.spec.items }}", "RenderFailed", 6),
    "true or false beside text": Refusal("x {{ claim.spec.on }}", "RenderFailed", 6),
    "a huge text": Refusal("{{ 'a' * 10**10 }}", "RenderLimit"),
    "a huge list": Refusal("{{ [0] * 10**9 }}", "RenderLimit"),
    "a power of powers": Refusal("{{ 9 ** 9 ** 9 }}", "RenderLimit"),
    "a width": Refusal("{{ '%999999999d' % 1 }}", "RenderFailed"),
    "no number": Refusal("{{ 'nan' | float }}", "NotJson"),
    "an infinite number": Refusal("{{ 1e308 + 1e308 }}", "NotJson"),
    "a number beyond 64 bits": Refusal("{{ 2 ** 63 }}", "NotJson"),
    "a text combined with a map": Refusal("{{ 'a' | combine({}) }}", "RenderFailed", says="is no map"),
    "a number split": Refusal("{{ 1 | split }}", "RenderFailed", says="can be split"),
    "a division by zero": Refusal("{{ 1 / 0 }}", "RenderFailed"),
    "an index beyond the end": Refusal("{{ claim.spec.items[7] }}", "RenderFailed"),
    "a key that is a number": Refusal("{{ {1: 2} }}", "NotJson"),
    "deep nesting": Refusal([[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]], "RenderLimit", 0),
}


@pytest.mark.parametrize("case", REFUSALS.values(), ids=REFUSALS)
def test_an_expression_that_is_refused_says_why(case: Refusal) -> None:
    with pytest.raises(CompositionError) as caught:
        fill(compile_tree(case.text, "spec.x"), SCOPE)

    (problem,) = caught.value.problems
    assert problem.reason == case.reason
    assert problem.column == case.column
    assert problem.path.startswith("spec.x")
    assert case.says in problem.message


def test_the_filters_of_the_page_are_those_of_the_language() -> None:
    page = (Path(__file__).resolve().parents[3] / "docs" / "compositions-reference.md").read_text(encoding="utf-8")
    section = page.partition("## Filters")[2].partition("##")[0]

    assert sorted(re.findall(r"`(\w+)", section)) == sorted(SANDBOX.filters)
