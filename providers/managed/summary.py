"""The one reason that counts most after a pass, and whether the database can be used meanwhile. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from apis.reasons import CUT_OFF, UNUSABLE, ReasonClass, class_of_managed
from providers.credentials.passwords import Await, Keep, Missing, unproven_text
from providers.external.credential import Login
from providers.external.observation import Absent, Change, Phase, Present
from providers.managed.decisions.plan import Adopt, Create, Delete, Plan, Refuse, Rest, Settled, Update, Wait
from providers.managed.inputs import Inputs
from providers.managed.outcome import Outcome
from providers.managed.record import InvalidSpec
from runtime import kubectl
from runtime.conditions import Condition, find
from runtime.errors import ApiError, Conflict, Failure, NotLeading, WriteConflict
from runtime.objects import Object, status_of

REPEATED = 3
"""An error is reported from this pass in a row on: single ones are over before anybody could read of them."""
REPEATED_CONFLICTS = 10
"""The same for conflicts, which are tried again at once."""
FAILING_REASONS = frozenset({"InternalError", "RequestFailed"})

_TEXT_LIMIT = 400
# What waits for a window, a person or a restart leaves the database usable.
_ASIDE = frozenset({"WaitingForWindow", "DriftHeld", "PendingRestart", "TranslatorChanged", "HeldChange"})


def cause_of(error: Exception, in_a_row: int) -> tuple[str, str] | None:
    """Return reason and sentence for the error that ended a pass; None where it may be over with the next one.

    The text of a defect is left to the log: nobody knows what is in it.
    """
    if isinstance(error, NotLeading):
        return None
    if isinstance(error, InvalidSpec):
        return error.reason, error.message[:_TEXT_LIMIT]
    if not isinstance(error, ApiError | Failure | TimeoutError):
        text = (
            f"a defect of Fairlead ended the pass over this resource ({type(error).__name__}); it is tried again, ever"
            " more rarely; report it with the line of the provider's log that says InternalError"
        )
        return "InternalError", text
    least = REPEATED_CONFLICTS if isinstance(error, Conflict | WriteConflict) else REPEATED
    if in_a_row < least:
        return None
    text = f"passes over this resource fail in a row, the last by: {str(error) or type(error).__name__}"
    return "RequestFailed", text[:_TEXT_LIMIT]


def has_failing_passes(obj: Object) -> bool:
    """Return whether the conditions of a resource report that its passes fail."""
    synced = find(obj, "Synced")
    return synced is not None and synced["reason"] in FAILING_REASONS


@dataclass(frozen=True, slots=True)
class Summary:
    """The reason of the conditions; an empty one means that nothing is left to do.

    `unusable`: the published login was tried and refused, whatever the reason.
    """

    reason: str = ""
    message: str = ""
    held: tuple[Change, ...] = ()
    unusable: bool = False


def summary_of(inputs: Inputs[Any], plan: Plan) -> Summary:
    """Return the one reason that counts most of a plan and the password's step."""
    if isinstance(plan, Delete):
        return Summary("Deleting", f"the {inputs.noun} is taken away")
    if isinstance(plan, Wait) and plan.reason == "CloudBusy" and _nothing_waits(inputs):
        # A backup, the cloud's own maintenance: users are not affected, and there is nothing to wait for.
        plan = Settled()
    if _is_login_dead(inputs) and not (isinstance(plan, Refuse) and plan.reason in UNUSABLE):
        return Summary("PasswordUnknown", _login_refused(inputs), unusable=True)
    waits = plan.held if isinstance(plan, Update) else plan
    if isinstance(waits, Rest) and waits.reason in _ASIDE and isinstance(inputs.step, Missing):
        # Nothing is published, whatever waits.
        of_password = _of_password(inputs)
        return Summary(of_password.reason, of_password.message, waits.held)
    summary = _of_plan(inputs, plan)
    is_gone = summary.reason == "BackupImpossible" and isinstance(inputs.observation, Absent)
    return Summary(summary.reason, summary.message, summary.held, unusable=True) if is_gone else summary


def _of_plan(inputs: Inputs[Any], plan: Plan) -> Summary:  # noqa: PLR0911 - one arm for each cause
    match plan:
        case Wait(reason="CloudBusy") if isinstance(inputs.step, Await):
            return _rotating(inputs)
        case (
            Refuse(reason=reason, message=message, held=held)
            | Rest(reason=reason, message=message, held=held)
            | Wait(reason=reason, message=message, held=held)
        ):
            return Summary(reason, message, held)
        case Create(restore=backup):
            how = ("Restoring", f"restored from {backup}") if backup else ("Creating", "made")
            return Summary(how[0], f"the {inputs.noun} is being {how[1]}")
        case Update(held=Rest() | Refuse() | Wait() as held):
            return Summary(held.reason, held.message, held.held)
        case Update(changes=changes):
            paths = ", ".join(change.shown for change in changes)
            return Summary("CloudBusy", f"still differs after the change: {paths}"[:400])
        case Settled() | Adopt():
            return _of_password(inputs)
        case _:
            return Summary()


def _of_password(inputs: Inputs[Any]) -> Summary:
    """Return what speaks against the login of a database that is as it was asked for."""
    if inputs.password_problem is not None:
        return Summary(*inputs.password_problem)
    match inputs.step:
        case Await():
            return _rotating(inputs)
        case Missing(refused=True):
            return Summary("PasswordUnknown", _login_refused(inputs))
        case Missing():
            return Summary("PasswordUnknown", f"{_password_unknown(inputs)}; {_password_remedy(inputs)}")
        case _ if any(inputs.logins) and not _has_password(inputs):
            return Summary("Rotating", "it was taken over, and its login has no password of Fairlead's yet")
        case _:
            return Summary()


def _has_password(inputs: Inputs[Any]) -> bool:
    return inputs.stored is not None and bool(inputs.stored.kept.current)


def _nothing_waits(inputs: Inputs[Any]) -> bool:
    """Return whether a database at which the cloud is at work, within its time, is usable and as it is desired."""
    observed = inputs.observed
    if observed is None or observed.phase is not Phase.BUSY or not observed.usable:
        return False
    busy = inputs.attempts.busy
    if busy is None or inputs.now - busy[1] >= observed.deadline:
        return False
    converged = inputs.external_ref.converged
    if converged is None or converged.spec_hash != inputs.spec_hash or inputs.refusal is not None:
        return False
    return not (inputs.changes or observed.pending or observed.restart) and isinstance(inputs.step, Keep)


def _is_login_dead(inputs: Inputs[Any]) -> bool:
    """Return whether a database that takes logins refused the published password."""
    return inputs.login is Login.REFUSED and inputs.step == Missing(refused=True)


def _login_refused(inputs: Inputs[Any]) -> str:
    return (
        f"the server refuses the password of login {login_of(inputs)}: somebody changed it, or there is no such"
        f" login; {_password_remedy(inputs)}"
    )


def _password_unknown(inputs: Inputs[Any]) -> str:
    if inputs.foreign:
        keys = ", ".join(inputs.foreign)
        return f"the credentials Secret holds what Fairlead did not write ({keys}) and the password is found nowhere"
    if status_of(inputs.obj).get("connection"):
        return "the credentials Secret was lost and the password is found nowhere"
    # Taken over with a login that was there before.
    return f"Fairlead does not know the password of the login {login_of(inputs)}".rstrip()


def with_refused_login(inputs: Inputs[Any], outcome: Outcome[Any], summary: Summary) -> Summary:
    """Return the summary with the refusal of the published login, where the pass failed before it was put back."""
    is_put_back = any(change.path[-1] == "password" for change in outcome.corrected)
    if not summary.reason or inputs.login is not Login.REFUSED or is_put_back:
        return summary
    return Summary(summary.reason, summary.message, summary.held, unusable=True)


def login_of(inputs: Inputs[Any]) -> str:
    """Return the login whose password is published, or is to be."""
    return (inputs.stored.kept.username if inputs.stored is not None else "") or inputs.target.active


def _password_remedy(inputs: Inputs[Any]) -> str:
    if inputs.user_password:
        return "change the password in the Secret that passwordSecretRef names"
    command = kubectl.set_spec(inputs.target.address, {"passwordSecretRef": {"name": "SECRET", "key": "password"}})
    return (
        f"whoever knows it puts it into a Secret of this namespace and names that: {command}; or, for a"
        " new password, which ends the present one, set spec.passwordRotation.token (of the claim, where there is one)"
        " to a new value"
    )


def _rotating(inputs: Inputs[Any]) -> Summary:
    published = bool((status_of(inputs.obj).get("connection") or {}).get("passwordRef"))
    if inputs.step == Await(unproven=True) and inputs.account is not None:
        text = unproven_text(str(inputs.endpoint))
        return Summary("Rotating" if published else "Creating", text)
    if not inputs.external_ref.incarnation:
        return Summary("Creating", "the database is being made; its password does not count yet")
    return Summary("Rotating", "the new password was accepted and does not count everywhere yet")


def is_usable(inputs: Inputs[Any], outcome: Outcome[Any], reason: str) -> bool:
    """Return whether the database can be used although something is left to do.

    What an outage of the server took away comes back with the first observation of a usable database.
    """
    if reason == "ObserveOnly":
        # Whether a login works is not known: no password is read.
        return True
    if reason in UNUSABLE or not is_working(inputs, outcome):
        return False
    return reason in _ASIDE or (_was_cut_off(outcome.obj) and bool(inputs.external_ref.incarnation))


def still_cut_off(inputs: Inputs[Any], ready: Condition, reason: str) -> Condition:
    """Return the condition of an outage until the database is observed again, so that the next pass can end it."""
    known = find(inputs.obj, "Ready")
    is_unobserved = inputs.observed is None and class_of_managed(reason) is ReasonClass.WAITING
    if known is None or not is_unobserved or not _was_cut_off(inputs.obj):
        return ready
    return Condition("Ready", "False", CUT_OFF, known["message"], ready.observed_generation)


def is_working(inputs: Inputs[Any], outcome: Outcome[Any]) -> bool:
    """Return whether the database was observed, usable, with a password that is published, or nobody logs in to it."""
    observed = outcome.observation.observed if isinstance(outcome.observation, Present) else inputs.observed
    published = outcome.stored is not None and bool(outcome.stored.kept.current)
    has_logins = inputs.account is None or inputs.account.clients.logins is not None
    is_right = published or not has_logins
    return observed is not None and observed.phase is Phase.READY and observed.usable and is_right


def _was_cut_off(obj: Object) -> bool:
    ready = find(obj, "Ready")
    return ready is not None and ready["status"] == "False" and ready["reason"] == CUT_OFF
