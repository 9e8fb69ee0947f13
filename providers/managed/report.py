"""Every status that a pass writes: before its calls, after them, and where it failed. Pure.

The status is whole, redacted, and stable between passes in which nothing happened.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Literal

from msgspec import UNSET

from apis import connection
from apis.connection import Connection, SecretRef
from apis.identity import CA_KEY, credentials_secret_key
from apis.names import ACCOUNT, INCARNATION, RECONCILE_REQUESTED_AT
from apis.reasons import BY_STATE, UNUSABLE, ReasonClass, class_of_managed, deadline_of
from providers.accounts.destroys import MADE_AT
from providers.credentials.passwords import Introduce, Kept, keyed_hash
from providers.credentials.secret_check import coming_hash, still_coming
from providers.external import observed_status
from providers.external.consent import USED_CONSENTS, consents_given, written_consents
from providers.external.credential import Login
from providers.external.diff import joined_keys, shared_keys
from providers.external.observation import Present, digest, is_known_as, unknown_of
from providers.managed import drift, record, revival, unanswered
from providers.managed.decisions import adoption
from providers.managed.decisions.plan import Adopt, Create, Delete, Plan, Refuse, Update
from providers.managed.inputs import Inputs, proven_versions
from providers.managed.outcome import (
    Event,
    Outcome,
    calls_of,
    consents_used_by_create,
    consents_used_now,
    last_seen_after,
    seen,
)
from providers.managed.record import Intent
from providers.managed.summary import Summary, is_usable, login_of, still_cut_off, summary_of, with_refused_login
from providers.settings import Settings
from runtime.conditions import Condition, find, instant, merge, timestamp
from runtime.objects import Object, annotations_of, deleting, generation_of, key_of, status_of

LONGEST_MESSAGE = 1024


@dataclass(frozen=True, slots=True)
class Report:
    """What a pass reports: the whole status, and the events of what is new in it."""

    status: Object
    events: tuple[Event, ...] = ()


def report(inputs: Inputs[Any], plan: Plan, outcome: Outcome[Any], settings: Settings) -> Report:
    """Return the report of a pass over a resource: of a living, a paused or a deleted one, of a plan that was refused.

    `inputs` and `plan` are those after the calls; of a plan that was refused they are those before.
    """
    if outcome.failure is None:
        summary = summary_of(inputs, plan)
    else:
        unknown = unknown_of(outcome.failure)
        summary = Summary(unknown.reason, unknown.message)
    status = _status(inputs, plan, summary, outcome, settings)
    return Report(status, _events(outcome.obj, summary, status))


def report_failed_pass(
    obj: Object, cause: tuple[str, str], now: datetime, *, is_stalled: bool = False, is_unseen: bool = False
) -> Report:
    """Return the report of a pass that ended in an error: all else in the status stays, since nothing is known.

    Ready stays as it is, but for what `is_unseen` by anybody once that is Stalled. What `is_stalled`, or lasts longer
    than its reason may, is Stalled.
    """
    summary, generation = Summary(*cause), generation_of(obj)
    reason, message = cause
    ready, before = find(obj, "Ready"), status_of(obj).get("conditions") or []
    is_overdue = _is_overdue(obj, summary, now)
    kind: Literal["Reconciling", "Stalled"] = "Stalled" if is_stalled or is_overdue else "Reconciling"
    conditions = [
        Condition("Ready", "False", reason, message, generation)
        if ready is None or (is_unseen and kind == "Stalled")
        else Condition(
            "Ready", ready["status"], ready["reason"], ready["message"], ready.get("observedGeneration", generation)
        ),
        Condition("Synced", "False", reason, message, generation),
        Condition(kind, "True", reason, message, generation),
    ]
    if not _is_repeated(find(obj, "Reconciling"), summary):
        before = [condition for condition in before if condition.get("type") != "Reconciling"]
    return Report({**status_of(obj), "conditions": merge(before, conditions, now)})


def report_doubt(obj: Object, now: datetime) -> Report:
    """Return the report of a pass over what says no longer which claim it was made for: nobody looks at it."""
    return report_failed_pass(obj, record.unknown_claim(obj), now, is_stalled=deleting(obj), is_unseen=True)


def status_with_intent(inputs: Inputs[Any], plan: Plan, obj: Object, settings: Settings, now: datetime) -> Object:
    """Return the status of `obj` with every call of the pass, and with all that the next process must know of them."""
    not_after = now + settings.call_budget + settings.skew
    intent = Intent(record.INTENT_FORMAT, settings.process, not_after, calls_of(inputs, plan))
    status = {**status_of(obj), "intent": record.dump_intent(intent)}
    until = revival.written_until(inputs, plan) if isinstance(plan, Delete) else ""
    status |= {revival.FIELD: until} if until else {}
    if isinstance(plan, Create | Update | Adopt):
        # Before any of them is set: what a crash keeps from being reported is removed later all the same.
        keys = joined_keys(inputs.external_ref.applied_keys, shared_keys(inputs.target.spec))
        status |= {record.APPLIED_KEYS: record.dump_keys(keys)} if keys else {}
    if isinstance(plan, Adopt | Create):
        status.pop(record.LOST_AT, None)
    if isinstance(plan, Adopt):
        status.pop(MADE_AT, None)
        # What will be changed can be read before anything is written to the database.
        status["drift"] = drift.held(inputs.changes if inputs.preview is None else inputs.preview.all, status, now)
    if isinstance(inputs.step, Introduce) and not isinstance(plan, Adopt):
        # Before it is in the Secret, which others may write: after a crash it is known again by this.
        coming = coming_hash(settings.hash_key, inputs.step.username, inputs.step.password)
        status["rotation"] = {**(status.get("rotation") or {}), "coming": coming}
    return _with_create_intent(inputs, plan, obj, status, now) if isinstance(plan, Create) else status


def _with_create_intent(inputs: Inputs[Any], plan: Create, obj: Object, status: Object, now: datetime) -> Object:
    status = dict(status)
    external_ref = record.external_ref_of(obj, absent_since=None)
    status.pop(record.RESTORING, None)
    if plan.restore:
        # Whatever becomes of the consent: after a crash the restore goes on, and nothing empty is created.
        status[record.RESTORING] = {"backup": plan.restore, "lost": external_ref.incarnation or external_ref.lost}
    else:
        # It was given up: after a crash, what is created now must not be taken for a replacement of it.
        status.pop("incarnation", None)
    used = consents_used_by_create(consents_given(obj))
    status |= {USED_CONSENTS: written_consents(obj, used)} if used else {}
    status.pop(MADE_AT, None)
    # What is restored holds data from its first moment on.
    is_new = (inputs.stateful or not inputs.tagged) and not plan.restore
    return status | ({MADE_AT: timestamp(unanswered.sent_at(obj, now))} if is_new else {})


def _events(obj: Object, summary: Summary, status: Object) -> tuple[Event, ...]:
    """Return the events of what is new in a status: that it is stalled, and drift that is not corrected."""
    events = []
    stalled, before = find({"status": status}, "Stalled"), find(obj, "Stalled")
    if stalled is not None and (before is None or before.get("reason") != stalled["reason"]):
        events.append(Event("Warning", stalled["reason"], stalled["message"]))
    known = {entry["path"] for entry in (obj.get("status") or {}).get("drift") or ()}
    is_new = any(change.shown not in known for change in summary.held[:8])
    if is_new and summary.reason in {"DriftHeld", "ObserveOnly"}:
        events.append(Event("Warning", "DriftFound", summary.message))
    return tuple(events)


def _status(inputs: Inputs[Any], plan: Plan, summary: Summary, outcome: Outcome[Any], settings: Settings) -> Object:
    """Return the whole status; equal to the old one when nothing happened."""
    obj, old, now = outcome.obj, status_of(outcome.obj), inputs.now
    status: Object = {"observedGeneration": generation_of(obj)}
    status["conditions"] = _conditions(inputs, outcome, with_refused_login(inputs, outcome, summary), now)
    fields = {
        "externalName": record.name_in_cloud(obj, inputs.observation, inputs.external_ref),
        "incarnation": annotations_of(obj).get(INCARNATION) or old.get("incarnation"),
        "account": annotations_of(obj).get(ACCOUNT) or old.get("account"),
        "lastHandledReconcileAt": annotations_of(obj).get(RECONCILE_REQUESTED_AT, "")[:256],
        "effectiveDeletionPolicy": _effective(inputs),
        "atProvider": _at_provider(inputs, outcome, old),
        "connection": _connection(inputs, outcome, settings) or old.get("connection"),
        "drift": drift.entries(inputs, summary, outcome, old),
        adoption.FIELD: adoption.dump(inputs.preview),
        observed_status.FIELD: _observed(inputs, outcome, old),
        "converged": _converged(inputs, summary, old),
        record.APPLIED_KEYS: _applied_keys(inputs, summary, old),
        MADE_AT: None if unanswered.is_nothing_made(inputs, plan, outcome) else old.get(MADE_AT),
        record.LOST_AT: _lost_at(inputs, plan, old),
        USED_CONSENTS: _used_consents(inputs, obj),
        record.RESTORING: old.get(record.RESTORING) if record.restoring_of(obj) else None,
        revival.FIELD: revival.written_until(inputs, plan),
        "rotation": _rotation_with_coming(inputs, outcome, settings, now),
        "operation": _operation(inputs, outcome, old),
        "resolved": dict(inputs.resolved),
        record.LAST_SEEN: last_seen_after(inputs, outcome, status),
    }
    is_unanswered = unanswered.is_open(inputs, plan, outcome)
    if inputs.lifecycle.deleting or inputs.intent_unknown or inputs.is_another_at_work or is_unanswered:
        # After a crash the next process knows by it that the absence is our own deletion; another's is not ours to end.
        fields["intent"] = old.get("intent")
    status |= {name: value for name, value in fields.items() if value}
    return status


def _lost_at(inputs: Inputs[Any], plan: Plan, old: Object) -> str:
    """Return since when a database is lost that nothing but its name identifies; empty where it is not.

    One that was made again is known by its oid, which no look shows after a restart of the provider.
    """
    is_lost = inputs.inside and isinstance(plan, Refuse) and plan.reason == "DatabaseLost"
    if inputs.inside and isinstance(plan, Refuse) and plan.reason == "Replaced" and inputs.observed is not None:
        recorded = inputs.external_ref.incarnation
        is_lost = any(is_known_as(known, recorded) for known in inputs.observed.earlier_ids)
    return str(old.get(record.LOST_AT) or (timestamp(inputs.now) if is_lost else ""))


def _effective(inputs: Inputs[Any]) -> str:
    policy = inputs.lifecycle.policy
    return policy.value if policy is not None else "Awaiting"


def _conditions(inputs: Inputs[Any], outcome: Outcome[Any], summary: Summary, now: datetime) -> list[Object]:
    obj = outcome.obj
    generation, reason = generation_of(obj), summary.reason
    message, kind = summary.message[:LONGEST_MESSAGE], class_of_managed(reason)
    old = status_of(obj).get("conditions") or []
    may_be_overdue = kind not in {ReasonClass.HELD, ReasonClass.NORMAL}
    stalled = kind is ReasonClass.STALLED or (may_be_overdue and _is_overdue(obj, summary, now, inputs.deadline))
    if not _is_repeated(find(obj, "Reconciling"), summary):
        # The deadline is each state's own: that of the next one begins again.
        old = [condition for condition in old if condition.get("type") != "Reconciling"]
    usable = not summary.unusable and is_usable(inputs, outcome, reason)
    ready = _ready(inputs, obj, summary, ReasonClass.NORMAL if usable else kind)
    conditions = [still_cut_off(inputs, ready, reason)]
    if kind is ReasonClass.NORMAL:
        conditions.append(
            Condition("Synced", "True", "InSync", f"the {inputs.noun} is as it was asked for", generation)
        )
        return merge(old, conditions, now)
    synced: Literal["True", "False"] = "True" if reason == "ObserveOnly" else "False"
    conditions.append(Condition("Synced", synced, reason, message, generation))
    if stalled:
        conditions.append(Condition("Stalled", "True", reason, message, generation))
    elif kind not in {ReasonClass.HELD, ReasonClass.TEARDOWN}:
        conditions.append(Condition("Reconciling", "True", reason, message, generation))
    return merge(old, conditions, now)


def _is_repeated(condition: Object | None, summary: Summary) -> bool:
    """Return whether a condition already reports the summary: of a cloud at work, that it is in the same state."""
    if condition is None or condition.get("reason") != summary.reason:
        return False
    return summary.reason not in BY_STATE or condition.get("message") == summary.message[:LONGEST_MESSAGE]


def _is_overdue(obj: Object, summary: Summary, now: datetime, of_state: timedelta | None = None) -> bool:
    """Return whether the same lasts longer than it may; once stalled it stays so until something changes."""
    if _is_repeated(find(obj, "Stalled"), summary):
        return True
    # What waits for a teardown instruction has no Reconciling.
    of_teardown = class_of_managed(summary.reason) is ReasonClass.TEARDOWN
    condition = find(obj, "Synced" if of_teardown else "Reconciling")
    if condition is None or not _is_repeated(condition, summary):
        return False
    since = instant(str(condition.get("lastTransitionTime", "")))
    return since is not None and now - since >= deadline_of(summary.reason, of_state)


def _ready(inputs: Inputs[Any], obj: Object, summary: Summary, kind: ReasonClass) -> Condition:
    generation = generation_of(obj)
    if kind is ReasonClass.NORMAL:
        login = "" if not inputs.stateful else "" if inputs.observe_only else " and its password works"
        return Condition("Ready", "True", "Available", f"the {inputs.noun} is there{login}", generation)
    message = summary.message[:LONGEST_MESSAGE]
    before = find(obj, "Ready")
    if kind is ReasonClass.PROGRESS or summary.unusable or summary.reason in UNUSABLE or before is None:
        return Condition("Ready", "False", summary.reason, message, generation)
    if before["status"] == "True":
        return Condition("Ready", "True", before["reason"], before["message"], generation)
    return Condition("Ready", "False", summary.reason, message, generation)


def _at_provider(inputs: Inputs[Any], outcome: Outcome[Any], old: Object) -> Object | None:
    observed = seen(inputs, outcome)
    if observed is None:
        return old.get("atProvider")
    at_provider: Object = dict(observed.at_provider)
    # Whatever became of it in this pass: it is tried again until it works.
    refused = login_of(inputs) if inputs.login is Login.REFUSED else ""
    known = {name: version for name, version in proven_versions(outcome.obj).items() if name != refused}
    proven = known | {name: version for name, version in outcome.proven.items() if version}
    if proven:
        at_provider["logins"] = [{"name": name, "version": version} for name, version in sorted(proven.items())][-2:]
    return at_provider


def _observed(inputs: Inputs[Any], outcome: Outcome[Any], old: Object) -> Object | None:
    """Return what was observed; of what others own nothing that neither adoption nor its own name allows to show."""
    observed, before = seen(inputs, outcome), old.get(observed_status.FIELD)
    if observed is None:
        return before
    return observed_status.written(observed, inputs.now, before) if inputs.may_show(observed) else None


def _connection(inputs: Inputs[Any], outcome: Outcome[Any], settings: Settings) -> Object | None:
    kept: Kept | None = outcome.stored.kept if outcome.stored is not None else None
    if inputs.account is None or kept is None or not kept.current:
        return None
    if inputs.passwords is not None and inputs.passwords.is_either:
        # What is recorded as published would count as the one that is right.
        return None
    endpoint = inputs.endpoint
    if not endpoint.host:
        return None
    name = credentials_secret_key(key_of(outcome.obj)).name
    published = Connection(
        host=endpoint.host,
        port=endpoint.port,
        database=endpoint.database,
        username=kept.username,
        sslmode=endpoint.sslmode,
        password_ref=SecretRef(name, "current", hash=keyed_hash(settings.hash_key, kept.current)),
        ca_ref=SecretRef(name, CA_KEY, hash=digest(kept.ca)) if kept.ca else UNSET,
    )
    return connection.dump(published)


def _converged(inputs: Inputs[Any], summary: Summary, old: Object) -> Object | None:
    converged = old.get("converged")
    if summary.reason or not isinstance(inputs.observation, Present):
        return converged
    if converged and (converged.get("specHash"), converged.get("translator")) == (
        inputs.spec_hash,
        inputs.projection,
    ):
        return {**converged, "generation": inputs.generation}
    return {
        "generation": inputs.generation,
        "specHash": inputs.spec_hash,
        "observedHash": inputs.observed_hash,
        "translator": inputs.projection,
    }


def _applied_keys(inputs: Inputs[Any], summary: Summary, old: Object) -> Object | None:
    """Return the keys that the spec set; once nothing differs those are what the spec names, and no more."""
    if summary.reason or not isinstance(inputs.observation, Present):
        return old.get(record.APPLIED_KEYS)
    return record.dump_keys(shared_keys(inputs.target.spec))


def _used_consents(inputs: Inputs[Any], obj: Object) -> list[str]:
    """Return the consents that count no more; nothing is read of a database without consents."""
    entries = consents_given(obj)
    return written_consents(obj, consents_used_now(inputs, entries)) if entries else []


def _operation(inputs: Inputs[Any], outcome: Outcome[Any], old: Object) -> Object | None:
    operation = outcome.operation
    if operation is not None:
        server = {"server": inputs.server} if inputs.server else {}
        return {"id": operation.id, "kind": operation.kind, "startedAt": timestamp(inputs.now), **server}
    return old.get("operation") if inputs.operating else None


def _rotation_with_coming(inputs: Inputs[Any], outcome: Outcome[Any], settings: Settings, now: datetime) -> Object:
    """Return the state of the last rotation, with the hash by which what is in the Secret and unpublished is known."""
    old: Object = dict(status_of(outcome.obj).get("rotation") or {})
    if inputs.operation_failed is not None:
        # Whatever failed: a password that counts is proven by its login.
        old = {name: value for name, value in old.items() if name not in {"sent", "sentAt", "sends"}}
    coming = old.pop("coming", "")
    rotation = dict(_rotation(inputs, outcome, settings, old, now))
    if outcome.stored is not None:
        kept = outcome.stored.kept
        connection = _connection(inputs, outcome, settings) or status_of(outcome.obj).get("connection") or {}
        accepted = bool(kept.pending) and rotation.get("sent") == keyed_hash(settings.hash_key, kept.pending)
        coming = "" if accepted else still_coming(settings.hash_key, inputs.logins, kept, connection)
    return rotation | ({"coming": coming} if coming else {})


def _rotation(inputs: Inputs[Any], outcome: Outcome[Any], settings: Settings, old: Object, now: datetime) -> Object:
    token = inputs.envelope.password_rotation.token or ""
    rotation: Object
    if outcome.sent:
        # Done from here on: the pending password is kept until it is proven, so no crash makes a second one.
        rotation = {"token": token, "sent": keyed_hash(settings.hash_key, outcome.sent)}
        if not outcome.resent:
            return rotation
        before = int(old.get("sends", 1)) if old.get("sent") == rotation["sent"] else 0
        return rotation | {"sentAt": timestamp(now), "sends": before + 1}
    if outcome.rotated_from is not None:
        rotation = {"token": token}
        if outcome.rotated_from:
            rotation["retiring"] = outcome.rotated_from
            is_forced = inputs.envelope.password_rotation.force
            grace = min(settings.forced_grace, settings.rotation_grace) if is_forced else settings.rotation_grace
            rotation["retireAt"] = timestamp(now + grace)
        return rotation
    if outcome.retired and old:
        return {"token": old.get("token", "")}
    if not old and outcome.stored is not None and outcome.stored.kept.current:
        return {"token": token}
    return old
