"""The status of a claim: from what was read and done to conditions in words. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from apis import names
from apis.reasons import MISSING_PATIENCE, ReasonClass, class_of_claim
from composer import inventory
from composer.causes import Cause, cause, gravest
from composer.claim.readiness import broken, is_served
from composer.claim.snapshot import View
from composer.composition.rollout import choice_after
from composer.inventory import Entry
from composer.models import CompositionChoice
from composer.render import operators
from composer.render.render import Rendered
from runtime.conditions import Condition, find, is_true, merge, timestamp
from runtime.objects import Object, deleting, generation_of, key_of, observed_generation_of

PROGRESS_DEADLINE = timedelta(hours=1)
_UNTOLD = frozenset({"ProviderConfigNotFound", "NotAllowed"})
LOST_SECRET = frozenset({"SecretNotFound", "SecretNotOwned"})
"""Why the connection Secret that a claim names cannot be used."""


@dataclass(frozen=True, slots=True)
class Findings:
    """What a pass found. `rendered` is None when nothing could be; `waited`: how long the first cause has held.

    `is_early`: the cause is about to pass by itself (a Composition that is being checked), and not worth a write yet.
    `has_rollout`: the revision goes to its claims by waves. `judged`: the resources with a `readyWhen`.
    `published`: the connection Secret is there, or there is to be none.
    """

    causes: tuple[Cause, ...]
    entries: tuple[Entry, ...]
    rendered: Rendered | None = None
    composition: str = ""
    revision: str = ""
    deletion_policy: str = "Orphan"
    secret: str = ""
    connection_hash: str = ""
    published: bool = True
    waited: timedelta = timedelta()
    is_early: bool = False
    has_rollout: bool = False
    judged: frozenset[str] = frozenset()


def report(view: View, found: Findings, now: datetime) -> Object:
    """Compute the whole status of a claim."""
    generation = generation_of(view.claim)
    stalled = _is_stalled(view, found, now)
    status: Object = {
        "observedGeneration": generation,
        "conditions": merge(view.status.get("conditions") or (), _conditions(view, found, stalled=stalled), now),
        "identity": str(view.identity),
        "deletionPolicy": found.deletion_policy,
        **_extras(view, found),
    }
    if found.composition:
        since = timestamp(now) if found.has_rollout else ""
        choice = CompositionChoice(found.composition, found.revision, since)
        status["composition"] = choice_after(view.status.get("composition") or {}, choice, view.claim)
    if found.secret:
        status["binding"] = {"name": found.secret}
        status["connectionHash"] = found.connection_hash
    if found.entries:
        entries = inventory.proven(found.entries) if _all_ready(found) else found.entries
        status["inventory"] = inventory.dump(entries)
    return {**status, **echo(view)}


def echo(view: View) -> Mapping[str, str]:
    """Return the field that repeats the token by which a person asked for this pass; nothing without one."""
    token = view.annotations.get(names.RECONCILE_REQUESTED_AT, "")
    return {"lastHandledReconcileAt": token[:256]} if token else {}


_OWN_FIELDS = frozenset({
    "binding", "composition", "conditions", "connectionHash", "deletionPolicy", "identity", "inventory",
    "lastHandledReconcileAt", "observedGeneration",
})  # fmt: skip


def _extras(view: View, found: Findings) -> Mapping[str, Any]:
    """Return the fields that the composition adds; without a render those of before stay."""
    if found.rendered is None:
        return {name: value for name, value in view.status.items() if name not in _OWN_FIELDS}
    return {name: value for name, value in found.rendered.status.items() if name not in _OWN_FIELDS}


def _is_stalled(view: View, found: Findings, now: datetime) -> bool:
    first = gravest(found.causes)
    if first is None or first.reason_class in (ReasonClass.HELD, ReasonClass.NOTED):
        return False
    if first.reason_class is ReasonClass.STALLED or _was_told(view.claim, first):
        return True
    if first.reason_class is ReasonClass.MISSING:
        return found.waited >= MISSING_PATIENCE
    return is_overdue(view.claim, now)


def is_overdue(claim: Object, now: datetime) -> bool:
    """Tell whether a claim has been on its way for longer than anything takes that ends by itself."""
    return now - _reconciling_since(claim, now) >= PROGRESS_DEADLINE


def _was_told(claim: Object, first: Cause) -> bool:
    """Tell whether the same cause stalled this generation before: it does not begin anew with every process."""
    before = find(claim, "Stalled") or {}
    told = before.get("status"), before.get("reason"), before.get("observedGeneration")
    return told == ("True", first.reason, generation_of(claim))


def _reconciling_since(claim: Object, now: datetime) -> datetime:
    before = find(claim, "Reconciling")
    if before is None or before.get("status") != "True":
        return now
    try:
        return datetime.fromisoformat(str(before.get("lastTransitionTime")))
    except ValueError:
        return now


def _conditions(view: View, found: Findings, *, stalled: bool) -> list[Condition]:
    generation = generation_of(view.claim)
    first = gravest(found.causes)
    conditions = [_ready(view, found), _synced(found, generation, stalled=stalled)]
    if first and stalled:
        conditions.append(Condition("Stalled", "True", first.reason, first.message, generation))
    elif first and first.reason_class in (ReasonClass.MISSING, ReasonClass.WAITING, ReasonClass.PROGRESS):
        conditions.append(Condition("Reconciling", "True", first.reason, first.message, generation))
    return conditions


def _ready(view: View, found: Findings) -> Condition:
    """Ready=True speaks of the newest generation that was ready, so that a wait after an edit does not end early."""
    generation = generation_of(view.claim)
    first = gravest(found.causes)
    if found.rendered is not None and _all_ready(found):
        return Condition("Ready", "True", "Available", "everything composed is ready", generation)
    unusable = broken(view, found.rendered, found.judged)
    # A Secret that was published once and is not there any more.
    is_secret_lost = bool(found.secret) and not found.published
    if not unusable and not is_secret_lost:
        known = as_before(view, found.rendered, found.judged)
        if known:
            return known
    resources = {each.entry.resource for each in unusable}
    lost = tuple(each for each in found.causes if is_secret_lost and each.reason in LOST_SECRET)
    first = gravest(tuple(each for each in found.causes if each.resource in resources) or lost) or first
    if first is None:
        return Condition("Ready", "False", "Creating", "not everything is there yet", generation)
    return Condition("Ready", "False", first.reason, first.message, generation)


def as_before(view: View, rendered: Rendered | None, judged: Collection[str] = ()) -> Condition | None:
    """Return Ready=True of a claim that waits for something and can be used meanwhile, by what it had before.

    What an outage took away is given back, to the generation before: whether this one was carried out is not known.
    """
    before, generation = find(view.claim, "Ready"), generation_of(view.claim)
    if before is None:
        return None
    if before["status"] == "True":
        known = before.get("observedGeneration", generation)
        return Condition("Ready", "True", before["reason"], before["message"], known)
    if not is_served(view, rendered, judged):
        return None
    return Condition("Ready", "True", "Available", "everything composed is ready", max(generation - 1, 1))


def _all_ready(found: Findings) -> bool:
    rendered = found.rendered
    return (
        rendered is not None
        and bool(rendered.children)
        and all(child.ready for child in rendered.children)
        and not rendered.waiting
        and found.published
        and not any(each.reason_class is ReasonClass.PROGRESS for each in found.causes)
    )


def _synced(found: Findings, generation: int, *, stalled: bool) -> Condition:
    against = gravest(tuple(each for each in found.causes if stalled or not each.is_in_sync))
    if against is None:
        return Condition("Synced", "True", "InSync", "everything is as the spec says", generation)
    if against.reason_class is ReasonClass.NOTED:
        return Condition("Synced", "True", against.reason, against.message, generation)
    return Condition("Synced", "False", against.reason, _with_others(against, found.causes), generation)


def _with_others(first: Cause, causes: tuple[Cause, ...]) -> str:
    """Tell the first cause in full, and behind it every other fault: consequences follow by themselves."""
    faults = (each.message for each in causes if each.reason_class <= ReasonClass.MISSING)
    others = [text for text in dict.fromkeys(faults) if text != first.message]
    return "; also: ".join([first.message, *others])


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
        return _not_seen(resource, what, live, newborn=observed < 1)
    if working and working["status"] == "True":
        progress = ReasonClass.WAITING if is_true(live, "Ready") else ReasonClass.PROGRESS
        return _retold(resource, working, progress)
    told = find(live, "Ready")
    if told and told["status"] == "False":
        return _retold(resource, told, ReasonClass.PROGRESS)
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


def _not_seen(resource: str, what: str, live: Object, *, newborn: bool) -> Cause:
    if newborn:
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


def only_words_differ(before: Object, after: Object) -> bool:
    """Tell whether two statuses differ in messages or marks alone, which may wait for a moment."""
    return _wordless(before) == _wordless(after)


def _wordless(status: Object) -> Object:
    conditions = [{**each, "message": ""} for each in status.get("conditions") or ()]
    entries = [{**each, "marks": {}} for each in status.get("inventory") or ()]
    return {**status, "conditions": conditions, "inventory": entries}


def teardown_status(view: View, causes: tuple[Cause, ...], now: datetime) -> Object:
    """Compute the status of a claim that is being deleted: everything stays as it was but the conditions."""
    generation = generation_of(view.claim)
    first = gravest(causes) or cause("Deleting", "being deleted")
    stalled = first.reason_class is ReasonClass.STALLED or (
        first.reason_class is not ReasonClass.HELD and is_overdue(view.claim, now)
    )
    conditions = [
        Condition("Ready", "False", first.reason, first.message, generation),
        Condition("Synced", "False", first.reason, first.message, generation),
    ]
    if stalled:
        conditions.append(Condition("Stalled", "True", first.reason, first.message, generation))
    elif first.reason_class is not ReasonClass.HELD:
        conditions.append(Condition("Reconciling", "True", first.reason, first.message, generation))
    before = view.status.get("conditions") or ()
    entries = [each.entry for each in view.known]
    status = {**view.status, "observedGeneration": generation, "conditions": merge(before, conditions, now)}
    if entries:
        status["inventory"] = inventory.dump(entries)
    return {**status, **echo(view)}
