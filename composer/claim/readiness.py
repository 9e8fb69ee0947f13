"""Which children of a claim are known to be unusable, gone or going, so that the claim is not Ready any more. Pure."""

from __future__ import annotations

from collections.abc import Collection

from apis import names
from composer.claim.snapshot import Known, View
from composer.inventory import NEVER_READY
from composer.kinds.catalog import is_silent
from composer.render.operators import is_current, is_usable
from composer.render.render import Child, Rendered
from runtime.conditions import find, is_true
from runtime.objects import Object, annotations_of, deleting, generation_of, observed_generation_of, status_of


def broken(view: View, rendered: Rendered | None, judged: Collection[str] = ()) -> tuple[Known, ...]:
    """Return the children that the claim uses and that are known to be unusable, gone or going, as they are recorded.

    `rendered` is None where nothing could be rendered: then all that the claim has counts. `judged` names the resources
    whose readiness the composition defines itself (`readyWhen`). What was never ready since it was composed is not
    counted: until an edit is carried out the claim goes by what it had before.
    """
    ready = {child.place: child for child in rendered.children} if rendered else {}
    return tuple(
        each
        for each in view.known
        if _is_used(view, each, rendered) and _is_broken(each, ready.get(each.entry.place), judged)
    )


def is_served(view: View, rendered: Rendered | None, judged: Collection[str] = ()) -> bool:
    """Tell whether the claim was ready once and all that it uses says that it is ready now.

    Of children without a condition Ready nothing is concluded. Arguments as of `broken`.
    """
    ready = {child.place: child for child in rendered.children} if rendered else {}
    used = [each for each in view.known if _is_used(view, each, rendered)]
    is_bound = bool((view.status.get("binding") or {}).get("name"))
    return is_bound and bool(used) and all(_is_ready(each, ready.get(each.entry.place), judged) for each in used)


def _is_ready(each: Known, child: Child | None, judged: Collection[str]) -> bool:
    live = each.live
    if live is None or deleting(live) or not is_true(live, "Ready"):
        return False
    return child is None or child.resource not in judged or child.ready


def _is_used(view: View, each: Known, rendered: Rendered | None) -> bool:
    if each.entry.outcome == NEVER_READY or each.unseen:
        return False
    return (
        rendered is None
        or any(child.slot == each.entry.slot for child in rendered.children)
        or any(waiting.resource == each.entry.resource for waiting in rendered.waiting)
        or (each.entry.stateful and not _is_replaced(view, rendered))
    )


def _is_replaced(view: View, rendered: Rendered) -> bool:
    """Tell whether the claim can do without what the composition left out: what it uses instead was ready once."""
    proven = [each.entry for each in view.known if each.entry.outcome != NEVER_READY]
    slots, resources = {each.slot for each in proven}, {each.resource for each in proven}
    declared = rendered.connection
    source = declared.get("from") or (declared.get("secretRef") or {}).get("resource")
    if source:
        return (source, "") in slots
    are_made = all(child.slot in slots for child in rendered.children)
    return are_made and all(waiting.resource in resources for waiting in rendered.waiting)


def _is_broken(each: Known, child: Child | None, judged: Collection[str]) -> bool:
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


def _waits_for_word(each: Known, live: Object) -> bool:
    """Tell whether a provider only waits to hear what shall become of a database that works."""
    is_managed = each.facts is not None and each.facts.managed
    return is_managed and names.TEARDOWN not in annotations_of(live) and is_true(live, "Ready")


def _serves(live: Object) -> bool:
    """Tell whether a workload of Kubernetes has ready replicas, as it has while it is being rolled."""
    if str(live.get("apiVersion", "")).rpartition("/")[0] != "apps":
        return False
    status = status_of(live)
    return any(isinstance(status.get(name), int) and status[name] > 0 for name in ("readyReplicas", "numberReady"))
