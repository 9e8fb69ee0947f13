"""A pause of a claim, and a request for a pass, reach its children."""

from __future__ import annotations

import pytest

from apis import names
from composer.claim.decide import Annotate
from composer.claim.snapshot import ObservedChild
from composer.claim.undecided import mirrored_pause, token_steps
from tests.composer.factories import DATABASE, SETTINGS, annotated, claim, desired, entry, live, snapshot

LIVE = live(desired())
SETTINGS_KNOWN = ObservedChild(entry("settings", SETTINGS), live(desired("settings", SETTINGS)), SETTINGS)


@pytest.mark.parametrize(
    ("on_claim", "on_child", "expected"),
    [
        ({"paused": "true", "paused_reason": "audit"}, {}, {"paused": "true", "paused-reason": "audit"}),
        ({"paused": "true"}, {"paused": "true"}, {}),
        ({}, {"paused": "true"}, {"paused": None}),
    ],
    ids=["a pause is copied down", "once", "its end, too"],
)
def test_a_pause_is_propagated_to_the_children(
    on_claim: dict[str, str], on_child: dict[str, str], expected: dict[str, str | None]
) -> None:
    annotations = {names.PREFIX + name.replace("_", "-"): text for name, text in on_claim.items()}
    known = snapshot(ObservedChild(entry(), annotated(LIVE, **on_child), DATABASE), of=claim(annotations=annotations))

    (step,) = mirrored_pause(known)

    written = step.annotations if isinstance(step, Annotate) else {}
    assert written == {names.PREFIX + name: text for name, text in expected.items()}


@pytest.mark.parametrize(
    ("token", "answered", "on_child", "propagated"),
    [
        pytest.param("monday", "", "", True, id="a request"),
        pytest.param("monday", "sunday", "sunday", True, id="the next one"),
        pytest.param("monday", "", "monday", False, id="once"),
        pytest.param("monday", "monday", "tuesday", False, id="a request to the child alone stays"),
        pytest.param("", "monday", "monday", False, id="none"),
    ],
)
def test_a_reconcile_request_is_propagated(token: str, answered: str, on_child: str, *, propagated: bool) -> None:
    asks = claim(
        annotations={names.RECONCILE_REQUESTED_AT: token} if token else {},
        status={"lastHandledReconcileAt": answered} if answered else {},
    )
    stored = annotated(LIVE, reconcile_requested_at=on_child) if on_child else LIVE

    steps = token_steps(snapshot(ObservedChild(entry(), stored, DATABASE), SETTINGS_KNOWN, of=asks))

    assert [(step.entry.resource, step.annotations) for step in steps] == (
        [("database", {names.RECONCILE_REQUESTED_AT: token})] if propagated else []
    )
