"""The one decision: what to do now with a resource, from what is wanted, seen and remembered. Pure.

Every branch is a row of the test table. The order of the rows is the order of safety: what we do not know, then what we
may not touch, then what would lose data, then what is left to do.
"""

from __future__ import annotations

from datetime import timedelta
from typing import assert_never

from apis.teardown import Policy
from providers.external.observation import Absent, Observed, Phase, Present, SpecT, Unknown, renamed_text
from providers.managed.decide_update import converge, differences
from providers.managed.plan import Adopt, Create, Destroy, Finish, Ignore, Plan, Refuse, Release, Rest, Scene, Wait

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


def decide(scene: Scene[SpecT]) -> Plan:
    """Choose the one plan for this pass; every row of the table is a test case."""
    if scene.desired.lifecycle.deleting:
        return _deletion(scene)
    early = _not_ours_to_move(scene)
    if early is not None:
        return early
    match scene.observation:
        case Unknown(reason=reason, message=message):
            return Wait(reason, message, SLOW)
        case Absent():
            return _absent(scene)
        case Present(observed=observed):
            return _present(scene, observed)
        case never:
            assert_never(never)


def _not_ours_to_move(scene: Scene[SpecT]) -> Plan | None:
    bounds = scene.bounds
    if bounds.not_allowed:
        return Refuse("NotAllowed", bounds.not_allowed)
    if bounds.account_changed:
        return Refuse("AccountChanged", bounds.account_changed)
    return _open_intent(scene)


def _open_intent(scene: Scene[SpecT]) -> Plan | None:
    """An intent that another process may still carry out, or an operation under way, forbids every call of ours."""
    bounds = scene.bounds
    if bounds.intent_unknown:
        return Refuse("NewerProvider", bounds.intent_unknown)
    if bounds.operating:
        reason = {"Create": "Creating", "Delete": "Deleting"}.get(bounds.operating, "CloudBusy")
        return Wait(reason, "the cloud is carrying out what was asked for", SOON)
    if bounds.intent_until is not None and scene.now < bounds.intent_until:
        left = bounds.intent_until - scene.now
        return Wait("CloudBusy", "another process may still be at work on it until its time is over", left, quiet=True)
    return None


def _absent(scene: Scene[SpecT]) -> Plan:  # noqa: PLR0911 - each return is a row of the table
    desired, bounds, lost = scene.desired, scene.bounds, scene.marks.incarnation
    if desired.lifecycle.paused:
        return Rest("Paused", desired.lifecycle.paused)
    if lost and bounds.stateful:
        return _lost(scene, lost)
    if scene.marks.restoring:
        return _restore_goes_on(scene)
    if desired.observe_only:
        return Wait("ResourcePending", "there is no such database yet, and the policy Observe makes none", SLOW)
    if bounds.takeover:
        return Rest("AwaitingTakeover", bounds.takeover)
    if bounds.refusal is not None:
        return Refuse(*bounds.refusal)
    foreign = [one for one in bounds.predecessors if desired.consent.adopt != "none"]
    if foreign:
        one = foreign[0]
        return Refuse(
            "PredecessorFound",
            f"{one.name} (incarnation {one.incarnation}) was made for the same claim under another identity; to take it"
            f" over: {desired.adopt_command(one.incarnation)}; for a new one beside it annotate the claim"
            " fairlead.dev/adopt=none",
        )
    if bounds.limit_reached:
        return Refuse("LimitReached", bounds.limit_reached)
    return Create(instead_of=lost)


def _lost(scene: Scene[SpecT], lost: str) -> Plan:
    since = scene.marks.absent_since
    if since is None or scene.now - since < scene.bounds.grace:
        left = scene.bounds.grace if since is None else scene.bounds.grace - (scene.now - since)
        return Wait(
            "CloudUnreachable", "the database was not found; looking again before believing it", left, quiet=True
        )
    # Where both were agreed to, the data go first, and a backup that is not there is never an empty database.
    asked = scene.desired.consent.of("restore")
    if asked and not scene.desired.observe_only:
        return _restored(scene, lost, asked)
    if scene.desired.consent.to("recreate", lost) and not scene.desired.observe_only:
        return Create(instead_of=lost)
    return Refuse("DatabaseLost", f"{_lost_text(scene, lost)}{_ways_on(scene, lost)}")


def _restored(scene: Scene[SpecT], lost: str, asked: tuple[str, ...]) -> Plan:
    """Restore a lost database from the backup that the platform named, if it is one of its own."""
    bounds = scene.bounds
    if bounds.takeover:
        return Rest("AwaitingTakeover", bounds.takeover)
    if bounds.refusal is not None:
        return Refuse(*bounds.refusal)
    if bounds.backups is None:
        return Wait("CloudUnreachable", "the backups of the lost database cannot be listed; looking again", SLOW)
    if len(asked) > 1:
        text = f"the consent names several backups ({', '.join(asked)[:300]}); leave one. "
    elif asked[0] not in bounds.backups:
        text = f"{asked[0][:300]} is no backup of it that this namespace may have. "
    else:
        return Create(instead_of=lost, restore=asked[0])
    return Refuse("DatabaseLost", f"{text}{_lost_text(scene, lost)}{_ways_on(scene, lost)}")


def _restore_goes_on(scene: Scene[SpecT]) -> Plan:
    """Restore on, from the backup that was begun with or from one that was agreed to since; make nothing empty."""
    marks, desired = scene.marks, scene.desired
    if desired.observe_only:
        return Wait("ResourcePending", "there is no such database yet, and the policy Observe makes none", SLOW)
    if scene.bounds.takeover:
        return Rest("AwaitingTakeover", scene.bounds.takeover)
    if scene.bounds.refusal is not None:
        return Refuse(*scene.bounds.refusal)
    if desired.consent.to("recreate", marks.lost):
        return Create(instead_of=marks.lost)
    asked = desired.consent.of("restore")
    backup = asked[0] if len(asked) == 1 and asked[0] in (scene.bounds.backups or ()) else marks.restoring
    return Create(restore=backup)


def _lost_text(scene: Scene[SpecT], lost: str) -> str:
    known = scene.bounds.backups
    if known:
        more = f" and {len(known) - _MOST_BACKUPS} more" if len(known) > _MOST_BACKUPS else ""
        backup = f"its backups, the newest first: {', '.join(known[:_MOST_BACKUPS])}{more}"
    else:
        backup = f"the newest backup is {scene.bounds.backup}" if scene.bounds.backup else "no backup of it is known"
    return (
        f"database {scene.marks.external_name} (incarnation {lost}) is gone and was not deleted by Fairlead; {backup};"
        " nothing is made in its place."
    )


def _ways_on(scene: Scene[SpecT], lost: str) -> str:
    desired, known = scene.desired, scene.bounds.backups
    restore = " Restore it under its name"
    if known:
        again = desired.consent.again("restore", known[0])
        restore = f" To have it restored: {desired.consent_command(f'restore={known[0]}')}{again}"
    empty = desired.consent_command(f"recreate={lost}")
    return f"{restore}; or, to start with an empty one: {empty}{desired.consent.again('recreate', lost)}"


def _present(  # noqa: PLR0911 - each return is a row of the table
    scene: Scene[SpecT], observed: Observed[SpecT]
) -> Plan:
    desired, marks = scene.desired, scene.marks
    if marks.incarnation and not observed.is_recorded_as(marks.incarnation):
        return _replaced(scene, observed)
    if not desired.owner.owns(observed.owner) and not (marks.incarnation and observed.owner is None):
        return _adopt(scene, observed)
    if desired.lifecycle.paused:
        return Rest("Paused", desired.lifecycle.paused, scene.changes)
    if desired.observe_only:
        return Rest("ObserveOnly", differences(scene.changes), scene.changes)
    if scene.bounds.takeover:
        return Rest("AwaitingTakeover", scene.bounds.takeover, scene.changes)
    match observed.phase:
        case Phase.BUSY:
            return _busy(scene, observed)
        case Phase.STOPPED:
            return Refuse("DatabaseStopped", f"{observed.name} was stopped; start it where it was stopped")
        case Phase.FAILED:
            advice = f"; {observed.advice}" if observed.advice else ""
            text = f"{observed.name} is {observed.state or 'failed'}; nobody can use it{advice}"
            return Refuse("DatabaseFailed", text)
        case Phase.READY:
            return converge(scene, observed)
        case never:
            assert_never(never)


def _busy(scene: Scene[SpecT], observed: Observed[SpecT]) -> Plan:
    """Wait; what was never Ready is being made, and what nobody can use meanwhile is not Ready."""
    state = f" ({observed.state})" if observed.state else ""
    if scene.marks.restoring:
        return Wait("Restoring", f"the database is being restored from {scene.marks.restoring}{state}", SOON)
    if not scene.marks.incarnation and scene.bounds.eventual:
        return Wait("Creating", f"the database is being made{state}", SOON)
    reason = "CloudBusy" if observed.usable else "Updating"
    return Wait(reason, f"the cloud is at work on it{state} and takes no change yet", SOON)


def _replaced(scene: Scene[SpecT], observed: Observed[SpecT]) -> Plan:
    if scene.desired.consent.adopt == observed.incarnation:
        return _adopt(scene, observed)
    again = scene.desired.consent.again("adopt", observed.incarnation)
    return Refuse(
        "Replaced",
        f"{observed.name} is not the database that was Ready before: incarnation {observed.incarnation} instead of"
        f" {scene.marks.incarnation}; it is only read. Put the former one back; or, to go on with this one:"
        f" {scene.desired.adopt_command(observed.incarnation)}{again}",
    )


def _adopt(scene: Scene[SpecT], observed: Observed[SpecT]) -> Plan:
    wanted, found = scene.desired.consent.adopt, observed.owner
    allowed = scene.bounds.adoption or (found is not None and scene.desired.owner.precedes(found))
    if wanted == observed.incarnation and not scene.desired.observe_only and not scene.desired.lifecycle.paused:
        if found is not None and found.installation != scene.desired.owner.installation:
            return Refuse("AdoptionRefused", f"{observed.name} belongs to {found}; another installation's is not taken")
        if not allowed:
            return Refuse("AdoptionRefused", "the ProviderConfig has no allowAdoption; ask the platform team")
        return Adopt(observed.incarnation)
    whose = f"it belongs to {found}" if found is not None else "it carries no owner's tag"
    lacking = [] if allowed else ["set allowAdoption in the ProviderConfig"]
    if scene.desired.observe_only:
        lacking.append("set managementPolicy: Manage")
    is_shown = allowed and not scene.desired.observe_only
    # What adoption would change is told to whoever may adopt, so that it can be read first.
    preview = "; status.drift lists what that changes" if is_shown and scene.changes else ""
    steps = ", ".join((*lacking, scene.desired.adopt_command(observed.incarnation)))
    return Refuse(
        "NotOwned",
        f"{observed.name} exists and was not made for this resource: {whose}; nothing is changed. Choose"
        f" another name; or, to take it over: {steps}{preview}",
        scene.changes if is_shown else (),
    )


def _deletion(scene: Scene[SpecT]) -> Plan:  # noqa: PLR0911 - each return is a row of the table
    lifecycle = scene.desired.lifecycle
    if not lifecycle.held:
        return Ignore()
    if lifecycle.paused:
        return Rest("Paused", lifecycle.paused)
    if lifecycle.policy is Policy.DETACH or scene.desired.observe_only:
        return Release(mark=False)
    if lifecycle.policy is None:
        return Wait("AwaitingTeardown", "deleted, but its claim has not said what shall become of the database", SLOW)
    blocked = _open_intent(scene)
    if blocked is None and _is_given_up(scene):
        return Release(mark=False)
    if scene.bounds.account_changed:
        return Refuse("AccountChanged", scene.bounds.account_changed)
    if blocked is not None:
        return blocked
    return _deletion_of_seen(scene, lifecycle.policy)


def _is_given_up(scene: Scene[SpecT]) -> bool:
    """Tell whether an orphan's tags were tried for long enough at an account that shows nothing."""
    lifecycle = scene.desired.lifecycle
    if lifecycle.policy is not Policy.ORPHAN or not isinstance(scene.observation, Unknown):
        return False
    return lifecycle.since is not None and scene.now - lifecycle.since >= _TAGS_TRIED


def _deletion_of_seen(scene: Scene[SpecT], policy: Policy) -> Plan:
    match scene.observation:
        case Unknown(reason=reason) if reason in _UNTAGGED and policy is Policy.ORPHAN:
            # Its tags are tried, not waited for: to leave a database alone needs no key to it.
            return Release(mark=False)
        case Unknown(reason=reason, message=message):
            return Wait(reason, message, SLOW)
        case Absent(renamed=renamed) if renamed and policy is not Policy.ORPHAN:
            return Refuse("DatabaseRenamed", renamed_text(scene.marks.external_name, renamed))
        case Absent(remains=remains):
            return _gone(scene, remains=remains)
        case Present(observed=observed):
            return _destroy(scene, observed, policy)
        case never:
            assert_never(never)


def _gone(scene: Scene[SpecT], *, remains: bool) -> Plan:
    """Absence under deletion: believed at once where nothing was ever made, else after two looks over the grace."""
    since, policy, bounds = scene.marks.absent_since, scene.desired.lifecycle.policy, scene.bounds
    # Where a list of what is there lags behind, what a crash kept us from remembering may appear a moment later.
    made = scene.marks.incarnation or (bounds.eventual and scene.marks.external_name)
    waited = since is not None and scene.now - since >= bounds.grace
    intended = bounds.delete_intended and not (bounds.eventual and since is None)
    if not (waited or intended or not made):
        left = SOON if bounds.delete_intended else bounds.grace
        left = left if since is None else bounds.grace - (scene.now - since)
        return Wait("Deleting", "the database was not found; looking again before letting go", left, quiet=True)
    if policy is Policy.SNAPSHOT and _unkept(scene) and not (remains and bounds.delete_intended):
        if bounds.delete_intended and bounds.eventual:
            return Wait("Deleting", "the final snapshot is not available yet; nothing is let go before it is", SOON)
        return Refuse(
            "BackupImpossible",
            f"database {scene.marks.external_name} (incarnation {scene.marks.incarnation}) is gone, and no backup of it"
            " is seen; it is let go only under the deletion policy Delete or Orphan",
        )
    # What is left holds no data, but an orphan's users may still want its logins.
    kept = policy is None or (policy is Policy.ORPHAN and scene.marks.incarnation)
    return Destroy(policy) if remains and policy is not None and not kept else Finish()


def _unkept(scene: Scene[SpecT]) -> bool:
    """Tell whether a database that was Ready once is gone without a backup of it."""
    return bool(scene.marks.incarnation) and scene.bounds.stateful and not scene.bounds.backup


def _destroy(  # noqa: PLR0911 - each return is a row of the table
    scene: Scene[SpecT], observed: Observed[SpecT], policy: Policy
) -> Plan:
    recorded, owner = scene.marks.incarnation, scene.desired.owner
    if recorded and not observed.is_recorded_as(recorded):
        return Release(mark=False)
    if not owner.owns(observed.owner) and not (recorded and observed.owner is None):
        return Release(mark=False)
    if policy is Policy.ORPHAN:
        return Release(mark=True)
    if scene.desired.lifecycle.withheld:
        return Refuse("HeldDeletion", scene.desired.lifecycle.withheld)
    if scene.bounds.not_allowed:
        return Refuse("NotAllowed", scene.bounds.not_allowed)
    if scene.bounds.takeover:
        return Rest("AwaitingTakeover", scene.bounds.takeover)
    if scene.bounds.brake:
        return Refuse("Brake", scene.bounds.brake)
    if observed.phase is Phase.BUSY:
        state = f" ({observed.state})" if observed.state else ""
        return Wait("Deleting", f"the cloud is at work on it{state} and takes no deletion yet", SOON)
    return Destroy(policy)
