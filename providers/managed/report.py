"""The status that a pass leaves: whole, redacted, stable between passes in which nothing happened. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from msgspec import UNSET

from apis import connection
from apis.connection import Connection, SecretRef
from apis.identity import CA_KEY, credentials_secret_key
from apis.names import ACCOUNT, EXTERNAL_NAME, INCARNATION, RECONCILE_REQUESTED_AT
from apis.reasons import BY_STATE, UNUSABLE, ReasonClass, class_of_managed, deadline_of
from providers.accounts.destroys import MADE_AT
from providers.credentials.passwords import Kept, keyed_hash
from providers.credentials.secret_check import still_coming
from providers.external.consent import USED_CONSENTS, consents_given, written_consents
from providers.external.credential import Login
from providers.external.diff import shared_keys
from providers.external.observation import Change, Present, describe, digest
from providers.managed import record
from providers.managed.inputs import Inputs, proven_versions
from providers.managed.outcome import Outcome, Said, used_now
from providers.managed.summary import Summary, is_usable, login_of, still_cut_off
from providers.settings import Settings
from runtime.conditions import Condition, find, instant, merge, timestamp
from runtime.objects import Object, annotations_of, generation_of, key_of, status_of

MOST_DRIFT = 32
TOLERATED = "Tolerated"
LONGEST_MESSAGE = 1024


@dataclass(frozen=True, slots=True)
class Report:
    """What a pass leaves behind: the whole status, and what is new in it."""

    status: Object
    events: tuple[Said, ...] = ()


def report(inputs: Inputs[Any], summary: Summary, outcome: Outcome[Any], settings: Settings, now: datetime) -> Report:
    """Return what a pass leaves behind, whatever it found: a living resource, a paused or a deleted one."""
    status = _status(inputs, summary, outcome, settings, now)
    return Report(status, _events(outcome.obj, summary, status))


def _events(obj: Object, summary: Summary, status: Object) -> tuple[Said, ...]:
    """Return what is new in a status and a person should know: that it is stalled, and drift that is not put right."""
    events = []
    stalled, before = find({"status": status}, "Stalled"), find(obj, "Stalled")
    if stalled is not None and (before is None or before.get("reason") != stalled["reason"]):
        events.append(Said("Warning", stalled["reason"], stalled["message"]))
    known = {entry["path"] for entry in (obj.get("status") or {}).get("drift") or ()}
    is_new = any(change.shown not in known for change in summary.held[:8])
    if is_new and summary.reason in {"DriftHeld", "ObserveOnly"}:
        events.append(Said("Warning", "DriftFound", summary.message))
    return tuple(events)


def _status(inputs: Inputs[Any], summary: Summary, outcome: Outcome[Any], settings: Settings, now: datetime) -> Object:
    """Return the whole status; equal to the old one when nothing happened."""
    obj, old = outcome.obj, status_of(outcome.obj)
    status: Object = {"observedGeneration": generation_of(obj)}
    status["conditions"] = _conditions(inputs, outcome, _with_login(inputs, outcome, summary), now)
    marks = {
        "externalName": annotations_of(obj).get(EXTERNAL_NAME) or old.get("externalName"),
        "incarnation": annotations_of(obj).get(INCARNATION) or old.get("incarnation"),
        "account": annotations_of(obj).get(ACCOUNT) or old.get("account"),
        "lastHandledReconcileAt": annotations_of(obj).get(RECONCILE_REQUESTED_AT, "")[:256],
        "effectiveDeletionPolicy": _effective(inputs),
        "atProvider": _at_provider(inputs, outcome, old),
        "connection": _connection(inputs, outcome, settings) or old.get("connection"),
        "drift": _drift(inputs, summary, outcome, old, now),
        "converged": _converged(inputs, summary, old),
        record.APPLIED_KEYS: _applied_keys(inputs, summary, old),
        MADE_AT: old.get(MADE_AT),
        USED_CONSENTS: _used_consents(inputs, obj),
        record.RESTORING: old.get(record.RESTORING) if record.restoring_of(obj) else None,
        "rotation": _remembered(inputs, outcome, settings, now),
        "operation": _operation(inputs, outcome, old),
        "resolved": dict(inputs.resolved),
    }
    if inputs.lifecycle.deleting:
        # After a crash it tells whoever goes on that the absence is our own doing.
        marks["intent"] = old.get("intent")
    status |= {name: value for name, value in marks.items() if value}
    return status


def _with_login(inputs: Inputs[Any], outcome: Outcome[Any], summary: Summary) -> Summary:
    """Add that the published login was refused in a pass that failed before it could put the password back."""
    is_put_back = any(change.path[-1] == "password" for change in outcome.corrected)
    if not summary.reason or inputs.login is not Login.REFUSED or is_put_back:
        return summary
    return Summary(summary.reason, summary.message, summary.held, unusable=True)


def _effective(inputs: Inputs[Any]) -> str:
    policy = inputs.lifecycle.policy
    return policy.value if policy is not None else "Awaiting"


def _conditions(inputs: Inputs[Any], outcome: Outcome[Any], summary: Summary, now: datetime) -> list[Object]:
    obj = outcome.obj
    generation, reason = generation_of(obj), summary.reason
    message, kind = summary.message[:LONGEST_MESSAGE], class_of_managed(reason)
    old = status_of(obj).get("conditions") or []
    stalled = kind is ReasonClass.STALLED or (
        kind is not ReasonClass.HELD and kind is not ReasonClass.NORMAL and _overdue(inputs, obj, summary, now)
    )
    if not _is_repeated(find(obj, "Reconciling"), summary):
        # The deadline is each state's own: the next one begins anew.
        old = [condition for condition in old if condition.get("type") != "Reconciling"]
    usable = not summary.unusable and is_usable(inputs, outcome, reason)
    ready = _ready(inputs, obj, summary, ReasonClass.NORMAL if usable else kind)
    found = [still_cut_off(inputs, ready, reason)]
    if kind is ReasonClass.NORMAL:
        found.append(Condition("Synced", "True", "InSync", f"the {inputs.noun} is as it was asked for", generation))
        return merge(old, found, now)
    synced: Literal["True", "False"] = "True" if reason == "ObserveOnly" else "False"
    found.append(Condition("Synced", synced, reason, message, generation))
    if stalled:
        found.append(Condition("Stalled", "True", reason, message, generation))
    elif kind not in {ReasonClass.HELD, ReasonClass.TEARDOWN}:
        found.append(Condition("Reconciling", "True", reason, message, generation))
    return merge(old, found, now)


def _is_repeated(condition: Object | None, summary: Summary) -> bool:
    """Tell whether a condition says what is to be said now: of a cloud at work that it is in the same state."""
    if condition is None or condition.get("reason") != summary.reason:
        return False
    return summary.reason not in BY_STATE or condition.get("message") == summary.message[:LONGEST_MESSAGE]


def _overdue(inputs: Inputs[Any], obj: Object, summary: Summary, now: datetime) -> bool:
    """Tell whether the same has stood for longer than it may; once stalled it stays so until something moves."""
    if _is_repeated(find(obj, "Stalled"), summary):
        return True
    # What waits for a word has no Reconciling.
    of_teardown = class_of_managed(summary.reason) is ReasonClass.TEARDOWN
    known = find(obj, "Synced" if of_teardown else "Reconciling")
    if known is None or not _is_repeated(known, summary):
        return False
    since = instant(str(known.get("lastTransitionTime", "")))
    return since is not None and now - since >= deadline_of(summary.reason, inputs.deadline)


def _ready(inputs: Inputs[Any], obj: Object, summary: Summary, kind: ReasonClass) -> Condition:
    generation = generation_of(obj)
    if kind is ReasonClass.NORMAL:
        works = " and its password works" if inputs.stateful else ""
        return Condition("Ready", "True", "Available", f"the {inputs.noun} is there{works}", generation)
    message = summary.message[:LONGEST_MESSAGE]
    known = find(obj, "Ready")
    if kind is ReasonClass.PROGRESS or summary.unusable or summary.reason in UNUSABLE or known is None:
        return Condition("Ready", "False", summary.reason, message, generation)
    if known["status"] == "True":
        return Condition("Ready", "True", known["reason"], known["message"], generation)
    return Condition("Ready", "False", summary.reason, message, generation)


def _at_provider(inputs: Inputs[Any], outcome: Outcome[Any], old: Object) -> Object | None:
    observed = outcome.fresh.observed if isinstance(outcome.fresh, Present) else inputs.observed
    if observed is None:
        return old.get("atProvider")
    found: Object = dict(observed.at_provider)
    # Whatever became of it in this pass: it is tried again until it works.
    refused = login_of(inputs) if inputs.login is Login.REFUSED else ""
    known = {name: version for name, version in proven_versions(outcome.obj).items() if name != refused}
    proven = known | {name: version for name, version in outcome.proven.items() if version}
    if proven:
        found["logins"] = [{"name": name, "version": version} for name, version in sorted(proven.items())][-2:]
    return found


def _connection(inputs: Inputs[Any], outcome: Outcome[Any], settings: Settings) -> Object | None:
    kept: Kept | None = outcome.stored.kept if outcome.stored is not None else None
    if inputs.account is None or kept is None or not kept.current:
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


def _drift(inputs: Inputs[Any], summary: Summary, outcome: Outcome[Any], old: Object, now: datetime) -> list[Object]:
    """List what is held now, what is left on purpose, and what was put back last until something else is."""
    known = _entries(old)
    corrected = [_entry(change, "Corrected", {}, now) for change in outcome.corrected]
    if not corrected:
        corrected = [entry for entry in old.get("drift") or () if entry["action"] == "Corrected"]
    action = "Observed" if summary.reason == "ObserveOnly" else "Held"
    held = [_entry(change, action, known, now) for change in summary.held]
    observed = outcome.fresh.observed if isinstance(outcome.fresh, Present) else inputs.observed
    ignored = inputs.envelope.ignore_fields
    left = () if observed is None else (one for one in observed.tolerated if one.shown not in ignored)
    return (held + [_entry(change, TOLERATED, known, now) for change in left] + corrected)[:MOST_DRIFT]


def announced(changes: tuple[Change, ...], old: Object, now: datetime) -> list[Object]:
    """Return the differences as status shows them before anything is done about them."""
    return [_entry(change, "Held", _entries(old), now) for change in changes][:MOST_DRIFT]


def _entries(status: Object) -> dict[Any, Object]:
    return {(entry["path"], entry["action"]): entry for entry in status.get("drift") or ()}


def _entry(change: Change, action: str, known: dict[Any, Object], now: datetime) -> Object:
    before = known.get((change.shown, action))
    return {
        "path": change.shown[:256],
        "desired": describe(change.want),
        "observed": describe(change.have),
        "since": before["since"] if before else timestamp(now),
        "action": action,
    }


def _converged(inputs: Inputs[Any], summary: Summary, old: Object) -> Object | None:
    known = old.get("converged")
    if summary.reason or not isinstance(inputs.observation, Present):
        return known
    if known and (known.get("specHash"), known.get("translator")) == (
        inputs.spec_hash,
        inputs.translator,
    ):
        return {**known, "generation": inputs.generation}
    return {
        "generation": inputs.generation,
        "specHash": inputs.spec_hash,
        "observedHash": inputs.observed_hash,
        "translator": inputs.translator,
    }


def _applied_keys(inputs: Inputs[Any], summary: Summary, old: Object) -> Object | None:
    """Remember what is the spec's own; once nothing differs that is what the spec names, and no more."""
    if summary.reason or not isinstance(inputs.observation, Present):
        return old.get(record.APPLIED_KEYS)
    return record.written_keys(shared_keys(inputs.target.spec))


def _used_consents(inputs: Inputs[Any], obj: Object) -> list[str]:
    """List the consents that count no more; nothing is read of a database where none was given."""
    entries = consents_given(obj)
    return written_consents(obj, used_now(inputs, entries)) if entries else []


def _operation(inputs: Inputs[Any], outcome: Outcome[Any], old: Object) -> Object | None:
    begun = outcome.operation
    if begun is not None:
        return {"id": begun.id, "kind": begun.kind, "startedAt": timestamp(begun.started_at)}
    return old.get("operation") if inputs.operating else None


def _remembered(inputs: Inputs[Any], outcome: Outcome[Any], settings: Settings, now: datetime) -> Object:
    """Return how the last rotation stands, and by which hash what is in the Secret and not published is known again."""
    old: Object = dict(status_of(outcome.obj).get("rotation") or {})
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
        # Done from here on: the pending password is kept until it is proven, so no crash asks for a second one.
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


def status_of_failure(obj: Object, cause: tuple[str, str], now: datetime) -> Object:
    """Return the status with what ended the pass; all else in it stays, since nothing was learnt.

    Ready stays as it is known. What goes on for longer than its reason may is Stalled.
    """
    (reason, message), generation = cause, generation_of(obj)
    ready = find(obj, "Ready")
    kind: Literal["Reconciling", "Stalled"] = "Stalled" if _is_overdue(obj, reason, now) else "Reconciling"
    told = [
        Condition("Ready", "False", reason, message, generation)
        if ready is None
        else Condition(
            "Ready", ready["status"], ready["reason"], ready["message"], ready.get("observedGeneration", generation)
        ),
        Condition("Synced", "False", reason, message, generation),
        Condition(kind, "True", reason, message, generation),
    ]
    before = status_of(obj).get("conditions") or []
    known = find(obj, "Reconciling")
    if known is not None and known["reason"] != reason:
        before = [condition for condition in before if condition.get("type") != "Reconciling"]
    return {**status_of(obj), "conditions": merge(before, told, now)}


def _is_overdue(obj: Object, reason: str, now: datetime) -> bool:
    stalled, reconciling = find(obj, "Stalled"), find(obj, "Reconciling")
    if stalled is not None and stalled["reason"] == reason:
        return True
    if reconciling is None or reconciling["reason"] != reason:
        return False
    since = instant(str(reconciling.get("lastTransitionTime", "")))
    return since is not None and now - since >= deadline_of(reason)
