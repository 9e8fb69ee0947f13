"""How a claim goes: which word its children are told, and in which waves. Pure; every row is a test case.

Children go in reverse order of their dependencies, each wave after the last is proven gone. A deletion that the claim's
owner did not ask for (its namespace's, its CRD's) destroys nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from composer import names
from composer.brakes import consents_of, no_backup, unseen
from composer.decide import Annotate, Keep, LetGo, Release, Remove, Step, copied_pause, policy_with
from composer.ending import blocker
from composer.kinds import KindFacts
from composer.models import DeletionPolicy
from composer.reasons import Cause, cause
from composer.view import Known, View
from runtime.objects import Object, annotations_of, deleting, finalizers_of, labels_of, uid_of

Verdict: TypeAlias = Literal["Delete", "Snapshot", "Orphan", "Detach"]


@dataclass(frozen=True, slots=True)
class Teardown:
    """One pass of a teardown. `done`: nothing is left, the claim may go. `keeps_secret`: its Secret stays."""

    steps: tuple[Step, ...]
    causes: tuple[Cause, ...]
    done: bool
    keeps_secret: bool


def effective_policy(view: View, supported: tuple[DeletionPolicy, ...] | None) -> DeletionPolicy:
    """Return the deletion policy in force: the spec's where the composition supports it, else Orphan.

    `supported` is None when the composition cannot be read any more; then the last policy that was in force counts.
    """
    wanted = view.spec.deletion_policy
    if supported is not None:
        return wanted if wanted in supported else "Orphan"
    return wanted if wanted == view.status.get("deletionPolicy") else "Orphan"


def verdict(view: View, policy: DeletionPolicy) -> Verdict:
    """Return the word for the children of a claim that is being deleted."""
    if view.kind_deleting:
        return "Detach"
    ephemeral = view.namespace_labels.get(names.EPHEMERAL_LABEL) == "true"
    if view.namespace_deleting and not ephemeral:
        return "Detach"
    return policy


def tear_down(view: View, policy: DeletionPolicy) -> Teardown:
    """Decide one pass over a claim that is being deleted, from live reads of claim, namespace and CRD."""
    if view.spec.deletion_protection:
        text = "the deletion is held by spec.deletionProtection; set it to false to let the claim go"
        kept = tuple(Keep(each.entry) for each in view.known)
        return Teardown(kept, (cause("DeletionProtected", text),), done=False, keeps_secret=True)
    spoken = verdict(view, policy)
    remaining = [each for each in view.known if not _is_gone(each, view.identity.uid)]
    held = tuple(why for each in remaining if (why := _held(view, each, spoken)) is not None)
    if held:
        return Teardown(tuple(Keep(each.entry) for each in remaining), held, done=False, keeps_secret=True)
    steps: list[Step] = []
    causes: list[Cause] = []
    for each in remaining:
        if _is_needed(each, remaining):
            steps.append(Keep(each.entry))
            continue
        steps.append(_step(view, each, spoken))
        blocked = blocker(each)
        if blocked:
            causes.append(blocked)
    if remaining:
        left = ", ".join(f"{each.entry.kind} {each.entry.name}" for each in remaining)
        causes.append(cause("Deleting", f"waits for {left} to go ({spoken})"))
    return Teardown(tuple(steps), tuple(causes), done=not remaining, keeps_secret=spoken in ("Orphan", "Detach"))


def _held(view: View, each: Known, spoken: Verdict) -> Cause | None:
    """Say why nothing goes yet: a child that nobody can see, or data that would be lost against the claim's policy."""
    if each.unseen:
        return unseen(each)
    if not each.is_foreign_data or each.live is None or spoken not in ("Orphan", "Snapshot"):
        return None
    if spoken == "Snapshot":
        return no_backup(each)
    ours = names.TEARDOWN_FINALIZER in finalizers_of(each.live)
    uid = uid_of(each.live)
    if not (ours and deleting(each.live)) or (each.entry.resource, uid) in consents_of(view.annotations):
        return None
    text = (
        f"{each.entry.kind} {each.entry.name} was deleted by somebody else, and by deletionPolicy Orphan it lives on;"
        f" save what is in it, then annotate the claim {names.CONSENT}: {each.entry.resource}={uid}, or set"
        " spec.deletionPolicy to Delete"
    )
    return cause("HeldDeletion", text, resource=each.entry.resource)


def _is_needed(each: Known, remaining: list[Known]) -> bool:
    """Tell whether something that depends on a child is still there: its wave comes first."""
    name = each.entry.resource
    return any(name in other.entry.depends_on for other in remaining if other.entry.resource != name)


def _is_gone(each: Known, identity: str) -> bool:
    if each.live is None:
        return not each.unseen
    if each.facts is None or each.facts.managed:
        return False
    label = labels_of(each.live).get(names.CLAIM_LABEL)
    # Letting go takes label and finalizer at once: with our finalizer and no label it was merely taken off.
    return label != identity and (bool(label) or names.TEARDOWN_FINALIZER not in finalizers_of(each.live))


def _step(view: View, each: Known, spoken: Verdict) -> Step:
    entry, live, facts = each.entry, each.live, each.facts
    if live is None or facts is None:
        return Keep(entry)
    if not facts.managed:
        return _foreign_step(each, live, facts, spoken)
    word = names.word(uid_of(live), spoken)
    # A pause that has ended for the claim has ended for its child, too.
    lifted = copied_pause(view, live)
    policy = policy_with(live, spoken)
    if not deleting(live) and not lifted:
        return Remove(entry, facts, live, word, f"the claim is being deleted ({spoken})", policy)
    if not deleting(live):
        return Annotate(entry, facts, live, lifted)
    if annotations_of(live).get(names.TEARDOWN) != word:
        lifted[names.TEARDOWN] = word
    return Annotate(entry, facts, live, lifted, policy) if lifted or policy else Keep(entry)


def _foreign_step(each: Known, live: Object, facts: KindFacts, spoken: Verdict) -> Step:
    entry = each.entry
    ours = names.TEARDOWN_FINALIZER in finalizers_of(live)
    if deleting(live):
        return Release(entry, facts, live) if ours else Keep(entry)
    if entry.stateful and spoken != "Delete":
        return LetGo(entry, facts, live)
    return Remove(entry, facts, live, "", f"the claim is being deleted ({spoken})")
