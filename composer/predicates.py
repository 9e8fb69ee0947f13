"""Predicates of changes: which of Compositions, revisions and CRDs concern claims, as a rollout's report does not.

Pure.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from composer.kinds.catalog import facts_of
from runtime.changes import Change
from runtime.conditions import find
from runtime.objects import Object, deleting, generation_of, labels_of


def changes_choice(change: Change) -> bool:
    """Return whether a change of a Composition may change what a claim chooses."""
    return _differs(change, _of_composition)


def changes_admission(change: Change) -> bool:
    """Return whether a change of a Composition may concern claims that have a revision of it.

    Its content comes to them by a revision, which wakes them itself.
    """
    return _differs(change, _of_admission)


def changes_rollout(change: Change) -> bool:
    """Return whether a change of a revision may move a claim: its number, and how far it has come."""
    return _differs(change, _of_revision)


def changes_kind(change: Change) -> bool:
    """Return whether a change of a CRD changes what is known of its kind, or begins its end."""
    return _differs(change, _of_crd)


def is_unanswered(change: Change) -> bool:
    """Return whether a claim's newest generation, or its deletion, has no answer in its status yet."""
    claim = change.new()
    if claim is None:
        return False
    return deleting(claim) or (claim.get("status") or {}).get("observedGeneration") != generation_of(claim)


def _differs(change: Change, facts: Callable[[Object], tuple[Any, ...]]) -> bool:
    before, after = change.old(), change.new()
    return before is None or after is None or facts(before) != facts(after)


def _of_crd(obj: Object) -> tuple[Any, ...]:
    return facts_of(obj), deleting(obj)


def _of_composition(obj: Object) -> tuple[Any, ...]:
    checked = (find(obj, "Ready") or {}).get("observedGeneration")
    return generation_of(obj), checked, _of_admission(obj)


def _of_admission(obj: Object) -> tuple[Any, ...]:
    ready, spec = find(obj, "Ready") or {}, obj.get("spec") or {}
    readiness = tuple(ready.get(name) for name in ("status", "reason", "message"))
    choice = tuple(spec.get(name) for name in ("compositeTypeRef", "appliesTo", "allowedNamespaces"))
    return deleting(obj), dict(labels_of(obj)), readiness, choice


def _of_revision(obj: Object) -> tuple[Any, ...]:
    state = (obj.get("status") or {}).get("rollout") or {}
    reached = tuple(state.get(name) for name in ("revision", "opened", "through", "everyone"))
    # Soaking and Progressing are one to a claim.
    phase = "Progressing" if state.get("phase") == "Soaking" else state.get("phase")
    return generation_of(obj), deleting(obj), reached, phase
