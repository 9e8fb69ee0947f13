"""All kinds of other operators that are known by name, and whether an object of one is ready. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from composer.render.operators import ack, aso, cnpg, kcc, zalando
from composer.render.operators.state import OperatorKind, State
from runtime.kstatus import kstatus
from runtime.objects import Object, deleting

KINDS: Final[Mapping[str, OperatorKind]] = {
    kind.group_kind: kind
    for operator in (cnpg.KINDS, zalando.KINDS, ack.KINDS, kcc.KINDS, aso.KINDS)
    for kind in operator
}
"""The kinds by `Kind.group`."""


def kind_of(live: Object) -> OperatorKind | None:
    """Return the row of an object's kind; None for a kind that is not known by name."""
    group = str(live.get("apiVersion", "")).rpartition("/")[0]
    return KINDS.get(f"{live.get('kind', '')}.{group}")


def state_of(live: Object) -> State | None:
    """Return the state of a live object; None where its kind is not known by name."""
    kind = kind_of(live)
    return kind.state(live) if kind else None


def is_current(live: Object, *, is_silent: bool) -> bool:
    """Return whether a live child is ready where the Composition does not say when it is.

    By the table, else by kstatus, to which a status without conditions is current. A child whose operator wrote no
    status yet is not ready.
    """
    if deleting(live) or is_silent:
        return False
    state = state_of(live)
    return kstatus(live) == "Current" if state is None else state.ready
