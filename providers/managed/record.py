"""A Kubernetes object as the decision reads it: envelope, marks, consent, lifecycle, intent. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import msgspec

from apis import names
from apis.names import (
    CLAIM_NAME,
    TEARDOWN,
)
from apis.pause import is_paused, pause_end, pause_reason
from apis.teardown import Policy
from providers.external.client import Operation, Target
from providers.external.observation import Absent, Converged, Keys, Marks, Present, SpecT
from providers.external.spec import Envelope
from runtime.conditions import instant
from runtime.objects import Object, annotations_of, status_of, uid_of

APPLIED_KEYS = "appliedKeys"


RESTORING = "restoring"

INTENT_FORMAT = 1


@dataclass(frozen=True, slots=True)
class Call:
    """One call of an intent: what it does, to what, expecting which incarnation, making which changes."""

    kind: str
    target: str
    incarnation: str = ""
    change_hash: str = ""


@dataclass(frozen=True, slots=True)
class Intent:
    """The calls that a pass announced before it made the first."""

    format: int
    by: str
    not_after: datetime
    calls: tuple[Call, ...] = ()


def written_keys(keys: Keys) -> Object:
    """Return keys of shared maps as `status.appliedKeys` holds them."""
    return {path: list(names) for path, names in keys.items()}


def envelope_of(obj: Object, model: type[Envelope]) -> Envelope:
    """Read `spec`; raises msgspec.ValidationError, which the CRD's schema should have prevented."""
    return msgspec.convert(obj.get("spec") or {}, model)


def asked_anew(obj: Object) -> bool:
    """Tell whether a person asked for a pass that was not reported yet."""
    asked = annotations_of(obj).get(names.RECONCILE_REQUESTED_AT, "")[:256]
    return bool(asked) and asked != status_of(obj).get("lastHandledReconcileAt", "")


def paused(obj: Object, now: datetime) -> str:
    """Return why nothing may be changed, empty when it may."""
    annotations = annotations_of(obj)
    if not is_paused(annotations, now):
        return ""
    until = f"until {annotations[names.PAUSED]}" if pause_end(annotations) is not None else "until lifted"
    claim = annotations.get(CLAIM_NAME, "")
    whose = f" (with its claim {claim}, which says by whom and when)" if claim else ""
    return f"paused {until}{whose}: {pause_reason(annotations)}"[:400]


def pause_left(obj: Object, now: datetime) -> timedelta | None:
    """Return after how long a pause ends by itself; None when it does not, or when there is none."""
    end = pause_end(annotations_of(obj))
    return end - now if end is not None and end > now else None


def marks_of(obj: Object, *, absent_since: datetime | None) -> Marks:
    """Read the marks; annotations and status each suffice, as either may be lost."""
    annotations, status = annotations_of(obj), status_of(obj)
    known = status.get("converged")
    incarnation = annotations.get(names.INCARNATION) or status.get("incarnation", "")
    restoring = restoring_of(obj)
    return Marks(
        external_name=annotations.get(names.EXTERNAL_NAME) or status.get("externalName", ""),
        incarnation="" if restoring else incarnation,
        restoring=restoring,
        lost=str((status.get(RESTORING) or {}).get("lost", "")) if restoring else "",
        account=annotations.get(names.ACCOUNT) or status.get("account", ""),
        converged=None
        if not known
        else Converged(
            int(known.get("generation", 0)),
            str(known.get("specHash", "")),
            str(known.get("observedHash", "")),
            int(known.get("translator", 0)),
        ),
        absent_since=absent_since,
        applied_keys={path: tuple(keys) for path, keys in (status.get(APPLIED_KEYS) or {}).items()},
    )


def restoring_of(obj: Object) -> str:
    """Return the backup from which a lost database is being restored, empty once it is recorded or was given up."""
    restoring = status_of(obj).get(RESTORING) or {}
    recorded = annotations_of(obj).get(names.INCARNATION) or status_of(obj).get("incarnation", "")
    return str(restoring.get("backup", "")) if recorded in {"", restoring.get("lost", "")} else ""


def word_of(obj: Object) -> Policy | None:
    """Return the claim's word, None while there is none; a word for another uid is void."""
    uid, _, word = annotations_of(obj).get(TEARDOWN, "").partition("/")
    if uid != uid_of(obj) or word not in {policy.value for policy in Policy}:
        return None
    return Policy(word)


def withheld(word: Policy | None, own: Policy) -> str:
    """Say why a word destroys nothing: what holds data goes no further than its own `spec.deletionPolicy` asks.

    Two must agree, the claim's word and the object's spec: a lost label or status misleads one of them at most.
    """
    allowed = {Policy.DELETE: (Policy.DELETE,), Policy.SNAPSHOT: (Policy.SNAPSHOT, Policy.DELETE)}
    if word is None or own in allowed.get(word, (own,)):
        return ""
    return (
        f"the claim's word is {word.value}, and spec.deletionPolicy of this resource is {own.value}: nothing is"
        " destroyed. The composer writes both; where it does not, set spec.deletionPolicy of this resource to"
        f" {word.value} to have it so"
    )


def intent_of(obj: Object) -> Intent | None:
    """Read an open intent."""
    found = status_of(obj).get("intent")
    if not found:
        return None
    calls = tuple(
        Call(
            str(call.get("kind", "")),
            str(call.get("target", "")),
            str(call.get("incarnation", "")),
            str(call.get("changeHash", "")),
        )
        for call in found.get("calls", ())
    )
    not_after = instant(str(found.get("notAfter", "")))
    if not_after is None:
        return None
    return Intent(int(found.get("format", 0)), str(found.get("by", "")), not_after, calls)


def operation_of(obj: Object) -> Operation | None:
    """Read the operation that is being followed."""
    found = status_of(obj).get("operation")
    started_at = instant(str(found.get("startedAt", ""))) if found else None
    if not found or started_at is None:
        return None
    return Operation(str(found.get("id", "")), str(found.get("kind", "")), started_at)


def written(intent: Intent) -> Object:
    """Return the intent as it stands in status."""
    calls: list[dict[str, Any]] = []
    for call in intent.calls:
        entry = {"kind": call.kind, "target": call.target}
        if call.incarnation:
            entry["incarnation"] = call.incarnation
        if call.change_hash:
            entry["changeHash"] = call.change_hash
        calls.append(entry)
    return {
        "format": intent.format,
        "by": intent.by,
        "notAfter": intent.not_after.strftime("%Y-%m-%dT%H:%M:%SZ"),
        "calls": calls,
    }


def is_same_database(target: Target[SpecT], marks: Marks, seen: Present[SpecT] | Absent) -> bool:
    """Tell whether an account that was accepted in place of the recorded one has this very database, or none was made.

    Its name was asked for; its owner's tags and its incarnation must agree.
    """
    match seen:
        case Present(observed=observed):
            known = marks.incarnation
            return target.owner.owns(observed.owner) and (not known or observed.is_recorded_as(known))
        case Absent():
            return not marks.incarnation
