"""What the objects of operators say whose status has a phase and no conditions. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from runtime.kstatus import kstatus
from runtime.objects import Object, deleting, status_of


@dataclass(frozen=True, slots=True)
class _Phases:
    """The field of a status with the phase; the phases of a ready object, and those of one that can still be used."""

    field: str
    ready: frozenset[str]
    usable: frozenset[str]


_PHASES: Final[Mapping[tuple[str, str], _Phases]] = {
    # zalando/postgres-operator, pkg/apis/acid.zalan.do/v1/const.go
    ("acid.zalan.do", "postgresql"): _Phases(
        "PostgresClusterStatus", frozenset({"Running"}), frozenset({"Updating", "UpdateFailed", "SyncFailed"})
    )
}


def is_ready(live: Object) -> bool | None:
    """Return whether an object's phase is that of a ready one; None where we know no phases of its kind."""
    known = _PHASES.get(_kind_of(live))
    return _phase(live, known) in known.ready if known else None


def is_current(live: Object, *, is_silent: bool) -> bool:
    """Return whether a live child is ready where the Composition does not say when it is.

    Without conditions a status is current by kstatus, unless we know its operator's phases, and that of a child whose
    operator wrote none yet has none.
    """
    if deleting(live) or is_silent:
        return False
    by_phase = is_ready(live)
    return kstatus(live) == "Current" if by_phase is None else by_phase


def is_usable(live: Object) -> bool:
    """Return whether an object's phase says that it works as it did, although it is not as its spec says."""
    known = _PHASES.get(_kind_of(live))
    return known is not None and _phase(live, known) in known.ready | known.usable


def phase_of(live: Object) -> str:
    """Return an object's phase; empty where there is none, or we know no phases of its kind."""
    known = _PHASES.get(_kind_of(live))
    return _phase(live, known) if known else ""


def _kind_of(live: Object) -> tuple[str, str]:
    return str(live.get("apiVersion", "")).rpartition("/")[0], str(live.get("kind", ""))


def _phase(live: Object, known: _Phases) -> str:
    return str(status_of(live).get(known.field) or "")
