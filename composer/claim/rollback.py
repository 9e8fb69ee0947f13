"""Which claims stay as they are because something that holds data would not, on the rollback above all. Pure."""

from __future__ import annotations

from dataclasses import replace

from composer.causes import Cause, cause
from composer.claim.compose import Prepared, untouched
from composer.claim.prune_guard import consent_command, consents_of, is_stateful, replacing_data
from composer.claim.report import Findings
from composer.claim.snapshot import Snapshot
from composer.render.render import Rendered
from runtime.objects import uid_of


def held_on_rollback(snapshot: Snapshot, rendered: Rendered, revision: str) -> tuple[Cause, ...]:
    """Return what forbids the rollback to `revision`: something that holds data would go, or be made anew and empty.

    The claim then stays, whole, on the revision that failed.
    """
    wanted = {child.place for child in rendered.children}
    waiting = {each.resource for each in rendered.waiting}
    alive = {each.entry.place for each in snapshot.known if each.live is not None}
    consents = consents_of(snapshot.annotations)
    found: list[Cause] = []
    for each in snapshot.known:
        entry, live = each.entry, each.live
        goes = entry.place not in wanted and entry.resource not in waiting
        if live is None or not entry.stateful or not goes or (entry.resource, uid_of(live)) in consents:
            continue
        text = f"the way back to revision {revision} would take {entry.kind} {entry.name} away, which holds data"
        how = f"to go back all the same: {consent_command(snapshot, entry.resource, uid_of(live))}"
        found.append(cause("HeldDeletion", f"{text}; {how}", resource=entry.resource))
    for child in rendered.children:
        if child.place not in alive and is_stateful(snapshot, child):
            what = f"{child.object['kind']} {child.object['metadata']['name']}"
            text = f"the way back to revision {revision} would make a new, empty {what}"
            how = f"pin the claim to {revision} by spec.compositionRevisionRef to go back all the same"
            found.append(cause("RolloutHalted", f"{text}; {how}", resource=child.resource))
    return tuple(found)


def held_back(snapshot: Snapshot, prepared: Prepared) -> Findings | None:
    """Return the findings of a claim that stays as it is, since something that holds data would not."""
    if prepared.is_rollback:
        causes = held_on_rollback(snapshot, prepared.rendered, prepared.revision.name)
        return untouched(snapshot, *causes) if causes else None
    held = replacing_data(snapshot, prepared.rendered)
    if not held:
        return None
    findings = untouched(snapshot, *held)
    if prepared.composition != snapshot.chosen:
        return findings
    # That it would cost data is this revision's failure.
    return replace(findings, revision=prepared.revision.name, has_rollout=prepared.revision.has_rollout)
