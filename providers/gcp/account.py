"""One project of Google Cloud: calls of the Cloud SQL Admin API by google-cloud-sql's clients, each error as a Failure.

Impure: it sends requests.
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from google.api_core import exceptions as sdk
from google.cloud import sqladmin_v1
from google.cloud.sqladmin_v1.services import (
    sql_backups_service,
    sql_databases_service,
    sql_instances_service,
    sql_operations_service,
    sql_users_service,
)
from google.protobuf import json_format

from providers.external import retries
from providers.external.client import Fence, Operation
from providers.external.cloud_api.refusals import NotThere
from providers.external.database_ids import DatabaseIds
from providers.external.metering import UNMETERED, Meter
from providers.external.provider import NO_ACCOUNT, RecordedAccount
from providers.gcp.channel import ENDPOINT, RefusedCall, RestChannel, bare_of, by_size, sending, typed_of
from providers.gcp.config import ProviderConfigSpec
from providers.gcp.credentials import Tokens, Trusted, configuration, credentials_of
from providers.gcp.listed import InstanceAnswers
from providers.gcp.methods import METHODS, Method
from providers.gcp.operations import OperationLog
from providers.gcp.refusals import clean, failure_of, operation_failure
from runtime import clock
from runtime.errors import Failure, Terminal, Transient

_PAGE = 500
_MOST_PAGES = 1000
_THREADS = 2
_UNAUTHENTICATED = 401
_SERVICES = {
    "SqlInstances": (sqladmin_v1.SqlInstancesServiceAsyncClient, sql_instances_service),
    "SqlOperations": (sqladmin_v1.SqlOperationsServiceAsyncClient, sql_operations_service),
    "SqlDatabases": (sqladmin_v1.SqlDatabasesServiceAsyncClient, sql_databases_service),
    "SqlUsers": (sqladmin_v1.SqlUsersServiceAsyncClient, sql_users_service),
    "SqlBackups": (sqladmin_v1.SqlBackupsServiceAsyncClient, sql_backups_service),
}


@dataclass(frozen=True, slots=True)
class Page:
    """One answer of a list; `is_whole` is False where it warns that a part of the project did not answer."""

    items: tuple[dict[str, Any], ...]
    is_whole: bool


@dataclass(slots=True)
class GcpAccount:
    """One project, connected; its id is never given to another project.

    Each request passes through `meter`: each page of a list, and each time that a read is sent again. `instances` are
    the answers of lists and looks about instances, for the users inside of them, `log` are the project's operations,
    `database_ids` what logins listed of databases.
    """

    config: ProviderConfigSpec
    channel: RestChannel = field(repr=False)
    tokens: Tokens = field(repr=False)
    meter: Meter = field(default=UNMETERED, repr=False)
    instances: InstanceAnswers = field(default_factory=lambda: InstanceAnswers(clock.monotonic), repr=False)
    log: OperationLog = field(default_factory=OperationLog, repr=False)
    database_ids: DatabaseIds = field(default_factory=DatabaseIds, repr=False)
    id: str = ""
    _clients: dict[str, Any] = field(default_factory=dict, repr=False)

    @property
    def project(self) -> str:
        """The project that is asked."""
        return self.config.project

    async def whoami(self) -> str:
        """Return the project, once the credentials reach it: its id is unique for ever, a deleted one's too.

        Raises:
            Failure: The credentials do not reach it.
        """
        await self.call("instances.list", "ask whether the project can be reached", max_results=1)
        self.id = self.project
        self.log.own |= {self.tokens.email} - {""}
        return self.id

    async def call(
        self,
        method: str,
        action: str,
        /,
        *,
        fence: Fence | None = None,
        body: Mapping[str, Any] | None = None,
        hide: Iterable[str] = (),
        **fields: Any,
    ) -> dict[str, Any]:
        """Make one call of `methods.METHODS` and return its answer as JSON; `action` says it in words.

        `body` is JSON as the API's pages write it, `hide` are secret values in it. One that reads is sent again after a
        throttle or a broken connection, as `retries.READS` says.

        Raises:
            Failure: By the reason; FenceClosed when the fence was closed before the request left.
        """
        rule, hidden = METHODS[method], tuple(hide)

        async def request() -> dict[str, Any]:
            return await self._send(rule, action, fence, (fields, body), hidden)

        if rule.reads:
            return await retries.repeated(functools.partial(self.meter.read, method, request), retries.READS)
        try:
            answer = await self.meter.write(method, request, fence)
        finally:
            if rule.service == "SqlInstances" and "instance" in fields:
                self.instances.record_call(fields["instance"])
        self.log.own |= {str(answer.get("user", ""))} - {""}
        return answer

    async def _send(
        self,
        rule: Method,
        action: str,
        fence: Fence | None,
        content: tuple[Mapping[str, Any], Mapping[str, Any] | None],
        hide: tuple[str, ...],
    ) -> dict[str, Any]:
        fields, body = content
        try:
            message = self._message(rule, fields, body)
            with sending(fence, bare_of(body) if body is not None else None):
                answer = await _whole(await getattr(self._client(rule.service), _snake(rule.name))(request=message))
        except Failure as failure:
            raise _said(failure, action) from None
        except sdk.GoogleAPICallError as error:
            raise self._failure(error, action, hide) from None
        except (json_format.ParseError, ValueError, TypeError) as error:
            raise Terminal("InvalidValue", f"cannot {action}: {clean(str(error), hide)}") from None
        bare_answer = type(answer).pb(answer)
        shown: dict[str, Any] = await by_size(bare_answer.ByteSize(), json_format.MessageToDict, bare_answer)
        return shown

    def _message(self, rule: Method, fields: Mapping[str, Any], body: Mapping[str, Any] | None) -> Any:
        request_type = getattr(sqladmin_v1, rule.request)
        named = {**({} if rule.service == "SqlBackups" else {"project": self.project}), **fields}
        if body is not None:
            body_type = request_type.meta.fields["body"].message
            named["body"] = body_type.from_json(json.dumps(typed_of(body)))
        return request_type(named)

    def _client(self, service: str) -> Any:
        if service not in self._clients:
            client, module = _SERVICES[service]
            transport = module.transports.__dict__[f"{service}ServiceGrpcAsyncIOTransport"](channel=self.channel)
            self._clients[service] = client(transport=transport)
        return self._clients[service]

    def _failure(self, error: sdk.GoogleAPICallError, action: str, hide: tuple[str, ...]) -> Failure:
        cause = error.errors[0] if error.errors else None
        if not isinstance(cause, RefusedCall):
            return Transient(f"cannot {action}: {clean(str(error), hide)}")
        if cause.refusal.status == _UNAUTHENTICATED:
            self.tokens.forget()
        return failure_of(cause.refusal, action, hide=hide)

    async def pages(self, method: str, action: str, /, key: str = "items", **fields: Any) -> AsyncGenerator[Page, None]:
        """Make a paged call to its end, a page at a time.

        Raises:
            Failure: By the reason; what was yielded until then is half a list.
        """
        size = "page_size" if method == "backups.list" else "max_results"
        place: dict[str, Any] = {size: _PAGE, **fields}
        for _ in range(_MOST_PAGES):
            answer = await self.call(method, action, **place)
            yield Page(tuple(answer.get(key) or ()), is_whole=not answer.get("warnings"))
            if not answer.get("nextPageToken"):
                return
            place["page_token"] = answer["nextPageToken"]
        raise Transient(f"cannot {action}: the list does not end")

    async def poll(self, operation: Operation) -> bool:
        """Return whether an operation has ended; one that the project does not know any more has.

        Raises:
            Terminal, Blocked: It is DONE, with an error in it.
        """
        try:
            answer = await self.call("operations.get", "follow an operation", operation=operation.id)
        except NotThere:
            return True
        if answer.get("status") != "DONE":
            return False
        failure = operation_failure(answer, operation.kind)
        if failure is not None:
            raise failure
        return True


def operation_of(answer: Mapping[str, Any], kind: str) -> Operation:
    """Return the operation that a call answered; `kind` is what it does for us: Create, Update or Delete."""
    return Operation(str(answer.get("name", "")), kind)


async def _whole(answer: Any) -> Any:
    """Return an answer as it came: of some lists the package makes an iterator that would ask for the next page."""
    if not hasattr(answer, "pages"):
        return answer
    return await anext(aiter(answer.pages))


def _snake(name: str) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()


def _said(failure: Failure, action: str) -> Failure:
    """Return a failure of the transport with what was tried in its sentence."""
    if isinstance(failure, Transient):
        return Transient(f"cannot {action}: {failure}", is_momentary=failure.is_momentary)
    return failure


@asynccontextmanager
async def connect(
    config: ProviderConfigSpec,
    secrets: Mapping[str, Mapping[str, str]],
    recorded: RecordedAccount = NO_ACCOUNT,
    meter: Meter = UNMETERED,
) -> AsyncIterator[GcpAccount]:
    """Connect as the ProviderConfig says, and see that the project can be reached.

    `secrets` are the Secrets that it names. That another project is reached is left to the caller.

    Raises:
        Failure: What is missing or wrong about the credentials, named by its key and never by its value.
    """
    del recorded
    # A host on this machine, which the process's command line had to allow, stands for Google's token endpoints too.
    trusted = Trusted(urlsplit(config.endpoint).netloc if config.endpoint else "")
    content = configuration(config.credentials, secrets, trusted)
    pool = clock.executor(_THREADS, "gcp")
    tokens = Tokens(credentials_of(config.credentials, content), pool)
    channel = RestChannel(config.endpoint or ENDPOINT, tokens.token)
    account = GcpAccount(config, channel, tokens, meter)
    try:
        await account.whoami()
        yield account
    finally:
        await channel.close()
        pool.shutdown(wait=False, cancel_futures=True)
