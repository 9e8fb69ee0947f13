"""One account of AWS in one region: signed calls of RDS and STS in a few threads, each error as a Failure.

Measured with canned answers: the SDK is bound by the interpreter's lock, so more threads make no more calls; they are
for calls that hang, and an account's rate bounds how many begin. Sessions that share one loader of service models
need 0.5 MB each instead of 13.

Impure: it calls the SDK in threads.
"""

from __future__ import annotations

import asyncio
import functools
import logging
import os
import threading
from collections.abc import AsyncIterator, Callable, Mapping
from concurrent.futures import Executor
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, TypeAlias

import boto3
import botocore.session
from botocore import UNSIGNED
from botocore.config import Config
from botocore.credentials import Credentials as SdkCredentials
from botocore.loaders import Loader
from botocore.utils import parse_timestamp

from providers.aws.config import ProviderConfigSpec
from providers.aws.credentials import AGENT_HOSTS, Source, assumed, first, only, source_of
from providers.aws.errors import failure_of
from providers.external import retries
from providers.external.authority import authority_in
from providers.external.client import Fence
from providers.external.metering import UNMETERED, Meter
from providers.external.provider import NO_ACCOUNT, RecordedAccount
from runtime import clock
from runtime.errors import Terminal, Transient

# As many as a kind has workers (runtime.controller): a call that hangs for its time-out holds up no other one.
_THREADS = 16
_PAGE = 100
# RDS answers a hundred instances a page: whoever has more pages than this meets a loop of markers.
_MOST_PAGES = 1000
_CONNECT_SECONDS = 5
_READ_SECONDS = 15
# By the names of the SDK's methods: what the RDS and STS API references say changes nothing.
_READING = ("describe_", "list_", "get_caller_identity")
_SECRET = ("MasterUserPassword", "TdeCredentialPassword")
_LOOPBACK_AGENTS = frozenset({"127.0.0.1", "::1"})

# At DEBUG they print request bodies, and with them the master password; whatever the process's level says.
for _name in ("boto3", "botocore", "urllib3"):
    logging.getLogger(_name).setLevel(logging.WARNING)


class _SharedLoader(Loader):  # type: ignore[misc]  # the SDK ships no types
    """One loader for all sessions; boto3 adds its own folder to `search_paths` with every session."""

    @property
    def search_paths(self) -> list[str]:
        """Return a copy, so that what is added to it is gone again."""
        return list(super().search_paths)


_LOADER = _SharedLoader()
# Making sessions and clients is not thread-safe, using them is.
_MAKING = threading.Lock()


class _Sending(threading.local):
    """The fence of the call that a thread is making."""

    fence: Fence | None = None


def instant(written: Any) -> datetime:
    """Read a timestamp of an answer: AWS writes RFC 3339, which Python reads ten times as fast as the SDK does.

    What is written otherwise is left to the SDK; raises ValueError.
    """
    try:
        moment: datetime = datetime.fromisoformat(written)
    except (TypeError, ValueError):
        moment = parse_timestamp(written)
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)


def _session(credentials: SdkCredentials | None) -> boto3.Session:
    """Return a session that knows these credentials alone and reads neither profile nor file."""
    core = botocore.session.Session(session_vars={"profile": (None, None, None, None)})
    core.set_config_variable("config_file", os.devnull)
    core.set_config_variable("credentials_file", os.devnull)
    core.register_component("data_loader", _LOADER)
    core.get_component("response_parser_factory").set_parser_defaults(timestamp_parser=instant)
    if credentials is not None:
        core.register_component("credential_provider", only(credentials))
    return boto3.Session(botocore_session=core)


@dataclass(frozen=True, slots=True)
class Clients:
    """Makes the SDK's clients of one region, for AWS's own endpoints or for the one that is named instead.

    Those of the same credentials share a session, whose making takes longer than theirs.
    """

    region: str
    endpoint: str | None
    _sessions: dict[int, boto3.Session] = field(default_factory=dict)

    def make(self, service: str, credentials: SdkCredentials | None) -> Any:
        """Return a client without retries of its own; None for credentials makes one that does not sign."""
        unsigned = {"signature_version": UNSIGNED} if credentials is None else {}
        config = Config(
            retries={"total_max_attempts": 1},
            connect_timeout=_CONNECT_SECONDS,
            read_timeout=_READ_SECONDS,
            max_pool_connections=2 * _THREADS,
            user_agent_extra="fairlead-provider-aws",
            ignore_configured_endpoint_urls=True,
            **unsigned,
        )
        with _MAKING:
            session = self._sessions.get(id(credentials))
            if session is None:
                session = self._sessions[id(credentials)] = _session(credentials)
            return session.client(service, region_name=self.region, endpoint_url=self.endpoint, config=config)


NewClients: TypeAlias = Callable[[str, str | None], Clients]
"""Makes what makes the SDK's clients, from a region and the endpoint that is named instead of AWS's own."""


@dataclass(slots=True)
class AwsAccount:
    """One account in one region, connected; `ca` is the PEM that instances are verified with, empty for none.

    Each request to RDS and STS passes through `meter`: each page of a list, and each time that a read is sent again.
    The SDK's own, by which it renews the sessions of roles, do not: they count for no quota of RDS's.
    """

    config: ProviderConfigSpec
    ca: str = field(repr=False)
    rds: Any = field(repr=False)
    sts: Any = field(repr=False)
    pool: Executor = field(repr=False)
    meter: Meter = field(default=UNMETERED, repr=False)
    id: str = ""
    _sending: _Sending = field(default_factory=_Sending, repr=False)

    def __post_init__(self) -> None:
        self.rds.meta.events.register("before-send", self._before_send)

    @property
    def region(self) -> str:
        """The region that is asked."""
        return self.config.region

    def _before_send(self, **_event: object) -> None:
        """Stop a call whose time is over before a byte of it leaves; the SDK hands the error through."""
        if self._sending.fence is not None:
            self._sending.fence.check()

    async def whoami(self) -> str:
        """Return the account that the credentials reach now.

        Raises:
            Terminal: `AccountChanged` when it is not the one that `spec.accountID` names, or that it was before.
        """
        answer = await self.call("get_caller_identity", "ask whose credentials these are", service="sts")
        account_id: str = answer["Account"]
        expected = self.config.account_id or self.id
        if expected and account_id != expected:
            raise Terminal(
                "AccountChanged",
                f"the credentials reach account {account_id}, not {expected}; nothing is absent and nothing is changed"
                " until they reach it again",
            )
        self.id = account_id
        return account_id

    async def call(
        self, operation: str, action: str, /, *, fence: Fence | None = None, service: str = "rds", **parameters: Any
    ) -> dict[str, Any]:
        """Make one call, `operation` as the SDK's client names it; `action` says it in words.

        One that reads is sent again after a throttle or a broken connection, as `retries.READS` says. Cancelled, one
        that reads is given up at once, and one that changes something is waited for.

        Raises:
            Failure: By the error's code; FenceClosed when the fence was closed before the request left.
        """
        client = self.rds if service == "rds" else self.sts
        send = functools.partial(self._send, getattr(client, operation), action, fence, parameters)
        name: str = client.meta.method_to_api_mapping[operation]
        if operation.startswith(_READING):
            request = functools.partial(asyncio.get_running_loop().run_in_executor, self.pool, send)
            return await retries.repeated(functools.partial(self.meter.read, name, request), retries.READS)
        return await self.meter.write(name, functools.partial(self._changed, send), fence)

    async def _changed(self, send: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        """Make a call that changes something; it ends with its thread, which no cancellation ends.

        A thread may be between its fence and its first byte: while it is, no other process may lead.
        """
        call = self.pool.submit(send)
        answer = asyncio.wrap_future(call)
        try:
            await asyncio.wait((answer,))
        except asyncio.CancelledError:
            if not call.cancel():
                await asyncio.wait((answer,))
                answer.exception()
            raise
        return answer.result()

    def _send(
        self, method: Callable[..., dict[str, Any]], action: str, fence: Fence | None, parameters: Mapping[str, Any]
    ) -> dict[str, Any]:
        self._sending.fence = fence
        try:
            return method(**parameters)
        except Exception as error:  # noqa: BLE001 - what the SDK raises has no common base; failure_of classifies it
            secrets = [str(parameters[name]) for name in _SECRET if name in parameters]
            raise failure_of(error, action, hide=secrets) from None
        finally:
            self._sending.fence = None

    async def pages(self, operation: str, action: str, key: str, /, **parameters: Any) -> AsyncIterator[dict[str, Any]]:
        """Make a paged call to its end and yield the members under `key`, no more than a page in memory at a time.

        Raises:
            Failure: By the error's code; what was yielded until then is half a list.
        """
        marker: dict[str, Any] = {}
        for _ in range(_MOST_PAGES):
            answer = await self.call(operation, action, MaxRecords=_PAGE, **parameters, **marker)
            for member in answer.get(key) or ():
                yield member
            if not answer.get("Marker"):
                return
            marker = {"Marker": answer["Marker"]}
        raise Transient(f"cannot {action}: the list does not end")


def _authority(config: ProviderConfigSpec, secrets: Mapping[str, Mapping[str, str]]) -> str:
    """Return the PEM that instances are verified with; refused when it holds no certificate, or is wanted and none."""
    reference = config.ca_bundle_ref
    if config.logins == "Alternating" and config.login_check != "Required":
        raise Terminal("InvalidValue", "logins Alternating wants loginCheck Required: the logins are made by SQL")
    if reference is None and config.login_check == "Required":
        raise Terminal("InvalidValue", "loginCheck Required wants caBundleRef: no login is tried at whoever may answer")
    return "" if reference is None else authority_in(secrets, reference, remedy="put AWS's bundle there")


def _dial(config: ProviderConfigSpec, source: Source, clients: Clients) -> tuple[Any, Any]:
    """Return the SDK's clients of RDS and of STS."""
    try:
        credentials = first(source, functools.partial(clients.make, "sts"))
        for role in config.credentials.assume_role_chain:
            credentials = assumed(role, clients.make("sts", credentials))
        return clients.make("rds", credentials), clients.make("sts", credentials)
    except Exception as error:  # noqa: BLE001 - as in AwsAccount._send
        raise failure_of(error, f"connect to region {config.region}") from None


@asynccontextmanager
async def connect(
    config: ProviderConfigSpec,
    secrets: Mapping[str, Mapping[str, str]],
    recorded: RecordedAccount = NO_ACCOUNT,
    meter: Meter = UNMETERED,
    *,
    clients: NewClients = Clients,
) -> AsyncIterator[AwsAccount]:
    """Connect as the ProviderConfig says and ask whose account it is.

    `secrets` are the Secrets that it names; `recorded` is the account where its databases are. That another account is
    reached is left to the caller, as the databases' own references say more. `clients` makes what makes the SDK's.

    Raises:
        Failure: What is missing or wrong about the credentials, named by its key and never by its value.
    """
    del recorded
    # An endpoint on this machine, which the process's command line had to allow, may hand out credentials as well.
    agents = AGENT_HOSTS if config.endpoint is None else AGENT_HOSTS | _LOOPBACK_AGENTS
    source = source_of(config.credentials, secrets, os.environ, agents=agents)
    ca = _authority(config, secrets)
    pool = clock.executor(_THREADS, "aws")
    try:
        dial = functools.partial(_dial, config, source, clients(config.region, config.endpoint))
        account = AwsAccount(config, ca, *await asyncio.get_running_loop().run_in_executor(pool, dial), pool, meter)
        await account.whoami()
        yield account
    finally:
        # Whoever waits for an answer here gave it up; the event loop is not held for the SDK's time-out.
        pool.shutdown(wait=False, cancel_futures=True)
