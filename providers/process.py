"""Puts a provider's process together: informers, accounts, controllers."""

from __future__ import annotations

import base64
import importlib
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial
from typing import Any

from apis.metrics import OBJECTS
from apis.traces import subject_of
from providers.accounts.connections import Accounts
from providers.accounts.limits import BY_CONFIG, Limiter, config_of
from providers.accounts.lister import Lister
from providers.accounts.probe import Prober
from providers.accounts.rare_reads import RareReads
from providers.accounts.reconciler import ConfigReconciler
from providers.accounts.reconciler import Dependencies as ConfigDependencies
from providers.external.provider import Intervals, Kind, Provider
from providers.managed.act import Executor
from providers.managed.drift import BY_DRIFT, drifting, watch_age
from providers.managed.gather import Gatherer
from providers.managed.reconciler import Dependencies, Reconciler
from providers.managed.references import containers, referred
from providers.managed.writes import Writer
from providers.settings import Settings
from runtime import clock, randomness
from runtime.cache import Informer
from runtime.changes import Change
from runtime.controller import Controller, ControllerSettings, Source
from runtime.errors import Failure, NotFound
from runtime.kube import Kube, Selection
from runtime.lease import LeaseSettings
from runtime.objects import CONFIG_MAPS, NAMESPACES, SECRETS, Key, Object, Resource, key_of, uid_of
from runtime.queue_state import Priority, QueueSettings
from runtime.ready import Grouping
from runtime.serve import Build, ProcessContext
from runtime.store import Store

HASH_KEY = "fairlead-hash-key"

_HASH_KEY_BYTES = 32

_SYSTEM = "fairlead-system"
# One ProviderConfig has half of them at most; each waits nearly all the time for a server or a cloud.
_WORKERS = 32
_INSTALLATION = Key(_SYSTEM, "fairlead-installation")
BY_NAMESPACE = "namespace"
BY_REFERENCE = "reference"


@dataclass(frozen=True, slots=True)
class Times:
    """How often and for how long, from the command line."""

    resync: timedelta
    sweep: timedelta
    grace: timedelta
    call_budget: timedelta
    skew: timedelta
    rotation_grace: timedelta
    settle: timedelta


def times_of(seconds: Mapping[str, timedelta], intervals: Intervals) -> Times:
    """Return how often and for how long: by the command line's `seconds`, else by the cloud's own intervals."""
    # With the default lease 20 s and 5 s: who takes over from a killed process waits in proportion to its lease.
    share = min(1.0, seconds["lease_duration"] / LeaseSettings().duration)
    return Times(
        resync=seconds.get("resync", intervals.resync),
        sweep=seconds.get("sweep", intervals.sweep),
        grace=seconds["grace"],
        call_budget=seconds.get("call_budget", share * timedelta(seconds=20)),
        skew=share * timedelta(seconds=5),
        rotation_grace=seconds["rotation_grace"],
        settle=seconds.get("settle", intervals.settle),
    )


def build_for(provider: Provider[Any], times: Times, *, endpoints: tuple[str, ...] = ()) -> Build:
    """Return what runtime.serve calls once it is connected."""

    async def build(context: ProcessContext) -> Sequence[Controller]:
        settings = replace(await _settings(context, provider, times), endpoints=endpoints)
        return _controllers(context, provider, settings)

    return build


async def _settings(context: ProcessContext, provider: Provider[Any], times: Times) -> Settings:
    manager = f"fairlead.dev/provider-{provider.cloud}"
    namespace = context.settings.namespace
    installation, takeover = await _installation(context.kube)
    return Settings(
        installation=installation,
        process=context.identity,
        namespace=namespace,
        manager=manager,
        hash_key=await hash_key(context.kube, namespace, manager=manager),
        takeover=takeover,
        grace=times.grace,
        call_budget=times.call_budget,
        skew=times.skew,
        rotation_grace=times.rotation_grace,
        settle=times.settle,
        sweep=times.sweep,
        resync=times.resync,
        now=clock.now,
        monotonic=clock.monotonic,
    )


async def _installation(kube: Kube) -> tuple[str, str]:
    """Return the installation's id, and why nothing may be changed when this is not the cluster it was made in."""
    override = os.environ.get("FAIRLEAD_INSTALLATION", "")
    try:
        data: dict[str, str] = (await kube.get(CONFIG_MAPS, _INSTALLATION)).get("data") or {}
    except NotFound:
        if override:
            return override, ""
        raise NotFound(
            f"ConfigMap {_INSTALLATION} with the installation's id does not exist; install Fairlead, or set"
            " FAIRLEAD_INSTALLATION"
        ) from None
    recorded = data.get("clusterUid", "")
    actual = uid_of(await kube.get(NAMESPACES, Key("", "kube-system"), metadata_only=True))
    takeover = ""
    if recorded and recorded != actual:
        takeover = (
            "another cluster is recorded as this installation's; databases are only read. When Fairlead runs there no"
            f" longer: fairlead takeover --from-cluster {recorded} (or set clusterUid of ConfigMap {_INSTALLATION} to"
            f" {actual} and restart this process)"
        )
    return override or data.get("id", ""), takeover


@dataclass(frozen=True, slots=True)
class _Kind:
    """One kind: its resources, its limits, its controllers."""

    resources: Informer
    limiter: Limiter
    controller: Controller
    lister: Controller

    def enqueue(self, key: Key) -> None:
        """Enqueue one resource."""
        self.controller.enqueue(key, priority=Priority.NORMAL)

    def is_used(self, config: str) -> bool:
        """Return whether a resource of this kind uses a ProviderConfig."""
        return bool(self.resources.store.by_index(BY_CONFIG, config))

    def enqueue_users(self, config: str) -> None:
        """Enqueue every resource of a ProviderConfig."""
        for key in self.resources.store.by_index(BY_CONFIG, config):
            self.enqueue(key)


def _controllers(context: ProcessContext, provider: Provider[Any], settings: Settings) -> list[Controller]:
    accounts: Accounts[Any, Any] = Accounts(provider, context.cache, settings.namespace, endpoints=settings.endpoints)
    rare = _rare_reads(provider, settings)
    kinds = [
        _kind(context, kind, accounts.of(kind), settings, rare if kind.inside else None) for kind in provider.kinds
    ]

    def enqueue_users(config: str) -> None:
        for kind in kinds:
            kind.enqueue_users(config)

    limiters = tuple(kind.limiter for kind in kinds)
    config_controller = Controller(
        f"{provider.cloud}-{provider.config_resource.plural}",
        ConfigReconciler(
            provider, context.kube, accounts, settings, ConfigDependencies(limiters, context.events, enqueue_users)
        ),
        settings=ControllerSettings(workers=2, resync=settings.resync),
    )
    _connect(config_controller, [kind.lister for kind in kinds], accounts, provider)
    for kind in kinds:
        config_controller.source(Source(kind.resources, keys=_its_config, urgent=_never))

    def enqueue(config: str) -> None:
        enqueue_users(config)
        config_controller.enqueue(Key("", config))

    probers = [] if provider.probe is None else [_prober(provider, accounts, kinds, enqueue)]
    return [*(kind.controller for kind in kinds), config_controller, *(kind.lister for kind in kinds), *probers]


def _rare_reads(provider: Provider[Any], settings: Settings) -> RareReads | None:
    longest = provider.intervals.unlisted
    return None if longest is None else RareReads(provider.rate.reads_per_second, settings.resync, longest)


def _prober(
    provider: Provider[Any], accounts: Accounts[Any, Any], kinds: list[_Kind], enqueue: Callable[[str], None]
) -> Controller:
    """Return the controller that probes the servers of ProviderConfigs in use; a hung one takes one worker of many."""

    def is_used(config: str) -> bool:
        return any(kind.is_used(config) for kind in kinds)

    by_plural = {kind.resources.resource.plural: kind for kind in kinds}

    def enqueue_resource(plural: str, key: Key) -> None:
        by_plural[plural].enqueue(key)

    prober = Controller(
        f"{provider.cloud}-probe",
        Prober(accounts, is_used, enqueue, enqueue_resource),
        settings=ControllerSettings(workers=32),
    )
    prober.source(Source(accounts.configs, keys=_edited(lambda change: (change.key,)), urgent=_never))
    return prober


def _kind(
    context: ProcessContext,
    kind: Kind[Any, Any],
    accounts: Accounts[Any, Any],
    settings: Settings,
    rare: RareReads | None,
) -> _Kind:
    """Return one kind; with `rare` that says when each of its resources is read again."""
    cache, kube = context.cache, context.kube
    indexes = {BY_CONFIG: config_of, BY_NAMESPACE: _namespace, BY_DRIFT: drifting}
    resources = cache.informer(kind.resource, indexes=indexes)
    resources.store.add_index(BY_REFERENCE, partial(referred, kind))
    watch_age(resources.store, settings.now)
    OBJECTS.add(resources.store)
    gatherer: Gatherer[Any, Any] = Gatherer(kind, kube, accounts, settings, cache)
    writer: Writer[Any, Any] = Writer(kind, kube, settings, resources.store, _leads(context))
    executor: Executor[Any, Any] = Executor(kind, kube, writer)
    dependencies = Dependencies(resources.store, context.events, gatherer, executor)
    controller = Controller(
        kind.resource.plural,
        Reconciler(kind, kube, accounts, settings, dependencies),
        settings=controller_settings(
            resources.store, settings.resync, None if rare is None else rare.of(resources.store)
        ),
    )

    def enqueue(key: Key) -> None:
        controller.enqueue(key, priority=Priority.NORMAL)

    lister = Controller(
        f"{kind.resource.plural}-sweep",
        Lister(accounts, resources, enqueue, gatherer.answers, gatherer.limiter),
        settings=ControllerSettings(workers=2),
    )

    def enqueue_list(config: str, after: timedelta) -> None:
        lister.enqueue(Key("", config), after=after)

    gatherer.answers.enqueue_list = enqueue_list
    namespaces = cache.informer(NAMESPACES, selection=Selection(metadata_only=True))
    controller.source(Source(resources, primary=True))
    controller.source(Source(namespaces, keys=_by_index(resources, BY_NAMESPACE), urgent=_never))
    controller.source(Source(accounts.configs, keys=_edited(_by_index(resources, BY_CONFIG)), urgent=_never))
    for reference in kind.references:
        # What they refer to becomes Ready by this very process's own report.
        referring = _referring(resources, reference.resource)
        controller.source(Source(cache.informer(reference.resource), keys=referring, urgent=_never, echoes=True))
    for inner in kind.contents:
        # What is inside waits, by this very process's own report, for what is done about the whole.
        containing = partial(containers, inner, kind.resource)
        controller.source(Source(cache.informer(inner.resource), keys=containing, urgent=_never, echoes=True))
    return _Kind(resources, gatherer.limiter, controller, lister)


def controller_settings(
    resources: Store, resync: timedelta, pause: Callable[[Key], timedelta] | None = None
) -> ControllerSettings:
    """Return how the resources of a kind are reconciled; `resources` has the index BY_CONFIG.

    `pause` chooses when each is looked at again, without it that is `resync`.

    At most half of the workers are in passes of one ProviderConfig: a server that hangs delays its own resources.
    """

    def config_name(key: Key) -> str:
        return next(iter(resources.indexed(BY_CONFIG, key)), "")

    return ControllerSettings(
        workers=_WORKERS,
        resync=resync,
        resync_of=pause,
        slow_poll=min(resync, timedelta(minutes=5)),
        queue=QueueSettings(grouping=Grouping(config_name, _WORKERS // 2)),
        subject=subject_of,
    )


def _connect(
    config_controller: Controller,
    listers: list[Controller],
    accounts: Accounts[Any, Any],
    provider: Provider[Any],
) -> None:
    def users_of_secret(change: Change) -> Iterable[Key]:
        for key in tuple(accounts.configs.store.keys()):
            with suppress(Failure):
                if change.key.name in provider.secrets(accounts.config(key.name)):
                    yield key

    config_controller.source(Source(accounts.configs, primary=True))
    config_controller.source(Source(accounts.secrets, keys=users_of_secret))
    for lister in listers:
        lister.source(Source(accounts.configs, keys=_edited(lambda change: (change.key,)), urgent=_never))


def _leads(context: ProcessContext) -> Callable[[], Callable[[timedelta], bool]]:
    """Bind a fence to the leadership under which its pass runs: a later one does not reopen it."""

    def bind() -> Callable[[timedelta], bool]:
        if not context.settings.elect:
            return lambda _budget: True
        leadership = context.leadership
        return lambda budget: leadership is not None and leadership.holds(budget)

    return bind


def _by_index(resources: Any, index: str) -> Callable[[Change], Iterable[Key]]:
    return lambda change: tuple(resources.store.by_index(index, change.key.name))


def _referring(resources: Informer, referred_to: Resource) -> Callable[[Change], Iterable[Key]]:
    return lambda change: tuple(
        resources.store.by_index(BY_REFERENCE, f"{referred_to.kind}/{change.key.namespace}/{change.key.name}")
    )


def _edited(keys: Callable[[Change], Iterable[Key]]) -> Callable[[Change], Iterable[Key]]:
    return lambda change: keys(change) if change.intent else ()


def _never(_change: Change) -> bool:
    return False


def _namespace(obj: Object) -> tuple[str, ...]:
    return (key_of(obj).namespace,)


def _its_config(change: Change) -> Iterable[Key]:
    """A first or a last user changes whether a ProviderConfig is in use."""
    if not change.intent:
        return ()
    obj = change.new() or change.old()
    return () if obj is None else (Key("", config_of(obj)[0]),)


async def hash_key(kube: Kube, namespace: str, *, manager: str) -> bytes:
    """Return the key of the HMACs, made once in the provider's own namespace."""
    key = Key(namespace, HASH_KEY)
    try:
        secret = await kube.get(SECRETS, key)
    except NotFound:
        made = base64.b64encode(randomness.token_bytes(_HASH_KEY_BYTES)).decode()
        body: Object = {
            "apiVersion": "v1",
            "kind": "Secret",
            "type": "Opaque",
            "metadata": {"name": key.name, "namespace": key.namespace},
            "data": {"key": made},
        }
        secret = await kube.create(SECRETS, body, manager=manager)
    return base64.b64decode(secret["data"]["key"])


def provider_of(cloud: str) -> Provider[Any]:
    """Return what a cloud's package exports; raises SystemExit with a sentence for an unknown one."""
    try:
        module = importlib.import_module(f"providers.{cloud}")
    except ModuleNotFoundError as error:
        raise SystemExit(f"no provider {cloud!r} is installed ({error})") from None
    provider: Provider[Any] = module.PROVIDER
    return provider
