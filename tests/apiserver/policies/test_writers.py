"""Who may write which of our names, refused or let through by the real API server's admission."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.apiserver.policies.actors import (
    CHILD,
    COMPOSER,
    CONFIG,
    DEVELOPER,
    EXTERNAL_REFERENCE,
    IDENTITY,
    INSTRUCTION,
    ONPREM,
    OTHER_CLOUD,
    PLATFORM,
    PREFIX,
    UID,
    Rule,
    annotated,
    judge,
    marked,
    prefixed,
)
from tests.support.api import Api
from tests.support.kinds import CLAIM, COMPOSITION

_BY_COMPOSER, _BY_PROVIDER = "written by the composer only", "written by the provider"
_PAUSE = annotated(paused="true", paused_reason="moving house")
_LOOK = annotated(reconcile_requested_at="now")
_LABEL = {"metadata": {"labels": prefixed({"claim": UID})}}
_OF_A_CLAIM = {"claim-name": "orders"}
_OF_A_CHILD = {
    "claim-name": "x",
    "resource": "db",
    "key": "a",
    "composition": "c",
    "stateful": "false",
    "depends-on": "x",
    "connection-secret": "x",
}
_IN_ORDER = "composition, claim-name, resource, key, stateful, depends-on, connection-secret"
RULES = (
    Rule("the identity", CLAIM, marked(IDENTITY), (COMPOSER, PLATFORM),
         {DEVELOPER: _BY_COMPOSER, ONPREM: _BY_COMPOSER}),
    Rule("the choice of a Composition", CLAIM, annotated(composition="c"), (COMPOSER,), {DEVELOPER: "composition"}),
    Rule("the kinds", CLAIM, annotated(kinds=""), (COMPOSER,), {DEVELOPER: "kinds"}, {"kinds": "A.b"}),
    # It is put back.
    Rule("a removal of the identity", CLAIM, annotated(identity=None), (DEVELOPER,), before=IDENTITY),
    Rule("an unchanged value", CLAIM, marked({**IDENTITY, "paused": "true"}), (DEVELOPER,), before=IDENTITY),
    Rule("a pause of a claim", CLAIM, _PAUSE, (DEVELOPER,)),
    Rule("a look at a claim", CLAIM, _LOOK, (DEVELOPER,)),
    Rule("a consent to a loss", CLAIM, annotated(consent=f"db={UID}"), (PLATFORM,),
         {DEVELOPER: "consent", COMPOSER: "consent"}),
    Rule("a start beside the predecessor", CLAIM, annotated(adopt="none"), (DEVELOPER,)),
    Rule("an adoption by a claim", CLAIM, annotated(adopt="16384"), (PLATFORM,), {DEVELOPER: "adopt"}),
    Rule("a name in the cloud", CLAIM, annotated(external_names="a=b"), (PLATFORM,), {DEVELOPER: "external-names"}),
    Rule("the teardown instruction", CHILD, marked(INSTRUCTION), (COMPOSER,),
         dict.fromkeys((DEVELOPER, PLATFORM, ONPREM), f"teardown is {_BY_COMPOSER}")),
    Rule("another instruction", CHILD, marked(INSTRUCTION), (COMPOSER,), before={"teardown": f"{UID}/Detach"}),
    # RBAC comes first: another cloud's account has no right here at all.
    Rule("an external reference", CHILD, marked(EXTERNAL_REFERENCE), (ONPREM, COMPOSER, PLATFORM),
         {DEVELOPER: _BY_PROVIDER, OTHER_CLOUD: "cannot patch"}),
    Rule("another external reference", CHILD, annotated(incarnation="2"), (), {DEVELOPER: "incarnation"},
         EXTERNAL_REFERENCE),
    Rule("a consent on a child", CHILD, annotated(consent="recreate=16384"), (PLATFORM,),
         {DEVELOPER: "consent", ONPREM: "consent"}),
    Rule("a start beside what there is", CHILD, annotated(adopt="none"), (COMPOSER,)),
    Rule("an adoption", CHILD, annotated(adopt="16384"), (PLATFORM,), {COMPOSER: "adopt", DEVELOPER: "adopt"}),
    Rule("the marks of a child", CHILD, marked(_OF_A_CHILD), (COMPOSER,),
         {DEVELOPER: _IN_ORDER.replace(", ", f", {PREFIX}")}),
    Rule("the label of its claim", CHILD, _LABEL, (COMPOSER, ONPREM), {DEVELOPER: "label fairlead.dev/claim"}),
    Rule("a pause of a child", CHILD, _PAUSE, (COMPOSER,),
         {DEVELOPER: "paused, fairlead.dev/paused-reason of a child", ONPREM: "of a child"}, _OF_A_CLAIM),
    Rule("a look at a child", CHILD, _LOOK, (DEVELOPER, ONPREM), before=_OF_A_CLAIM),
    Rule("a pause of a resource without a claim", CHILD, _PAUSE, (DEVELOPER,)),
    Rule("a pause of a ProviderConfig", CONFIG, _PAUSE, (DEVELOPER, ONPREM)),
    Rule("a pause of a Composition", COMPOSITION, _PAUSE, (DEVELOPER,)),
    Rule("a question about what has no resource", CONFIG, annotated(find="{}"), (DEVELOPER,)),
    Rule("a new name of an account", CONFIG, annotated(consent="account=pg-7"), (PLATFORM,), {DEVELOPER: "consent"}),
    Rule("a lift of the destroy rate limit", CONFIG, annotated(brake_released="2026-11-21T00:00:00Z"), (PLATFORM,),
         {DEVELOPER: "brake-released", ONPREM: "brake-released"}),
)  # fmt: skip


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.says)
async def test_a_name_is_written_by_its_writers_alone(policed: str, api: Api, rule: Rule) -> None:
    await judge(api, policed, rule, f"{policed}-{RULES.index(rule)}")


# What docs/names.md calls the objects, and whether the rule is about such a one.
OBJECTS: dict[str, Callable[[Rule], bool]] = {
    "claim": lambda rule: rule.on == CLAIM,
    "child": lambda rule: rule.on == CHILD,
    "child (copy)": lambda rule: rule.on == CHILD and rule.before == _OF_A_CLAIM,
    "managed resource": lambda rule: rule.on == CHILD,
    "managed resource with a claim": lambda rule: rule.on == CHILD,
    "managed resource without a claim": lambda rule: rule.on == CHILD and not rule.before,
    "Composition": lambda rule: rule.on == COMPOSITION,
    "ProviderConfig": lambda rule: rule.on == CONFIG,
    "all our kinds": lambda rule: rule.on in (CLAIM, CHILD),
}
FREE = {("paused", on) for on in ("claim", "managed resource without a claim", "ProviderConfig", "Composition")}
FREE |= {("paused-reason", on) for _, on in FREE} | {
    ("reconcile-requested-at", "all our kinds"),
    ("find", "ProviderConfig"),
}
"""What anybody may write who may edit the object."""


def _promised() -> list[tuple[str, str]]:
    """Return each annotation of the page with each object that it is on."""
    page = (Path(__file__).resolve().parents[3] / "docs" / "names.md").read_text(encoding="utf-8")
    section = page.split("\n## 4. ", 1)[1].split("\n## ", 1)[0]
    rows = re.findall(r"^\| `fairlead\.dev/([a-z-]+)` \| ([^|]+?) \|", section, re.MULTILINE)
    objects = dict(rows)
    promised = []
    for name, on in rows:
        as_another = re.match(r"as `fairlead\.dev/([a-z-]+)`", on)
        where = objects[as_another[1]] if as_another else on
        promised += [(name, obj) for obj in re.split(r"[,;] ", where)]
    return promised


def test_each_annotation_of_the_page_is_tried_by_its_writers_and_by_another() -> None:
    for name, on in _promised():
        about = [rule for rule in RULES if PREFIX + name in rule.change["metadata"].get("annotations", {})]
        about = [rule for rule in about if OBJECTS[on](rule)]

        assert [rule.says for rule in about if rule.may] != [], (name, on)
        assert ([rule.says for rule in about if rule.refused] == []) == ((name, on) in FREE), (name, on)
