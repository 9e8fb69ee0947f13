"""A claim that names what is in the cloud already: its child is first made with that name, and no other is changed."""

from __future__ import annotations

import pytest

from apis import names
from composer.claim.decide import Create, decide
from composer.claim.snapshot import ObservedChild
from composer.render.compiler import convert
from composer.render.external_names import import_problems
from runtime.objects import annotations_of
from tests.composer.factories import (
    NOW,
    SETTINGS,
    child,
    claim,
    composition_of,
    desired,
    observed,
    rendered,
    resource_of,
    snapshot,
)

CONFIG_MAP = {"apiVersion": "v1", "kind": "ConfigMap", "data": {}}
COMPOSITION = convert(composition_of(resource_of("database"), resource_of("settings", CONFIG_MAP)))
WANTED = rendered(child(desired(), "database"), child(desired("settings", SETTINGS), "settings"))


def _made(value: str, *known: ObservedChild) -> dict[str, str]:
    """Return the name in the cloud with which each child is made."""
    seen = snapshot(*known, of=claim(annotations={names.EXTERNAL_NAME: value}))
    steps = [step for step in decide(seen, WANTED, now=NOW).steps if isinstance(step, Create)]
    return {step.entry.resource: annotations_of(step.object).get(names.EXTERNAL_NAME, "") for step in steps}


def test_the_child_that_is_named_is_first_made_with_its_name_in_the_cloud() -> None:
    assert _made("database=orders_v1") == {"database": "orders_v1", "settings": ""}


def test_a_child_that_is_there_keeps_the_name_that_it_has() -> None:
    assert _made("database=orders_v1", observed()) == {"settings": ""}
    gone = observed(stored=None, external_reference={"external-name": "orders_v0"})
    assert _made("database=orders_v1", gone)["database"] == "orders_v0"


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        ("", None),
        ("database=orders_v1", None),
        ("database/eu=orders=v1, database/us=orders2", None),
        ("orders_v1", "'orders_v1' is not RESOURCE=NAME; this Composition can take over: database"),
        ("database=", "'database=' is not RESOURCE=NAME; this Composition can take over: database"),
        ("settings=x", "settings has no name in a cloud; this Composition can take over: database"),
        ("databse=x", "databse has no name in a cloud; this Composition can take over: database"),
    ],
)
def test_what_names_nothing_is_refused_in_a_sentence(value: str, problem: str | None) -> None:
    problems = list(import_problems({names.EXTERNAL_NAME: value}, COMPOSITION))

    assert problems == ([] if problem is None else [f"annotation {names.EXTERNAL_NAME}: {problem}"])
