"""Returns which children of a claim are not ready, not in sync or unusable, by their own conditions. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from apis import names
from apis.reasons import ReasonClass, class_of_claim
from composer.causes import Cause, cause
from composer.claim.prune_guard import deleted_by_others
from composer.claim.snapshot import ObservedChild, Snapshot
from composer.inventory import NEVER_READY
from composer.kinds.catalog import is_silent
from composer.render.operators.state import State
from composer.render.operators.table import is_current, state_of
from composer.render.render import Child, Rendered
from runtime.conditions import find, is_true
from runtime.objects import Object, annotations_of, deleting, generation_of, key_of, observed_generation_of, status_of

_HIDDEN = frozenset({"ProviderConfigNotFound", "NotAllowed"})


def broken(snapshot: Snapshot, rendered: Rendered | None, judged: Collection[str] = ()) -> tuple[ObservedChild, ...]:
    """Return the children that the claim uses and that are known to be unusable, gone or being deleted.

    `rendered` is None where nothing could be rendered: then all children count. `judged` names the resources whose
    readiness the composition defines itself (`readyWhen`). A child that was never ready since it was composed does not
    count: until an edit is carried out the claim uses what it had before.
    """
    ready = {child.place: child for child in rendered.children} if rendered else {}
    return tuple(
        observed
        for observed in snapshot.children
        if _is_used(snapshot, observed, rendered) and _is_broken(observed, ready.get(observed.entry.place), judged)
    )


def is_served(snapshot: Snapshot, rendered: Rendered | None, judged: Collection[str] = ()) -> bool:
    """Return whether the claim was ready before and all that it uses has condition Ready=True now.

    A child without a condition Ready is not ready, unless its operator is known. Arguments as of `broken`.
    """
    ready = {child.place: child for child in rendered.children} if rendered else {}
    used = [observed for observed in snapshot.children if _is_used(snapshot, observed, rendered)]
    is_bound = bool((snapshot.status.get("binding") or {}).get("name"))
    if not is_bound or not used:
        return False
    return all(_is_ready(observed, ready.get(observed.entry.place), judged) for observed in used)


def _is_ready(observed: ObservedChild, child: Child | None, judged: Collection[str]) -> bool:
    live = observed.live
    if live is None or deleting(live):
        return False
    state, is_judged = state_of(live), child is not None and child.resource in judged
    if child is not None and is_judged and (state is not None or not child.ready):
        return child.ready
    return is_true(live, "Ready") if state is None else state.ready


def _is_used(snapshot: Snapshot, observed: ObservedChild, rendered: Rendered | None) -> bool:
    """Return whether a claim uses a child: it was ready once, and is rendered, or holds data that nothing replaced."""
    if observed.entry.outcome == NEVER_READY or observed.unseen:
        return False
    return (
        rendered is None
        or any(child.slot == observed.entry.slot for child in rendered.children)
        or any(waiting.resource == observed.entry.resource for waiting in rendered.waiting)
        or (observed.entry.stateful and not _is_replaced(snapshot, rendered))
    )


def _is_replaced(snapshot: Snapshot, rendered: Rendered) -> bool:
    """Return whether the claim does not need what the composition left out: what it uses instead was ready once."""
    proven = [observed.entry for observed in snapshot.children if observed.entry.outcome != NEVER_READY]
    slots, resources = {entry.slot for entry in proven}, {entry.resource for entry in proven}
    declared = rendered.connection
    source = declared.get("from") or (declared.get("secretRef") or {}).get("resource")
    if source:
        return (source, "") in slots
    are_made = all(child.slot in slots for child in rendered.children)
    return are_made and all(waiting.resource in resources for waiting in rendered.waiting)


def _is_broken(observed: ObservedChild, child: Child | None, judged: Collection[str]) -> bool:
    """Return whether a child is known to be unusable: gone, being deleted, or not ready by its own status."""
    live = observed.live
    if live is None or (deleting(live) and not (child is None and _awaits_instruction(observed, live))):
        return True
    state, ready = state_of(live), find(live, "Ready")
    if state is None and ready is not None and ready["status"] == "False":
        return True
    observed_generation = observed_generation_of(live)
    if observed_generation is not None and observed_generation != generation_of(live):
        # Its status is from before the edit.
        return False
    if child is not None and child.resource in judged:
        return not child.ready
    if state is not None:
        return not state.ready and not state.usable
    is_ready = child.ready if child else is_current(live, is_silent=is_silent(observed.facts, live))
    return ready is None and not is_ready and not _serves(live)


def _awaits_instruction(observed: ObservedChild, live: Object) -> bool:
    """Return whether a provider only waits for the teardown instruction of a database that works."""
    is_managed = observed.facts is not None and observed.facts.managed
    return is_managed and names.TEARDOWN not in annotations_of(live) and is_true(live, "Ready")


def _serves(live: Object) -> bool:
    """Return whether a workload of Kubernetes has ready replicas, as it has during a rolling update."""
    if str(live.get("apiVersion", "")).rpartition("/")[0] != "apps":
        return False
    status = status_of(live)
    return any(isinstance(status.get(name), int) and status[name] > 0 for name in ("readyReplicas", "numberReady"))


def child_cause(resource: str, live: Object | None, *, ready: bool) -> Cause | None:
    """Return the cause for which a child is not ready or not in sync, by its status; None where it is both."""
    if live is None:
        return cause("Creating", f"resource {resource!r} is being created", resource=resource)
    subject = f"{live['kind']} {key_of(live).name}"
    if deleting(live):
        text = f"{subject} was deleted; it is let go of and made again"
        return cause("Creating", text, resource=resource)
    state = state_of(live)
    if state is None:
        return _of_conditions(resource, subject, live, ready=ready)
    return None if ready else _of_state(resource, subject, state)


def _of_conditions(  # noqa: PLR0911 - one return for each thing that a child can say
    resource: str, subject: str, live: Object, *, ready: bool
) -> Cause | None:
    """Return the cause that a child of no known operator says by its conditions."""
    stalled, working = find(live, "Stalled"), find(live, "Reconciling")
    if stalled and stalled["status"] == "True":
        return _of_condition(resource, stalled, ReasonClass.STALLED)
    observed_generation = observed_generation_of(live)
    if observed_generation is not None and observed_generation != generation_of(live):
        return _of_old_status(resource, subject, live, is_new=observed_generation < 1)
    if working and working["status"] == "True":
        progress = ReasonClass.WAITING if is_true(live, "Ready") else ReasonClass.PROGRESS
        return _of_condition(resource, working, progress)
    unready = find(live, "Ready")
    if unready and unready["status"] == "False":
        return _of_condition(resource, unready, ReasonClass.PROGRESS)
    synced = find(live, "Synced")
    if synced and synced["status"] == "False":
        return _of_condition(resource, synced, ReasonClass.HELD)
    if synced and class_of_claim(str(synced["reason"])) is ReasonClass.NOTED:
        return _of_condition(resource, synced, ReasonClass.NOTED)
    if ready:
        return None
    return cause("ChildNotReady", f"{subject} is not ready yet", resource=resource)


def _of_state(resource: str, subject: str, state: State) -> Cause:
    """Return the cause of a child that is not ready, in the words of its operator."""
    words = f", its operator says {state.why}" if state.why else ""
    if state.failed:
        return cause("ChildFailed", f"{subject} does not become ready by itself{words}", resource=resource)
    return cause("ChildNotReady", f"{subject} is not ready yet{words}", resource=resource)


def _of_old_status(resource: str, subject: str, live: Object, *, is_new: bool) -> Cause:
    """Return the cause of a child whose status is of an older generation."""
    if is_new:
        return cause("Creating", f"{subject} is being created", resource=resource)
    usable = is_true(live, "Ready")
    text = f"{subject} is being updated"
    return cause("Updating", text, resource=resource, shown_as=ReasonClass.PROGRESS if not usable else None)


def _of_condition(resource: str, condition: Mapping[str, Any], weight: ReasonClass) -> Cause:
    """Return the cause that repeats a child's condition."""
    reason, text = condition["reason"], condition["message"] or "it does not say why"
    if reason in _HIDDEN:
        # Whether a ProviderConfig exists must not be seen from every namespace.
        reason, text = (
            "ProviderConfigNotFound",
            "the provider's configuration is absent or not for this namespace; ask the platform team",
        )
    return cause(reason, text, resource=resource, shown_as=weight)


def of_broken(snapshot: Snapshot, observed: ObservedChild) -> Cause:
    """Return the cause for which a child that a claim uses is unusable, where this pass cannot replace it."""
    entry, live = observed.entry, observed.live
    if live is not None and not deleting(live):
        why = child_cause(entry.resource, live, ready=False)
        return why or cause("ChildNotReady", f"{entry.kind} {entry.name} is not ready", resource=entry.resource)
    fate = "is gone" if live is None else "was deleted"
    text = f"{entry.kind} {entry.name} {fate}, and is not made again while the claim stays as it is"
    return deleted_by_others(snapshot, observed) or cause("ChildNotReady", text, resource=entry.resource)


def live_of(snapshot: Snapshot, place: tuple[str, str, str]) -> Object | None:
    """Return the live child at a place of the composition, or None."""
    return next((observed.live for observed in snapshot.children if observed.entry.place == place), None)
