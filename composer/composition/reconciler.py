"""Reconciles Compositions: checks each, rolls its newest revision out, holds the deletion of one in use."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, Protocol, assert_never

import msgspec
from msgspec import UnsetType

from apis import names
from apis.pause import is_paused, pause_end
from apis.reasons import MISSING_PATIENCE, ReasonClass, class_of_claim
from composer.composition.revision import Revision, kinds_of, readable, reused_names
from composer.composition.revision_writer import Clock, Revisions
from composer.composition.rollout import Course, advance, conditions_of, sentence
from composer.composition.rollout_claims import RolloutClaim
from composer.composition.store import Library, claim_kind
from composer.hashes import digest
from composer.kinds.catalog import Catalog
from composer.kinds.cluster import Cluster
from composer.kinds.rights import Rights
from composer.models import Offerings, Rollout, RolloutStatus
from composer.render.errors import CompositionError, Problem
from composer.validation.validate import CheckRequest
from runtime import clock, finalizers
from runtime.cache import Informer
from runtime.conditions import Condition, find, merge
from runtime.errors import Conflict, NotFound
from runtime.events import EventRecorder
from runtime.objects import (
    Key,
    Object,
    annotations_of,
    deleting,
    dumps,
    finalizers_of,
    generation_of,
    key_of,
    loads,
    status_of,
)
from runtime.preconditions import apply_metadata
from runtime.results import SETTLED, Result
from runtime.status import write_status

HISTORY_LIMIT = 10
_ENVIRONMENTS_BYTES = 512 * 1024
_IN_USE_POLL = timedelta(seconds=10)
_INTERVAL = timedelta(seconds=1)
_INTERVAL_PER_CLAIM = timedelta(milliseconds=2)
_SLOW_INTERVAL = timedelta(seconds=10)


class Checker(Protocol):
    """Checks in a place where a template can do no harm."""

    async def check(self, request: CheckRequest) -> tuple[Problem, ...]:
        """Check one Composition; raises Transient when the worker is lost."""

    async def offerings(self, request: CheckRequest) -> Offerings:
        """Return what claims may ask for; raises CompositionError where it cannot be said, or Transient."""


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
        self._revisions = Revisions(cluster, library, Clock(now, events))
        # Whether the claims of a kind (`Kind.group`) cannot be listed.
        self.is_unlistable: Callable[[str], bool] = lambda _: False
        self._rights = Rights(cluster.kube, monotonic=clock.monotonic, granted=cluster.watches.retry)
        self._checked: dict[Key, tuple[Catalog, CheckRequest, str]] = {}
        self._offered: dict[Key, Object] = {}
        self._missing_since: dict[Key, datetime] = {}

    def add(self, claims: Informer) -> None:
        """Count the claims of one kind among the users of Compositions; the informer has the index `composition`."""
        self._revisions.claims.append(claims)

    def remove(self, claims: Informer) -> None:
        """Forget the claims of a kind that is served no longer."""
        self._revisions.claims.remove(claims)

    async def reconcile(self, key: Key) -> Result:
        """Check a Composition, record its revision and bring that a step further. Raises ApiError."""
        composition = self._library.compositions.store.get(key)
        ended = await self._revisions.finalize(key.name)
        if ended.gone:
            # The caches will know in a moment.
            return Result(requeue_after=_INTERVAL)
        result = await self._reconcile(key, composition)
        return _sooner(result, _IN_USE_POLL) if ended.waiting else result

    async def _reconcile(self, key: Key, composition: Object | None) -> Result:
        if composition is None:
            self._checked.pop(key, None)
            self._offered.pop(key, None)
            return SETTLED
        if deleting(composition):
            return await self._finalize(composition)
        spec = composition.get("spec") or {}
        environments = self._environments(spec)
        problems = self._unrecordable(key, spec, environments) or await self._problems(key, spec, environments)
        problems = problems or self._unlistable(composition)
        if problems:
            return await self._refuse(composition, problems)
        resources, catalog = spec.get("resources") or (), self._cluster.catalog
        denied = await self._rights.denied(resources, catalog, is_requested=_is_requested(composition))
        if denied is not None:
            return _sooner(await self._refuse(composition, denied.problems), denied.again)
        self._missing_since.pop(key, None)
        composition = await self._add_finalizer(composition)
        await self._revisions.add_finalizers(key.name)
        revision = await self._revisions.record(composition, spec, environments)
        state, conditions, result = await self._roll_out(composition, revision)
        if state is None or state.phase == "Finished":
            synced = f"revision {revision.number} is {revision.name}"
            conditions.append(self._condition(composition, "Synced", "True", "InSync", synced))
        ready = self._condition(composition, "Ready", "True", "Accepted", "checked; claims may use it")
        await self._write(composition, [ready, *conditions], revision.name, await self._offerings(composition))
        await self._revisions.prune(key.name, int(spec.get("revisionHistoryLimit", HISTORY_LIMIT)))
        return result

    def _environments(self, spec: dict[str, Any]) -> dict[str, dict[str, str]]:
        """Return the environments of a content that are there."""
        named = {name: self._library.environment(name) for name in spec.get("environments") or ()}
        return {name: data for name, data in named.items() if data is not None}

    def _unrecordable(
        self, key: Key, spec: dict[str, Any], environments: dict[str, dict[str, str]]
    ) -> tuple[Problem, ...]:
        """Return which environments are gone that claims have, who go on with what they have of them; or too large."""
        path = "spec.environments"
        newest = self._revisions.newest(key.name)
        recorded = (newest.environments or {}) if newest else {}
        gone = [name for name in spec.get("environments") or () if name in recorded and name not in environments]
        if gone:
            text = (
                f"ConfigMap {', '.join(gone)} of Fairlead's namespace is gone; claims go on with what they have of it"
            )
            return (Problem("EnvironmentNotFound", text, path),)
        size = len(dumps(environments))
        if size > _ENVIRONMENTS_BYTES:
            text = f"the environments have {size} bytes, and a revision holds at most {_ENVIRONMENTS_BYTES} of them"
            return (Problem("RenderLimit", text, path),)
        return ()

    async def _problems(
        self, key: Key, spec: dict[str, Any], environments: dict[str, dict[str, str]]
    ) -> tuple[Problem, ...]:
        """Check a content once for each state of kinds and environments: a rollout looks often."""
        catalog = self._cluster.catalog
        known = self._checked.get(key)
        if known and known[0] is catalog and (known[1].composition, known[1].environments) == (spec, environments):
            return ()
        request = CheckRequest(spec, relevant(catalog, spec), environments)
        problems = await self._checker.check(request) or reused_names(spec, self._library.revisions(key.name))
        self._checked.pop(key, None)
        if not problems:
            self._checked[key] = (catalog, request, _content_of(request))
        return problems

    async def _offerings(self, composition: Object) -> Object:
        """Return what claims may ask for by an accepted content: computed once for it, whoever starts the process."""
        key = key_of(composition)
        _, request, content = self._checked[key]
        # Of a CRD from before there were offers the API server drops them.
        for known in (status_of(composition).get("offers") or {}, self._offered.get(key) or {}):
            if known.get("hash") == content:
                return dict(known)
        try:
            offerings = await self._checker.offerings(request)
        except CompositionError:
            # What cannot be said of it is no reason against it, and nothing to be computed in every pass.
            offerings = Offerings()
        self._offered[key] = {**loads(dumps(offerings)), "hash": content}
        return self._offered[key]

    def _unlistable(self, composition: Object) -> tuple[Problem, ...]:
        """Return that the claims cannot be listed; when they can, the Composition is reconciled again."""
        kind = claim_kind(composition.get("spec") or {})
        if not self.is_unlistable(kind):
            return ()
        if _is_requested(composition):
            for claims in self._revisions.claims:
                if claims.resource.group_kind == kind:
                    claims.retry_now(granted=True)
        text = f"claims of {kind} cannot be listed: may the composer read them? (label {names.AGGREGATE_LABEL})"
        return (Problem("KindNotAllowed", text, "spec.compositeTypeRef"),)

    async def _roll_out(
        self, composition: Object, revision: Revision
    ) -> tuple[RolloutStatus | None, list[Condition], Result]:
        """Bring the newest revision a step further; return its state, its conditions, and when to look again."""
        rules = _rules(revision)
        accepted = self._condition(composition, "Ready", "True", "Accepted", "checked; claims may use it")
        past = self._condition(composition, "Synced", "True", "InSync", "a copy of the past")
        await self._revisions.retire(revision, [accepted, past])
        if rules is None:
            await self._revisions.report(revision.name, [accepted, past], None)
            return None, [], SETTLED
        before, is_requested = revision.state, _is_requested(composition)
        rollout_claims: tuple[RolloutClaim, ...] = ()
        if before is not None and (before.phase == "Finished" or (before.phase == "Halted" and not is_requested)):
            state = before
        else:
            listed = await self._revisions.rollout_claims(revision)
            if listed is None:
                unchanged = self._conditions(composition, before) if before else []
                return before, unchanged, Result(requeue_after=_INTERVAL)
            rollout_claims = listed
            paused = is_paused(annotations_of(composition), self._now())
            course = Course(revision.name, revision.number, rules, is_requested, paused)
            state = advance(course, before, rollout_claims, self._now())
        conditions = self._conditions(composition, state)
        await self._revisions.report(revision.name, [accepted, *(conditions or [past])], state)
        self._emit_phase(composition, before, state)
        if state.phase == "Paused":
            end = pause_end(annotations_of(composition))
            return state, conditions, Result(requeue_after=max(end - self._now(), _INTERVAL)) if end else SETTLED
        return state, conditions, Result(requeue_after=_requeue_after(state, len(rollout_claims)))

    def _emit_phase(self, composition: Object, before: RolloutStatus | None, state: RolloutStatus) -> None:
        if before is None or before.phase == state.phase:
            return
        match state.phase:
            case "Finished":
                self._events.emit(composition, type_="Normal", reason="RolloutFinished", message=sentence(state))
            case "Halted" | "Reverted":
                self._events.emit(composition, type_="Warning", reason="RolloutHalted", message=sentence(state))
            case "Progressing" | "Soaking" | "Paused" | "Superseded":
                pass
            case _:
                assert_never(state.phase)

    async def _add_finalizer(self, composition: Object) -> Object:
        """Add the finalizer that holds a deletion while claims use the Composition."""
        if names.IN_USE_FINALIZER in finalizers_of(composition):
            return composition
        body = {
            "apiVersion": names.COMPOSITIONS.api_version,
            "kind": names.COMPOSITIONS.kind,
            "metadata": {
                "name": key_of(composition).name,
                **apply_metadata(composition),
                "finalizers": [names.IN_USE_FINALIZER],
            },
        }
        try:
            made = await self._cluster.kube.apply(names.COMPOSITIONS, body, manager=names.COMPOSER_MANAGER, force=True)
        except NotFound as error:
            raise Conflict("the Composition is gone") from error
        self._library.compositions.store.remember(made)
        return made

    async def _refuse(self, composition: Object, problems: tuple[Problem, ...]) -> Result:
        """Report what is wrong; the claims stay on the last good revision."""
        first, key = problems[0], key_of(composition)
        more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
        text = f"{first}{more}"
        now = self._now()
        waited = now - self._missing_since.setdefault(key, now)
        missing = class_of_claim(first.reason) is ReasonClass.MISSING
        stalled = find(composition, "Stalled")
        abnormal = "Reconciling" if missing and waited < MISSING_PATIENCE and stalled is None else "Stalled"
        conditions = [
            self._condition(composition, "Ready", "False", first.reason, text),
            self._condition(composition, "Synced", "False", first.reason, text),
            self._condition(composition, abnormal, "True", first.reason, text),
        ]
        newest = self._revisions.newest(key.name)
        # A bad edit stops no rollout of what was good before it.
        result = (await self._roll_out(composition, newest))[2] if newest else SETTLED
        await self._write(composition, conditions, str((composition.get("status") or {}).get("revision") or ""))
        if abnormal != "Stalled":
            return Result(requeue_after=min(MISSING_PATIENCE - waited, result.requeue_after or MISSING_PATIENCE))
        if stalled is None or (stalled["reason"], stalled["message"]) != (first.reason, text):
            self._events.emit(composition, type_="Warning", reason=first.reason, message=text)
        return result

    async def _finalize(self, composition: Object) -> Result:
        if names.IN_USE_FINALIZER not in finalizers_of(composition):
            return SETTLED
        name = key_of(composition).name
        users = sum(len(claims.store.by_index("composition", name)) for claims in self._revisions.claims)
        is_known = self._revisions.knows_claims(composition.get("spec") or {})
        if users or not is_known:
            how_many = f"{users} claims use" if is_known else "nobody can list the claims that may use"
            text = f"{how_many} this Composition; its deletion waits until they are gone"
            conditions = [
                self._condition(composition, "Ready", "True", "Accepted", "checked; claims may use it"),
                self._condition(composition, "Synced", "False", "InUse", text),
                self._condition(composition, "Stalled", "True", "InUse", text),
            ]
            await self._write(composition, conditions, str((composition.get("status") or {}).get("revision") or ""))
            return Result(requeue_after=_IN_USE_POLL)
        operations = finalizers.removal(composition, names.IN_USE_FINALIZER)
        await self._cluster.kube.json_patch(
            names.COMPOSITIONS, Key("", name), operations, manager=names.COMPOSER_MANAGER
        )
        return SETTLED

    def _condition(self, obj: Object, type_: str, status: Any, reason: str, message: str) -> Condition:
        return Condition(type_, status, reason, message, generation_of(obj))

    def _conditions(self, composition: Object, state: RolloutStatus) -> list[Condition]:
        generation = generation_of(composition)
        return [replace(condition, observed_generation=generation) for condition in conditions_of(state)]

    async def _write(
        self, composition: Object, conditions: list[Condition], revision: str, offerings: Object | None = None
    ) -> None:
        before = composition.get("status") or {}
        status: Object = {
            "observedGeneration": generation_of(composition),
            "conditions": merge(before.get("conditions") or (), conditions, self._now()),
        }
        if revision:
            status["revision"] = revision
        offerings = offerings or before.get("offers")
        if offerings:
            status["offers"] = offerings
        token = annotations_of(composition).get(names.RECONCILE_REQUESTED_AT)
        if token:
            status["lastHandledReconcileAt"] = token[:256]
        made = await write_status(
            self._cluster.kube, names.COMPOSITIONS, composition, status, manager=f"{names.COMPOSER_MANAGER}/status"
        )
        if made:
            self._library.compositions.store.remember(made)


def _rules(revision: Revision) -> Rollout | None:
    spec = readable(revision.composition)
    return None if spec is None or isinstance(spec.rollout, UnsetType) else spec.rollout


def _is_requested(composition: Object) -> bool:
    token = annotations_of(composition).get(names.RECONCILE_REQUESTED_AT, "")[:256]
    return bool(token) and token != (composition.get("status") or {}).get("lastHandledReconcileAt")


def _sooner(result: Result, pause: timedelta) -> Result:
    return Result(requeue_after=pause if result.requeue_after is None else min(pause, result.requeue_after))


def _requeue_after(state: RolloutStatus, rollout_claims: int) -> timedelta | None:
    """Return when to look at the claims again: the more there are, the later."""
    match state.phase:
        case "Progressing" if (state.paused or state.failures) and not (state.through or state.everyone):
            return max(_SLOW_INTERVAL, _INTERVAL_PER_CLAIM * rollout_claims)
        case "Progressing" | "Soaking":
            return max(_INTERVAL, _INTERVAL_PER_CLAIM * rollout_claims)
        case "Reverted" if state.updated:
            return max(_SLOW_INTERVAL, _INTERVAL_PER_CLAIM * rollout_claims)
        case _:
            return None


def _content_of(request: CheckRequest) -> str:
    """Return a digest of all that offers are computed of."""
    schemas = {name: facts.schema for name, facts in request.catalog.items() if facts.schema is not None}
    return digest([request.composition, request.environments, schemas])


def relevant(kinds: Catalog, spec: dict[str, Any]) -> Catalog:
    """Return all kinds, but the schemas only of those that a Composition names: the rest may be megabytes."""
    claim = spec.get("compositeTypeRef") or {}
    group = str(claim.get("apiVersion", "")).rpartition("/")[0]
    named = kinds_of(spec) | {f"{claim.get('kind')}.{group}"}
    return {
        name: facts
        if name in named
        else msgspec.structs.replace(facts, schema=None, converted=dict.fromkeys(facts.converted))
        for name, facts in kinds.items()
    }
