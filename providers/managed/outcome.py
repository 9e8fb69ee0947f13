"""The calls that a plan needs, and what a pass has done so far. Pure but for the outcome, which grows."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Generic, Literal, assert_never

import msgspec

from apis.names import ACCOUNT, EXTERNAL_NAME, INCARNATION, RECONCILE_REQUESTED_AT
from providers.credentials.passwords import (
    Await,
    Confirm,
    Introduce,
    Keep,
    Missing,
    PasswordStep,
    PutBack,
    Retire,
    Stored,
    former_login,
)
from providers.credentials.secret_check import login_of_pending
from providers.external.client import Operation
from providers.external.consent import SERVER_ENTRY, adopts
from providers.external.observation import Absent, Change, Observed, Phase, Present, SpecT, describe, digest
from providers.external.ownership import held
from providers.external.provider import Kind
from providers.managed import record
from providers.managed.decisions.adoption import with_preview
from providers.managed.decisions.plan import (
    Adopt,
    Create,
    Delete,
    Ignore,
    Orphan,
    Plan,
    Refuse,
    RemoveFinalizer,
    Rest,
    Settled,
    Update,
    Wait,
)
from providers.managed.inputs import Inputs, with_differences
from providers.managed.record import Call
from runtime.conditions import find
from runtime.errors import Failure
from runtime.objects import Object, annotations_of, generation_of, status_of
from runtime.replaced import replace

ADOPT_ENTRY = "adopt"

Entry = tuple[str, str]

# What a database of ours rests for, and what keeps no step about its password back.
_WITH_STEPS = frozenset({"DriftHeld", "WaitingForWindow", "TranslatorChanged", "PendingRestart"})
_CREATE_ENTRIES = frozenset({"recreate", "restoreFrom", "restore"})


@dataclass(frozen=True, slots=True)
class Event:
    """One event to be emitted with the report."""

    type: Literal["Normal", "Warning"]
    reason: str
    message: str


@dataclass(slots=True)
class Outcome(Generic[SpecT]):
    """What a pass has done so far: the latest object, the credentials, what is proven, the events.

    `observation` is of the database after the last call; `gone`: our finalizer was removed. `sent` is a
    password that an asynchronous cloud accepted, `resent`: it did so after the creation; `restored`: the credentials
    Secret was lost, and is written again. `failure` ended the calls, and is to be reported.
    """

    obj: Object
    stored: Stored | None
    observation: Present[SpecT, Any] | Absent | None = None
    events: list[Event] = field(default_factory=list)
    proven: dict[str, str] = field(default_factory=dict)
    corrected: tuple[Change, ...] = ()
    rotated_from: str | None = None
    retired: bool = False
    sent: str = field(default="", repr=False)
    resent: bool = False
    restored: bool = False
    gone: bool = False
    acted: bool = False
    operation: Operation | None = None
    failure: Failure | None = None


def unreported_rotation(inputs: Inputs[Any]) -> str:
    """Return the former login of a rotation that a crash kept from being reported, else nothing. Pure."""
    connection = status_of(inputs.obj).get("connection") or {}
    return former_login(connection.get("username", ""), inputs.stored.kept if inputs.stored is not None else None)


def mutates(inputs: Inputs[Any], plan: Plan) -> bool:
    """Return whether a plan, or the step about the password, has any side effect. Pure."""
    match plan:
        case Create() | Update() | Adopt() | Orphan() | Delete() | RemoveFinalizer():
            return True
        case Settled():
            return _has_step(inputs) or inputs.is_ca_outdated or is_external_ref_missing(inputs)
        case Rest(reason=reason) if reason in _WITH_STEPS:
            return _has_step(inputs) or inputs.is_ca_outdated or is_external_ref_missing(inputs)
        case Wait() | Refuse() | Rest():
            return (_has_step(inputs) and _is_step_allowed(inputs)) or (inputs.is_ca_outdated and _is_kept(inputs))
        case Ignore():
            return False
        case never:
            assert_never(never)


def publishes_ca_alone(inputs: Inputs[Any], plan: Plan) -> bool:
    """Return whether the one side effect of a pass is to publish the certificates that verify the endpoint. Pure."""
    is_still = isinstance(plan, Settled | Rest | Wait | Refuse)
    return is_still and mutates(inputs, plan) and not _has_step(inputs) and not is_external_ref_missing(inputs)


def step_made(inputs: Inputs[Any], plan: Plan) -> PasswordStep:
    """Return the step about the password that a pass with this plan makes; one that has to wait is none. Pure."""
    is_free = not isinstance(plan, Wait | Refuse | Rest) or (isinstance(plan, Rest) and plan.reason in _WITH_STEPS)
    return inputs.step if is_free or _is_step_allowed(inputs) else Keep()


def _has_step(inputs: Inputs[Any]) -> bool:
    return not isinstance(inputs.step, Keep | Missing | Await)


def _is_step_allowed(inputs: Inputs[Any]) -> bool:
    """Return whether the password's step is made although a change of a database that is ours waits or is refused.

    While the cloud is at work on it, or it is paused, that is what needs no call: to publish what counts already.
    """
    observed = inputs.observed
    if observed is None or inputs.operating or not _is_kept(inputs):
        return False
    if isinstance(inputs.step, Confirm):
        return True
    return observed.phase is Phase.READY and observed.usable and not inputs.lifecycle.paused


def _is_kept(inputs: Inputs[Any]) -> bool:
    """Return whether the credentials of a database are ours to keep up to date, whatever its changes wait for."""
    observed = inputs.observed
    recorded = inputs.external_ref.incarnation
    if observed is None or not recorded or not observed.is_recorded_as(recorded):
        return False
    if not inputs.is_ours(observed) or inputs.lifecycle.deleting:
        return False
    if inputs.not_allowed or inputs.account_changed or inputs.takeover or inputs.intent_unknown:
        return False
    return not inputs.is_another_at_work


def is_external_ref_missing(inputs: Inputs[Any]) -> bool:
    """Return whether an annotation or the finalizer of a database that is ours is not on its object. Pure."""
    observed, account = inputs.observed, inputs.account
    if observed is None or account is None:
        return False
    annotations = annotations_of(inputs.obj)
    recorded = {
        EXTERNAL_NAME: inputs.target.name,
        ACCOUNT: account.id,
        INCARNATION: observed.incarnation,
    }
    return not held(inputs.obj) or any(annotations.get(key) != value for key, value in recorded.items())


def calls_of(inputs: Inputs[Any], plan: Plan) -> tuple[Call, ...]:
    """Return every call to the cloud that a plan and the password's step make, in order. Pure."""
    target, observed, calls = inputs.target, inputs.observed, []
    incarnation = observed.incarnation if observed is not None else ""
    match plan:
        case Create():
            calls.append(Call("Create", target.name, change_hash=inputs.spec_hash))
        case Update(changes=changes, queued=queued):
            change_hash = digest([repr(change) for change in (*changes, *queued)])
            calls.append(Call("Update", target.name, incarnation, change_hash))
        case Adopt(incarnation=adopted):
            calls.append(Call("Adopt", target.name, adopted))
        case Orphan(tagged=True):
            calls.append(Call("Release", target.name, incarnation))
        case Delete(policy=policy):
            recorded = incarnation or inputs.external_ref.incarnation
            calls.append(Call("Delete", target.name, recorded, digest(policy.value)))
        case _:
            pass
    match step_made(inputs, plan):
        case Introduce(username=username) | PutBack(username=username) if not isinstance(plan, Create | Adopt | Delete):
            calls.append(Call("SetPassword", username, incarnation))
        case Retire(username=username):
            calls.append(Call("Disable", username, incarnation))
        case _:
            pass
    return tuple(calls)


def consents_used_by_create(entries: Iterable[Entry]) -> tuple[Entry, ...]:
    """Return the consents that the intent of a create uses: from then on the act itself is on record."""
    return tuple(entry for entry in entries if entry[0] in {"recreate", "restore"})


def consents_used_now(inputs: Inputs[Any], entries: Iterable[Entry]) -> tuple[Entry, ...]:
    """Return the consents whose act is done, as far as the database shows it."""
    match inputs.observation:
        case Present(observed=observed):
            known, ours = inputs.external_ref.incarnation, inputs.is_ours(observed)
        case _:
            return ()
    if not ours or known not in {"", observed.incarnation}:
        return ()
    fields = {field.encode_name: field.name for field in msgspec.structs.fields(observed.spec)}
    differing = {change.shown for change in inputs.changes} | set(observed.pending)
    used = []
    for path, value in entries:
        if path == SERVER_ENTRY:
            # A kind may have a field of this name; the consent is needed for as long as it is there.
            continue
        if path in _CREATE_ENTRIES:
            used.append((path, value))
        elif path == ADOPT_ENTRY:
            used += [(path, value)] if known and adopts(value, known) else []
        elif path in fields and path not in differing and describe(getattr(observed.spec, fields[path])) == value:
            used.append((path, value))
    return tuple(used)


def work_digest(inputs: Inputs[Any], plan: Plan) -> str:
    """Return a digest of a pass's calls, of the database's state, and of all that a person may edit for another try."""
    config = generation_of(inputs.account.config_object) if inputs.account is not None else 0
    requested = annotations_of(inputs.obj).get(RECONCILE_REQUESTED_AT, "")
    state = inputs.observed.state if inputs.observed is not None else ""
    match plan:
        case Update(changes=changes):
            calls = [repr(change) for change in changes]
        case Create(restore=backup):
            calls = [f"create {backup}"]
        case _:
            calls = [f"{call.kind} {call.target}" for call in calls_of(inputs, plan)]
    sent = inputs.step.password if isinstance(inputs.step, Introduce) else ""
    return digest([*calls, state, digest(sent), inputs.spec_hash, requested, config])


def seen(inputs: Inputs[Any], outcome: Outcome[SpecT]) -> Observed[SpecT, Any] | None:
    """Return what was observed last in a pass: after its calls, else before them."""
    return outcome.observation.observed if isinstance(outcome.observation, Present) else inputs.observed


def last_seen_after(inputs: Inputs[Any], outcome: Outcome[Any], status: Object) -> Object | None:
    """Return `status.lastSeen` after a pass: nothing of before a call of ours, nor while more is due. Pure."""
    is_open = outcome.acted or bool(inputs.operating) or find({"status": status}, "Reconciling") is not None
    return None if inputs.last_seen is None or is_open else record.dump_last_seen(inputs.last_seen)


def inputs_after(kind: Kind[SpecT, Any], inputs: Inputs[SpecT], plan: Plan, outcome: Outcome[SpecT]) -> Inputs[SpecT]:
    """Return the inputs as they are after the last call, on which only the report is decided."""
    operating = outcome.operation.kind if outcome.operation is not None else inputs.operating
    inputs = replace(inputs, obj=outcome.obj, stored=outcome.stored, operating=operating)
    if not isinstance(outcome.observation, Present) or isinstance(plan, Delete):
        return inputs
    target = inputs.target
    if outcome.stored is not None:
        kept = outcome.stored.kept
        coming = login_of_pending(inputs.logins, kept) if kept.pending else ""
        target = replace(target, active=kept.username or target.active, coming=coming)
    if outcome.rotated_from is not None:
        target = replace(target, retiring=outcome.rotated_from)
    if outcome.retired:
        target = replace(target, retiring="")
    external_ref = record.external_ref_of(outcome.obj, absent_since=None)
    inputs_now = replace(
        inputs, observation=outcome.observation, external_ref=external_ref, target=target, passwords=None
    )
    return with_preview(kind, with_differences(kind, replace(inputs_now, step=_remaining_step(inputs, outcome))))


def _remaining_step(inputs: Inputs[SpecT], outcome: Outcome[SpecT]) -> PasswordStep:
    if not inputs.eventual:
        return inputs.step if isinstance(inputs.step, Missing) else Keep()
    # It carries the change out after its answer; what was sent is recorded, and observed again.
    sent = Await(closely=outcome.resent) if outcome.sent else Keep()
    return inputs.step if isinstance(inputs.step, Await) else sent
