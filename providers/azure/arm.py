"""One subscription behind Azure Resource Manager: JSON in and out at our own API version, each refusal as a Failure.

Of azure-mgmt-rdbms the asyncio client is used as a pipeline: headers, tokens, connections. Its models and its methods
are not: they speak API version 2021-06-01 and drop what that does not know. The package's retries, redirects and
registration of resource providers are left out. Another package of the same pipeline can take its place here.

Impure: it calls the SDK.
"""

from __future__ import annotations

import json
import logging
import os
import re
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import Any, Final
from urllib.parse import quote, urlencode

from azure.core.credentials_async import AsyncTokenCredential
from azure.core.exceptions import ClientAuthenticationError, ServiceRequestError
from azure.core.pipeline import PipelineRequest
from azure.core.pipeline.policies import RequestIdPolicy, SansIOHTTPPolicy, UserAgentPolicy
from azure.core.rest import HttpRequest
from azure.identity import CredentialUnavailableError
from azure.mgmt.core.policies import AsyncARMChallengeAuthenticationPolicy
from azure.mgmt.rdbms.postgresql_flexibleservers.aio import PostgreSQLManagementClient

from providers.azure.awaited import AwaitedRights
from providers.azure.config import ProviderConfigSpec, ca_of, hosts_of, is_of, is_safe
from providers.azure.credentials import source_of
from providers.azure.errors import failure_of, refused
from providers.azure.listed import ListedServers
from providers.azure.names import NAMESPACE, ServerName, server_in_path
from providers.azure.restarts import Restarts
from providers.azure.tokens import credential_of
from providers.azure.transport import NewTransport, Transport
from providers.external import retries
from providers.external.authority import authority_in
from providers.external.client import Fence, ListLeftOut
from providers.external.database_ids import DatabaseIds
from providers.external.metering import UNMETERED, Meter
from providers.external.provider import NO_ACCOUNT, RecordedAccount
from runtime import clock
from runtime.errors import Blocked, Failure, Terminal, Transient

API_VERSION: Final = "2025-08-01"
_SUBSCRIPTIONS_VERSION = "2022-12-01"
# ARM chooses the size of a page; whoever has more pages than this meets a loop of links.
_MOST_PAGES = 1000
# A subscription has 250 reads in its bucket ("Understand how Azure Resource Manager throttles requests").
_FEW_READS = 25
_REMAINING_READS = "x-ms-ratelimit-remaining-subscription-reads"
_ERROR = 400
_READING = frozenset({"GET", "POST"})

# At INFO they print URLs, of which those of operations are signed; whatever the process's level says.
for _name in ("azure", "msal"):
    logging.getLogger(_name).setLevel(logging.WARNING)


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer that is no refusal: HTTP status, headers by any letter case, the JSON body or None."""

    status: int
    headers: Mapping[str, str] = field(repr=False)
    body: Any = field(repr=False)


class _Guard(SansIOHTTPPolicy[Any, Any]):
    """Lets no request go to another host than ARM's; it stands before the policy that adds the token."""

    def __init__(self, endpoint: str) -> None:
        self._endpoint = endpoint

    def on_request(self, request: PipelineRequest[Any]) -> None:
        """Refuse what leads elsewhere, and allow plain http where the endpoint is this machine's."""
        if not is_of(request.http_request.url, self._endpoint):
            text = "a link in an answer leads to another host than ARM's; nothing was sent"
            raise Terminal("EndpointNotAllowed", text)
        if is_safe(self._endpoint) and self._endpoint.startswith("http:"):
            request.context.options["enforce_https"] = False


class _FencePolicy(SansIOHTTPPolicy[Any, Any]):
    """Asks the fence of a call when everything else about its request is ready."""

    def on_request(self, request: PipelineRequest[Any]) -> None:
        """Raise FenceClosed when no call may start any more."""
        fence: Fence | None = request.context.options.pop("fence", None)
        if fence is not None:
            fence.check()


@dataclass(slots=True)
class AzureAccount:
    """One subscription, connected; `reads_left` is how many reads ARM said were left, None where it did not.

    `ca` is the PEM by which its servers are verified, empty where the system's roots serve; `now` is the clock.
    Each request to ARM passes through `meter`: each page, each poll of an operation, each time that a read is sent
    again. Those for tokens go to Entra, and do not. `listed` is what the last list said of its servers, `awaited` which
    databases are not to be used yet, `restarts` what waits for a server's restart, `database_ids` what logins listed of
    databases.
    """

    config: ProviderConfigSpec
    endpoint: str
    client: PostgreSQLManagementClient = field(repr=False)
    ca: str = field(default="", repr=False)
    reads_left: int | None = None
    meter: Meter = field(default=UNMETERED, repr=False)
    now: Callable[[], datetime] = field(default=clock.now, repr=False)
    listed: ListedServers = field(default_factory=lambda: ListedServers(clock.monotonic), repr=False)
    awaited: AwaitedRights = field(default_factory=AwaitedRights, repr=False)
    restarts: Restarts = field(default_factory=lambda: Restarts(clock.monotonic), repr=False)
    database_ids: DatabaseIds = field(default_factory=DatabaseIds, repr=False)

    @property
    def subscription(self) -> str:
        """The path of the subscription."""
        return f"/subscriptions/{self.config.subscription_id}"

    @property
    def servers(self) -> str:
        """The path of all servers of the subscription."""
        return f"{self.subscription}/providers/{NAMESPACE}/flexibleServers"

    def server(self, name: ServerName, *below: str) -> str:
        """Return the path of a server, or of what is below it."""
        group, *parts = (quote(part, safe="") for part in (name.group, name.name, *below))
        return f"{self.subscription}/resourceGroups/{group}/providers/{NAMESPACE}/flexibleServers/{'/'.join(parts)}"

    async def whoami(self) -> str:
        """Return the subscription that the credentials reach now.

        Raises:
            Terminal: `AccountChanged` when it is not the one that `spec.subscriptionID` names.
        """
        answer = await self.send(
            "GET", self.subscription, "ask for the subscription", api_version=_SUBSCRIPTIONS_VERSION
        )
        reached = str(_member(answer.body, "subscriptionId")).lower()
        if reached != self.config.subscription_id.lower():
            raise Terminal(
                "AccountChanged",
                f"the answer is about subscription {reached or 'unknown'}, not {self.config.subscription_id}; nothing"
                " is absent and nothing is changed until the right one answers again",
            )
        return reached

    async def send(  # noqa: PLR0913 - the parts of a request
        self,
        method: str,
        path: str,
        action: str,
        *,
        api_version: str = API_VERSION,
        query: Mapping[str, str] | None = None,
        body: object = None,
        headers: Mapping[str, str] | None = None,
        fence: Fence | None = None,
        hide: tuple[str, ...] = (),
    ) -> Answer:
        """Send one request below ARM; `action` says it in words, `hide` are secrets of the body.

        What reads is sent again after a throttle or a broken connection, as `retries.READS` says.

        Raises:
            Failure: By ARM's code; FenceClosed when the fence was closed before the request left.
        """
        url = f"{self.endpoint}{path}?{urlencode({'api-version': api_version, **(query or {})}, quote_via=quote)}"

        async def request() -> Answer:
            answer = await self._send(HttpRequest(method, url, json=body, headers=dict(headers or {})), action, fence)
            return _accepted(answer, action, hide)

        name = f"{method} {_type_of(path)}"
        if fence is None and method in _READING:
            return await retries.repeated(partial(self.meter.read, name, request), retries.READS)
        try:
            return await self.meter.write(name, request, fence)
        finally:
            server = server_in_path(path)
            if server is not None:
                self.listed.record_call(server)

    async def ask(self, url: str, action: str, *, also: frozenset[int] = frozenset()) -> Answer:
        """Ask a URL out of an answer as it is; refusals of the statuses `also` are answers too.

        Raises:
            Failure: By ARM's code; Terminal `EndpointNotAllowed` where it leads to another host.
        """

        async def request() -> Answer:
            answer = await self._send(HttpRequest("GET", url), action, None)
            return answer if answer.status in also else _accepted(answer, action)

        return await retries.repeated(partial(self.meter.read, "GET link", request), retries.READS)

    async def _send(self, request: HttpRequest, action: str, fence: Fence | None) -> Answer:
        try:
            # The client's own name for a request as it is; its other methods are of one API version.
            response = await self.client._send_request(request, fence=fence)  # noqa: SLF001 - as said above
        except Failure:
            raise
        except Exception as error:  # noqa: BLE001 - what token and transport raise has no common base
            raise _unanswered(error, action) from None
        text, body = response.text(), None
        try:
            body = json.loads(text) if text.strip() else None
        except ValueError:
            if response.status_code < _ERROR:
                raise Transient(f"cannot {action}: the answer is no JSON") from None
        left = response.headers.get(_REMAINING_READS, "")
        self.reads_left = int(left) if left.isdigit() else self.reads_left
        return Answer(response.status_code, response.headers, body)

    async def pages(
        self, path: str, action: str, *, api_version: str = API_VERSION, query: Mapping[str, str] | None = None
    ) -> AsyncIterator[dict[str, Any]]:
        """Read a list to its end and yield its members, no more than a page in memory at a time.

        Raises:
            Failure: By ARM's code; what was yielded until then is half a list.
        """
        answer = await self.send("GET", path, action, api_version=api_version, query=query)
        for _ in range(_MOST_PAGES):
            members = _member(answer.body, "value")
            if not isinstance(members, list):
                raise Transient(f"cannot {action}: the answer holds no list")
            for member in members:
                yield member
            link = str(_member(answer.body, "nextLink") or "")
            if not link:
                return
            answer = await self.ask(link, action)
        raise Transient(f"cannot {action}: the list does not end")

    def spare_reads(self, action: str) -> None:
        """Leave a list out where ARM said that few reads are left, before it refuses those that matter.

        Raises:
            ListLeftOut: The next one is made, and its answer says how many are left then.
        """
        left, self.reads_left = self.reads_left, None
        if left is not None and left < _FEW_READS:
            raise ListLeftOut(f"cannot {action} now: ARM allows only {left} more reads for the moment")


def _type_of(path: str) -> str:
    """Return the type of resource that a path leads to, without the names in it."""
    _, _, below = path.partition(f"/{NAMESPACE}/")
    return "/".join(below.split("/")[::2]) or "subscriptions"


def _accepted(answer: Answer, action: str, hide: tuple[str, ...] = ()) -> Answer:
    if answer.status >= _ERROR:
        raise failure_of(refused(answer.status, answer.body, answer.headers), action, hide=hide)
    return answer


def _member(body: Any, name: str) -> Any:
    return body.get(name) if isinstance(body, dict) else None


def _unanswered(error: Exception, action: str) -> Failure:
    """Return the failure class of what kept a request from being answered; a token is asked for on the way."""
    if isinstance(error, CredentialUnavailableError):
        return Blocked("CredentialsMissing", f"cannot {action}: there is no such identity on this machine or Pod")
    if isinstance(error, ClientAuthenticationError):
        # Entra's sentence holds ids and times of its own, so that it would differ every time.
        code = re.search(r"AADSTS\d+", str(error))
        return Terminal(
            "CredentialsInvalid",
            f"cannot {action}: Entra gives no token ({code[0] if code else 'no code'}); check tenant, client, and its"
            " secret or federated credential",
        )
    text = f"cannot {action}: no answer ({type(error).__name__})"
    return Transient(text, is_momentary=isinstance(error, ServiceRequestError | ConnectionError))


def client_of(
    config: ProviderConfigSpec,
    credential: AsyncTokenCredential,
    meter: Meter = UNMETERED,
    *,
    ca: str = "",
    transport: NewTransport = Transport,
) -> AzureAccount:
    """Return a subscription behind a client of the SDK, which sends nothing yet; `ca` as of an AzureAccount."""
    hosts = hosts_of(config)
    policies = [
        RequestIdPolicy(),
        UserAgentPolicy(base_user_agent="fairlead-provider-azure"),
        _Guard(hosts.resource_manager),
        AsyncARMChallengeAuthenticationPolicy(credential, hosts.scope),
        _FencePolicy(),
    ]
    client = PostgreSQLManagementClient(
        credential,
        config.subscription_id,
        base_url=hosts.resource_manager,
        credential_scopes=[hosts.scope],
        policies=policies,
        transport=transport(ca_of(hosts.resource_manager, ca)),
    )
    return AzureAccount(config, hosts.resource_manager, client, ca=ca, meter=meter)


def _authority(config: ProviderConfigSpec, secrets: Mapping[str, Mapping[str, str]]) -> str:
    reference = config.ca_bundle_ref
    if reference is None:
        return ""
    return authority_in(secrets, reference, remedy="put the certificates there, or leave caBundleRef out")


@asynccontextmanager
async def connect(
    config: ProviderConfigSpec,
    secrets: Mapping[str, Mapping[str, str]],
    recorded: RecordedAccount = NO_ACCOUNT,
    meter: Meter = UNMETERED,
    *,
    transport: NewTransport = Transport,
) -> AsyncIterator[AzureAccount]:
    """Connect as the ProviderConfig says and ask for its subscription.

    `secrets` are the Secrets that it names; `recorded` is the account where its databases are. That another account is
    reached is left to the caller, as the databases' own references say more. `transport` makes what carries requests.

    Raises:
        Failure: What is missing or wrong about the credentials, named by its key and never by its value.
    """
    del recorded
    hosts = hosts_of(config)
    source, ca = source_of(config.credentials, secrets, os.environ), _authority(config, secrets)
    credential = credential_of(source, hosts, ca_of(hosts.authority, ca), transport=transport)
    try:
        account = client_of(config, credential, meter, ca=ca, transport=transport)
        try:
            await account.whoami()
            yield account
        finally:
            await account.client.close()
    finally:
        await credential.close()
