"""The one name that a cloud exports: what it is, and how to connect to an account of it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Generic, TypeVar

import msgspec

from apis.teardown import Policy
from providers.external.client import Cloud, Target
from providers.external.observation import Change, Observed, SpecT
from providers.external.ownership import Identity
from providers.external.spec import Envelope
from runtime.objects import Object, Resource

ConfigT = TypeVar("ConfigT", bound=msgspec.Struct)


@dataclass(frozen=True, slots=True)
class Rate:
    """How many calls to one account may begin within a second, over all workers."""

    reads_per_second: float = 20.0
    writes_per_second: float = 5.0


@dataclass(frozen=True, slots=True)
class Reference:
    """A field that names another managed resource of the namespace; both by their names in the model.

    `into` is left to the reference when it is unset; `shown` is its name in `status.resolved`.
    """

    field: str
    into: str
    shown: str
    resource: Resource


@dataclass(frozen=True, slots=True)
class Provider(Generic[SpecT, ConfigT]):
    """The one name that a cloud exports: its kinds, its models, its pure rules and how to connect.

    `secrets` names the Secrets of the provider's own namespace that a ProviderConfig needs; `connect` gets
    their data, and the account that was recorded (empty at first): another one is refused before anything is written.
    `external_name` makes the name by rule from spec, identity and the ProviderConfig's namePrefix.
    `hash_of` finds the hash that an external name by rule carries, empty for any other name.
    `guarded` are the differences from what the provider keeps true whatever the spec says.
    `endpoint_of` is the URL that a ProviderConfig names instead of the cloud's own, empty for none.
    `view` makes this kind's Cloud of what `connect` yields, and `beside` are further kinds that share connection,
    ProviderConfigs and budgets. A `slow` cloud carries changes out after its answer and
    may not show them at once. `born_with_login` tells whether a create sets the published password, which a
    restore does not. `administrator` is the login that the cloud makes, where it may have been published before there
    were two; empty where that never is. `references` are fields that name another managed resource, each with the
    field that takes what it resolves to. `shows_passwords` tells whether a version of `login_versions` changes with a
    password that anybody sets; where it does not, logins are proven anew at each resync. A kind that is not
    `stateful` has no password and no backup, and is made again when it is lost. `probe`, where the account is the
    server that holds the databases, tries a login there with what `connect` yielded and raises ServerUnreachable; it is
    called every few seconds, once for each ProviderConfig in use.
    """

    cloud: str
    resource: Resource
    config_resource: Resource
    spec_type: type[Envelope]
    config_type: type[ConfigT]
    translator: int
    policies: frozenset[Policy]
    external_name: Callable[[SpecT, Identity, str], str]
    hash_of: Callable[[SpecT, str], str]
    logins: Callable[[Target[SpecT]], tuple[str, str]]
    guarded: Callable[[Target[SpecT], Observed[SpecT]], tuple[Change, ...]]
    classify: Callable[[Change, Observed[SpecT]], Change]
    login_versions: Callable[[Observed[SpecT]], Mapping[str, str]]
    secrets: Callable[[ConfigT], tuple[str, ...]]
    connect: Callable[[ConfigT, Mapping[str, Mapping[str, str]], str], AbstractAsyncContextManager[Any]]
    rate: Rate = Rate()
    window_open: Callable[[Observed[SpecT], datetime], bool] = lambda _seen, _now: False
    endpoint_of: Callable[[ConfigT], str] = lambda _config: ""
    view: Callable[[Any], Cloud[SpecT]] = lambda connected: connected
    beside: tuple[Provider[Any, ConfigT], ...] = ()
    slow: bool = False
    references: tuple[Reference, ...] = ()
    born_with_login: Callable[[Target[SpecT]], bool] = lambda _target: True
    administrator: Callable[[Target[SpecT]], str] = lambda _target: ""
    stateful: bool = True
    shows_passwords: bool = True
    probe: Callable[[Any], Awaitable[None]] | None = None


@dataclass(frozen=True, slots=True)
class Account(Generic[SpecT, ConfigT]):
    """A connected cloud: `id` is who it said it is, `changed` what to say when that is not who it was."""

    cloud: Cloud[SpecT]
    config: ConfigT
    config_object: Object
    id: str
    changed: str = ""

    @property
    def login_required(self) -> bool:
        """Whether a password counts only after a login: `loginCheck` of the ProviderConfig."""
        return (self.config_object.get("spec") or {}).get("loginCheck") == "Required"


def decode_config(provider: Provider[Any, ConfigT], spec: dict[str, Any]) -> ConfigT:
    """Read a ProviderConfig's spec; raises msgspec.ValidationError."""
    return msgspec.convert(spec, provider.config_type)
