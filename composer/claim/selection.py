"""Chooses the Composition and the revision that serve a claim. Pure; every row of the rules is a test case."""

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
    """The rollout state of a claim: the revision in use, empty when it has none or lost its status, and the former one.

    `since`: since when it has this revision, and is well if it is well. `has_children`: it has composed children.
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
    candidates: Iterable[Candidate], chosen: str, namespace: str, labels: Mapping[str, str]
) -> tuple[Candidate, ...]:
    """Return the Compositions that claims of a namespace may use, and the one that a claim has already."""
    return tuple(
        candidate for candidate in candidates if candidate.name == chosen or candidate.admits(namespace, labels)
    )


def not_allowed(candidate: Candidate, namespace: str, labels: Mapping[str, str]) -> Cause | None:
    """Return the cause of a claim that keeps a Composition its namespace may not choose any more; None if it may."""
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
    candidates: tuple[Candidate, ...],
) -> str | Cause:
    """Choose the Composition of a claim: its ref, else its selector, else what was chosen, else what applies to it.

    `chosen` is the recorded choice; only a ref or a selector that excludes it changes it. `candidates` are those that
    the namespace may use, as `admitted` returns them: no message names another.
    """
    by_name = {candidate.name: candidate for candidate in candidates}
    if not isinstance(spec.composition_ref, UnsetType):
        name = spec.composition_ref.name
        return name if name in by_name else _not_found(name, by_name)
    if not isinstance(spec.composition_selector, UnsetType):
        return _by_selector(spec.composition_selector, chosen, candidates)
    if chosen:
        return chosen if chosen in by_name else _not_found(chosen, by_name)
    return _by_rules(labels, namespace_labels, candidates)


def depends_on_namespace(spec: ClaimSpec, candidates: Iterable[Candidate]) -> bool:
    """Return whether the labels of its namespace may decide which Composition a claim gets."""
    named = "" if isinstance(spec.composition_ref, UnsetType) else spec.composition_ref.name
    return any(candidate.selects_namespaces for candidate in candidates if named in ("", candidate.name))


def _not_found(name: str, names: Iterable[str]) -> Cause:
    offered = ", ".join(sorted(names)) or "none"
    text = f"there is no Composition {name!r} for this kind{near(name, names)}; known: {offered}"
    return cause("CompositionNotFound", text)


def _by_selector(selector: LabelSelector, chosen: str, candidates: tuple[Candidate, ...]) -> str | Cause:
    matching = [candidate.name for candidate in candidates if selector.matches(dict(candidate.labels))]
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
    labels: Mapping[str, str], namespace_labels: Mapping[str, str], candidates: tuple[Candidate, ...]
) -> str | Cause:
    applying = [
        (candidate.applies_to.priority, candidate.name)
        for candidate in candidates
        if candidate.applies_to
        and candidate.applies_to.namespace_selector.matches(dict(namespace_labels))
        and candidate.applies_to.claim_selector.matches(dict(labels))
    ]
    if not applying:
        offered = ", ".join(candidate.name for candidate in candidates) or "none"
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
    revisions: Iterable[Revision],
    *,
    state: ClaimState = NO_REVISION,
    refusal: Cause | None = None,
) -> Revision | Cause:
    """Choose the revision of a claim: the one it is pinned to where it may be, else as far as the newest has come.

    Without any, the cause is the `refusal` of the Composition.
    """
    own = {revision.name: revision for revision in revisions if revision.composition_name == composition}
    if pin:
        if pin in own:
            return own[pin] if _may_be_pinned(own[pin], own, state) else _retired(pin, own)
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


def _may_be_pinned(pinned: Revision, own: Mapping[str, Revision], state: ClaimState) -> bool:
    """Return whether a claim has or had a revision, or gets it without a pin; a retired one may allow more.

    What a claim had is not known where it lost its status, or where its revision is gone.
    """
    is_lost = state.has_children and state.revision not in own
    return is_lost or pinned.name in (state.revision, state.previous) or pinned in _offered(own)


def _offered(own: Mapping[str, Revision]) -> tuple[Revision, ...]:
    """Return the newest revision, and before it the one that new claims get while it goes by waves."""
    newest = max(own.values(), key=lambda revision: revision.number)
    good = last_finished(own.values())
    return (newest,) if good in (None, newest) else (newest, good)


def _retired(pin: str, own: Mapping[str, Revision]) -> Cause:
    offered = " or ".join(revision.name for revision in _offered(own))
    text = f"{_PIN} {pin}, which newer revisions replaced and this claim never had; it may name {offered}, or none"
    return cause("InvalidValue", text)


def _by_rollout(own: Mapping[str, Revision], state: ClaimState) -> Revision | Cause:
    """Choose by the rollout of the newest revision: until it has finished, only its waves bring claims to it."""
    newest = max(own.values(), key=lambda revision: revision.number)
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


def last_finished(revisions: Iterable[Revision]) -> Revision | None:
    """Return the newest revision whose rollout has reached all claims, or None."""
    finished = (revision for revision in revisions if revision.is_finished)
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
        subject = f"no revision of {newest.composition_name} has come to all claims, and the newest, {newest.name}"
        text = f"{subject}, is stopped; the platform team edits the Composition, or {_PIN} {newest.name}"
        return cause("RevisionNotFound", text)
    return newest


def _lost_revision(newest: Revision, own: Mapping[str, Revision], state: ClaimState) -> Cause:
    lost = f"revision {state.revision}, which this claim uses, is gone"
    unknown = f"it is not known which revision of {newest.composition_name} this claim uses"
    left = ", ".join(revision.name for revision in sorted(own.values(), key=lambda revision: revision.number))
    text = (
        f"{lost if state.revision else unknown}; nothing is changed until a wave of the newest comes to it: the "
        f"platform team edits the Composition, or {_PIN} one of {left}"
    )
    return cause("RevisionNotFound", text)


def is_rollback(chosen: Revision, revisions: Iterable[Revision], state: ClaimState) -> bool:
    """Return whether a claim leaves a revision since its rollout was rolled back, and not for a newer one."""
    left = next((revision for revision in revisions if revision.name == state.revision), None)
    if left is None or not left.is_reverted or chosen.name == left.name:
        return False
    return left.number > chosen.number or chosen.name == state.previous
