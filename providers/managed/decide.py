"""The one decision: what to do now with a resource, from what is wanted, seen and remembered. Pure.

Every branch is a row of the test table. The order of the rows is the order of safety: what we do not know, then what we
may not touch, then what would lose data, then what is left to do.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import assert_never

from apis.teardown import Policy
from providers.credentials.passwords import decide_password
from providers.external.observation import Absent, Observed, Phase, Present, SpecT, Unknown, renamed_text
from providers.managed.decide_repeats import without_repeats
from providers.managed.decide_update import converge, differences
from providers.managed.inputs import Decision, Inputs
from providers.managed.plan import Adopt, Create, Destroy, Finish, Ignore, Plan, Refuse, Release, Rest, Wait
from providers.managed.requeue import follow_after
from runtime.objects import status_of

SOON = timedelta(seconds=5)
SLOW = timedelta(minutes=1)
# So long an orphan waits to have its tags written at an account that is out of reach.
_TAGS_TRIED = timedelta(minutes=5)
_MOST_BACKUPS = 5
# What says that nobody will let us in again by waiting; a cloud that is merely out of reach is not among them.
_SHUT_OUT = frozenset(
    {"CredentialsMissing", "CredentialsInvalid", "CredentialsForbidden", "ProviderConfigNotFound", "NotAllowed"}
)
# Under these an orphan is let go with its tags as they are: nobody can write to it, or it goes by another name.
_UNTAGGED = _SHUT_OUT | {"DatabaseRenamed"}


def decide(inputs: Inputs[SpecT]) -> Decision:
    """Choose the one plan for this pass and the password's step; every row of the table is a test case."""
    step = inputs.step if inputs.passwords is None else decide_password(inputs.passwords, inputs.now)
    inputs = replace(inputs, step=step)
    plan = _wanted(inputs)
    if isinstance(plan, Create) and inputs.trouble is not None:
        # A database whose password cannot be what was asked for is not begun.
        plan = Refuse(*inputs.trouble)
    decision = without_repeats(inputs, plan)
    if not isinstance(decision.plan, Wait):
        return decision
    follow = follow_after(replace(inputs, step=decision.step), status_of(inputs.obj), inputs.now)
    after = decision.plan.after if follow is None else min(decision.plan.after, follow)
    return decision._replace(plan=replace(decision.plan, after=after))


def _wanted(inputs: Inputs[SpecT]) -> Plan:
    """Choose the plan, whatever came of it before."""
    if inputs.lifecycle.deleting:
        return _deletion(inputs)
    early = _not_ours_to_move(inputs)
    if early is not None:
        return early
    match inputs.observation:
        case Unknown(reason=reason, message=message):
            return Wait(reason, message, SLOW)
        case Absent():
            return _absent(inputs)
        case Present(observed=observed):
            return _present(inputs, observed)
        case never:
            assert_never(never)


def _not_ours_to_move(inputs: Inputs[SpecT]) -> Plan | None:
    if inputs.not_allowed:
        return Refuse("NotAllowed", inputs.not_allowed)
    if inputs.account_changed:
        return Refuse("AccountChanged", inputs.account_changed)
    return _open_intent(inputs)


def _open_intent(inputs: Inputs[SpecT]) -> Plan | None:
    """An intent that another process may still carry out, or an operation under way, forbids every call of ours."""
    if inputs.intent_unknown:
        return Refuse("NewerProvider", inputs.intent_unknown)
    if inputs.operating:
        reason = {"Create": "Creating", "Delete": "Deleting"}.get(inputs.operating, "CloudBusy")
        return Wait(reason, "the cloud is carrying out what was asked for", SOON)
    if inputs.intent_until is not None and inputs.now < inputs.intent_until:
        left = inputs.intent_until - inputs.now
        return Wait("CloudBusy", "another process may still be at work on it until its time is over", left, quiet=True)
    return None


def _absent(inputs: Inputs[SpecT]) -> Plan:  # noqa: PLR0911 - each return is a row of the table
    lost = inputs.marks.incarnation
    if inputs.lifecycle.paused:
        return Rest("Paused", inputs.lifecycle.paused)
    if lost and inputs.stateful:
        return _lost(inputs, lost)
    if inputs.marks.restoring:
        return _restore_goes_on(inputs)
    if inputs.observe_only:
        return Wait("ResourcePending", "there is no such database yet, and the policy Observe makes none", SLOW)
    if inputs.takeover:
        return Rest("AwaitingTakeover", inputs.takeover)
    if inputs.refusal is not None:
        return Refuse(*inputs.refusal)
    foreign = [one for one in inputs.predecessors if inputs.consent.adopt != "none"]
    if foreign:
        one = foreign[0]
        return Refuse(
            "PredecessorFound",
            f"{one.name} (incarnation {one.incarnation}) was made for the same claim under another identity; to take it"
            f" over: {inputs.adopt_command(one.incarnation)}; for a new one beside it annotate the claim"
            " fairlead.dev/adopt=none",
        )
    if inputs.limit_reached:
        return Refuse("LimitReached", inputs.limit_reached)
    return Create(instead_of=lost)


def _lost(inputs: Inputs[SpecT], lost: str) -> Plan:
    since = inputs.marks.absent_since
    if since is None or inputs.now - since < inputs.grace:
        left = inputs.grace if since is None else inputs.grace - (inputs.now - since)
        return Wait(
            "CloudUnreachable", "the database was not found; looking again before believing it", left, quiet=True
        )
    # Where both were agreed to, the data go first, and a backup that is not there is never an empty database.
    asked = inputs.consent.of("restore")
    if asked and not inputs.observe_only:
        return _restored(inputs, lost, asked)
    if inputs.consent.to("recreate", lost) and not inputs.observe_only:
        return Create(instead_of=lost)
    return Refuse("DatabaseLost", f"{_lost_text(inputs, lost)}{_ways_on(inputs, lost)}")


def _restored(inputs: Inputs[SpecT], lost: str, asked: tuple[str, ...]) -> Plan:
    """Restore a lost database from the backup that the platform named, if it is one of its own."""
    if inputs.takeover:
        return Rest("AwaitingTakeover", inputs.takeover)
    if inputs.refusal is not None:
        return Refuse(*inputs.refusal)
    if inputs.backups is None:
        return Wait("CloudUnreachable", "the backups of the lost database cannot be listed; looking again", SLOW)
    if len(asked) > 1:
        text = f"the consent names several backups ({', '.join(asked)[:300]}); leave one. "
    elif asked[0] not in inputs.backups:
        text = f"{asked[0][:300]} is no backup of it that this namespace may have. "
    else:
        return Create(instead_of=lost, restore=asked[0])
    return Refuse("DatabaseLost", f"{text}{_lost_text(inputs, lost)}{_ways_on(inputs, lost)}")


def _restore_goes_on(inputs: Inputs[SpecT]) -> Plan:
    """Restore on, from the backup that was begun with or from one that was agreed to since; make nothing empty."""
    marks = inputs.marks
    if inputs.observe_only:
        return Wait("ResourcePending", "there is no such database yet, and the policy Observe makes none", SLOW)
    if inputs.takeover:
        return Rest("AwaitingTakeover", inputs.takeover)
    if inputs.refusal is not None:
        return Refuse(*inputs.refusal)
    if inputs.consent.to("recreate", marks.lost):
        return Create(instead_of=marks.lost)
    asked = inputs.consent.of("restore")
    backup = asked[0] if len(asked) == 1 and asked[0] in (inputs.backups or ()) else marks.restoring
    return Create(restore=backup)


def _lost_text(inputs: Inputs[SpecT], lost: str) -> str:
    known = inputs.backups
    if known:
        more = f" and {len(known) - _MOST_BACKUPS} more" if len(known) > _MOST_BACKUPS else ""
        backup = f"its backups, the newest first: {', '.join(known[:_MOST_BACKUPS])}{more}"
    else:
        backup = f"the newest backup is {inputs.backup}" if inputs.backup else "no backup of it is known"
    return (
        f"database {inputs.marks.external_name} (incarnation {lost}) is gone and was not deleted by Fairlead; {backup};"
        " nothing is made in its place."
    )


def _ways_on(inputs: Inputs[SpecT], lost: str) -> str:
    known = inputs.backups
    restore = " Restore it under its name"
    if known:
        again = inputs.consent.again("restore", known[0])
        restore = f" To have it restored: {inputs.consent_command(f'restore={known[0]}')}{again}"
    empty = inputs.consent_command(f"recreate={lost}")
    return f"{restore}; or, to start with an empty one: {empty}{inputs.consent.again('recreate', lost)}"


def _present(  # noqa: PLR0911 - each return is a row of the table
    inputs: Inputs[SpecT], observed: Observed[SpecT]
) -> Plan:
    marks = inputs.marks
    if marks.incarnation and not observed.is_recorded_as(marks.incarnation):
        return _replaced(inputs, observed)
    if not inputs.target.owner.owns(observed.owner) and not (marks.incarnation and observed.owner is None):
        return _adopt(inputs, observed)
    if inputs.lifecycle.paused:
        return Rest("Paused", inputs.lifecycle.paused, inputs.changes)
    if inputs.observe_only:
        return Rest("ObserveOnly", differences(inputs.changes), inputs.changes)
    if inputs.takeover:
        return Rest("AwaitingTakeover", inputs.takeover, inputs.changes)
    match observed.phase:
        case Phase.BUSY:
            return _busy(inputs, observed)
        case Phase.STOPPED:
            return Refuse("DatabaseStopped", f"{observed.name} was stopped; start it where it was stopped")
        case Phase.FAILED:
            advice = f"; {observed.advice}" if observed.advice else ""
            text = f"{observed.name} is {observed.state or 'failed'}; nobody can use it{advice}"
            return Refuse("DatabaseFailed", text)
        case Phase.READY:
            return converge(inputs, observed)
        case never:
            assert_never(never)


def _busy(inputs: Inputs[SpecT], observed: Observed[SpecT]) -> Plan:
    """Wait; what was never Ready is being made, and what nobody can use meanwhile is not Ready."""
    state = f" ({observed.state})" if observed.state else ""
    if inputs.marks.restoring:
        return Wait("Restoring", f"the database is being restored from {inputs.marks.restoring}{state}", SOON)
    if not inputs.marks.incarnation and inputs.eventual:
        return Wait("Creating", f"the database is being made{state}", SOON)
    reason = "CloudBusy" if observed.usable else "Updating"
    return Wait(reason, f"the cloud is at work on it{state} and takes no change yet", SOON)


def _replaced(inputs: Inputs[SpecT], observed: Observed[SpecT]) -> Plan:
    if inputs.consent.adopt == observed.incarnation:
        return _adopt(inputs, observed)
    again = inputs.consent.again("adopt", observed.incarnation)
    return Refuse(
        "Replaced",
        f"{observed.name} is not the database that was Ready before: incarnation {observed.incarnation} instead of"
        f" {inputs.marks.incarnation}; it is only read. Put the former one back; or, to go on with this one:"
        f" {inputs.adopt_command(observed.incarnation)}{again}",
    )


def _adopt(inputs: Inputs[SpecT], observed: Observed[SpecT]) -> Plan:
    wanted, found = inputs.consent.adopt, observed.owner
    allowed = inputs.adoption or (found is not None and inputs.target.owner.precedes(found))
    if wanted == observed.incarnation and not inputs.observe_only and not inputs.lifecycle.paused:
        if found is not None and found.installation != inputs.target.owner.installation:
            return Refuse("AdoptionRefused", f"{observed.name} belongs to {found}; another installation's is not taken")
        if not allowed:
            return Refuse("AdoptionRefused", "the ProviderConfig has no allowAdoption; ask the platform team")
        return Adopt(observed.incarnation)
    whose = f"it belongs to {found}" if found is not None else "it carries no owner's tag"
    lacking = [] if allowed else ["set allowAdoption in the ProviderConfig"]
    if inputs.observe_only:
        lacking.append("set managementPolicy: Manage")
    is_shown = allowed and not inputs.observe_only
    # What adoption would change is told to whoever may adopt, so that it can be read first.
    preview = "; status.drift lists what that changes" if is_shown and inputs.changes else ""
    steps = ", ".join((*lacking, inputs.adopt_command(observed.incarnation)))
    return Refuse(
        "NotOwned",
        f"{observed.name} exists and was not made for this resource: {whose}; nothing is changed. Choose"
        f" another name; or, to take it over: {steps}{preview}",
        inputs.changes if is_shown else (),
    )


def _deletion(inputs: Inputs[SpecT]) -> Plan:  # noqa: PLR0911 - each return is a row of the table
    lifecycle = inputs.lifecycle
    if not lifecycle.held:
        return Ignore()
    if lifecycle.paused:
        return Rest("Paused", lifecycle.paused)
    if lifecycle.policy is Policy.DETACH or inputs.observe_only:
        return Release(mark=False)
    if lifecycle.policy is None:
        return Wait("AwaitingTeardown", "deleted, but its claim has not said what shall become of the database", SLOW)
    blocked = _open_intent(inputs)
    if blocked is None and _is_given_up(inputs):
        return Release(mark=False)
    if inputs.account_changed:
        return Refuse("AccountChanged", inputs.account_changed)
    if blocked is not None:
        return blocked
    return _deletion_of_seen(inputs, lifecycle.policy)


def _is_given_up(inputs: Inputs[SpecT]) -> bool:
    """Tell whether an orphan's tags were tried for long enough at an account that shows nothing."""
    lifecycle = inputs.lifecycle
    if lifecycle.policy is not Policy.ORPHAN or not isinstance(inputs.observation, Unknown):
        return False
    return lifecycle.since is not None and inputs.now - lifecycle.since >= _TAGS_TRIED


def _deletion_of_seen(inputs: Inputs[SpecT], policy: Policy) -> Plan:
    match inputs.observation:
        case Unknown(reason=reason) if reason in _UNTAGGED and policy is Policy.ORPHAN:
            # Its tags are tried, not waited for: to leave a database alone needs no key to it.
            return Release(mark=False)
        case Unknown(reason=reason, message=message):
            return Wait(reason, message, SLOW)
        case Absent(renamed=renamed) if renamed and policy is not Policy.ORPHAN:
            return Refuse("DatabaseRenamed", renamed_text(inputs.marks.external_name, renamed))
        case Absent(remains=remains):
            return _gone(inputs, remains=remains)
        case Present(observed=observed):
            return _destroy(inputs, observed, policy)
        case never:
            assert_never(never)


def _gone(inputs: Inputs[SpecT], *, remains: bool) -> Plan:
    """Absence under deletion: believed at once where nothing was ever made, else after two looks over the grace."""
    since, policy = inputs.marks.absent_since, inputs.lifecycle.policy
    # Where a list of what is there lags behind, what a crash kept us from remembering may appear a moment later.
    made = inputs.marks.incarnation or (inputs.eventual and inputs.marks.external_name)
    waited = since is not None and inputs.now - since >= inputs.grace
    intended = inputs.delete_intended and not (inputs.eventual and since is None)
    if not (waited or intended or not made):
        left = SOON if inputs.delete_intended else inputs.grace
        left = left if since is None else inputs.grace - (inputs.now - since)
        return Wait("Deleting", "the database was not found; looking again before letting go", left, quiet=True)
    if policy is Policy.SNAPSHOT and _unkept(inputs) and not (remains and inputs.delete_intended):
        if inputs.delete_intended and inputs.eventual:
            return Wait("Deleting", "the final inputs is not available yet; nothing is let go before it is", SOON)
        return Refuse(
            "BackupImpossible",
            f"database {inputs.marks.external_name} (incarnation {inputs.marks.incarnation}) is gone, and no backup of"
            " it is seen; it is let go only under the deletion policy Delete or Orphan",
        )
    # What is left holds no data, but an orphan's users may still want its logins.
    kept = policy is None or (policy is Policy.ORPHAN and inputs.marks.incarnation)
    return Destroy(policy) if remains and policy is not None and not kept else Finish()


def _unkept(inputs: Inputs[SpecT]) -> bool:
    """Tell whether a database that was Ready once is gone without a backup of it."""
    return bool(inputs.marks.incarnation) and inputs.stateful and not inputs.backup


def _destroy(  # noqa: PLR0911 - each return is a row of the table
    inputs: Inputs[SpecT], observed: Observed[SpecT], policy: Policy
) -> Plan:
    recorded, owner = inputs.marks.incarnation, inputs.target.owner
    if recorded and not observed.is_recorded_as(recorded):
        return Release(mark=False)
    if not owner.owns(observed.owner) and not (recorded and observed.owner is None):
        return Release(mark=False)
    if policy is Policy.ORPHAN:
        return Release(mark=True)
    if inputs.lifecycle.withheld:
        return Refuse("HeldDeletion", inputs.lifecycle.withheld)
    if inputs.not_allowed:
        return Refuse("NotAllowed", inputs.not_allowed)
    if inputs.takeover:
        return Rest("AwaitingTakeover", inputs.takeover)
    if inputs.brake:
        return Refuse("Brake", inputs.brake)
    if observed.phase is Phase.BUSY:
        state = f" ({observed.state})" if observed.state else ""
        return Wait("Deleting", f"the cloud is at work on it{state} and takes no deletion yet", SOON)
    return Destroy(policy)
