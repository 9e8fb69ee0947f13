"""The first status of a claim: it waits for a provider that answers at once, and loses nothing by that."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import timedelta

import msgspec
import pytest

from composer.claim.snapshot import ObservedChild, Snapshot
from composer.kinds.catalog import KindFacts
from runtime.cache import Cache
from runtime.objects import Object, key_of, uid_of
from runtime.results import Result
from tests.composer.claim.passes import LoggedKube, Reads, reconciler
from tests.composer.factories import (
    CLAIMS,
    DATABASE,
    DATABASES,
    child,
    claim,
    desired,
    entry,
    rendered,
    snapshot,
)

WANTED = desired()
PROMPT = msgspec.structs.replace(DATABASE, prompt=True)
UNKNOWN = entry(uid="", desired="", live="", applied=False)


@dataclass
class _NewClaim:
    """A new claim of one child, whose passes are made by hand; `seconds` is the time of the monotonic clock."""

    facts: KindFacts
    owner: Object = field(default_factory=claim)
    kube: LoggedKube = field(default_factory=LoggedKube)
    seconds: float = 0.0

    def __post_init__(self) -> None:
        self.kube.objects[CLAIMS, key_of(self.owner)] = self.owner
        self._reads = Reads(Cache(self.kube).informer(CLAIMS), self._seen(), None)
        composed = rendered(child(WANTED, ready=False))
        self._reconciler = reconciler(self._reads, composed, self.kube, lambda: self.seconds)

    async def make_pass(self, *, live_child: Object | None = None) -> Result:
        """Make a pass that sees the child, if any, without an entry in the inventory."""
        seen = () if live_child is None else (replace(self._child, live=live_child),)
        self._reads.cached = self._seen(*seen)
        return await self._reconciler.reconcile(key_of(self.owner))

    def stored_child(self) -> Object:
        return next(obj for (resource, _), obj in self.kube.objects.items() if resource == DATABASES)

    @property
    def _child(self) -> ObservedChild:
        made = self.stored_child()
        return ObservedChild(msgspec.structs.replace(UNKNOWN, uid=uid_of(made)), made, self.facts)

    def _seen(self, *children: ObservedChild) -> Snapshot:
        return replace(snapshot(*children, of=self.owner), catalog={DATABASES.group_kind: self.facts})


async def test_the_first_status_of_a_claim_waits_half_a_second_for_a_provider_that_answers_at_once() -> None:
    new = _NewClaim(PROMPT)

    result = await new.make_pass()
    assert new.kube.verbs() == ["apply PostgreSQLInstance", "create PostgresDatabase"]
    assert result.requeue_after == timedelta(milliseconds=500)

    new.seconds = 0.3
    result = await new.make_pass(live_child=new.stored_child())
    assert result.requeue_after == timedelta(milliseconds=200)

    new.seconds = 0.5
    await new.make_pass(live_child=new.stored_child())
    # The child is not applied again: what was sent is known although no status has it.
    assert [verb for verb in new.kube.verbs() if verb != "apply PostgreSQLInstance"] == [
        "create PostgresDatabase",
        "status PostgreSQLInstance",
    ]
    status = next(operations[-1]["value"] for verb, _, operations in new.kube.written if verb == "status")
    (record,) = status["inventory"]
    assert record["uid"] == uid_of(new.stored_child())
    assert record["desired"]


@pytest.mark.parametrize(
    ("facts", "owner"),
    [
        pytest.param(DATABASE, claim(), id="a provider that takes minutes"),
        pytest.param(PROMPT, claim(status={"conditions": [{"type": "Ready", "status": "False"}]}), id="a later status"),
    ],
)
async def test_a_status_is_written_in_the_pass_that_creates(facts: KindFacts, owner: Object) -> None:
    new = _NewClaim(facts, owner)

    await new.make_pass()

    assert new.kube.verbs()[-1] == "status PostgreSQLInstance"
