"""Reconciles Compositions: checks each, keeps a revision of each content, holds the deletion of one in use."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any, Protocol

import msgspec

from composer import names
from composer.check import CheckRequest
from composer.choose import Revision
from composer.gather import Cluster
from composer.hashes import content_hash
from composer.kinds import Catalog
from composer.library import COMPOSITIONS, REVISIONS, Library
from composer.prepare import kinds_of
from composer.problems import Problem
from composer.reasons import Gravity, gravity
from composer.report import MISSING_PATIENCE
from runtime import finalizers
from runtime.cache import Informer
from runtime.conditions import Condition, find, merge
from runtime.errors import AlreadyExists, Conflict, NotFound
from runtime.events import EventRecorder
from runtime.objects import Key, Object, annotations_of, deleting, finalizers_of, generation_of, key_of, uid_of
from runtime.results import SETTLED, Result
from runtime.status import write_status

_IN_USE_POLL = timedelta(seconds=10)


class Checker(Protocol):
    """Checks in a place where a template can do no harm."""

    async def check(self, request: CheckRequest) -> tuple[Problem, ...]:
        """Check one Composition; raises Transient when the worker is lost."""


class CompositionReconciler:
    """One pass over one Composition: the only writer of its revisions."""

    def __init__(
        self, cluster: Cluster, library: Library, checker: Checker, events: EventRecorder, now: Callable[[], datetime]
    ) -> None:
        self._cluster = cluster
        self._library = library
        self._checker = checker
        self._events = events
        self._now = now
        self._claims: list[Informer] = []
        self._missing_since: dict[Key, datetime] = {}

    def count_in(self, claims: Informer) -> None:
        """Count the claims of one kind among the users of Compositions; the informer has the index `composition`."""
        self._claims.append(claims)

    async def reconcile(self, key: Key) -> Result:
        """Check a Composition and record its revision. Raises ApiError."""
        composition = self._library.compositions.store.get(key)
        if composition is None:
            return SETTLED
        if deleting(composition):
            return await self._let_go(composition)
        spec = composition.get("spec") or {}
        problems = await self._checker.check(CheckRequest(spec, relevant(self._cluster.catalog, spec)))
        if problems:
            return await self._refuse(composition, problems)
        self._missing_since.pop(key, None)
        composition = await self._hold(composition)
        revision = await self._record(composition, spec)
        ready = self._condition(composition, "Ready", "True", "Accepted", "checked; claims may use it")
        synced = self._condition(
            composition, "Synced", "True", "InSync", f"revision {revision.number} is {revision.name}"
        )
        await self._write(composition, [ready, synced], revision.name)
        return SETTLED

    async def _hold(self, composition: Object) -> Object:
        """Add the finalizer that holds a deletion while claims use the Composition."""
        if names.IN_USE_FINALIZER in finalizers_of(composition):
            return composition
        body = {
            "apiVersion": COMPOSITIONS.api_version,
            "kind": COMPOSITIONS.kind,
            "metadata": {
                "name": key_of(composition).name,
                "uid": uid_of(composition),
                "finalizers": [names.IN_USE_FINALIZER],
            },
        }
        try:
            made = await self._cluster.kube.apply(COMPOSITIONS, body, manager=names.OWN_MANAGER, force=True)
        except NotFound as error:
            raise Conflict("the Composition is gone") from error
        self._library.compositions.store.remember(made)
        return made

    async def _record(self, composition: Object, spec: dict[str, Any]) -> Revision:
        """Make the newest revision be this content: content seen before gets its old revision under a new number."""
        name, wanted = key_of(composition).name, content_hash(spec)
        known = self._library.revisions(name)
        newest = max(known, key=lambda each: each.number, default=None)
        if newest and content_hash(newest.composition) == wanted:
            await self._accept(newest.name)
            return newest
        number = newest.number + 1 if newest else 1
        revision = Revision(f"{name[:200]}-{wanted[:10]}", number, name, spec)
        body = {
            "apiVersion": REVISIONS.api_version,
            "kind": REVISIONS.kind,
            "metadata": {"name": revision.name},
            "spec": {"compositionName": name, "revision": number, "hash": wanted, "composition": spec},
        }
        if any(each.name == revision.name for each in known):
            made = await self._cluster.kube.apply(REVISIONS, body, manager=names.OWN_MANAGER, force=True)
        else:
            try:
                made = await self._cluster.kube.create(REVISIONS, body, manager=names.OWN_MANAGER)
            except AlreadyExists as error:
                raise Conflict(f"revision {revision.name} is not in the cache yet") from error
            self._events.emit(
                composition, type_="Normal", reason="RevisionCreated", message=f"revision {number} is {revision.name}"
            )
        self._library.revision_informer.store.remember(made)
        await self._accept(revision.name)
        return revision

    async def _accept(self, name: str) -> None:
        revision = self._library.revision_informer.store.get(Key("", name))
        if revision is None:
            return
        ready = self._condition(revision, "Ready", "True", "Accepted", "checked; claims may use it")
        synced = self._condition(revision, "Synced", "True", "InSync", "a copy of the past")
        conditions = merge((revision.get("status") or {}).get("conditions") or (), [ready, synced], self._now())
        status = {"observedGeneration": generation_of(revision), "conditions": conditions}
        made = await write_status(
            self._cluster.kube, REVISIONS, revision, status, manager=f"{names.OWN_MANAGER}/status"
        )
        if made:
            self._library.revision_informer.store.remember(made)

    async def _refuse(self, composition: Object, problems: tuple[Problem, ...]) -> Result:
        """Say what is wrong; the claims stay on the last good revision."""
        first, key = problems[0], key_of(composition)
        more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
        text = f"{first}{more}"
        now = self._now()
        waited = now - self._missing_since.setdefault(key, now)
        missing = gravity(first.reason) is Gravity.MISSING
        told = find(composition, "Stalled")
        abnormal = "Reconciling" if missing and waited < MISSING_PATIENCE and told is None else "Stalled"
        conditions = [
            self._condition(composition, "Ready", "False", first.reason, text),
            self._condition(composition, "Synced", "False", first.reason, text),
            self._condition(composition, abnormal, "True", first.reason, text),
        ]
        await self._write(composition, conditions, str((composition.get("status") or {}).get("revision") or ""))
        if abnormal != "Stalled":
            return Result(requeue_after=MISSING_PATIENCE - waited)
        if told is None or (told["reason"], told["message"]) != (first.reason, text):
            self._events.emit(composition, type_="Warning", reason=first.reason, message=text)
        return SETTLED

    async def _let_go(self, composition: Object) -> Result:
        if names.IN_USE_FINALIZER not in finalizers_of(composition):
            return SETTLED
        name = key_of(composition).name
        users = sum(len(claims.store.by_index("composition", name)) for claims in self._claims)
        if users:
            text = f"{users} claims use this Composition; its deletion waits until they are gone"
            conditions = [
                self._condition(composition, "Ready", "True", "Accepted", "checked; claims may use it"),
                self._condition(composition, "Synced", "False", "InUse", text),
                self._condition(composition, "Stalled", "True", "InUse", text),
            ]
            await self._write(composition, conditions, str((composition.get("status") or {}).get("revision") or ""))
            return Result(requeue_after=_IN_USE_POLL)
        operations = finalizers.removal(composition, names.IN_USE_FINALIZER)
        await self._cluster.kube.json_patch(COMPOSITIONS, Key("", name), operations, manager=names.OWN_MANAGER)
        return SETTLED

    def _condition(self, obj: Object, type_: str, status: Any, reason: str, message: str) -> Condition:
        return Condition(type_, status, reason, message, generation_of(obj))

    async def _write(self, composition: Object, conditions: list[Condition], revision: str) -> None:
        before = composition.get("status") or {}
        status: Object = {
            "observedGeneration": generation_of(composition),
            "conditions": merge(before.get("conditions") or (), conditions, self._now()),
        }
        if revision:
            status["revision"] = revision
        token = annotations_of(composition).get(names.RECONCILE_REQUESTED_AT)
        if token:
            status["lastHandledReconcileAt"] = token[:256]
        made = await write_status(
            self._cluster.kube, COMPOSITIONS, composition, status, manager=f"{names.OWN_MANAGER}/status"
        )
        if made:
            self._library.compositions.store.remember(made)


def relevant(kinds: Catalog, spec: dict[str, Any]) -> Catalog:
    """Return all kinds, but the schemas only of those that a Composition names: the rest may be megabytes."""
    claim = spec.get("compositeTypeRef") or {}
    group = str(claim.get("apiVersion", "")).rpartition("/")[0]
    named = kinds_of(spec) | {f"{claim.get('kind')}.{group}"}
    return {
        name: facts if name in named else msgspec.structs.replace(facts, schema=None) for name, facts in kinds.items()
    }
