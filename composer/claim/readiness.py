"""What the children of a claim say of themselves, and which are unusable, so that the claim is not Ready. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from apis import names
from apis.reasons import ReasonClass, class_of_claim
from composer.causes import Cause, cause
from composer.claim.prune_guard import taken_away
from composer.claim.snapshot import ObservedChild, Snapshot
from composer.inventory import NEVER_READY
from composer.kinds.catalog import is_silent
from composer.render import operators
from composer.render.operators import is_current, is_usable
from composer.render.render import Child, Rendered
from runtime.conditions import find, is_true
from runtime.objects import Object, annotations_of, deleting, generation_of, key_of, observed_generation_of, status_of

_UNTOLD = frozenset({"ProviderConfigNotFound", "NotAllowed"})


def broken(snapshot: Snapshot, rendered: Rendered | None, judged: Collection[str] = ()) -> tuple[ObservedChild, ...]:
    """Return the children that the claim uses and that are known to be unusable, gone or going, as they are recorded.

    `rendered` is None where nothing could be rendered: then all that the claim has counts. `judged` names the resources
    whose readiness the composition defines itself (`readyWhen`). What was never ready since it was composed is not
    counted: until an edit is carried out the claim goes by what it had before.
    """
    ready = {child.place: child for child in rendered.children} if rendered else {}
    return tuple(
        each
        for each in snapshot.known
        if _is_used(snapshot, each, rendered) and _is_broken(each, ready.get(each.entry.place), judged)
    )


def is_served(snapshot: Snapshot, rendered: Rendered | None, judged: Collection[str] = ()) -> bool:
    """Return whether the claim was ready once and all that it uses says that it is ready now.

    Of children without a condition Ready nothing is concluded. Arguments as of `broken`.
    """
    ready = {child.place: child for child in rendered.children} if rendered else {}
    used = [each for each in snapshot.known if _is_used(snapshot, each, rendered)]
    is_bound = bool((snapshot.status.get("binding") or {}).get("name"))
    return is_bound and bool(used) and all(_is_ready(each, ready.get(each.entry.place), judged) for each in used)


def _is_ready(each: ObservedChild, child: Child | None, judged: Collection[str]) -> bool:
    live = each.live
    if live is None or deleting(live) or not is_true(live, "Ready"):
        return False
    return child is None or child.resource not in judged or child.ready


def _is_used(snapshot: Snapshot, each: ObservedChild, rendered: Rendered | None) -> bool:
    if each.entry.outcome == NEVER_READY or each.unseen:
        return False
    return (
        rendered is None
        or any(child.slot == each.entry.slot for child in rendered.children)
        or any(waiting.resource == each.entry.resource for waiting in rendered.waiting)
        or (each.entry.stateful and not _is_replaced(snapshot, rendered))
    )


def _is_replaced(snapshot: Snapshot, rendered: Rendered) -> bool:
    """Return whether the claim can do without what the composition left out: what it uses instead was ready once."""
    proven = [each.entry for each in snapshot.known if each.entry.outcome != NEVER_READY]
    slots, resources = {each.slot for each in proven}, {each.resource for each in proven}
    declared = rendered.connection
    source = declared.get("from") or (declared.get("secretRef") or {}).get("resource")
    if source:
        return (source, "") in slots
    are_made = all(child.slot in slots for child in rendered.children)
    return are_made and all(waiting.resource in resources for waiting in rendered.waiting)


def _is_broken(each: ObservedChild, child: Child | None, judged: Collection[str]) -> bool:
    live = each.live
    if live is None or (deleting(live) and not (child is None and _waits_for_word(each, live))):
        return True
    ready = find(live, "Ready")
    if ready is not None and ready["status"] == "False":
        return True
    observed = observed_generation_of(live)
    if observed is not None and observed != generation_of(live):
        # What it says is of before the edit.
        return False
    if child is not None and child.resource in judged:
        return not child.ready
    if ready is not None:
        return False
    is_ready = child.ready if child else is_current(live, is_silent=is_silent(each.facts, live))
    return not is_ready and not _serves(live) and not is_usable(live)


def _waits_for_word(each: ObservedChild, live: Object) -> bool:
    """Return whether a provider only waits to hear what shall become of a database that works."""
    is_managed = each.facts is not None and each.facts.managed
    return is_managed and names.TEARDOWN not in annotations_of(live) and is_true(live, "Ready")


def _serves(live: Object) -> bool:
    """Return whether a workload of Kubernetes has ready replicas, as it has while it is being rolled."""
    if str(live.get("apiVersion", "")).rpartition("/")[0] != "apps":
        return False
    status = status_of(live)
    return any(isinstance(status.get(name), int) and status[name] > 0 for name in ("readyReplicas", "numberReady"))


def child_cause(  # noqa: PLR0911 - one return for each thing that a child can say
    resource: str, live: Object | None, *, ready: bool
) -> Cause | None:
    """Say why a child is not ready or not in sync, in its own words."""
    if live is None:
        return cause("Creating", f"resource {resource!r} is being created", resource=resource)
    what = f"{live['kind']} {key_of(live).name}"
    if deleting(live):
        text = f"{what} was deleted; it is let go of and made again"
        return cause("Creating", text, resource=resource)
    stalled, working = find(live, "Stalled"), find(live, "Reconciling")
    if stalled and stalled["status"] == "True":
        return _retold(resource, stalled, ReasonClass.STALLED)
    observed = observed_generation_of(live)
    if observed is not None and observed != generation_of(live):
        return _not_seen(resource, what, live, is_new=observed < 1)
    if working and working["status"] == "True":
        progress = ReasonClass.WAITING if is_true(live, "Ready") else ReasonClass.PROGRESS
        return _retold(resource, working, progress)
    unready = find(live, "Ready")
    if unready and unready["status"] == "False":
        return _retold(resource, unready, ReasonClass.PROGRESS)
    synced = find(live, "Synced")
    if synced and synced["status"] == "False":
        return _retold(resource, synced, ReasonClass.HELD)
    if synced and class_of_claim(str(synced["reason"])) is ReasonClass.NOTED:
        return _retold(resource, synced, ReasonClass.NOTED)
    if ready:
        return None
    phase = operators.phase_of(live)
    said = f", its operator says {phase}" if phase else ""
    return cause("ChildNotReady", f"{what} is not ready yet{said}", resource=resource)


def _not_seen(resource: str, what: str, live: Object, *, is_new: bool) -> Cause:
    if is_new:
        return cause("Creating", f"{what} is being created", resource=resource)
    usable = is_true(live, "Ready")
    text = f"{what} is being updated"
    return cause("Updating", text, resource=resource, shown_as=ReasonClass.PROGRESS if not usable else None)


def _retold(resource: str, condition: Mapping[str, Any], weight: ReasonClass) -> Cause:
    reason, text = condition["reason"], condition["message"] or "it does not say why"
    if reason in _UNTOLD:
        # Whether a ProviderConfig exists is not for everybody to know.
        reason, text = (
            "ProviderConfigNotFound",
            "the provider's configuration is absent or not for this namespace; ask the platform team",
        )
    return cause(reason, text, resource=resource, shown_as=weight)


def of_broken(snapshot: Snapshot, each: ObservedChild) -> Cause:
    """Say why a child that a claim uses is not usable, where nothing can be made in its place in this pass."""
    entry, live = each.entry, each.live
    if live is not None and not deleting(live):
        said = child_cause(entry.resource, live, ready=False)
        return said or cause("ChildNotReady", f"{entry.kind} {entry.name} is not ready", resource=entry.resource)
    what = "is gone" if live is None else "was deleted"
    text = f"{entry.kind} {entry.name} {what}, and is not made again while the claim stays as it is"
    return taken_away(snapshot, each) or cause("ChildNotReady", text, resource=entry.resource)


def live_of(snapshot: Snapshot, place: tuple[str, str, str]) -> Object | None:
    """Return the live child at a place of the composition, or None."""
    return next((each.live for each in snapshot.known if each.entry.place == place), None)
