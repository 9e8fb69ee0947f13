"""What a plan takes to be carried out, and what a pass has done so far. Pure but for the record that grows."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Generic, Literal, assert_never

from apis.names import ACCOUNT, EXTERNAL_NAME, INCARNATION
from providers.credentials.passwords import (
    Await,
    Confirm,
    Introduce,
    Keep,
    Missing,
    PutBack,
    Retire,
    Stored,
    former_login,
)
from providers.external.client import Operation
from providers.external.observation import Absent, Change, Phase, Present, SpecT, digest
from providers.external.ownership import held
from providers.managed.plan import (
    Adopt,
    Create,
    Destroy,
    Finish,
    Ignore,
    Plan,
    Refuse,
    Release,
    Rest,
    Settled,
    Update,
    Wait,
)
from providers.managed.record import Call
from providers.managed.snapshot import Snapshot
from runtime.objects import Object, annotations_of, status_of


@dataclass(frozen=True, slots=True)
class Said:
    """One event to be sent with the report."""

    type: Literal["Normal", "Warning"]
    reason: str
    message: str


@dataclass(slots=True)
class Outcome(Generic[SpecT]):
    """What a pass has done so far: the latest object, the credentials, what is proven, what to say.

    `fresh` is the database as it was seen after the last call; `gone` that the object was let go. `sent` is a password
    that a slow cloud accepted, `resent` that it did so after the birth.
    """

    obj: Object
    stored: Stored | None
    fresh: Present[SpecT] | Absent | None = None
    events: list[Said] = field(default_factory=list)
    proven: dict[str, str] = field(default_factory=dict)
    corrected: tuple[Change, ...] = ()
    rotated_from: str | None = None
    retired: bool = False
    sent: str = field(default="", repr=False)
    resent: bool = False
    gone: bool = False
    acted: bool = False
    operation: Operation | None = None


def unreported_rotation(snapshot: Snapshot[Any]) -> str:
    """Return the former login of a rotation that a crash kept from being reported, else nothing. Pure."""
    connection = status_of(snapshot.obj).get("connection") or {}
    return former_login(connection.get("username", ""), snapshot.stored.kept if snapshot.stored is not None else None)


def mutates(snapshot: Snapshot[Any], plan: Plan) -> bool:
    """Tell whether a plan, or the password's step beside it, needs any side effect. Pure."""
    match plan:
        case Create() | Update() | Adopt() | Release() | Destroy() | Finish():
            return True
        case Settled():
            return _moves(snapshot) or marks_missing(snapshot)
        case Rest(reason="DriftHeld" | "WaitingForWindow" | "TranslatorChanged" | "PendingRestart"):
            return _moves(snapshot) or marks_missing(snapshot)
        case Wait() | Refuse() | Rest():
            return _moves(snapshot) and _password_may_move(snapshot)
        case Ignore():
            return False
        case never:
            assert_never(never)


def _moves(snapshot: Snapshot[Any]) -> bool:
    return not isinstance(snapshot.step, Keep | Missing | Await)


def _password_may_move(snapshot: Snapshot[Any]) -> bool:
    """Tell whether the password's step is made although a change of a database that is ours waits or is refused.

    While the cloud is at work on it, or it is paused, that is what needs no call: to publish what counts already.
    """
    observed, scene = snapshot.observed, snapshot.scene
    bounds, recorded = scene.bounds, scene.marks.incarnation
    if observed is None or not recorded or not observed.is_recorded_as(recorded):
        return False
    if not scene.desired.owner.owns(observed.owner) or scene.desired.lifecycle.deleting:
        return False
    if bounds.not_allowed or bounds.account_changed or bounds.takeover or bounds.intent_unknown or bounds.operating:
        return False
    if bounds.intent_until is not None and scene.now < bounds.intent_until:
        return False
    if isinstance(snapshot.step, Confirm):
        return True
    return observed.phase is Phase.READY and observed.usable and not scene.desired.lifecycle.paused


def marks_missing(snapshot: Snapshot[Any]) -> bool:
    """Tell whether a mark or the finalizer of a database that is ours is not on its object. Pure."""
    observed, account = snapshot.observed, snapshot.account
    if observed is None or account is None:
        return False
    annotations = annotations_of(snapshot.obj)
    wanted = {
        EXTERNAL_NAME: snapshot.target.name,
        ACCOUNT: account.id,
        INCARNATION: observed.incarnation,
    }
    return not held(snapshot.obj) or any(annotations.get(key) != value for key, value in wanted.items())


def calls_of(snapshot: Snapshot[Any], plan: Plan) -> tuple[Call, ...]:
    """Name every call to the cloud that a plan and the password's step make, in order. Pure."""
    target, observed, calls = snapshot.target, snapshot.observed, []
    incarnation = observed.incarnation if observed is not None else ""
    match plan:
        case Create():
            calls.append(Call("Create", target.name, change_hash=snapshot.scene.desired.spec_hash))
        case Update(changes=changes, queued=queued):
            told = digest([repr(change) for change in (*changes, *queued)])
            calls.append(Call("Update", target.name, incarnation, told))
        case Adopt(incarnation=wanted):
            calls.append(Call("Adopt", target.name, wanted))
        case Release(mark=True):
            calls.append(Call("Release", target.name, incarnation))
        case Destroy():
            calls.append(Call("Delete", target.name, incarnation or snapshot.scene.marks.incarnation))
        case _:
            pass
    match snapshot.step:
        case Introduce(username=username) | PutBack(username=username) if not isinstance(
            plan, Create | Adopt | Destroy
        ):
            calls.append(Call("SetPassword", username, incarnation))
        case Retire(username=username):
            calls.append(Call("Disable", username, incarnation))
        case _:
            pass
    return tuple(calls)
