"""Connections to clouds, one for each ProviderConfig, renewed when it or one of its Secrets changes."""

from __future__ import annotations

import asyncio
import copy
import functools
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any, Generic

import msgspec
import structlog

from apis.names import CONSENT
from providers.accounts import endpoints
from providers.accounts.rate_limit import AccountMeter, Budgets
from providers.accounts.turns import Turns
from providers.external.client import Clients
from providers.external.consent import consent_of
from providers.external.metering import Meter
from providers.external.observation import SpecT
from providers.external.provider import ConfigT, ConnectedAccount, Kind, Provider, RecordedAccount, decode_config
from runtime import clock, kubectl
from runtime.cache import Cache, Informer
from runtime.errors import Blocked, Failure, Terminal
from runtime.kube import Selection
from runtime.objects import SECRETS, Key, Object, Resource, annotations_of, key_of, status_of, uid_of
from runtime.secrets import decoded

_log = structlog.get_logger("providers.accounts.connections")

_AFTER_FAILURE = timedelta(seconds=5)
# Longer than any pass: whoever still uses a replaced connection has ended by then.
_CLOSE_AFTER = timedelta(minutes=3)


@dataclass(frozen=True, slots=True)
class _Connection:
    """What a cloud's `connect` yielded, the account's id, and the clients of each kind."""

    connected: Any
    id: str
    config: Any
    clients: dict[str, Clients[Any, Any]] = field(default_factory=dict)

    def of(self, kind: Kind[SpecT, Any]) -> Clients[SpecT, Any]:
        """Return the clients of one kind, made once."""
        plural = kind.resource.plural
        if plural not in self.clients:
            self.clients[plural] = kind.clients(self.connected)
        return self.clients[plural]


@dataclass(slots=True)
class _Entry:
    signature: tuple[str, ...]
    stack: AsyncExitStack = field(default_factory=AsyncExitStack)
    connection: _Connection | None = None
    failure: Failure | None = None
    failed_at: float = 0.0
    # Where the defect was that was logged last.
    defect: str = ""


class Accounts(Generic[SpecT, ConfigT]):
    """The connections of one process."""

    def __init__(
        self, provider: Provider[ConfigT], cache: Cache, namespace: str, *, endpoints: tuple[str, ...] = ()
    ) -> None:
        self._provider = provider
        self._kind: Kind[SpecT, Any] = provider.kinds[0]
        self._namespace = namespace
        self._endpoints = endpoints
        self.configs: Informer = cache.informer(provider.config_resource)
        self.secrets: Informer = cache.informer(SECRETS, selection=Selection(namespace=namespace))
        # Held by whoever reads and replaces the status of a ProviderConfig: it has two writers.
        self.status_lock = asyncio.Lock()
        self.turns = Turns()
        self._unreached: dict[str, set[tuple[str, Key]]] = {}
        self._answered: dict[str, set[tuple[str, Key]]] = {}
        self._budgets = Budgets(provider.rate)
        self._entries: dict[str, _Entry] = {}
        self._locks: dict[str, asyncio.Lock] = {}
        self._closing: set[asyncio.Task[None]] = set()

    def of(self, kind: Kind[Any, Any]) -> Accounts[Any, Any]:
        """Return the same connections for another kind of this cloud."""
        other = copy.copy(self)
        other._kind = kind  # noqa: SLF001 - of the copy that is being made
        return other

    def config_object(self, name: str) -> Object:
        """Return a ProviderConfig; raises Blocked ProviderConfigNotFound."""
        config = self.configs.store.get(Key("", name))
        if config is None:
            raise Blocked("ProviderConfigNotFound", f"there is no ProviderConfig {name} that this namespace may use")
        return config

    def config(self, name: str) -> ConfigT:
        """Return a ProviderConfig's spec; raises Failure."""
        config = self.config_object(name)
        try:
            return decode_config(self._provider, config.get("spec") or {})
        except msgspec.ValidationError as error:
            raise Terminal("InvalidValue", f"ProviderConfig {name}: {error}") from None

    async def connect(self, name: str) -> ConnectedAccount[SpecT, ConfigT]:
        """Return the connected account of a ProviderConfig; raises Failure.

        A failure is remembered for a few seconds, so that a thousand resources do not connect a thousand times.
        """
        config_object, config = self.config_object(name), self.config(name)
        lock = self._locks.setdefault(name, asyncio.Lock())
        entry, signature = self._entries.get(name), self._signature(config_object, config)
        if lock.locked() and entry is not None and entry.failure is not None and entry.signature == signature:
            # Another worker connects just now: what may hang takes one worker.
            raise entry.failure
        async with lock:
            entry = self._entries.get(name)
            if entry is None or entry.signature != signature:
                self._close(name)
                entry = self._entries[name] = _Entry(signature)
            if entry.connection is None:
                entry.connection = await self._open(entry, config, config_object)
            return self._account(entry.connection, config_object)

    async def probe(self, name: str) -> None:
        """Try a login at the server of a ProviderConfig, where its account is one; raises Failure."""
        await self.connect(name)
        entry, probe = self._entries.get(name), self._provider.probe
        if probe is not None and entry is not None and entry.connection is not None:
            try:
                await probe(entry.connection.connected)
            except (Failure, TimeoutError):
                raise
            except Exception as error:  # a defect of ours or of a library is reported on the ProviderConfig
                raise _defect(entry, name, error) from error

    def record_reach(self, name: str, key: Key, *, reached: bool, answered: bool) -> None:
        """Record whether the last look at a resource of this kind reached its server, and whether that answered."""
        unreached, resource = self._unreached.setdefault(name, set()), (self._kind.resource.plural, key)
        (unreached.discard if reached else unreached.add)(resource)
        if answered and name in self._answered:
            self._answered[name].add(resource)

    def take_unreached(self, name: str) -> set[tuple[str, Key]]:
        """Return the resources (plural, key) whose last look did not reach the server, and forget them."""
        return self._unreached.pop(name, set())

    def take_answered(self, name: str) -> set[tuple[str, Key]]:
        """Return the resources (plural, key) that the server answered about since this was called last.

        The first call returns none: they are remembered from then on, until `end_outage`.
        """
        answered, self._answered[name] = self._answered.get(name, set()), set()
        return answered

    def end_outage(self, name: str) -> None:
        """Remember no longer which resources the server answered about."""
        self._answered.pop(name, None)

    async def _open(self, entry: _Entry, config: ConfigT, config_object: Object) -> _Connection:
        if entry.failure is not None and clock.monotonic() - entry.failed_at < _AFTER_FAILURE.total_seconds():
            raise entry.failure
        stack, name = AsyncExitStack(), key_of(config_object).name
        meter = AccountMeter(self._provider.cloud, name, self._budgets.of_config(name))
        try:
            self._check_endpoint(config)
            connected = await self._connected(stack, config, config_object, meter)
            connection = _Connection(connected, "", config)
            connection = replace(connection, id=await connection.of(self._kind).account.whoami())
            meter.join(self._budgets.of_account(connection.id, self._provider.quota_of(config)))
        except BaseException as error:
            await stack.aclose()
            if not isinstance(error, Exception) or isinstance(error, TimeoutError):
                raise
            entry.failure = error if isinstance(error, Failure) else _defect(entry, name, error)
            entry.failed_at = clock.monotonic()
            if entry.failure is error:
                raise
            raise entry.failure from error
        entry.stack, entry.failure = stack, None
        return connection

    def _check_endpoint(self, config: ConfigT) -> None:
        if refusal := endpoints.refusal(self._provider.endpoint_of(config), self._endpoints):
            raise Terminal("EndpointNotAllowed", refusal)

    async def _connected(self, stack: AsyncExitStack, config: ConfigT, config_object: Object, meter: Meter) -> Any:
        """Connect to the recorded account, else to one that a person accepted in its place."""
        accept = functools.partial(accept_command, self._provider.config_resource, config_object)

        async def connected(account: str) -> Any:
            recorded = RecordedAccount(account, accept)
            connecting = self._provider.connect(config, self._secret_data(config), recorded, meter)
            return await stack.enter_async_context(connecting)

        try:
            return await connected(status_of(config_object).get("account", ""))
        except Terminal as failure:
            if failure.reason != "AccountChanged":
                raise
            for account in accepted_accounts(config_object):
                with suppress(Terminal):
                    return await connected(account)
            raise

    def _secret_data(self, config: ConfigT) -> dict[str, dict[str, str]]:
        data = {}
        for name in self._provider.secrets(config):
            secret = self.secrets.store.get(Key(self._namespace, name))
            if secret is None:
                raise Blocked("CredentialsMissing", f"there is no Secret {name} in namespace {self._namespace}")
            data[name] = decoded(secret)
        return data

    def _signature(self, config_object: Object, config: ConfigT) -> tuple[str, ...]:
        secrets = (self.secrets.store.version(Key(self._namespace, name)) for name in self._provider.secrets(config))
        generation = str(config_object["metadata"].get("generation", 0))
        versions = tuple(version or "" for version in secrets)
        return (uid_of(config_object), generation, *versions, *accepted_accounts(config_object))

    def _account(self, connection: _Connection, config_object: Object) -> ConnectedAccount[SpecT, ConfigT]:
        recorded = status_of(config_object).get("account", "")
        changed = ""
        if recorded and connection.id not in {recorded, *accepted_accounts(config_object)}:
            changed = (
                f"the credentials reach account {connection.id}, not {recorded} where the databases are; nothing is"
                " absent and nothing is changed until they reach it again"
            )
        return ConnectedAccount(connection.of(self._kind), connection.config, config_object, connection.id, changed)

    def forget(self, name: str) -> None:
        """Connect again at the next use."""
        self._close(name)

    def _close(self, name: str) -> None:
        entry = self._entries.pop(name, None)
        if entry is None or entry.connection is None:
            return
        task = asyncio.create_task(_close_later(entry.stack), name=f"close {name}")
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)

    @property
    def connected(self) -> dict[str, ConnectedAccount[SpecT, ConfigT]]:
        """Return the accounts that are connected now, by ProviderConfig."""
        connections = ((name, entry.connection) for name, entry in self._entries.items())
        return {
            name: ConnectedAccount(
                connection.of(self._kind), connection.config, {"metadata": {"name": name}}, connection.id
            )
            for name, connection in connections
            if connection is not None
        }


def accepted_accounts(config_object: Object) -> tuple[str, ...]:
    """Return the accounts that a person accepted in place of the recorded one, by consent on the ProviderConfig."""
    return consent_of(config_object).of("account")


def accept_command(resource: Resource, config_object: Object, account: str) -> str:
    """Return the command that accepts an account beside what the ProviderConfig consents to already."""
    entries = [entry.strip() for entry in annotations_of(config_object).get(CONSENT, "").split(",") if entry.strip()]
    value = ",".join(dict.fromkeys((*entries, f"account={account}")))
    address = kubectl.address_of(resource.group_kind, key_of(config_object))
    return kubectl.annotate(address, CONSENT, value, overwrites=bool(entries))


def _defect(entry: _Entry, name: str, error: Exception) -> Blocked:
    """Log a defect that keeps a ProviderConfig from being used, once; return what to report on it and its resources.

    The text of a defect is left to the log: nobody knows what is in it.
    """
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    origin = f"{type(error).__name__}:{trace.tb_frame.f_code.co_filename}:{trace.tb_lineno}" if trace else ""
    if entry.defect != origin:
        entry.defect = origin
        _log.error("InternalError: a defect of the provider; no account is connected", config=name, exc_info=error)
    return Blocked(
        "InternalError",
        f"ProviderConfig {name}: a defect of Fairlead keeps it from being connected ({type(error).__name__}); it is"
        " tried again; report it with the line of the provider's log that says InternalError",
    )


async def _close_later(stack: AsyncExitStack) -> None:
    await asyncio.sleep(_CLOSE_AFTER.total_seconds())
    await stack.aclose()
