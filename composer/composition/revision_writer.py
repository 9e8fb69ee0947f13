"""Keeps the revisions of Compositions: records each content, writes how far it has come, drops what nobody uses."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import msgspec

from apis import names
from composer.composition.revision import Revision
from composer.composition.rollout import superseded
from composer.composition.rollout_claims import RolloutClaim, rollout_claim_of
from composer.composition.store import Library, claim_kind
from composer.hashes import content_hash
from composer.kinds.catalog import KindFacts
from composer.kinds.cluster import Cluster
from composer.models import RolloutStatus
from runtime import finalizers
from runtime.cache import Informer
from runtime.conditions import Condition, merge
from runtime.errors import AlreadyExists, Conflict, NotFound
from runtime.events import EventRecorder
from runtime.objects import Key, Object, deleting, generation_of, key_of, uid_of, version_of
from runtime.preconditions import apply_metadata
from runtime.status import write_status

_CHUNK = 50


@dataclass(frozen=True, slots=True)
class Clock:
    """The wall clock and the events of one process."""

    now: Callable[[], datetime]
    events: EventRecorder


@dataclass(frozen=True, slots=True)
class Finalized:
    """How many deleted revisions lost their finalizer, and how many wait for claims."""

    gone: int
    waiting: int


class Revisions:
    """The only writer of CompositionRevisions."""

    def __init__(self, cluster: Cluster, library: Library, clock: Clock) -> None:
        self._cluster = cluster
        self._library = library
        self._clock = clock
        self.claims: list[Informer] = []

    def newest(self, composition: str) -> Revision | None:
        """Return the revision with the highest number, as the caches have it."""
        return max(self._library.revisions(composition), key=lambda revision: revision.number, default=None)

    async def record(
        self, composition: Object, spec: dict[str, Any], environments: Mapping[str, dict[str, str]]
    ) -> Revision:
        """Write this content as the newest revision: content seen before gets its old revision under a new number."""
        name, wanted = key_of(composition).name, _hash_of(spec, environments)
        newest = self.newest(name)
        if newest and content_hash(newest.composition) == content_hash(spec):
            if (newest.environments or {}) == environments:
                return newest
            if newest.environments is None:
                return await self._complete(newest, environments)
        number = newest.number + 1 if newest else 1
        revision = Revision(f"{name[:200]}-{wanted[:10]}", number, name, spec, environments=environments or None)
        stored = self._library.revision_informer.store.get(Key("", revision.name))
        content = {"compositionName": name, "revision": number, "hash": wanted, "composition": spec}
        body = _revision_object(
            revision.name, stored, content | ({"environments": environments} if environments else {})
        )
        if stored:
            made = await self._cluster.kube.apply(names.REVISIONS, body, manager=names.COMPOSER_MANAGER, force=True)
        else:
            try:
                made = await self._cluster.kube.create(names.REVISIONS, body, manager=names.COMPOSER_MANAGER)
            except AlreadyExists as error:
                raise Conflict(f"revision {revision.name} is not in the cache yet") from error
            text = f"revision {number} is {revision.name}"
            self._clock.events.emit(composition, type_="Normal", reason="RevisionCreated", message=text)
        self._library.revision_informer.store.remember(made)
        return revision

    async def _complete(self, revision: Revision, environments: Mapping[str, dict[str, str]]) -> Revision:
        """Add the environments to a revision of an earlier version, whose claims have read them live until now."""
        obj = self._object(revision)
        if obj is None:
            raise Conflict(f"revision {revision.name} is gone")
        body = _revision_object(revision.name, obj, {**obj["spec"], "environments": environments})
        made = await self._cluster.kube.apply(names.REVISIONS, body, manager=names.COMPOSER_MANAGER, force=True)
        self._library.revision_informer.store.remember(made)
        return replace(revision, environments=environments)

    async def report(self, name: str, conditions: list[Condition], state: RolloutStatus | None) -> None:
        """Write the status of a revision when it differs. `conditions` are of the Composition's generation."""
        revision = self._library.revision_informer.store.get(Key("", name))
        if revision is None:
            return
        rollout = msgspec.json.decode(msgspec.json.encode(state)) if state is not None else None
        await self._write(revision, await self._in_use_conditions(revision) or conditions, rollout)

    async def _write(self, revision: Object, conditions: list[Condition], rollout: Any) -> None:
        before, generation = revision.get("status") or {}, generation_of(revision)
        own = [
            Condition(condition.type, condition.status, condition.reason, condition.message, generation)
            for condition in conditions
        ]
        status: Object = {
            "observedGeneration": generation,
            "conditions": merge(before.get("conditions") or (), own, self._clock.now()),
        }
        if rollout is not None:
            status["rollout"] = rollout
        manager = f"{names.COMPOSER_MANAGER}/status"
        made = await write_status(self._cluster.kube, names.REVISIONS, revision, status, manager=manager)
        if made:
            self._library.revision_informer.store.remember(made)

    async def retire(self, newest: Revision, conditions: list[Condition]) -> None:
        """Report on all revisions before the newest that nothing moves to them any more."""
        for earlier in self._library.revisions(newest.composition_name):
            if earlier.number < newest.number:
                await self.report(earlier.name, conditions, superseded(earlier.rollout, self._clock.now()))

    async def add_finalizers(self, composition: str) -> None:
        """Add the finalizer that holds the deletion of a revision in use where an earlier version left it out."""
        for revision in self._library.revisions(composition):
            obj = None if revision.is_deleted or revision.is_kept else self._object(revision)
            if obj is None:
                continue
            body = _revision_object(revision.name, obj, obj["spec"])
            try:
                made = await self._cluster.kube.apply(names.REVISIONS, body, manager=names.COMPOSER_MANAGER, force=True)
            except NotFound as error:
                raise Conflict(f"revision {revision.name} is gone") from error
            self._library.revision_informer.store.remember(made)

    async def finalize(self, composition: str) -> Finalized:
        """Remove the finalizer of deleted revisions that no claim uses, and report of the others how many do."""
        gone, waiting = 0, 0
        for revision in self._library.revisions(composition):
            obj = self._object(revision) if revision.is_deleted and revision.is_kept else None
            if obj is None:
                continue
            in_use = await self._in_use_conditions(obj)
            if in_use:
                waiting += 1
                await self._write(obj, in_use, (obj.get("status") or {}).get("rollout"))
                continue
            operations = finalizers.removal(obj, names.IN_USE_FINALIZER)
            with suppress(NotFound):
                await self._cluster.kube.json_patch(
                    names.REVISIONS, key_of(obj), operations, manager=names.COMPOSER_MANAGER
                )
            gone += 1
        return Finalized(gone, waiting)

    def _object(self, revision: Revision) -> Object | None:
        return self._library.revision_informer.store.get(Key("", revision.name))

    async def _in_use_conditions(self, revision: Object) -> list[Condition]:
        """Return the conditions of a revision that is being deleted while claims use it; none for any other."""
        if not deleting(revision):
            return []
        spec, name = revision.get("spec") or {}, key_of(revision).name
        composition = str(spec.get("compositionName") or "")
        finished = {other.name for other in self._library.revisions(composition) if other.is_finished}
        users = [name in _held_by(claim, finished) async for claim in self._claims(composition)].count(True)
        is_known = self.knows_claims(spec.get("composition") or {})
        if is_known and not users:
            return []
        who = f"{users} claims use it, are pinned to it or may go back to it" if is_known else "nobody can list claims"
        text = f"{who}; its deletion waits until none does, and moves none"
        return [
            Condition("Ready", "True", "Accepted", "checked; claims may use it", 0),
            Condition("Synced", "False", "InUse", text, 0),
            Condition("Stalled", "True", "InUse", text, 0),
        ]

    async def prune(self, composition: str, limit: int) -> None:
        """Delete the oldest revisions beyond `limit` that no claim uses, came from, or is pinned to."""
        known = sorted(self._library.revisions(composition), key=lambda revision: revision.number)
        finished = [revision.name for revision in known if revision.is_finished]
        if len(known) <= limit + 1 or not self.knows_claims(known[-1].composition):
            return
        kept = {known[-1].name, *finished[-1:]}
        async for claim in self._claims(composition):
            kept |= _revisions_of(claim)
        spare = [revision for revision in known if revision.name not in kept]
        for revision in spare[: max(len(spare) - limit, 0)]:
            try:
                obj = await self._cluster.kube.get(names.REVISIONS, Key("", revision.name))
                if not deleting(obj) and (obj.get("spec") or {}).get("revision") == revision.number:
                    await self._cluster.kube.delete(
                        names.REVISIONS, Key("", revision.name), uid=uid_of(obj), resource_version=version_of(obj)
                    )
            except NotFound:
                continue

    async def rollout_claims(self, revision: Revision) -> tuple[RolloutClaim, ...] | None:
        """Return the claims that a rollout is about; None while not all are known."""
        if not self.knows_claims(revision.composition):
            return None
        now, claims = self._clock.now(), list[RolloutClaim]()
        async for claim in self._claims(revision.composition_name, with_undecided=False):
            rollout_claim = rollout_claim_of(claim, revision.name, now)
            if rollout_claim is not None:
                claims.append(rollout_claim)
        return tuple(claims)

    def knows_claims(self, composition: Mapping[str, Any]) -> bool:
        """Return whether all claims of the kind that a Composition serves are listed."""
        kind = claim_kind(composition)
        listed = [claims.synced.is_set() for claims in self.claims if claims.resource.group_kind == kind]
        return are_known(self._cluster.catalog.get(kind), listed)

    async def _claims(self, composition: str, *, with_undecided: bool = True) -> AsyncIterator[Object]:
        """Yield claims from the caches, in parts, so that no other work waits for thousands of them."""
        values = (composition, "") if with_undecided else (composition,)
        for informer in self.claims:
            keys = [key for value in values for key in informer.store.by_index("composition", value)]
            for count, key in enumerate(keys, start=1):
                claim = informer.store.get(key)
                if claim is not None:
                    yield claim
                if count % _CHUNK == 0:
                    await asyncio.sleep(0)


def _hash_of(spec: Mapping[str, Any], environments: Mapping[str, Mapping[str, str]]) -> str:
    """Return the hash of a content; without environments it is that of the Composition's spec alone."""
    return content_hash({"composition": spec, "environments": environments} if environments else spec)


def are_known(facts: KindFacts | None, listed: Sequence[bool]) -> bool:
    """Return whether all claims of a kind are known: of one that is not there nobody has any.

    `listed`: for each watch of its claims, whether that has a complete list.
    """
    return all(listed) if listed else facts is None or not facts.abstract


def _held_by(claim: Object, finished: AbstractSet[str]) -> set[str]:
    """Return the revisions whose deletion a claim holds: where it is, is pinned, or may still go back to."""
    in_use = (claim.get("status") or {}).get("composition") or {}
    pin = (claim.get("spec") or {}).get("compositionRevisionRef") or {}
    rollback_target = None if in_use.get("revision") in finished else in_use.get("previous")
    return {str(name) for name in (in_use.get("revision"), rollback_target, pin.get("name")) if name}


def _revisions_of(claim: Object) -> set[str]:
    """Return the revisions that a claim holds on to."""
    in_use = (claim.get("status") or {}).get("composition") or {}
    pin = (claim.get("spec") or {}).get("compositionRevisionRef") or {}
    return {str(name) for name in (in_use.get("revision"), in_use.get("previous"), pin.get("name")) if name}


def _revision_object(name: str, stored: Object | None, spec: Object) -> Object:
    """Return a revision to create or to apply: whoever deletes it, it stays while a claim uses it."""
    meta = {"name": name, "finalizers": [names.IN_USE_FINALIZER], **(apply_metadata(stored) if stored else {})}
    return {"apiVersion": names.REVISIONS.api_version, "kind": names.REVISIONS.kind, "metadata": meta, "spec": spec}
