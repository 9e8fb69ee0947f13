"""Which Composition and which revision serve a claim. Pure; every row of the rules is a test case."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import msgspec
from msgspec import UnsetType

from composer.compilation import convert
from composer.members import EVER, place_of
from composer.models import AppliesTo, ClaimSpec, CompositionSpec, LabelSelector, RolloutStatus
from composer.problems import CompositionError, near
from composer.reasons import Cause, cause
from composer.rollout import is_included
from runtime.conditions import current, find
from runtime.objects import Object, labels_of, metadata


@dataclass(frozen=True, slots=True)
class Candidate:
    """One Composition as the choice sees it; only those of the claim's kind are candidates."""

    name: str
    labels: Mapping[str, str]
    applies_to: AppliesTo | None
    is_checked: bool = True
    refusal: Cause | None = None
    """Why its present content may not be used; told on claims that have no good revision to stay on."""


@dataclass(frozen=True, slots=True)
class Revision:
    """One accepted revision of a Composition; `name` is its object's, `rollout` how far it has come.

    `is_interim`: chosen while a newer one goes by waves, so that it matters when the claim took it.
    """

    name: str
    number: int
    composition_name: str
    composition: dict[str, Any]
    rollout: RolloutStatus | None = None
    is_interim: bool = False

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
        return not self.has_rollout or (self.state is not None and self.state.phase == "Finished")


@dataclass(frozen=True, slots=True)
class Standing:
    """Where a claim stands: the revision in use, empty when it has none or lost its status, and the one before.

    `since`: since when it stands so, and well if it is well.
    """

    identity: str = ""
    revision: str = ""
    previous: str = ""
    is_well: bool = False
    since: datetime = EVER


NOWHERE = Standing()


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
        name = metadata(composition)["name"]
        checked = current(composition, "Ready")
        found.append(Candidate(name, labels_of(composition), applies_to, checked, _refusal(composition)))
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


def choose(
    spec: ClaimSpec,
    chosen: str,
    labels: Mapping[str, str],
    namespace_labels: Mapping[str, str],
    known: tuple[Candidate, ...],
) -> str | Cause:
    """Choose the Composition of a claim: its ref, else its selector, else what was chosen, else what applies to it.

    `chosen` is the recorded choice; only a ref or a selector that speaks against it changes it.
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
            found.append(Revision(metadata(each)["name"], number, name, composition, _rollout(each)))
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


def _by_rollout(own: Mapping[str, Revision], standing: Standing) -> Revision:
    """Follow the rollout of the newest revision; who has none yet takes the last one that finished."""
    newest = max(own.values(), key=lambda each: each.number)
    if newest.is_finished:
        return newest
    good = max((each for each in own.values() if each.is_finished), key=lambda each: each.number, default=newest)
    current = own.get(standing.revision)
    if current is None:
        return replace(good, is_interim=good is not newest)
    state = newest.state
    if current is newest:
        goes_back = state is not None and state.phase == "Reverted"
        return own.get(standing.previous, good) if goes_back else newest
    place = place_of(standing.identity, newest.name)
    if state and is_included(state, place, well=standing.is_well, since=standing.since):
        return newest
    return current


def is_way_back(chosen: Revision, known: Iterable[Revision], standing: Standing) -> bool:
    """Tell whether a claim leaves the newest revision, since its rollout was rolled back."""
    left = next((each for each in known if each.name == standing.revision), None)
    return (
        left is not None and left.number > chosen.number and left.state is not None and (left.state.phase == "Reverted")
    )
