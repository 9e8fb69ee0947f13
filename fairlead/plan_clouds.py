"""What edits of managed resources do in their clouds, by the provider's own decision on what it observed last.

The provider's models and rules are imported as data: nothing is asked of a cloud. What only the account knows (limits,
what others changed since the last look) is not foreseen.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any, Final, Literal, TypeAlias

import msgspec

from providers.external.observation import Change, Class, describe
from providers.external.provider import Kind, Provider
from providers.managed.decisions.decide_update import INTERRUPTING
from providers.managed.decisions.foresee import Foresight, foresee
from providers.managed.decisions.plan import Refuse, Rest, Update, Wait
from providers.managed.record import InvalidSpec
from runtime.conditions import timestamp
from runtime.objects import Object

Effect: TypeAlias = Literal[
    "in place", "restarts", "locks out", "loses data", "in the window", "waits", "waits for consent", "refused",
    "not known",
]  # fmt: skip
CLOUDS: Final = ("aws", "azure", "gcp", "onprem")
_SUFFIX: Final = ".fairlead.dev"
_NOW: Final[Mapping[Class, Effect]] = {
    Class.ONLINE: "in place",
    Class.RESTART: "restarts",
    Class.LOCKOUT: "locks out",
    Class.LOSS: "loses data",
}
_UNOBSERVED: Final = "its provider has not said yet what it observed (status.observed)"


class CloudChange(msgspec.Struct, frozen=True):
    """One field in the cloud: what it is, what it would be, and how it gets there.

    `why` is the cloud's or the provider's sentence, the whole command of a consent among them; `at` when the
    maintenance window opens, RFC 3339. `interrupts`: it ends sessions, whenever it is made. `drift`: it differs already
    without the edit.
    """

    effect: Effect
    path: str = ""
    now: str = ""
    then: str = ""
    why: str = ""
    at: str = ""
    interrupts: bool = False
    drift: bool = False

    def __str__(self) -> str:
        field = f"{self.path}: {self.now} → {self.then}: " if self.path else ""
        when = f" at {self.at}" if self.at else ""
        kind = " (restarts)" if self.interrupts and self.effect not in ("restarts", "locks out", "loses data") else ""
        drift = ", as drift that is there already" if self.drift else ""
        why = f": {self.why}" if self.why else ""
        return f"{field}{self.effect}{when}{kind}{drift}{why}"


def kind_of(group: str, kind: str) -> Kind[Any, Any] | None:
    """Return the managed kind of a group and kind, None for another project's."""
    cloud = group.removesuffix(_SUFFIX)
    if group == cloud or cloud not in CLOUDS:
        return None
    provider: Provider[Any] = importlib.import_module(f"providers.{cloud}").PROVIDER
    return next((known for known in provider.kinds if known.resource.kind == kind), None)


def cloud_changes(kind: Kind[Any, Any], live: Object, edited: Object, now: datetime) -> tuple[CloudChange, ...]:
    """Return what an edit of a managed resource does in its cloud, and what differs there without it."""
    try:
        foresight = foresee(kind, edited, now)
    except InvalidSpec as error:
        return (CloudChange("refused", why=error.message),)
    if foresight is None:
        return (CloudChange("not known", why=_UNOBSERVED),)
    present = foresee(kind, live, now)
    differing = {(change.shown, change.want) for change in present.changes} if present else set()
    return tuple(
        msgspec.structs.replace(change, drift=(change.path, want) in differing) for change, want in _changes(foresight)
    )


def _changes(foresight: Foresight) -> Iterator[tuple[CloudChange, object]]:
    plan = foresight.plan
    cause = plan.held if isinstance(plan, Update) else plan
    if isinstance(plan, Update):
        for change in plan.changes:
            yield _of(change, _NOW[change.kind], why=_busy(foresight)), change.want
        for change in plan.queued:
            yield _of(change, "in the window", at=_window(foresight)), change.want
    if isinstance(cause, Rest | Refuse | Wait):
        sent = {change.path for change in (*plan.changes, *plan.queued)} if isinstance(plan, Update) else set()
        for change in cause.held:
            if change.path not in sent:
                yield _held(change, cause, foresight), change.want
        if not cause.held:
            yield CloudChange("waits" if not isinstance(cause, Refuse) else "refused", why=cause.message), None


def _held(change: Change, cause: Rest | Refuse | Wait, foresight: Foresight) -> CloudChange:
    """Return how a change goes on that is not sent with the others; what holds one does not hold each."""
    if change.veto is not None:
        return _of(change, "waits" if change.veto[0] == "CloudBusy" else "refused", why=change.veto[1])
    if change.kind is Class.LOSS and isinstance(cause, Refuse):
        return _of(change, "waits for consent", why=cause.message)
    if cause.reason in {"WaitingForWindow", "DriftHeld"} or (isinstance(cause, Refuse) and change.kind in INTERRUPTING):
        return _of(change, "in the window", at=_window(foresight))
    return _of(change, "refused" if isinstance(cause, Refuse) else "waits", why=cause.message)


def _of(change: Change, effect: Effect, *, why: str = "", at: str = "") -> CloudChange:
    return CloudChange(
        effect, change.shown, describe(change.have), describe(change.want), why, at, change.kind in INTERRUPTING
    )


def _window(foresight: Foresight) -> str:
    return "" if foresight.window_at is None else timestamp(foresight.window_at)


def _busy(foresight: Foresight) -> str:
    return f"after what the cloud is at work on ({foresight.state})" if foresight.state else ""
