"""Which claims stay as they are because something that holds data would not. Pure."""

from __future__ import annotations

from dataclasses import replace

from composer.claim.compose import Prepared, untouched
from composer.claim.prune_guard import replacing_data
from composer.claim.report import Findings
from composer.claim.rollback import held_on_way_back
from composer.claim.snapshot import View


def held_back(view: View, prepared: Prepared) -> Findings | None:
    """Return the findings of a claim that stays as it is, since something that holds data would not."""
    if prepared.is_way_back:
        causes = held_on_way_back(view, prepared.rendered, prepared.revision.name)
        return untouched(view, *causes) if causes else None
    held = replacing_data(view, prepared.rendered)
    if not held:
        return None
    findings = untouched(view, *held)
    if prepared.composition != view.chosen:
        return findings
    # That it would cost data is this revision's failure.
    return replace(findings, revision=prepared.revision.name, has_rollout=prepared.revision.has_rollout)
