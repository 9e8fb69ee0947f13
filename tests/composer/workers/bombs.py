"""Templates and claims that ask for more than a render may have: processor, memory, depth or output."""

from __future__ import annotations

from typing import Any, NamedTuple

from composer.render.request import Request
from tests.composer.factories import claim

_DOUBLED = {f"v{n}": f"{{{{ vars.v{n - 1} ~ vars.v{n - 1} }}}}" for n in range(1, 31)}
_LISTED = {f"v{n}": f"{{{{ [vars.v{n - 1}] * 100 }}}}" for n in range(1, 9)}


class Bomb(NamedTuple):
    """What one Composition and one claim hold; `reason` is the one that the claim gets."""

    text: Any
    variables: dict[str, str] = {}  # noqa: RUF012 - never changed
    spec: dict[str, Any] = {}  # noqa: RUF012 - never changed
    for_each: str = ""
    status: dict[str, Any] = {}  # noqa: RUF012 - never changed
    reason: str = "RenderLimit"


BOMBS: dict[str, Bomb] = {
    # Refused before anything is computed: by the size that an operator would give.
    "a text times a thousand million, folded while compiling": Bomb("{{ 'a' * 10**9 }}"),
    "a list times a thousand million": Bomb("{{ [0] * 10**9 }}"),
    "a list times itself": Bomb("{{ [0] * 2**10 * 2**11 }}"),
    "a text of the claim times a number of the claim": Bomb(
        "{{ claim.spec.text * claim.spec.count }}", spec={"text": "x" * 1000, "count": 10**9}
    ),
    "a power of powers": Bomb("{{ 9 ** 9 ** 9 }}"),
    "a power of ten million, of the claim's number": Bomb("{{ (9 ** claim.spec.k) | string }}", spec={"k": 10_000_000}),
    "a negative power": Bomb("{{ 9 ** -claim.spec.k }}", spec={"k": 10_000_000}),
    "a number squared again and again": Bomb("{{ vars.v9 }}", {"v0": "{{ 2**62 }}"} | {
        f"v{n}": f"{{{{ vars.v{n - 1} * vars.v{n - 1} }}}}" for n in range(1, 10)
    }, reason="NotJson"),
    "a width of a thousand million characters": Bomb("{{ '%999999999d' % 1 }}", reason="RenderFailed"),
    "a factor of a thousand million": Bomb("{{ 'ab' | replace('', 'x' * 2**20) * 10**9 }}"),
    "a remainder of a huge number": Bomb("{{ 7 % (2**62 * 2**62) // 1 ** 99999999 }}"),
    # Refused before compiling: nothing of the kind exists.
    "a range": Bomb("{{ range(10**10) | list }}", reason="TemplateForbidden"),
    "text without end": Bomb("{{ lipsum(n=10**9) }}", reason="TemplateForbidden"),
    "a slice of many": Bomb("{{ [1] | slice(10**10) | list }}", reason="TemplateInvalid"),
    "batches of many": Bomb("{{ [1] | batch(10**9, 'x') | list }}", reason="TemplateInvalid"),
    "a text indented by many": Bomb("{{ 'a' | indent(10**9) }}", reason="TemplateInvalid"),
    "a text centred among many": Bomb("{{ 'a' | center(10**9) }}", reason="TemplateInvalid"),
    "a loop": Bomb("{% for a in claim.spec %}{% endfor %}", reason="TemplateForbidden"),
    "a name space that doubles": Bomb("{% set n = namespace(x='a') %}", reason="TemplateForbidden"),
    "a macro that calls itself": Bomb("{% macro m() %}{{ m() }}{% endmacro %}", reason="TemplateForbidden"),
    # By depth or length of what is written.
    "parentheses": Bomb("{{ " + "(" * 4000 + "1" + ")" * 4000 + " }}"),
    "brackets": Bomb("{{ " + "[" * 4000 + "]" * 4000 + " }}"),
    "signs": Bomb("{{ " + "-" * 9000 + "1 }}"),
    "negations": Bomb("{{ " + "not " * 3000 + "1 }}"),
    "steps": Bomb("{{ claim" + ".a" * 5000 + " }}"),
    "filters": Bomb("{{ 1" + "|abs" * 3500 + " }}"),
    "conditions": Bomb("{{ " + "1 if 1 else " * 1200 + "1 }}"),
    "a text of seven million characters": Bomb("{{ 1 }}" * 1_000_000),
    "a source of many small texts": Bomb(["{{ 1 + 1 }}"] * 60_000),
    "a value of many levels": Bomb("{{ vars.deep }}", {"deep": "{{ " + "[" * 70 + "]" * 70 + " }}"}),
    # While it is computed: the worker's own limits end it.
    "texts that double": Bomb("{{ vars.v30 }}", {"v0": "x" * 1000} | _DOUBLED),
    "lists of lists": Bomb("{{ vars.v8 }}", {"v0": "x"} | _LISTED),
    "replacements that multiply": Bomb(
        "{{ '" + "a" * 30 + "' | replace('a', '" + "b" * 2000 + "') | replace('b', '" + "c" * 50 + "') }}"
    ),
    "sums of lists": Bomb("{{ ([[1, 2, 3, 4]] * 100000) | sum(start=[]) | length }}"),
    # By what comes out.
    "output beyond a mebibyte": Bomb("{{ 'a' * 2**20 }}{{ 'b' * 9 }}"),
    "very many small lists": Bomb("{{ [[]] * 300000 }}"),
    "very many small maps": Bomb("{{ [{}] * 100000 }}"),
    "a status beyond a mebibyte": Bomb("x", status={"endpoint": "{{ 'a' * 2**20 }}{{ 'b' * 2**20 }}"}),
    "children beyond number": Bomb(
        "{{ each.key }}", {"v0": "{{ 'a,' * 10 }}"}, spec={"many": [str(n) for n in range(129)]},
        for_each="{{ claim.spec.many }}",
    ),
    "a name of a mebibyte in the message": Bomb("{{ claim.spec['a' * 2**19] }}", reason="RenderFailed"),
}  # fmt: skip


def request_of(bomb: Bomb) -> Request:
    """Return the render that a bomb asks for."""
    template = {"apiVersion": "onprem.fairlead.dev/v1alpha1", "kind": "PostgresDatabase", "spec": {"x": bomb.text}}
    composition = {
        "compositeTypeRef": {"apiVersion": "db/v1", "kind": "K"},
        "resources": [{"name": "database", "template": template, "forEach": bomb.for_each}],
        "variables": bomb.variables,
        "status": bomb.status,
    }
    return Request("c", composition, claim(**bomb.spec), "claim-uid@shop/orders")
