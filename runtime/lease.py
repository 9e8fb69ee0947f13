"""What a Lease says, and what follows from it. Pure: instants are seconds of a monotonic clock.

Source: KEP-589 and client-go's leaderelection; unlike those, no wall clock is ever compared.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from runtime.objects import LEASES, Key, Object, uid_of, version_of


@dataclass(frozen=True, slots=True)
class LeaseSettings:
    """How often a leader renews, when it stops, and when it is replaced.

    It renews every `retry`, starts no call `renew_deadline` after its last renewal, is replaced `duration` after it.
    """

    duration: timedelta = timedelta(seconds=12)
    renew_deadline: timedelta = timedelta(seconds=8)
    retry: timedelta = timedelta(seconds=2)

    def __post_init__(self) -> None:
        if not timedelta() < self.retry < self.renew_deadline < self.duration:
            raise ValueError("a lease needs 0 < retry < renew_deadline < duration")


@dataclass(frozen=True, slots=True)
class Observation:
    """A Lease as we saw it, and since when it has looked like this to us."""

    holder: str
    duration: timedelta
    transitions: int
    version: str
    since: float

    def expires_at(self) -> float:
        """Return when its holder must have stopped: its whole duration after we first saw its last renewal."""
        return self.since + self.duration.total_seconds()


ABSENT_VERSION = ""


def observe(lease: Object | None, before: Observation | None, settings: LeaseSettings, at: float) -> Observation:
    """Fold what was just read into what was known.

    A Lease that looks as before keeps its age. One that vanished while held keeps its holder for one more duration:
    the holder does not know yet.
    """
    if lease is None:
        if before is None:
            return Observation("", settings.duration, 0, ABSENT_VERSION, at)
        if before.version == ABSENT_VERSION:
            return before
        return replace(before, version=ABSENT_VERSION, since=at)
    version = version_of(lease)
    if before is not None and before.version == version:
        return before
    spec = lease.get("spec") or {}
    seconds = spec.get("leaseDurationSeconds") or settings.duration.total_seconds()
    return Observation(
        holder=str(spec.get("holderIdentity") or ""),
        duration=timedelta(seconds=seconds),
        transitions=int(spec.get("leaseTransitions") or 0),
        version=version,
        since=at,
    )


def may_take(seen: Observation, identity: str, at: float) -> bool:
    """Return whether `identity` may claim the Lease now: it is free, ours already, or its holder must have stopped."""
    return seen.holder in ("", identity) or at >= seen.expires_at()


def claimed(lease: Object | None, key: Key, identity: str, settings: LeaseSettings, now: datetime) -> Object:
    """Return the Lease to write so that `identity` holds it; `now` is for people to read only."""
    spec = dict((lease or {}).get("spec") or {})
    changes = spec.get("holderIdentity") != identity
    return {
        "apiVersion": LEASES.api_version,
        "kind": LEASES.kind,
        "metadata": _identified(lease, key),
        "spec": spec
        | {
            "holderIdentity": identity,
            # Whole seconds only: rounded up, so that nobody takes it early.
            "leaseDurationSeconds": -(-settings.duration // timedelta(seconds=1)),
            "acquireTime": _micro_time(now) if changes else spec.get("acquireTime", _micro_time(now)),
            "renewTime": _micro_time(now),
            "leaseTransitions": int(spec.get("leaseTransitions") or 0) + (1 if changes and lease else 0),
        },
    }


def released(lease: Object, key: Key, now: datetime) -> Object:
    """Return the Lease to write so that anybody may take it at once."""
    spec = {**lease.get("spec", {}), "holderIdentity": "", "leaseDurationSeconds": 1, "renewTime": _micro_time(now)}
    return {
        "apiVersion": LEASES.api_version,
        "kind": LEASES.kind,
        "metadata": _identified(lease, key),
        "spec": spec,
    }


def _identified(lease: Object | None, key: Key) -> Object:
    named: Object = {"name": key.name, "namespace": key.namespace}
    if lease is None:
        return named
    # A PUT keeps what others wrote on the Lease, and fails when it is not the one we read.
    kept = {name: value for name, value in lease["metadata"].items() if name in ("labels", "annotations")}
    return named | kept | {"uid": uid_of(lease), "resourceVersion": version_of(lease)}


def _micro_time(now: datetime) -> str:
    return now.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
