"""The one decision: what to do now with a resource, from what is desired, observed and recorded. Pure.

Every branch is a row of the test table. The order of the rows is the order of safety: what is not known, then what
may not be touched, then what would lose data, then what is left to do.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any, assert_never

from providers.credentials.passwords import Await, PasswordStep, decide_password
from providers.external.observation import SERVER_NOT_OWNED, Absent, Observed, Phase, Present, SpecT, Unknown
from providers.managed.decisions.decide_deletion import decide_deletion
from providers.managed.decisions.decide_repeats import without_repeats
from providers.managed.decisions.decide_update import decide_update, describe_changes
from providers.managed.decisions.external_names import refuse_other_name
from providers.managed.decisions.plan import Adopt, Create, Plan, Refuse, Rest, Wait
from providers.managed.decisions.requeue import follow_after
from providers.managed.decisions.waits import AT_LAST, LATER, SOON, open_intent
from providers.managed.inputs import Decision, Inputs
from providers.managed.revival import how_to_revive
from runtime.objects import status_of
from runtime.replaced import replace

_MOST_BACKUPS = 5


def decide(inputs: Inputs[SpecT]) -> Decision:
    """Choose the one plan for this pass and the password's step; every row of the table is a test case."""
    step = inputs.step if inputs.passwords is None else decide_password(inputs.passwords, inputs.now)
    inputs = replace(inputs, step=step)
    plan = _plan(inputs)
    if isinstance(plan, Create) and inputs.password_problem is not None:
        # A database whose password cannot be what is desired is not begun.
        plan = Refuse(*inputs.password_problem)
    decision = without_repeats(inputs, plan)
    if not isinstance(decision.plan, Wait):
        return decision
    follow = follow_after(replace(inputs, step=decision.step), status_of(inputs.obj), inputs.now)
    after = _after(inputs, decision.plan, decision.step)
    after = after if follow is None else min(after, follow)
    return decision._replace(plan=replace(decision.plan, after=after))


def _after(inputs: Inputs[SpecT], plan: Wait, step: PasswordStep) -> timedelta:
    """Return after how long to reconcile what waits; a password that was sent is tried by logins meanwhile."""
    is_tried = isinstance(step, Await) and inputs.observed is not None and inputs.observed.usable
    return plan.after if plan.by_list is None or not inputs.listed or is_tried else plan.by_list


def _plan(inputs: Inputs[SpecT]) -> Plan:
    """Choose the plan, whatever came of it before."""
    if inputs.lifecycle.deleting:
        return decide_deletion(inputs)
    blocked = _blocked(inputs)
    if blocked is not None:
        return blocked
    match inputs.observation:
        case Unknown(reason=reason, message=message) if reason == SERVER_NOT_OWNED:
            return Refuse(reason, message)
        case Unknown(reason=reason, message=message):
            return Wait(reason, _unknown_text(inputs, reason, message), LATER)
        case Absent():
            return _absent(inputs)
        case Present(observed=observed):
            return _present(inputs, observed)
        case never:
            assert_never(never)


def _unknown_text(inputs: Inputs[Any], reason: str, message: str) -> str:
    """Return why nothing is known; what went with its server can be given up before that is made anew."""
    if reason != "DatabaseLost" or not inputs.stateful:
        return message
    lost = inputs.external_ref.incarnation
    empty = f"{inputs.consent_command(f'recreate={lost}')}{inputs.consent.again('recreate', lost)}"
    return f"{message}; to have an empty one in a server made anew: {empty}"


def _blocked(inputs: Inputs[SpecT]) -> Plan | None:
    if inputs.not_allowed:
        return Refuse("NotAllowed", inputs.not_allowed)
    if inputs.account_changed:
        return Refuse("AccountChanged", inputs.account_changed)
    return open_intent(inputs)


def _absent(inputs: Inputs[SpecT]) -> Plan:  # noqa: PLR0911 - each return is a row of the table
    lost = inputs.external_ref.incarnation
    if inputs.lifecycle.paused:
        return Rest("Paused", inputs.lifecycle.paused)
    other_name = refuse_other_name(inputs)
    if other_name is not None:
        return other_name
    if lost and inputs.stateful:
        return _lost(inputs, lost)
    if inputs.external_ref.restoring:
        return _resume_restore(inputs)
    if inputs.observe_only:
        return Wait("ResourcePending", "there is no such database yet, and the policy Observe makes none", LATER)
    if inputs.takeover:
        return Rest("AwaitingTakeover", inputs.takeover)
    if inputs.refusal is not None:
        return Refuse(*inputs.refusal)
    if inputs.predecessors and inputs.consent.adopt != "none":
        predecessor = inputs.predecessors[0]
        return Refuse(
            "PredecessorFound",
            f"{predecessor.name} (incarnation {predecessor.incarnation}) was made for the same claim under another"
            f" identity; to take it over: {inputs.adopt_command(predecessor.incarnation)}; for a new one beside it"
            " annotate the claim"
            " fairlead.dev/adopt=none",
        )
    if inputs.limit_reached:
        return Refuse("LimitReached", inputs.limit_reached)
    return Create(instead_of=lost)


def _lost(inputs: Inputs[SpecT], lost: str) -> Plan:
    since = inputs.external_ref.absent_since
    if since is None or inputs.now - since < inputs.grace:
        left = inputs.grace if since is None else inputs.grace - (inputs.now - since)
        return Wait(
            "CloudUnreachable", "the database was not found; looking again before believing it", left, quiet=True
        )
    # Where both were agreed to, the data go first, and a backup that is not there is never an empty database.
    consented = inputs.consent.of("restore")
    if consented and not inputs.observe_only:
        return _restore(inputs, lost, consented)
    if inputs.consent.to("recreate", lost) and not inputs.observe_only:
        return Create(instead_of=lost)
    return Refuse("DatabaseLost", f"{_lost_text(inputs, lost)}{_remedies(inputs, lost)}")


def _restore(inputs: Inputs[SpecT], lost: str, consented: tuple[str, ...]) -> Plan:
    """Restore a lost database from the backup that the platform named, if it is one of its own."""
    if inputs.takeover:
        return Rest("AwaitingTakeover", inputs.takeover)
    if inputs.refusal is not None:
        return Refuse(*inputs.refusal)
    if inputs.backups is None:
        return Wait("CloudUnreachable", "the backups of the lost database cannot be listed; looking again", LATER)
    if len(consented) > 1:
        text = f"the consent names several backups ({', '.join(consented)[:300]}); leave one. "
    elif consented[0] not in inputs.backups:
        text = f"{consented[0][:300]} is no backup of it that this namespace may have. "
    else:
        return Create(instead_of=lost, restore=consented[0])
    return Refuse("DatabaseLost", f"{text}{_lost_text(inputs, lost)}{_remedies(inputs, lost)}")


def _resume_restore(inputs: Inputs[SpecT]) -> Plan:
    """Resume a restore, from its backup or from one that was consented to since; create nothing empty."""
    external_ref = inputs.external_ref
    if inputs.observe_only:
        return Wait("ResourcePending", "there is no such database yet, and the policy Observe makes none", LATER)
    if inputs.takeover:
        return Rest("AwaitingTakeover", inputs.takeover)
    if inputs.refusal is not None:
        return Refuse(*inputs.refusal)
    if inputs.consent.to("recreate", external_ref.lost):
        return Create(instead_of=external_ref.lost)
    consented = inputs.consent.of("restore")
    is_replaced = len(consented) == 1 and consented[0] in (inputs.backups or ())
    return Create(restore=consented[0] if is_replaced else external_ref.restoring)


def _lost_text(inputs: Inputs[SpecT], lost: str) -> str:
    backups, external_ref = inputs.backups, inputs.external_ref
    if backups:
        more = f" and {len(backups) - _MOST_BACKUPS} more" if len(backups) > _MOST_BACKUPS else ""
        backup = f"its backups, the newest first: {', '.join(backups[:_MOST_BACKUPS])}{more}"
    elif inputs.backup:
        backup = f"the newest backup is {inputs.backup}"
    else:
        backup = how_to_revive(inputs) or "no backup of it is known"
    return (
        f"database {external_ref.external_name} (incarnation {lost}) is gone and was not deleted by Fairlead; {backup};"
        " nothing is made in its place."
    )


def _remedies(inputs: Inputs[SpecT], lost: str) -> str:
    restore = " Restore it under its name"
    if inputs.backups:
        newest = inputs.backups[0]
        again = inputs.consent.again("restore", newest)
        restore = f" To have it restored: {inputs.consent_command(f'restore={newest}')}{again}"
    empty = inputs.consent_command(f"recreate={lost}")
    return f"{restore}; or, to start with an empty one: {empty}{inputs.consent.again('recreate', lost)}"


def _present(  # noqa: PLR0911 - each return is a row of the table
    inputs: Inputs[SpecT], observed: Observed[SpecT, Any]
) -> Plan:
    external_ref = inputs.external_ref
    if external_ref.incarnation and not observed.is_recorded_as(external_ref.incarnation):
        return _replaced(inputs, observed)
    if not inputs.observe_only and not inputs.is_ours(observed):
        return _adopt(inputs, observed)
    if inputs.lifecycle.paused:
        return Rest("Paused", inputs.lifecycle.paused, inputs.changes)
    if inputs.observe_only:
        return _only_observed(inputs, observed)
    if inputs.takeover:
        return Rest("AwaitingTakeover", inputs.takeover, inputs.changes)
    match observed.phase:
        case Phase.BUSY:
            return _busy(inputs, observed)
        case Phase.STOPPED:
            return _stopped(inputs, observed)
        case Phase.FAILED:
            return _failed(observed)
        case Phase.READY:
            return decide_update(inputs, observed)
        case never:
            assert_never(never)


def _only_observed(inputs: Inputs[SpecT], observed: Observed[SpecT, Any]) -> Plan:
    """Rest, with what differs from what is typed; where nobody can use it, why."""
    match observed.phase:
        case Phase.FAILED:
            return _failed(observed)
        case Phase.STOPPED:
            return Refuse("DatabaseStopped", f"{observed.name} was stopped; start it where it was stopped")
        case Phase.BUSY if not observed.usable:
            return Wait("Updating", f"the cloud is at work on it ({observed.state})", SOON, by_list=AT_LAST)
        case _ if not observed.usable:
            return _failed(observed)
        case _:
            return Rest("ObserveOnly", describe_changes(inputs.changes), inputs.changes)


def _failed(observed: Observed[SpecT, Any]) -> Refuse:
    remedy = f"; {observed.remedy}" if observed.remedy else ""
    return Refuse("DatabaseFailed", f"{observed.name} is {observed.state or 'failed'}; nobody can use it{remedy}")


def _stopped(inputs: Inputs[SpecT], observed: Observed[SpecT, Any]) -> Plan:
    """Start what the spec wants running; refuse where only a person can start it."""
    starting = tuple(change for change in inputs.changes if change.starts)
    if starting:
        return decide_update(replace(inputs, changes=starting), observed)
    return Refuse("DatabaseStopped", f"{observed.name} was stopped; start it where it was stopped")


def _busy(inputs: Inputs[SpecT], observed: Observed[SpecT, Any]) -> Plan:
    """Wait: what was never Ready is being created, and what nobody can use meanwhile is not Ready."""
    state = f" ({observed.state})" if observed.state else ""
    if inputs.external_ref.restoring:
        text = f"the database is being restored from {inputs.external_ref.restoring}{state}"
        return Wait("Restoring", text, SOON, by_list=AT_LAST)
    if not inputs.external_ref.incarnation and inputs.eventual:
        return Wait("Creating", f"the database is being made{state}", SOON, by_list=AT_LAST)
    reason = "CloudBusy" if observed.usable else "Updating"
    return Wait(reason, f"the cloud is at work on it{state} and takes no change yet", SOON, by_list=AT_LAST)


def _replaced(inputs: Inputs[SpecT], observed: Observed[SpecT, Any]) -> Plan:
    if _is_adoption_agreed(inputs, observed):
        return _adopt(inputs, observed)
    wanted = _adopt_value(inputs, observed)
    again = inputs.consent.again("adopt", wanted)
    return Refuse(
        "Replaced",
        f"{observed.name} is not the database that was Ready before: incarnation {observed.incarnation} instead of"
        f" {inputs.external_ref.incarnation}; it is only read. Put the former one back; or, to go on with this one:"
        f" {inputs.adopt_command(wanted)}{again}{_of_preview(inputs, observed)}",
        inputs.preview.all if inputs.preview is not None else (),
    )


def _is_adoption_agreed(inputs: Inputs[SpecT], observed: Observed[SpecT, Any]) -> bool:
    """Return whether a person named this incarnation, alone or with the hash of what adopting it changes now."""
    return inputs.consent.adopt in {observed.incarnation, _adopt_value(inputs, observed)} - {""}


def _adopt_value(inputs: Inputs[SpecT], observed: Observed[SpecT, Any]) -> str:
    """Return what the annotation says to adopt this and make no other changes than those of the preview."""
    preview = inputs.preview
    return observed.incarnation if preview is None else f"{observed.incarnation}/{preview.hash}"


def _of_preview(inputs: Inputs[SpecT], observed: Observed[SpecT, Any]) -> str:
    """Return what to say of the preview, and of an annotation that agrees to another one."""
    preview = inputs.preview
    if preview is None:
        return ""
    text = (
        "; status.adoption lists what that changes" if preview.changes else "; nothing but whose it is changes by that"
    )
    if inputs.consent.adopt.startswith(f"{observed.incarnation}/"):
        return f"{text}, which is no longer what the annotation that is there agrees to"
    return text


def _adopt(inputs: Inputs[SpecT], observed: Observed[SpecT, Any]) -> Plan:
    owner = observed.owner
    allowed = inputs.adoption or (owner is not None and inputs.target.owner.precedes(owner))
    if _is_adoption_agreed(inputs, observed) and not inputs.observe_only and not inputs.lifecycle.paused:
        if owner is not None and owner.installation != inputs.target.owner.installation:
            return Refuse("AdoptionRefused", f"{observed.name} belongs to {owner}; another installation's is not taken")
        if not allowed:
            return Refuse("AdoptionRefused", "the ProviderConfig has no allowAdoption; ask the platform team")
        return Adopt(observed.incarnation)
    belongs = f"it belongs to {owner}" if owner is not None else "it carries no owner's tag"
    if owner is None and inputs.was_lost:
        belongs = "the one of before was lost, and nothing shows that this has its data"
    elif owner is None and inputs.target.unanswered is not None:
        belongs = "it appeared after a create of ours that had no answer, and nothing proves that this made it"
    lacking = [] if allowed else ["set allowAdoption in the ProviderConfig"]
    steps = ", ".join((*lacking, inputs.adopt_command(_adopt_value(inputs, observed))))
    return Refuse(
        "NotOwned",
        f"{observed.name} exists and was not made for this resource: {belongs}; nothing is changed. Choose"
        f" another name; or, to take it over: {steps}{_of_preview(inputs, observed)}",
        inputs.preview.all if inputs.preview is not None else (),
    )
