"""Which Composition and which revision serve a claim. Pure; every row of the rules is a test case."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import msgspec
from msgspec import UnsetType

from apis import names
from composer.composition.rollout import is_included
from composer.composition.rollout_claims import EVER, place_of
from composer.models import AllowedNamespaces, AppliesTo, ClaimSpec, CompositionSpec, LabelSelector, RolloutStatus
from composer.reasons import Cause, Gravity, cause
from composer.render.compiler import convert
from composer.render.errors import CompositionError, near
from runtime.conditions import current, find
from runtime.objects import Object, deleting, finalizers_of, labels_of, metadata


@dataclass(frozen=True, slots=True)
class Candidate:
    """One Composition as the choice sees it; only those of the claim's kind are candidates."""

    name: str
    labels: Mapping[str, str]
    applies_to: AppliesTo | None
    is_checked: bool = True
    refusal: Cause | None = None
    """Why its present content may not be used; told on claims that have no good revision to stay on."""
    allowed: AllowedNamespaces | None = None

    def admits(self, namespace: str, labels: Mapping[str, str]) -> bool:
        """Tell whether claims of a namespace may use it: as it says, else those to which it applies, else all."""
        if self.allowed is not None:
            return self.allowed.admits(namespace, dict(labels))
        return self.applies_to is None or self.applies_to.namespace_selector.matches(dict(labels))


@dataclass(frozen=True, slots=True)
class Revision:
    """One accepted revision of a Composition; `name` is its object's, `rollout` how far it has come.

    `is_interim`: chosen while a newer one goes by waves, so that it matters when the claim took it. `is_deleted`: its
    object is being deleted; `is_kept`: a finalizer holds that while claims use it.
    """

    name: str
    number: int
    composition_name: str
    composition: dict[str, Any]
    rollout: RolloutStatus | None = None
    is_interim: bool = False
    is_deleted: bool = False
    is_kept: bool = True

    @property
    def has_rollout(self) -> bool:
        """Whether it goes to its claims by waves, or a newer one does."""
        return bool(self.composition.get("rollout")) or self.is_interim

    @property
    def state(self) -> RolloutStatus | None:
        """How far it has come as the revision of this number."""
        return self.rollout if self.rollout and self.rollout.revision == self.number else None

    @property
    def is_finished(self) -> bool:
        """Whether every claim has or had it."""
        return not self.has_rollout or self._is_in("Finished")

    @property
    def is_reverted(self) -> bool:
        """Whether its rollout failed, and its claims go back."""
        return self._is_in("Reverted")

    @property
    def is_stopped(self) -> bool:
        """Whether its rollout failed."""
        return self._is_in("Halted", "Reverted")

    def _is_in(self, *phases: str) -> bool:
        return self.state is not None and self.state.phase in phases


@dataclass(frozen=True, slots=True)
class Standing:
    """Where a claim stands: the revision in use, empty when it has none or lost its status, and the one before.

    `since`: since when it stands so, and well if it is well. `has_children`: something was composed for it.
    """

    identity: str = ""
    revision: str = ""
    previous: str = ""
    is_well: bool = False
    since: datetime = EVER
    has_children: bool = False


NOWHERE = Standing()
_PIN = "spec.compositionRevisionRef names"


def candidates(compositions: Iterable[Object], api_version: str, kind: str) -> tuple[Candidate, ...]:
    """Return the Compositions that serve a kind, in whichever version; unreadable ones say so on themselves."""
    found: list[Candidate] = []
    wanted = api_version.rpartition("/")[0], kind
    for composition in compositions:
        spec = readable(composition.get("spec") or {})
        if spec is None:
            continue
        served = spec.composite_type_ref
        if (served.api_version.rpartition("/")[0], served.kind) != wanted:
            continue
        applies_to = None if isinstance(spec.applies_to, UnsetType) else spec.applies_to
        allowed = None if isinstance(spec.allowed_namespaces, UnsetType) else spec.allowed_namespaces
        name = metadata(composition)["name"]
        checked = current(composition, "Ready")
        found.append(Candidate(name, labels_of(composition), applies_to, checked, _refusal(composition), allowed))
    return tuple(sorted(found, key=lambda each: each.name))


def _refusal(composition: Object) -> Cause | None:
    told = find(composition, "Ready")
    if told is None or told["status"] == "True" or not current(composition, "Ready"):
        return None
    return cause(told["reason"], told["message"])


def readable(raw: Mapping[str, Any]) -> CompositionSpec | None:
    """Read a spec, or None when it is none."""
    try:
        return convert(raw)
    except CompositionError:
        return None


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
    return cause("NotAllowed", text, gravity_as=Gravity.HELD)


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


def revisions(objects: Iterable[Object]) -> tuple[Revision, ...]:
    """Read revisions; what cannot be read is no revision."""
    found: list[Revision] = []
    for each in objects:
        spec = each.get("spec") or {}
        try:
            number = msgspec.convert(spec.get("revision"), int)
            name, composition = spec["compositionName"], spec["composition"]
            revision = Revision(metadata(each)["name"], number, name, composition, _rollout(each))
            is_kept = names.IN_USE_FINALIZER in finalizers_of(each)
            found.append(replace(revision, is_deleted=deleting(each), is_kept=is_kept))
        except (KeyError, msgspec.ValidationError):
            continue
    return tuple(found)


def _rollout(revision: Object) -> RolloutStatus | None:
    state = (revision.get("status") or {}).get("rollout")
    try:
        return msgspec.convert(state, RolloutStatus) if state else None
    except msgspec.ValidationError:
        return None


def choose_revision(
    composition: str,
    pin: str,
    known: Iterable[Revision],
    *,
    standing: Standing = NOWHERE,
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
    return _by_rollout(own, standing)


def _by_rollout(own: Mapping[str, Revision], standing: Standing) -> Revision | Cause:
    """Follow the rollout of the newest revision: nobody comes to one that has not finished but by its waves."""
    newest = max(own.values(), key=lambda each: each.number)
    if newest.is_finished:
        return newest
    current = own.get(standing.revision)
    if current is newest and not newest.is_reverted:
        return newest
    is_composed = current is not None or standing.has_children
    if is_composed and current is not newest and _is_in_wave(newest, standing):
        return newest
    good = last_finished(own.values())
    if current is None:
        return _without_revision(newest, good, own, standing)
    if current.is_reverted:
        before = own.get(standing.previous)
        return before if before and before is not current and not before.is_reverted else good or current
    return current


def last_finished(known: Iterable[Revision]) -> Revision | None:
    """Return the newest revision whose rollout came to all claims, or None."""
    finished = (revision for revision in known if revision.is_finished)
    return max(finished, key=lambda revision: revision.number, default=None)


def _is_in_wave(newest: Revision, standing: Standing) -> bool:
    place = place_of(standing.identity, newest.name)
    return newest.state is not None and is_included(newest.state, place, well=standing.is_well, since=standing.since)


def _without_revision(
    newest: Revision, good: Revision | None, own: Mapping[str, Revision], standing: Standing
) -> Revision | Cause:
    """Choose for a claim that has no revision, or whose revision is gone.

    What was composed by a revision that is gone stays as it is: another one is another content.
    """
    is_gone = standing.has_children and standing.revision
    is_unknown = standing.has_children and not good and len(own) > 1
    if is_gone or is_unknown:
        return _lost_revision(newest, own, standing)
    if good is not None:
        return replace(good, is_interim=True)
    if newest.is_stopped:
        what = f"no revision of {newest.composition_name} has come to all claims, and the newest, {newest.name}"
        text = f"{what}, is stopped; the platform team edits the Composition, or {_PIN} {newest.name}"
        return cause("RevisionNotFound", text)
    return newest


def _lost_revision(newest: Revision, own: Mapping[str, Revision], standing: Standing) -> Cause:
    lost = f"revision {standing.revision}, which this claim uses, is gone"
    unknown = f"it is not known which revision of {newest.composition_name} this claim uses"
    left = ", ".join(each.name for each in sorted(own.values(), key=lambda each: each.number))
    text = (
        f"{lost if standing.revision else unknown}; nothing is changed until a wave of the newest comes to it: the "
        f"platform team edits the Composition, or {_PIN} one of {left}"
    )
    return cause("RevisionNotFound", text)


def is_way_back(chosen: Revision, known: Iterable[Revision], standing: Standing) -> bool:
    """Tell whether a claim leaves a revision since its rollout was rolled back, and not for a newer one."""
    left = next((each for each in known if each.name == standing.revision), None)
    if left is None or not left.is_reverted or chosen.name == left.name:
        return False
    return left.number > chosen.number or chosen.name == standing.previous
