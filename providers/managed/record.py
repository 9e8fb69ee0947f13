"""A Kubernetes object as the decision reads it: envelope, external reference, pause, intent, operation. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from apis import names
from apis.names import CLAIM_NAME
from apis.pause import is_paused, pause_end, pause_reason, until
from apis.teardown import Policy, instruction_of
from providers.accounts.destroys import MADE_AT, made_at
from providers.external.client import Operation, Target
from providers.external.consent import used_consents
from providers.external.diff import missing
from providers.external.observation import Absent, Converged, ExternalRef, Keys, Observation, Present, SpecT, Unknown
from providers.external.ownership import identity_of
from providers.external.spec import Envelope
from runtime import kubectl
from runtime.conditions import find, instant, timestamp
from runtime.errors import Terminal
from runtime.objects import Object, annotations_of, deleting, generation_of, key_of, observed_generation_of, status_of

APPLIED_KEYS = "appliedKeys"
RESTORING = "restoring"
LAST_SEEN = "lastSeen"
LOST_AT = "lostAt"
INTENT_FORMAT = 1
# So old may a cloud's answers be, by which what was made a moment ago is not there.
_APPEARS_WITHIN = timedelta(minutes=10)


@dataclass(frozen=True, slots=True)
class Call:
    """One call of an intent: what it does, to what, expecting which incarnation, making which changes."""

    kind: str
    target: str
    incarnation: str = ""
    change_hash: str = ""


@dataclass(frozen=True, slots=True)
class Intent:
    """The calls that a pass wrote down before it made the first."""

    format: int
    by: str
    not_after: datetime
    calls: tuple[Call, ...] = ()


@dataclass(frozen=True, slots=True)
class LastSeen:
    """What a look at an object that began `at` a time was answered, encoded by its cloud."""

    at: datetime
    answer: bytes = field(repr=False)


def last_seen_of(obj: Object) -> LastSeen | None:
    """Read what the last look was answered, of a kind whose cloud has a log of changes."""
    fields = status_of(obj).get(LAST_SEEN) or {}
    at, answer = instant(str(fields.get("at", ""))), str(fields.get("answer", ""))
    return LastSeen(at, answer.encode()) if at is not None and answer else None


def dump_last_seen(last_seen: LastSeen) -> Object:
    """Return what a look was answered as it stands in status."""
    return {"at": timestamp(last_seen.at), "answer": last_seen.answer.decode()}


def dump_keys(keys: Keys) -> Object:
    """Return keys of shared maps as `status.appliedKeys` holds them."""
    return {path: list(names) for path, names in keys.items()}


class InvalidSpec(Terminal):
    """A spec that no CRD of this version lets in: another CRD is installed, or it was stored under another one."""


def envelope_of(obj: Object, model: type[Envelope]) -> Envelope:
    """Read `spec`; raises InvalidSpec."""
    try:
        envelope = msgspec.convert(obj.get("spec") or {}, model)
    except msgspec.ValidationError as error:
        text = f"spec: {error}; nothing is done until it is corrected, or the CRDs of this provider's version are there"
        raise InvalidSpec("InvalidValue", text) from None
    left_out = () if envelope.management_policy == "Observe" else missing(envelope.for_provider)
    if left_out:
        text = (
            f"spec.forProvider lacks {', '.join(left_out)}, which only managementPolicy Observe can do without; set it"
        )
        raise InvalidSpec("InvalidValue", text)
    return envelope


def is_reconcile_requested(obj: Object) -> bool:
    """Return whether a person requested a pass that was not reported yet."""
    requested = annotations_of(obj).get(names.RECONCILE_REQUESTED_AT, "")[:256]
    return bool(requested) and requested != status_of(obj).get("lastHandledReconcileAt", "")


def is_routine(obj: Object) -> bool:
    """Return whether nobody waits for a pass: all that was asked for is reported, and nothing is under way."""
    is_reported = observed_generation_of(obj) == generation_of(obj) and find(obj, "Reconciling") is None
    return is_reported and not (deleting(obj) or is_reconcile_requested(obj) or operation_of(obj) is not None)


def paused(obj: Object, now: datetime) -> str:
    """Return why nothing may be changed, empty when it may."""
    annotations = annotations_of(obj)
    if not is_paused(annotations, now):
        return ""
    claim = annotations.get(CLAIM_NAME, "")
    origin = f" (with its claim {claim}, which says by whom and when)" if claim else ""
    return f"paused {until(annotations)}{origin}: {pause_reason(annotations)}"[:400]


def pause_left(obj: Object, now: datetime) -> timedelta | None:
    """Return after how long a pause ends by itself; None when it does not, or when there is none."""
    end = pause_end(annotations_of(obj))
    return end - now if end is not None and end > now else None


def is_made(obj: Object, external_ref: ExternalRef, *, tagged: bool) -> bool:
    """Return whether something is recorded as made for a resource; of a kind without tags before its create is sent."""
    return bool(external_ref.incarnation) or (not tagged and MADE_AT in status_of(obj))


def external_ref_of(obj: Object, *, absent_since: datetime | None) -> ExternalRef:
    """Read the external reference; annotations and status each suffice, as either may be lost."""
    annotations, status = annotations_of(obj), status_of(obj)
    converged = status.get("converged")
    incarnation = annotations.get(names.INCARNATION) or status.get("incarnation", "")
    restoring = restoring_of(obj)
    written, seen = annotations.get(names.EXTERNAL_NAME, ""), str(status.get("externalName") or "")
    return ExternalRef(
        external_name=written or seen,
        former_name=seen if incarnation and written and seen != written else "",
        incarnation="" if restoring else incarnation,
        restoring=restoring,
        lost=str((status.get(RESTORING) or {}).get("lost", "")) if restoring else "",
        account=annotations.get(names.ACCOUNT) or status.get("account", ""),
        converged=None
        if not converged
        else Converged(
            int(converged.get("generation", 0)),
            str(converged.get("specHash", "")),
            str(converged.get("observedHash", "")),
            int(converged.get("translator", 0)),
        ),
        absent_since=absent_since,
        applied_keys={path: tuple(keys) for path, keys in (status.get(APPLIED_KEYS) or {}).items()},
    )


def name_in_cloud(obj: Object, observation: Observation[SpecT], external_ref: ExternalRef) -> str | None:
    """Return the name in the cloud: of what is recorded the one under which it was seen, whatever was written since."""
    written = annotations_of(obj).get(names.EXTERNAL_NAME)
    is_seen = isinstance(observation, Present) and observation.observed.is_recorded_as(external_ref.incarnation)
    former = "" if is_seen else external_ref.former_name
    return former or written or external_ref.external_name or None


def restoring_of(obj: Object) -> str:
    """Return the backup from which a lost database is being restored, empty once it is recorded or was given up."""
    restoring = status_of(obj).get(RESTORING) or {}
    recorded = annotations_of(obj).get(names.INCARNATION) or status_of(obj).get("incarnation", "")
    return str(restoring.get("backup", "")) if recorded in {"", restoring.get("lost", "")} else ""


def is_doubtful(obj: Object) -> bool:
    """Return whether an object does not say for which claim it was made, unless it is to be detached.

    That touches nothing, whosever it is.
    """
    return identity_of(obj).doubtful and not (deleting(obj) and instruction_of(obj) is Policy.DETACH)


def unknown_claim(obj: Object) -> tuple[str, str]:
    """Return reason and message of what says no longer which claim it was made for."""
    if not deleting(obj):
        return "NotOwned", (
            "its labels and annotations no longer say for which claim it was made: it is neither looked at nor changed."
            " They come back with the next pass over its claim: end what holds that (a pause, a deletion that waits);"
            " or put them back from a backup"
        )
    address = kubectl.address_of(str(obj["kind"]), key_of(obj))
    external_name = external_ref_of(obj, absent_since=None).external_name
    in_cloud = f", {external_name}," if external_name else ""
    return "HeldDeletion", (
        "deleted, and its labels and annotations no longer say for which claim it was made, so that nothing is deleted"
        f" in its name. Put them back from a backup; or, to let it go and leave what it has in the cloud{in_cloud} as"
        f" it is: {kubectl.remove_finalizers(address)}"
    )


def refuse_destroy(instruction: Policy | None, own: Policy) -> str:
    """Return why a teardown instruction destroys nothing, empty when it may.

    What holds data goes no further than its own `spec.deletionPolicy` asks. Two must agree, the claim's instruction and
    the object's spec: a lost label or status misleads one of them at most.
    """
    allowed = {Policy.DELETE: (Policy.DELETE,), Policy.SNAPSHOT: (Policy.SNAPSHOT, Policy.DELETE)}
    if instruction is None or own in allowed.get(instruction, (own,)):
        return ""
    return (
        f"the claim's word is {instruction.value}, and spec.deletionPolicy of this resource is {own.value}: nothing is"
        " destroyed. The composer writes both; where it does not, set spec.deletionPolicy of this resource to"
        f" {instruction.value} to have it so"
    )


def intent_of(obj: Object) -> Intent | None:
    """Read an open intent; one of another format counts whatever its fields are."""
    fields = status_of(obj).get("intent")
    if not fields:
        return None
    calls = tuple(
        Call(
            str(call.get("kind", "")),
            str(call.get("target", "")),
            str(call.get("incarnation", "")),
            str(call.get("changeHash", "")),
        )
        for call in fields.get("calls", ())
    )
    not_after, version = instant(str(fields.get("notAfter", ""))), int(fields.get("format", 0))
    if not_after is None:
        if version == INTENT_FORMAT:
            return None
        # A newer version may say otherwise for how long its calls go on.
        not_after = datetime.max.replace(tzinfo=UTC)
    return Intent(version, str(fields.get("by", "")), not_after, calls)


def is_new(obj: Object, now: datetime) -> bool:
    """Return whether what is deleted was made for it a moment ago, and no deletion of ours was sent."""
    intent, made = intent_of(obj), made_at(obj)
    is_sent = intent is not None and any(call.kind == "Delete" for call in intent.calls)
    return deleting(obj) and not is_sent and made is not None and now - made < _APPEARS_WITHIN


def operation_of(obj: Object) -> Operation | None:
    """Read the operation that is being followed."""
    fields = status_of(obj).get("operation")
    if not fields or operation_started_at(obj) is None:
        return None
    return Operation(str(fields.get("id", "")), str(fields.get("kind", "")))


def operation_started_at(obj: Object) -> datetime | None:
    """Read when the operation that is being followed was asked for, by the provider's clock."""
    fields = status_of(obj).get("operation")
    return instant(str(fields.get("startedAt", ""))) if fields else None


def dump_intent(intent: Intent) -> Object:
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


def is_same_database(
    target: Target[SpecT], external_ref: ExternalRef, observation: Present[SpecT, Any] | Absent
) -> bool:
    """Return whether an account accepted in place of the recorded one has this very database, or none was made.

    It was observed by its name; its owner's tags and its incarnation must agree.
    """
    match observation:
        case Present(observed=observed):
            known = external_ref.incarnation
            return target.owner.owns(observed.owner) and (not known or observed.is_recorded_as(known))
        case Absent():
            return not external_ref.incarnation


def without_server(obj: Object, missing: tuple[str, str] | None) -> Absent | Unknown:
    """Return what is known of an object whose name begins with that of a server which is not known."""
    # Its name is recorded before anything is created.
    is_made = bool(external_ref_of(obj, absent_since=None).external_name)
    if deleting(obj) and not is_made:
        return Absent()
    reason, message = missing or ("ResourcePending", "its server has no name in the cloud yet")
    return Unknown(reason, message)


def with_recorded(
    obj: Object, observation: Observation[SpecT], external_ref: ExternalRef, target: Target[SpecT]
) -> tuple[ExternalRef, Target[SpecT]]:
    """Add what the cloud records of a database that is gone: annotations and status may have been lost with a backup.

    What a person gave up already is left out: the create that this allowed may have been interrupted.
    """
    if not isinstance(observation, Absent) or not observation.recorded:
        return external_ref, target
    if ("recreate", observation.recorded) in used_consents(obj):
        return external_ref, target
    incarnation = observation.recorded
    external_ref = replace(external_ref, incarnation=incarnation, external_name=target.name)
    return external_ref, replace(target, incarnation=incarnation)


def is_named_by_others(obj: Object) -> bool:
    """Return whether a person, or the claim, said what an object stands for: its provider records the account too."""
    annotations = annotations_of(obj)
    return names.EXTERNAL_NAME in annotations and names.ACCOUNT not in annotations


def no_such_predecessor(name: str) -> str:
    """Return why nothing is created under a name that a person set: such a name is for adopting what is there."""
    return f"there is no {name} to take over; remove fairlead.dev/external-name to have a new database"
