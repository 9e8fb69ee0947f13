"""The steps of a claim on which nothing is decided: paused, asked for another pass, or not rendered. Pure."""

from __future__ import annotations

from apis import names
from composer.claim.decide import Annotate, Keep, Step, copied_pause, corrections, held_step
from composer.claim.snapshot import Snapshot
from runtime.objects import Object, annotations_of, deleting


def steps_unrendered(snapshot: Snapshot) -> tuple[Step, ...]:
    """Return the steps of a claim that cannot be rendered: children that somebody else deleted are released."""
    return tuple(step for child in snapshot.children if isinstance(step := held_step(snapshot, child), Annotate))


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
