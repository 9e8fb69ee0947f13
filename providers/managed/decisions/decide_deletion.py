"""What becomes of the database of a resource that is being deleted. Pure."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, assert_never

from apis.teardown import Policy
from providers.external.observation import (
    SERVER_NOT_OWNED,
    Absent,
    Observed,
    Phase,
    Present,
    SpecT,
    Unknown,
    renamed_text,
)
from providers.managed.decisions.external_names import refuse_other_name
from providers.managed.decisions.plan import Delete, Ignore, Orphan, Plan, Refuse, RemoveFinalizer, Rest, Wait
from providers.managed.decisions.waits import AT_LAST, LATER, SOON, open_intent
from providers.managed.inputs import Inputs
from providers.managed.record import is_made
from runtime.conditions import find

# For so long the tags of an orphan are tried at an account that is out of reach, or that refuses them.
_TAGS_TRIED = timedelta(minutes=5)
# Waiting ends none of these; a cloud that is merely out of reach is not among them.
_NO_ACCESS = frozenset(
    {"CredentialsMissing", "CredentialsInvalid", "CredentialsForbidden", "ProviderConfigNotFound", "NotAllowed"}
)
# Under these an orphan keeps its tags as they are: nobody can write to it, or it has another name.
_UNTAGGED = _NO_ACCESS | {"DatabaseRenamed"}


def decide_deletion(inputs: Inputs[SpecT]) -> Plan:  # noqa: PLR0911 - each return is a row of the table
    """Choose the plan of a deletion: delete, release, or wait for an instruction, for the cloud, or for a person."""
    lifecycle = inputs.lifecycle
    if not lifecycle.has_finalizer:
        return Ignore()
    if lifecycle.paused:
        return Rest("Paused", lifecycle.paused)
    if lifecycle.policy is Policy.DETACH or inputs.observe_only or _stays_inside(inputs):
        return Orphan(tagged=False)
    if lifecycle.policy is None:
        return Wait("AwaitingTeardown", "deleted, but its claim has not said what shall become of the database", LATER)
    blocked = open_intent(inputs)
    if blocked is None and _is_out_of_time(inputs):
        return Orphan(tagged=False)
    if inputs.account_changed:
        return Refuse("AccountChanged", inputs.account_changed)
    if blocked is not None:
        return blocked
    is_kept = lifecycle.policy is Policy.ORPHAN or isinstance(inputs.observation, Unknown)
    return (None if is_kept else refuse_other_name(inputs)) or _deletion_of_observed(inputs, lifecycle.policy)


def _stays_inside(inputs: Inputs[SpecT]) -> bool:
    """Return whether an object is left to the server that it is inside of: only Delete takes it out."""
    return inputs.inside and inputs.lifecycle.policy in {Policy.ORPHAN, Policy.SNAPSHOT}


def _is_out_of_time(inputs: Inputs[SpecT]) -> bool:
    """Return whether an orphan's tags were tried for long enough at an account that shows nothing."""
    is_orphan = inputs.lifecycle.policy is Policy.ORPHAN
    return is_orphan and isinstance(inputs.observation, Unknown) and _was_tried_long(inputs)


def _was_tried_long(inputs: Inputs[SpecT]) -> bool:
    since = inputs.lifecycle.since
    return since is not None and inputs.now - since >= _TAGS_TRIED


def _is_tag_refused(inputs: Inputs[SpecT]) -> bool:
    """Return whether the tag of an orphan was refused until its time was over: by a state, or for want of a right."""
    synced = find(inputs.obj, "Synced") or {}
    return synced.get("reason") not in {None, "InSync", "AwaitingTeardown"} and _was_tried_long(inputs)


def _deletion_of_observed(  # noqa: PLR0911 - each return is a row of the table
    inputs: Inputs[SpecT], policy: Policy
) -> Plan:
    match inputs.observation:
        case Unknown(reason=reason) if reason in _UNTAGGED and policy is Policy.ORPHAN:
            # Its tags are tried, not waited for: to leave a database alone needs no access to it.
            return Orphan(tagged=False)
        case Unknown(reason=reason, message=message) if reason == SERVER_NOT_OWNED:
            return _in_foreign_server(inputs, reason, message)
        case Unknown(reason="Replaced"):
            # What it stands for was inside of a server that is no more.
            return RemoveFinalizer()
        case Unknown(reason=reason, message=message):
            return Wait(reason, message, LATER)
        case Absent(renamed=renamed) if renamed and policy is not Policy.ORPHAN:
            return Refuse("DatabaseRenamed", renamed_text(inputs.external_ref.external_name, renamed))
        case Absent() as absent:
            return _gone(inputs, absent)
        case Present(observed=observed):
            return _delete(inputs, observed, policy)
        case never:
            assert_never(never)


def _in_foreign_server(inputs: Inputs[SpecT], reason: str, message: str) -> Plan:
    """End what was never made in a server of others; what was made there is not left behind without a word."""
    if is_made(inputs.obj, inputs.external_ref, tagged=inputs.tagged):
        return Refuse(reason, message)
    return RemoveFinalizer()


def _gone(inputs: Inputs[SpecT], absent: Absent) -> Plan:
    """Believe an absence under deletion: at once where nothing was ever made, else after the grace."""
    since, policy, remains = inputs.external_ref.absent_since, inputs.lifecycle.policy, absent.remains
    # Where a list of what is there lags behind, what a crash kept us from remembering may appear a moment later.
    external_ref = inputs.external_ref
    was_made = external_ref.incarnation or (inputs.eventual and external_ref.external_name)
    waited = since is not None and inputs.now - since >= inputs.grace
    is_sure = not inputs.eventual or since is not None or inputs.unlisted
    intended = inputs.delete_intended and is_sure
    if inputs.target.is_new and was_made and not absent.is_deleted:
        text = "the database was not found, and may be shown yet; looking again"
        return Wait("Deleting", text, inputs.grace, quiet=True)
    if not (waited or intended or not was_made):
        after = SOON if inputs.delete_intended else inputs.grace
        after = after if since is None else inputs.grace - (inputs.now - since)
        return Wait("Deleting", "the database was not found; looking again before letting go", after, quiet=True)
    if policy is Policy.SNAPSHOT and _has_no_backup(inputs) and not (remains and inputs.delete_intended):
        if inputs.delete_intended and inputs.eventual and not inputs.without_backup:
            return Wait("Deleting", "the final snapshot is not available yet; nothing is let go before it is", SOON)
        return Refuse(
            "BackupImpossible",
            f"database {external_ref.external_name} (incarnation {external_ref.incarnation}) is gone, and no backup of"
            " it is seen; it is let go only under the deletion policy Delete or Orphan",
        )
    # What is left holds no data, but an orphan's users may still want its logins.
    kept = policy is None or (policy is Policy.ORPHAN and external_ref.incarnation)
    return Delete(policy) if remains and policy is not None and not kept else RemoveFinalizer()


def _has_no_backup(inputs: Inputs[SpecT]) -> bool:
    """Return whether a database that was Ready once is gone without a backup of it."""
    return bool(inputs.external_ref.incarnation) and inputs.stateful and not inputs.backup


def _delete(  # noqa: PLR0911 - each return is a row of the table
    inputs: Inputs[SpecT], observed: Observed[SpecT, Any], policy: Policy
) -> Plan:
    recorded = inputs.external_ref.incarnation
    if recorded and not observed.is_recorded_as(recorded):
        return Orphan(tagged=False)
    if not inputs.is_ours(observed):
        return Orphan(tagged=False)
    if policy is Policy.ORPHAN:
        return Orphan(tagged=inputs.tagged and not _is_tag_refused(inputs))
    if inputs.lifecycle.destroy_refused:
        return Refuse("HeldDeletion", inputs.lifecycle.destroy_refused)
    if inputs.not_allowed:
        return Refuse("NotAllowed", inputs.not_allowed)
    if inputs.takeover:
        return Rest("AwaitingTakeover", inputs.takeover)
    if inputs.destroy_limit_reached:
        return Refuse("Brake", inputs.destroy_limit_reached)
    if observed.phase is Phase.BUSY:
        state = f" ({observed.state})" if observed.state else ""
        text = f"the cloud is at work on it{state} and takes no deletion yet"
        return Wait("Deleting", text, SOON, by_list=AT_LAST)
    return Delete(policy)
