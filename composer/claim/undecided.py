"""The steps of a claim on which nothing else is decided: paused, to be looked at, held whole, not rendered. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from apis import names
from composer.causes import Cause
from composer.claim.decide import Annotate, Keep, Step, copied_pause, corrections, held_step
from composer.claim.prune_guard import still_needed, still_used, unwanted
from composer.claim.snapshot import ObservedChild, Snapshot, is_free
from composer.models import ResourceTemplate
from composer.render.render import Child, Rendered
from runtime.objects import Object, annotations_of, deleting


def steps_unrendered(snapshot: Snapshot) -> tuple[Step, ...]:
    """Return the steps of a claim that cannot be rendered: children that somebody else deleted are released."""
    return tuple(step for child in snapshot.children if isinstance(step := held_step(snapshot, child), Annotate))


def taken_out(snapshot: Snapshot, rendered: Rendered, resources: Collection[str]) -> tuple[ObservedChild, ...]:
    """Return what an edit that is held whole took out and holds neither data nor a login: it goes all the same.

    `resources` are those of the Composition: what it has renamed stays, since nothing new is made in its place.
    """
    leaving = unwanted(snapshot, rendered)
    unchanged = {observed.entry.place for observed in snapshot.children}
    return tuple(
        child
        for child, why in leaving
        if why is None and child.entry.resource in resources and _is_free(child)
        if not (still_needed(child, leaving) or still_used(snapshot, child, unchanged))
    )


def optional(snapshot: Snapshot, resources: Iterable[ResourceTemplate]) -> tuple[str, ...]:
    """Return the resources of which an edit may take out children that hold neither data nor a login."""
    free = {child.entry.resource for child in snapshot.children if child.live and _is_free(child)}
    return tuple(of.name for of in resources if of.name in free and (of.when or of.for_each))


def left_out(snapshot: Snapshot, elements: Mapping[str, Collection[Child]]) -> tuple[ObservedChild, ...]:
    """Return what an edit took out of a claim that cannot be rendered, and holds neither data nor a login.

    `elements` are the elements of those resources of which they are known without their templates.
    """
    wanted = {(name, child.key) for name, children in elements.items() for child in children}
    leaving: list[tuple[ObservedChild, Cause | None]] = [
        (child, None)
        for child in snapshot.children
        if child.entry.resource in elements and (child.entry.resource, child.entry.key) not in wanted
    ]
    # An object goes with its last place, whatever the name that another one has for it.
    names_kept = {child.entry.name for child in snapshot.children if (child, None) not in leaving}
    names_kept |= {child.name for children in elements.values() for child in children}
    unchanged = {child.entry.place for child in snapshot.children}
    return tuple(
        child
        for child, _ in leaving
        if _is_free(child) and child.entry.name not in names_kept
        if not (still_needed(child, leaving) or still_used(snapshot, child, unchanged))
    )


def _is_free(child: ObservedChild) -> bool:
    return is_free(child.entry, child.facts, child.live) if child.live else not child.entry.stateful


def mirrored_pause(snapshot: Snapshot) -> tuple[Step, ...]:
    """Return the only steps of a paused claim: its pause, copied to the children, those that are going included."""
    return tuple(
        Annotate(child.entry, child.facts, child.live, annotations)
        if child.live and child.facts and annotations
        else Keep(child.entry)
        for child in snapshot.children
        for annotations in [_mirrored(snapshot, child.live) if child.live else {}]
    )


def _mirrored(snapshot: Snapshot, live: Object) -> dict[str, str | None]:
    return copied_pause(snapshot, live) if deleting(live) else corrections(snapshot, live)


def token_steps(snapshot: Snapshot) -> tuple[Annotate, ...]:
    """Return the steps that copy a requested reconcile to all children that a provider serves.

    Only a request that the claim has not answered yet: a token that somebody set on a child itself stays.
    """
    token = snapshot.annotations.get(names.RECONCILE_REQUESTED_AT)
    if not token or not snapshot.is_requested:
        return ()
    return tuple(
        Annotate(child.entry, child.facts, child.live, {names.RECONCILE_REQUESTED_AT: token})
        for child in snapshot.children
        if child.live is not None and child.facts is not None and child.facts.managed
        if annotations_of(child.live).get(names.RECONCILE_REQUESTED_AT) != token
    )
