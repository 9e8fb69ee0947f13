"""Compositions and their revisions as they are read from their objects. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import msgspec
from msgspec import UNSET, UnsetType

from apis import names
from composer.causes import Cause, cause
from composer.models import AllowedNamespaces, AppliesTo, CompositionSpec, RolloutStatus
from composer.render.compiler import convert
from composer.render.errors import CompositionError, Problem
from composer.validation.renames import reused
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
    """Why its present content may not be used; reported on claims that have no good revision to stay on."""
    allowed: AllowedNamespaces | None = None

    def admits(self, namespace: str, labels: Mapping[str, str]) -> bool:
        """Return whether claims of a namespace may use it: as it says, else those to which it applies, else all."""
        if self.allowed is not None:
            return self.allowed.admits(namespace, dict(labels))
        return self.applies_to is None or self.applies_to.namespace_selector.matches(dict(labels))

    @property
    def selects_namespaces(self) -> bool:
        """Whether the labels of a namespace decide if its claims may use it, or get it."""
        selectors = (
            self.allowed.selector if self.allowed else UNSET,
            self.applies_to.namespace_selector if self.applies_to else UNSET,
        )
        return any(not isinstance(selector, UnsetType) and selector.match_labels for selector in selectors)


@dataclass(frozen=True, slots=True)
class Revision:
    """One accepted revision of a Composition; `name` is its object's, `rollout` how far it has come.

    `environments`: the data of those environments that were there, by name; None where none was, and of a revision that
    an earlier version wrote: its claims read them live. `is_interim`: chosen while a newer one goes by waves, so that
    it matters when the claim took it. `is_deleted`: its object is being deleted; `is_kept`: a finalizer holds that
    while claims use it.
    """

    name: str
    number: int
    composition_name: str
    composition: dict[str, Any]
    rollout: RolloutStatus | None = None
    is_interim: bool = False
    is_deleted: bool = False
    is_kept: bool = True
    environments: Mapping[str, dict[str, str]] | None = None

    def lacks(self, environment: str) -> bool:
        """Return whether its claims read an environment as that is now."""
        is_read = environment in (self.composition.get("environments") or ())
        return is_read and environment not in (self.environments or {})

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


def candidates(compositions: Iterable[Object], api_version: str, kind: str) -> tuple[Candidate, ...]:
    """Return the Compositions that serve a kind, in whichever version; unreadable ones say so on themselves."""
    serving: list[Candidate] = []
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
        serving.append(Candidate(name, labels_of(composition), applies_to, checked, _refusal(composition), allowed))
    return tuple(sorted(serving, key=lambda candidate: candidate.name))


def _refusal(composition: Object) -> Cause | None:
    ready = find(composition, "Ready")
    if ready is None or ready["status"] == "True" or not current(composition, "Ready"):
        return None
    return cause(ready["reason"], ready["message"])


def readable(raw: Mapping[str, Any]) -> CompositionSpec | None:
    """Return a spec as a struct, or None when it is none."""
    try:
        return convert(raw)
    except CompositionError:
        return None


def revisions(objects: Iterable[Object]) -> tuple[Revision, ...]:
    """Return revisions as structs; what cannot be read is no revision."""
    parsed: list[Revision] = []
    for obj in objects:
        spec = obj.get("spec") or {}
        try:
            number = msgspec.convert(spec.get("revision"), int)
            name, composition = spec["compositionName"], spec["composition"]
            environments = msgspec.convert(spec.get("environments"), dict[str, dict[str, str]] | None)
            revision = Revision(
                metadata(obj)["name"], number, name, composition, _rollout(obj), environments=environments
            )
            is_kept = names.IN_USE_FINALIZER in finalizers_of(obj)
            parsed.append(replace(revision, is_deleted=deleting(obj), is_kept=is_kept))
        except (KeyError, msgspec.ValidationError):
            continue
    return tuple(parsed)


def _rollout(revision: Object) -> RolloutStatus | None:
    state = (revision.get("status") or {}).get("rollout")
    try:
        return msgspec.convert(state, RolloutStatus) if state else None
    except msgspec.ValidationError:
        return None


def kinds_of(composition: Mapping[str, Any]) -> frozenset[str]:
    """Return every kind (`Kind.group`) that a composition may compose."""
    kinds: set[str] = set()
    for resource in composition.get("resources") or ():
        template = resource.get("template") or {}
        group = str(template.get("apiVersion", "")).rpartition("/")[0]
        kinds.add(f"{template.get('kind')}.{group}" if group else str(template.get("kind")))
    return frozenset(kinds)


def reused_names(composition: dict[str, Any], known: Iterable[Revision]) -> tuple[Problem, ...]:
    """Return the resources that would share an object with another one in claims of an earlier revision."""
    current, earlier = readable(composition), (readable(revision.composition) for revision in known)
    return tuple(reused(current, (spec for spec in earlier if spec is not None))) if current else ()
