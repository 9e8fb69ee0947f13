"""Which very database it is: `<oid>-<random of its ownership row>`. Pure.

An oid alone identifies nothing: a server that was restored from a backup hands the same ones out again. Records of
before the random was kept hold the bare oid; they stay valid and are written anew once.
"""

from __future__ import annotations

from providers.onprem.facts import Row


def incarnation_of(oid: str, row: Row | None, recorded: str) -> str:
    """Return the incarnation of the database with this oid.

    Where its row was lost, the one that was recorded for this oid; a database that no row of ours describes has its
    oid alone.
    """
    if row is not None and row.state != "retired" and row.oid in {None, oid}:
        return f"{oid}-{row.incarnation}" if row.incarnation else oid
    return recorded if row is None and oid_of(recorded) == oid else oid


def finished_before(row: Row | None, recorded: str) -> str:
    """Return the incarnation of the finished database that the row describes, empty where that is recorded already."""
    if row is None or row.state != "ready" or row.oid is None:
        return ""
    known = incarnation_of(row.oid, row, "")
    return "" if recorded in {known, *earlier_ids(known)} else known


def earlier_ids(incarnation: str) -> tuple[str, ...]:
    """Return under what else this very database may be recorded: the bare oid."""
    oid = oid_of(incarnation)
    return () if oid == incarnation else (oid,)


def oid_of(incarnation: str) -> str:
    """Return the oid in an incarnation, empty where there is none."""
    return incarnation.partition("-")[0]


def random_of(incarnation: str) -> str:
    """Return the random in an incarnation, empty where there is none."""
    return incarnation.partition("-")[2]
