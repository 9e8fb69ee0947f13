"""Nothing new is made in the place of data before the consent: an application would be led to an empty database."""

from __future__ import annotations

import msgspec
import pytest

from apis import names
from composer.claim.prune_guard import replacing_data
from composer.claim.snapshot import ObservedChild
from composer.kinds.catalog import KindFacts
from composer.render.render import Child
from tests.composer.factories import DATABASE, SETTINGS, child, claim, desired, entry, live, rendered, snapshot

OLD = desired("database", DATABASE)
HELD = ObservedChild(entry("database", DATABASE), live(OLD), DATABASE)
CONSENT = {names.CONSENT: "database=child-uid"}


class Case(msgspec.Struct, frozen=True):
    wanted: tuple[Child, ...]
    holds: bool
    annotations: dict[str, str] = {}


def _child(resource: str, facts: KindFacts, *, stateful: bool | None = None) -> Child:
    return msgspec.structs.replace(child(desired(resource, facts), resource, ready=False), stateful=stateful)


CASES = {
    "the same resource": Case((_child("database", DATABASE),), holds=False),
    "another name for it": Case((_child("elsewhere", DATABASE),), holds=True),
    "another kind in its place": Case((_child("database", SETTINGS, stateful=True),), holds=True),
    "another name, with consent": Case((_child("elsewhere", DATABASE),), holds=False, annotations=CONSENT),
    "one more beside it": Case((_child("database", DATABASE), _child("second", DATABASE)), holds=False),
    "only settings in its place": Case((_child("settings", SETTINGS),), holds=False),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_a_replacement_of_data_waits_for_consent(case: Case) -> None:
    causes = replacing_data(snapshot(HELD, of=claim(annotations=case.annotations)), rendered(*case.wanted))

    assert [cause.reason for cause in causes] == (["HeldDeletion"] if case.holds else [])
