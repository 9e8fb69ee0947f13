"""A claim is made again under the name of one that was removed by force: foreign objects with data are not doubled."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from apis import names
from composer.claim.decide import Create, decide
from composer.claim.snapshot import ObservedChild
from tests.composer.factories import NOW, SETTINGS, VOLUME, child, claim, desired, entry, live, rendered, snapshot

LEFT = ObservedChild(entry("data", VOLUME, uid="former-uid"), live(desired("data", VOLUME), uid="former-uid"), VOLUME)
WANTED = rendered(child(desired("data", VOLUME), "data"), child(desired("settings", SETTINGS), "settings"))


def _decided(*left: ObservedChild, **annotations: str) -> tuple[list[str], list[str]]:
    """Return the resources that are made, and the reasons of what is not."""
    marked = {names.PREFIX + name: text for name, text in annotations.items()}
    plan = decide(replace(snapshot(of=claim(annotations=marked)), predecessors=left), WANTED, now=NOW)
    return [step.entry.resource for step in plan.steps if isinstance(step, Create)], [why.reason for why in plan.causes]


@pytest.mark.parametrize(
    ("left", "annotations", "made", "reasons"),
    [
        ((), {}, ["data", "settings"], []),
        ((LEFT,), {}, ["settings"], ["PredecessorFound"]),
        ((LEFT,), {"adopt": "none"}, ["data", "settings"], []),
        ((LEFT,), {"adopt": "former-uid"}, ["settings"], ["PredecessorFound"]),
        ((replace(LEFT, entry=entry("other", VOLUME)),), {}, ["data", "settings"], []),
    ],
    ids=["nothing is left", "data are left", "a new one is asked for", "it cannot be taken over", "another resource's"],
)
def test_an_empty_child_is_not_created_beside_what_an_earlier_claim_left(
    left: tuple[ObservedChild, ...], annotations: dict[str, Any], made: list[str], reasons: list[str]
) -> None:
    assert _decided(*left, **annotations) == (made, reasons)


def test_the_message_names_the_object_and_the_way_out() -> None:
    plan = decide(replace(snapshot(), predecessors=(LEFT,)), WANTED, now=NOW)

    assert LEFT.entry.name in plan.causes[0].message
    assert "fairlead.dev/adopt=none`" in plan.causes[0].message
