"""Which Composition and which revision serve a claim. Pure; every row of the rules is a test case."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime

from msgspec import UnsetType

from apis.reasons import ReasonClass
from composer.causes import Cause, cause
from composer.composition.revision import Candidate, Revision
from composer.composition.rollout import is_included
from composer.composition.rollout_claims import EVER, rank_of
from composer.models import ClaimSpec, LabelSelector
from composer.render.errors import near


@dataclass(frozen=True, slots=True)
class ClaimState:
    """Where a claim stands: the revision in use, empty when it has none or lost its status, and the one before.

    `since`: since when it stands so, and well if it is well. `has_children`: something was composed for it.
    """

    identity: str = ""
    revision: str = ""
    previous: str = ""
    is_well: bool = False
    since: datetime = EVER
    has_children: bool = False


NO_REVISION = ClaimState()
_PIN = "spec.compositionRevisionRef names"


def admitted(
    known: Iterable[Candidate], chosen: str, namespace: str, labels: Mapping[str, str]
) -> tuple[Candidate, ...]:
    """Return the Compositions that claims of a namespace may use, and the one that a claim has already."""
    return tuple(each for each in known if each.name == chosen or each.admits(namespace, labels))


def not_allowed(candidate: Candidate, namespace: str, labels: Mapping[str, str]) -> Cause | None:
    """Say that a living claim keeps a Composition that its namespace may not choose any more; None where it may."""
    if candidate.admits(namespace, labels):
        return None
    text = (
        f"Composition {candidate.name} is not for namespace {namespace} any more (its allowedNamespaces); this claim "
        "keeps it and goes on, a new one would not get it; ask the platform team"
    )
    return cause("NotAllowed", text, shown_as=ReasonClass.HELD)


def choose(
    spec: ClaimSpec,
    chosen: str,
    labels: Mapping[str, str],
    namespace_labels: Mapping[str, str],
    known: tuple[Candidate, ...],
) -> str | Cause:
    """Choose the Composition of a claim: its ref, else its selector, else what was chosen, else what applies to it.

    `chosen` is the recorded choice; only a ref or a selector that speaks against it changes it. `known` are those that
    the namespace may use, as `admitted` gives them: no text names another.
    """
    by_name = {each.name: each for each in known}
    if not isinstance(spec.composition_ref, UnsetType):
        name = spec.composition_ref.name
        return name if name in by_name else _not_found(name, by_name)
    if not isinstance(spec.composition_selector, UnsetType):
        return _by_selector(spec.composition_selector, chosen, known)
    if chosen:
        return chosen if chosen in by_name else _not_found(chosen, by_name)
    return _by_rules(labels, namespace_labels, known)


def _not_found(name: str, known: Iterable[str]) -> Cause:
    offered = ", ".join(sorted(known)) or "none"
    text = f"there is no Composition {name!r} for this kind{near(name, known)}; known: {offered}"
    return cause("CompositionNotFound", text)


def _by_selector(selector: LabelSelector, chosen: str, known: tuple[Candidate, ...]) -> str | Cause:
    matching = [each.name for each in known if selector.matches(dict(each.labels))]
    if chosen in matching:
        return chosen
    if not matching:
        wanted = ", ".join(f"{name}={value}" for name, value in sorted(selector.match_labels.items()))
        return cause(
            "CompositionNotFound", f"no Composition for this kind has the labels {wanted}; ask the platform team"
        )
    if len(matching) > 1:
        return _ambiguous(matching, "match spec.compositionSelector; name one in spec.compositionRef")
    return matching[0]


def _by_rules(
    labels: Mapping[str, str], namespace_labels: Mapping[str, str], known: tuple[Candidate, ...]
) -> str | Cause:
    applying = [
        (each.applies_to.priority, each.name)
        for each in known
        if each.applies_to
        and each.applies_to.namespace_selector.matches(dict(namespace_labels))
        and each.applies_to.claim_selector.matches(dict(labels))
    ]
    if not applying:
        offered = ", ".join(each.name for each in known) or "none"
        text = f"no Composition applies to this claim by itself; name one in spec.compositionRef, known: {offered}"
        return cause("CompositionNotFound", text)
    highest = max(priority for priority, _ in applying)
    best = [name for priority, name in applying if priority == highest]
    if len(best) > 1:
        return _ambiguous(best, f"apply with priority {highest}; name one in spec.compositionRef")
    return best[0]


def _ambiguous(matching: list[str], how: str) -> Cause:
    return cause("AmbiguousComposition", f"Compositions {' and '.join(sorted(matching))} {how}")


def choose_revision(
    composition: str,
    pin: str,
    known: Iterable[Revision],
    *,
    state: ClaimState = NO_REVISION,
    refusal: Cause | None = None,
) -> Revision | Cause:
    """Choose the revision of a claim: the one it is pinned to, else as far as the newest has come.

    Without any, the `refusal` is told.
    """
    own = {each.name: each for each in known if each.composition_name == composition}
    if pin:
        if pin in own:
            return own[pin]
        text = f"spec.compositionRevisionRef names {pin!r}, which is no revision of {composition}{near(pin, own)}"
        return cause("CompositionNotFound", text)
    if not own and refusal:
        return refusal
    if not own:
        text = (
            f"Composition {composition!r} has no accepted revision yet; `kubectl describe flc {composition}` says why"
        )
        return cause("CompositionNotFound", text)
    return _by_rollout(own, state)


def _by_rollout(own: Mapping[str, Revision], state: ClaimState) -> Revision | Cause:
    """Follow the rollout of the newest revision: nobody comes to one that has not finished but by its waves."""
    newest = max(own.values(), key=lambda each: each.number)
    if newest.is_finished:
        return newest
    current = own.get(state.revision)
    if current is newest and not newest.is_reverted:
        return newest
    is_composed = current is not None or state.has_children
    if is_composed and current is not newest and _is_in_wave(newest, state):
        return newest
    good = last_finished(own.values())
    if current is None:
        return _without_revision(newest, good, own, state)
    if current.is_reverted:
        before = own.get(state.previous)
        return before if before and before is not current and not before.is_reverted else good or current
    return current


def last_finished(known: Iterable[Revision]) -> Revision | None:
    """Return the newest revision whose rollout came to all claims, or None."""
    finished = (revision for revision in known if revision.is_finished)
    return max(finished, key=lambda revision: revision.number, default=None)


def _is_in_wave(newest: Revision, state: ClaimState) -> bool:
    rank = rank_of(state.identity, newest.name)
    return newest.state is not None and is_included(newest.state, rank, well=state.is_well, since=state.since)


def _without_revision(
    newest: Revision, good: Revision | None, own: Mapping[str, Revision], state: ClaimState
) -> Revision | Cause:
    """Choose for a claim that has no revision, or whose revision is gone.

    What was composed by a revision that is gone stays as it is: another one is another content.
    """
    is_gone = state.has_children and state.revision
    is_unknown = state.has_children and not good and len(own) > 1
    if is_gone or is_unknown:
        return _lost_revision(newest, own, state)
    if good is not None:
        return replace(good, is_interim=True)
    if newest.is_stopped:
        what = f"no revision of {newest.composition_name} has come to all claims, and the newest, {newest.name}"
        text = f"{what}, is stopped; the platform team edits the Composition, or {_PIN} {newest.name}"
        return cause("RevisionNotFound", text)
    return newest


def _lost_revision(newest: Revision, own: Mapping[str, Revision], state: ClaimState) -> Cause:
    lost = f"revision {state.revision}, which this claim uses, is gone"
    unknown = f"it is not known which revision of {newest.composition_name} this claim uses"
    left = ", ".join(each.name for each in sorted(own.values(), key=lambda each: each.number))
    text = (
        f"{lost if state.revision else unknown}; nothing is changed until a wave of the newest comes to it: the "
        f"platform team edits the Composition, or {_PIN} one of {left}"
    )
    return cause("RevisionNotFound", text)


def is_rollback(chosen: Revision, known: Iterable[Revision], state: ClaimState) -> bool:
    """Return whether a claim leaves a revision since its rollout was rolled back, and not for a newer one."""
    left = next((each for each in known if each.name == state.revision), None)
    if left is None or not left.is_reverted or chosen.name == left.name:
        return False
    return left.number > chosen.number or chosen.name == state.previous
