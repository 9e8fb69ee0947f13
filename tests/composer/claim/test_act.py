"""What an actor makes of a refused write."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

import pytest

from apis import names
from composer.claim.act import Actor
from composer.claim.decide import Adopt, Apply, Create
from composer.claim.field_conflicts import still_yielded, without
from composer.claim.snapshot import ObservedChild, Snapshot
from composer.hashes import sent_hash
from runtime.conditions import timestamp
from runtime.errors import AlreadyExists, ApiError, NotFound, WriteConflict
from runtime.objects import Key, Object, Resource
from tests.composer import factories


@dataclass(frozen=True)
class _Refusing:
    """An API server that refuses every patch."""

    refusal: Callable[[str], ApiError]

    async def json_patch(self, *_args: Any, **_options: Any) -> Any:
        raise self.refusal("refused")

    async def get(self, *_args: Any, **_options: Any) -> Any:
        return factories.live(factories.desired(), uid="another-uid")


def _requested() -> Snapshot:
    claim = factories.claim(annotations={names.RECONCILE_REQUESTED_AT: "now"})
    return factories.snapshot(
        ObservedChild(factories.entry(), factories.live(factories.desired()), factories.DATABASE), of=claim
    )


def _actor(refusal: Callable[[str], ApiError]) -> Actor:
    port: Any = _Refusing(refusal)
    return Actor(port, now=lambda: datetime.now(UTC), remember=lambda _kind, _obj, _over: None)


async def test_a_request_is_not_acknowledged_while_a_child_that_changed_meanwhile_lacks_it() -> None:
    with pytest.raises(WriteConflict):
        await _actor(WriteConflict).propagate_request(_requested())


async def test_a_request_skips_a_child_that_is_gone() -> None:
    snapshot = _requested()

    assert await _actor(NotFound).propagate_request(snapshot) is snapshot


async def test_a_first_apply_concerns_the_observed_child_and_no_other_of_its_name() -> None:
    wanted = factories.desired()
    step = Apply(factories.entry(), factories.DATABASE, wanted, factories.live(wanted))

    (outcome,) = await _actor(NotFound).act(factories.snapshot(), (step,))

    assert isinstance(outcome.error, WriteConflict)


# Fields that somebody else holds

EDITED = factories.desired(spec={"limit": 30})
NOON = datetime(2026, 11, 22, 12, tzinfo=UTC)


@dataclass
class _Taking:
    """An API server that takes every apply; somebody changes the field afterwards, or removes it."""

    applied: list[Object] = field(default_factory=list)

    async def apply(self, _resource: Any, obj: Object, *, manager: str, force: bool) -> Object:  # noqa: ARG002 - the port has it
        assert force
        self.applied.append(obj)
        return factories.live({**obj, "metadata": {**EDITED["metadata"]}})


def _taking() -> tuple[_Taking, Actor, Snapshot]:
    kube = _Taking()
    port: Any = kube
    return kube, Actor(port, now=lambda: NOON, remember=lambda _kind, _obj, _over: None), factories.snapshot()


def _cached(obj: Object, *managers: Object, **meta: Any) -> Object:
    """Return a child as the cache has it: with the managers that are not Fairlead's."""
    return factories.live(obj, managedFields=list(managers), **meta)


def _holder(manager: str, operation: str) -> Object:
    """Return the entry of managedFields of a manager that set the field."""
    return {"manager": manager, "operation": operation, "fieldsV1": {"f:spec": {"f:limit": {}}}}


def _edit(*managers: Object, applied: bool = False) -> Apply:
    entry = factories.entry(desired=sent_hash(factories.desired()), applied=applied)
    return Apply(entry, factories.DATABASE, EDITED, _cached(factories.desired(spec={"limit": 7}), *managers))


@pytest.mark.parametrize(("operation", "taken"), [("Update", 10), ("Apply", 3)])
async def test_a_field_is_yielded_to_a_rival_that_takes_it_again_and_again(operation: str, taken: int) -> None:
    kube, actor, snapshot = _taking()
    step, warned = _edit(_holder("gadget-operator", operation), applied=True), 0
    for _ in range(30):
        (outcome,) = await actor.act(snapshot, (step,))
        assert outcome.entry is not None
        warned += len(outcome.notes)
        sent = without(EDITED, still_yielded(outcome.entry.yielded, timestamp(NOON)))
        step = replace(step, entry=outcome.entry, object=sent)

    assert warned == taken
    assert [field.manager for field in step.entry.yielded] == ["gadget-operator"]
    assert sum("limit" in obj["spec"] for obj in kube.applied) == taken


@dataclass
class _Uncached(_Taking):
    """An API server from which a child that is not in the cache is read with its managers."""

    read: list[str] = field(default_factory=list)

    async def get(self, resource: Resource, _key: Key) -> Object:
        self.read.append(resource.version)
        return _cached(factories.desired(), _holder("gadget-operator", "Apply"))


async def test_the_managers_of_a_child_that_was_not_in_the_cache_are_read_before_it_is_applied() -> None:
    kube = _Uncached()
    port: Any = kube
    actor = Actor(port, now=lambda: NOON, remember=lambda _kind, _obj, _over: None)
    step = replace(_edit(applied=True), live=factories.live(factories.desired()))

    (outcome,) = await actor.act(factories.snapshot(), (step,))

    assert (len(kube.read), len(kube.applied)) == (1, 1)
    assert [note.reason for note in outcome.notes] == ["FieldTakenBack"]


@dataclass
class _Taken:
    """An API server that takes every JSON patch, and that has an object of every name that is created."""

    live: Object

    async def json_patch(self, *_args: Any, **_options: Any) -> Object:
        return self.live

    async def create(self, *_args: Any, **_options: Any) -> Object:
        raise AlreadyExists("it is there")

    async def get(self, *_args: Any, **_options: Any) -> Object:
        return self.live


@pytest.mark.parametrize("verb", ["adopt", "create"])
async def test_the_event_of_an_object_that_is_taken_over_starts_the_pass_that_applies_it(verb: str) -> None:
    """The watch shows it as a new object, whose event a remembered answer would make an echo."""
    wanted = factories.desired()
    live = factories.live(wanted)
    entry = factories.entry(uid="" if verb == "create" else "child-uid")
    step = Create(entry, factories.DATABASE, wanted) if verb == "create" else Adopt(entry, factories.DATABASE, live)
    port: Any = _Taken(live)
    remembered = list[Object]()
    actor = Actor(port, now=lambda: NOON, remember=lambda _kind, obj, _over: remembered.append(obj))

    (outcome,) = await actor.act(factories.snapshot(), (step,))

    assert (outcome.error, outcome.cause) == (None, None)
    assert outcome.entry is not None
    assert not outcome.entry.applied
    assert remembered == []


async def test_an_edit_of_the_claim_is_applied_also_while_somebody_removes_its_fields() -> None:
    kube, actor, snapshot = _taking()
    entry = factories.entry(desired=sent_hash(EDITED), applied=True)
    step = Apply(entry, factories.DATABASE, EDITED, _cached(factories.desired()))
    for _ in range(12):
        await actor.act(snapshot, (step,))

    newer = replace(step, object=factories.desired(spec={"limit": 31}))
    (outcome,) = await actor.act(snapshot, (newer,))

    assert outcome.cause is None
    assert len(kube.applied) == 11
