"""An apply whose record was lost: what it left is taken away by the next one."""

from __future__ import annotations

import pytest

from composer.claim.decide import Apply, Keep, Step, decide
from composer.claim.snapshot import ObservedChild, Snapshot, stored_hash
from composer.hashes import sent_hash
from composer.kinds.catalog import KindFacts
from composer.render.render import Rendered
from runtime.objects import Object
from tests.composer.factories import DATABASE, NOW, SETTINGS, child, desired, entry, live, rendered, snapshot

WANTED = desired()


def _step(known: Snapshot, wanted: Rendered) -> Step:
    (step,) = decide(known, wanted, now=NOW).steps
    return step


_LEFT_BEHIND = {**WANTED, "spec": {**WANTED["spec"], "left": "behind"}}
_SETTINGS_LIVE = live(desired("settings", SETTINGS), generation=0)


@pytest.mark.parametrize(
    ("stored", "now_live", "facts", "again"),
    [
        (live(WANTED, generation=3), live(WANTED, generation=3), DATABASE, False),
        (live(WANTED, generation=3), live(_LEFT_BEHIND, generation=4), DATABASE, True),
        (_SETTINGS_LIVE, _SETTINGS_LIVE, SETTINGS, False),
        (_SETTINGS_LIVE, {**_SETTINGS_LIVE, "left": "behind"}, SETTINGS, True),
        (_SETTINGS_LIVE, {**_SETTINGS_LIVE, "status": {"phase": "Up"}}, SETTINGS, False),
    ],
    ids=["as stored", "with one more field", "of no generation", "of no generation, one more field", "a status"],
)
def test_a_child_whose_content_is_another_than_was_stored_is_applied_again(
    stored: Object, now_live: Object, facts: KindFacts, *, again: bool
) -> None:
    """The record of an apply may be lost with its fields still there: the next one takes them away."""
    name = "database" if facts is DATABASE else "settings"
    wanted = WANTED if facts is DATABASE else desired("settings", SETTINGS)
    recorded = entry(name, facts, desired=sent_hash(wanted), live=stored_hash(stored, wanted, None), applied=True)
    step = _step(snapshot(ObservedChild(recorded, now_live, facts)), rendered(child(wanted, name)))

    assert isinstance(step, Apply if again else Keep)
