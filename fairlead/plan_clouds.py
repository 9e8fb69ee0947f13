"""What edits of managed resources do in their clouds, by the provider's own decision on what it observed last.

The provider's models and rules are imported as data: nothing is asked of a cloud. What only the account knows (limits,
what others changed since the last look) is not foreseen.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final, Literal, TypeAlias

import msgspec

from providers.external.config import refuse_namespace
from providers.external.observation import Change, Class, Queue, describe
from providers.external.provider import Kind, Provider, decode_config
from providers.managed.decisions.decide_update import INTERRUPTING
from providers.managed.decisions.foresee import Foresight, foresee
from providers.managed.decisions.plan import Refuse, Rest, Update, Wait
from providers.managed.record import InvalidSpec, envelope_of
from runtime.conditions import timestamp
from runtime.objects import Object, Resource, key_of, labels_of, status_of

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
LEAVES_THE_QUEUE: Final = "it is so, and what waits in the cloud's queue is taken out of it"
_UNOBSERVED: Final = "its provider has not said yet what it observed (status.observed)"


class CloudChange(msgspec.Struct, frozen=True):
    """One field in the cloud: what it is, what it would be, and how it gets there.

    `why` is the cloud's or the provider's sentence, the whole command of a consent among them; `at` when the
    maintenance window opens, RFC 3339. `interrupts`: it ends sessions, whenever it is made; `outage`: for how long, as
    far as the cloud says. `drift`: it differs already without the edit.
    """

    effect: Effect
    path: str = ""
    now: str = ""
    then: str = ""
    why: str = ""
    at: str = ""
    interrupts: bool = False
    outage: str = ""
    drift: bool = False

    def __str__(self) -> str:
        field = f"{self.path}: {self.now} → {self.then}: " if self.path else ""
        when = f" at {self.at}" if self.at else ""
        kind = " (restarts)" if self.interrupts and self.effect not in ("restarts", "locks out", "loses data") else ""
        away = f", away for {self.outage}" if self.outage else ""
        drift = ", as drift that is there already" if self.drift else ""
        why = f": {self.why}" if self.why else ""
        return f"{field}{self.effect}{when}{kind}{away}{drift}{why}"


@dataclass(frozen=True, slots=True)
class Clouds:
    """What the clouds' part of a plan reads beside the objects: the time, and ProviderConfigs by group and name.

    `names`: what children are called in their cloud, by kind and name. `home`: their namespace, None where it is not
    known. `unmade`: kind and name of what is not made yet.
    """

    now: datetime
    configs: Mapping[tuple[str, str], Object] = field(default_factory=dict)
    names: Mapping[tuple[str, str], str] = field(default_factory=dict)
    home: Object | None = None
    unmade: frozenset[tuple[str, str]] = frozenset()

    def not_allowed(self, resource: Resource, obj: Object) -> tuple[CloudChange, ...]:
        """Return that an object's namespace may not use its ProviderConfig, nothing where it may."""
        config = self.configs.get(config_place(resource.group, obj))
        if config is None or self.home is None:
            return ()
        refusal = refuse_namespace(config, key_of(self.home).name, labels_of(self.home))
        return (CloudChange("refused", why=f"{refusal}; nothing is looked at or changed"),) if refusal else ()

    def config_of(self, resource: Resource, obj: Object) -> Any:
        """Return the spec of an object's ProviderConfig as its provider reads it, None where that is not known."""
        provider, config = provider_of(resource.group), self.configs.get(config_place(resource.group, obj))
        if provider is None or config is None:
            return None
        try:
            return decode_config(provider, config.get("spec") or {})
        except msgspec.ValidationError:
            return None


def config_place(group: str, obj: Object) -> tuple[str, str]:
    """Return group and name of the ProviderConfig that serves a managed resource."""
    reference = (obj.get("spec") or {}).get("providerConfigRef") or {}
    return group, str(reference.get("name") or "default")


def provider_of(group: str) -> Provider[Any] | None:
    """Return the provider of an API group, None for another project's, and where its cloud's SDK is not installed."""
    cloud = group.removesuffix(_SUFFIX)
    if group == cloud or cloud not in CLOUDS:
        return None
    try:
        provider: Provider[Any] = importlib.import_module(f"providers.{cloud}").PROVIDER
    except ModuleNotFoundError:
        return None
    return provider


def kind_of(resource: Resource) -> Kind[Any, Any] | None:
    """Return the managed kind of a resource, None for another project's."""
    provider = provider_of(resource.group)
    kinds = () if provider is None else provider.kinds
    return next((kind for kind in kinds if kind.resource.kind == resource.kind), None)


def cloud_creation(resource: Resource, obj: Object, clouds: Clouds) -> tuple[CloudChange, ...]:
    """Return why a managed resource that is to be made would not be, nothing where it would."""
    kind, config = kind_of(resource), clouds.config_of(resource, obj)
    if kind is None or config is None:
        return ()
    if not_allowed := clouds.not_allowed(resource, obj):
        return not_allowed
    try:
        refusal = kind.refusal(envelope_of(obj, kind.spec_type).for_provider, config, {})
    except InvalidSpec as error:
        return (CloudChange("refused", why=error.message),)
    return () if refusal is None else (CloudChange("refused", why=f"{refusal[1]} [{refusal[0]}]"),)


def cloud_changes(resource: Resource, live: Object, edited: Object, clouds: Clouds) -> tuple[CloudChange, ...]:
    """Return what an edit of a managed resource does in its cloud, and what differs there without it."""
    kind, config = kind_of(resource), clouds.config_of(resource, edited)
    if kind is None:
        return ()
    if not_allowed := clouds.not_allowed(resource, edited):
        return not_allowed
    try:
        foresight = foresee(kind, edited, clouds.now, config, _resolved(kind, live, edited, clouds.names))
    except InvalidSpec as error:
        return (CloudChange("refused", why=error.message),)
    if foresight is None:
        return (CloudChange("not known", why=_UNOBSERVED),)
    present = foresee(kind, live, clouds.now, config)
    differing = {(change.shown, change.want) for change in present.changes} if present else set()
    return tuple(
        msgspec.structs.replace(change, drift=(change.path, want) in differing) for change, want in _changes(foresight)
    )


def _resolved(
    kind: Kind[Any, Any], live: Object, edited: Object, known: Mapping[tuple[str, str], str]
) -> dict[str, str]:
    """Return what references resolve to after an edit: of an object to be made, to what it is called here."""
    resolved = dict(status_of(live).get("resolved") or {})
    for reference in kind.references:
        before, after = (
            ((obj.get("spec") or {}).get("forProvider") or {}).get(f"{reference.shown}Ref") for obj in (live, edited)
        )
        if after and after != before:
            place = (reference.resource.kind, str(after.get("name")))
            resolved[reference.shown] = known.get(place) or f"({place[0]} {place[1]})"
    return resolved


def _changes(foresight: Foresight) -> Iterator[tuple[CloudChange, object]]:
    plan = foresight.plan
    cause = plan.held if isinstance(plan, Update) else plan
    if isinstance(plan, Update):
        for change in plan.changes:
            leaves = LEAVES_THE_QUEUE if change.queue is Queue.CANCEL else ""
            yield _of(change, _NOW[change.kind], foresight, why=leaves or _busy(foresight)), change.want
        for change in plan.queued:
            yield _of(change, "in the window", foresight, at=_window(foresight)), change.want
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
        return _of(change, "waits" if change.veto[0] == "CloudBusy" else "refused", foresight, why=change.veto[1])
    if change.kind is Class.LOSS and isinstance(cause, Refuse):
        return _of(change, "waits for consent", foresight, why=cause.message)
    if cause.reason in {"WaitingForWindow", "DriftHeld"} or (isinstance(cause, Refuse) and change.kind in INTERRUPTING):
        return _of(change, "in the window", foresight, at=_window(foresight))
    return _of(change, "refused" if isinstance(cause, Refuse) else "waits", foresight, why=cause.message)


def _of(change: Change, effect: Effect, foresight: Foresight, *, why: str = "", at: str = "") -> CloudChange:
    return CloudChange(
        effect,
        change.shown,
        describe(change.have),
        describe(change.want),
        why,
        at,
        change.kind in INTERRUPTING,
        foresight.outages.get(change.path, "") if effect != "refused" else "",
    )


def _window(foresight: Foresight) -> str:
    return "" if foresight.window_at is None else timestamp(foresight.window_at)


def _busy(foresight: Foresight) -> str:
    return f"after what the cloud is at work on ({foresight.state})" if foresight.state else ""
