"""What goes of a claim that cannot be rendered: rules that it leaves out, as far as that is known without the whole."""

from __future__ import annotations

from typing import Any

import pytest

from apis import names
from composer.claim.compose import Choice, Preparer
from composer.composition.revision import Candidate, Revision
from composer.render.render import Rendered, render
from composer.render.request import Request
from tests.composer.factories import CLAIMS, RULES, claim, desired, live, observed, snapshot

_LISTED = "{{ claim.spec.network.allowedCIDRs | default([]) }}"
# What says which rules there are; which of the two stay where the claim lists the first alone.
WHOLE = {"a", "b"}
CASES: dict[str, tuple[dict[str, Any], set[str]]] = {
    "what the claim leaves out goes": ({"forEach": _LISTED}, {"a"}),
    "by a variable": ({"forEach": "{{ vars.listed }}"}, {"a"}),
    "all go where none is wanted": ({"forEach": _LISTED, "when": "{{ claim.spec.size == 'large' }}"}, set()),
    "none where a fault is in what says so": ({"forEach": "{{ claim.spec.sizes[7] }}"}, WHOLE),
    "or it hangs on what is missing": ({"forEach": "{{ env.lists.networks | default([]) }}"}, WHOLE),
    "by a variable as well": ({"forEach": "{{ vars.missing }}"}, WHOLE),
    "or on what is not made yet": ({"forEach": "{{ resources.server.status.networks }}"}, WHOLE),
    "or on elements of another": ({"forEach": "{{ ['a'] if resources.others['x'].status.ok else [] }}"}, WHOLE),
    "or is no choice at all": ({}, WHOLE),
}


class _World:
    """A Composition whose server fails and whose environment is missing."""

    def __init__(self, rules: dict[str, Any]) -> None:
        fault, plain = {"data": {"x": "{{ env.lists.x }}"}}, {"apiVersion": "v1", "kind": "ConfigMap"}
        self._spec: dict[str, Any] = {
            "compositeTypeRef": {"apiVersion": CLAIMS.api_version, "kind": CLAIMS.kind},
            "environments": ["lists"],
            "variables": {"listed": _LISTED, "missing": "{{ env.lists.networks | default([]) }}"},
            "resources": [
                {"name": "server", "template": {**plain, **fault}},
                {"name": "others", "forEach": "{{ ['x'] }}", "template": plain},
                {"name": "rule", "template": plain, **rules},
            ],
        }

    def candidates(self, api_version: str, kind: str) -> tuple[Candidate, ...]:
        del api_version, kind
        return (Candidate("postgres", {}, None),)

    def revisions(self, composition: str) -> tuple[Revision, ...]:
        return (Revision("postgres-1", 1, composition, self._spec),)

    def environment(self, name: str) -> None:
        del name

    async def render(self, request: Request) -> Rendered:
        return render(request)


@pytest.mark.parametrize(("rules", "staying"), CASES.values(), ids=CASES.keys())
async def test_rules_go_that_are_left_out_for_certain(rules: dict[str, Any], staying: set[str]) -> None:
    known = [
        observed("rule", RULES, stored=live(desired(f"rule-{key}", RULES)), key=key, name=f"rule-{key}") for key in "ab"
    ]
    owner = claim(annotations={names.COMPOSITION: "postgres"}, network={"allowedCIDRs": ["a"]})
    world = _World(rules)
    preparer = Preparer(world, world)
    choice = preparer.choose(snapshot(*known, of=owner))
    assert isinstance(choice, Choice)

    gone = await preparer.taken_out(choice)

    assert WHOLE - {child.entry.key for child in gone} == staying
