"""A call of ARM, and what its actions have in common: the cloud that they act on, answers of operations, pages."""

import base64
import functools
import hashlib
import math
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar
from urllib.parse import quote

import msgspec

from devcloud.azure.behaviour import AzureBehaviour
from devcloud.azure.entra.directory import Directory
from devcloud.azure.lifecycle.effects import Effect, ServerEffect
from devcloud.azure.lifecycle.kinds import kind_of, retry_after_s
from devcloud.azure.refusals import bad_request, busy, busy_sentence, group_not_found, not_ready, server_not_found
from devcloud.azure.resources import Resources
from devcloud.azure.state.model import Group, Server
from devcloud.azure.state.views import time_text
from devcloud.simulator.clock import Clock
from devcloud.simulator.controls import Controls
from devcloud.simulator.messages import Answer, Refusal, json_answer
from devcloud.simulator.operations import InProgress, Operation, OperationError, OperationSpec
from devcloud.simulator.rest import Grant, Tokens

T = TypeVar("T")
_TICKS_TO_1970 = 621_355_968_000_000_000
_CERTIFICATE_CHARACTERS, _SIGNATURE_CHARACTERS, _DIGEST_CHARACTERS = 2_575, 342, 43


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A request whose caller and action are known.

    Attributes:
        action: `flexibleServers.put`, as faults and the log call it.
        method: The HTTP method.
        path: As it was sent, decoded.
        names: The parameters of the path.
        query: Those of the query.
        headers: By name in small letters.
        body: The JSON that came with it.
        grant: Whose token it has, None for what needs none.
        base_url: Of this server, as the caller knows it.
        request_id: As in the answer.
        correlation_id: Likewise.
    """

    action: str
    method: str
    path: str
    names: Mapping[str, str]
    query: Mapping[str, str] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    body: dict[str, Any] = field(default_factory=dict, repr=False)
    grant: Grant | None = None
    base_url: str = ""
    request_id: str = field(default_factory=lambda: str(uuid.uuid4()))
    correlation_id: str = field(default_factory=lambda: str(uuid.uuid4()))

    @property
    def api_version(self) -> str:
        """The api-version that it speaks, empty for none."""
        return self.query.get("api-version", "")

    @property
    def subscription(self) -> str:
        """The subscription of its path, empty for none."""
        return self.names.get("subscription", "")

    @property
    def identifier(self) -> str:
        """Which resource it concerns: a server by its name, what is in it as `server/name`."""
        child = next((self.names[name] for name in ("database", "rule", "configuration") if name in self.names), "")
        server = self.names.get("server", "")
        return f"{server}/{child}" if child else server or self.names.get("operation") or self.names.get("group", "")


@dataclass(frozen=True, slots=True)
class Cloud:
    """What actions act on."""

    resources: Resources
    directory: Directory
    tokens: Tokens
    controls: Controls[AzureBehaviour]

    @property
    def clock(self) -> Clock:
        """The simulated time."""
        return self.controls.clock

    @property
    def behaviour(self) -> AzureBehaviour:
        """What tests chose."""
        return self.controls.behaviour

    def group(self, call: Call) -> Group:
        """Return the resource group of a call.

        Raises:
            Refusal: `ResourceGroupNotFound`.
        """
        group = self.resources.group(call.subscription, call.names["group"])
        if group is None:
            raise group_not_found(call.names["group"])
        return group

    def server(self, call: Call) -> Server:
        """Return the server of a call.

        Raises:
            Refusal: `ResourceNotFound`, or its group is not there.
        """
        group = self.resources.group(call.subscription, call.names["group"])
        if group is None and call.identifier == call.names["server"]:
            raise group_not_found(call.names["group"])
        server = self.resources.server(call.subscription, call.names["group"], call.names["server"])
        if server is None:
            # Of what is in a server this is said even where the group is gone, too (recorded, 2021-06-01).
            raise server_not_found(call.names["server"], call.names["group"])
        return server

    def refuse_present(self, call: Call, present: object) -> None:
        """Let a PUT pass that only creates (`If-None-Match: *`), or one of what is not there.

        Raises:
            Refusal: `PreconditionFailed`, where tests want the precondition heeded.
        """
        creates = call.headers.get("if-none-match") == "*"
        if present is not None and creates and self.behaviour.honours_if_none_match:
            message = "The condition in the If-None-Match header was not satisfied."
            raise Refusal("PreconditionFailed", message, status=412)

    def changeable(self, call: Call) -> Server:
        """Return the server of a call, on which or in which something is to change.

        Raises:
            Refusal: It is not there, stopped, disabled or without its key.
        """
        server = self.server(call)
        if server.properties.state != "Ready":
            raise not_ready(server.name, server.properties.state)
        return server


Handler = Callable[[Cloud, Call], Answer]


def started(
    cloud: Cloud, call: Call, server: Server, effect: ServerEffect, *, error: OperationError | None = None
) -> Answer:
    """Start an operation on a server; return its 202.

    Raises:
        Refusal: `ServerIsBusy`.
    """
    try:
        operation = cloud.resources.start(server, spec_of(call, effect, error=error))
    except InProgress:
        raise busy(server.name) from None
    return accepted(cloud, call, operation, server.location)


def started_child(cloud: Cloud, call: Call, server: Server, effect: ServerEffect, child: str) -> Answer:
    """Start an operation on what is in a server; return its 202, also where it fails because the server is busy.

    Raises:
        Refusal: `ServerIsBusy`, where tests want it at once.
    """
    spec = spec_of(call, effect)
    try:
        operation = cloud.resources.start(server, spec, child=child, overlap=cloud.behaviour.children_overlap)
    except InProgress:
        if cloud.behaviour.busy == "refuse":
            raise busy(server.name) from None
        error = OperationError(code="ServerIsBusy", message=busy_sentence(server.name))
        operation = cloud.resources.operations.refuse(target=f"{server.name}/{child}", kind=spec.kind, error=error)
    return accepted(cloud, call, operation, server.location)


def spec_of(call: Call, effect: Effect, *, error: OperationError | None = None) -> OperationSpec:
    """Return the operation that brings an effect about, or fails."""
    kind = kind_of(effect, call.api_version)
    return OperationSpec(kind=kind.name, seconds=kind.seconds, effect=msgspec.to_builtins(effect), error=error)


def accepted(cloud: Cloud, call: Call, operation: Operation, location: str) -> Answer:
    """Return the 202 of an operation (recorded): where to ask for it, and after how long."""
    content = {"operation": operation.kind, "startTime": time_text(operation.created_at)}
    return json_answer(content, status=202, headers=operation_headers(cloud, call, operation, location))


def operation_headers(cloud: Cloud, call: Call, operation: Operation, location: str) -> dict[str, str]:
    """Return the headers that lead to an operation: `Azure-AsyncOperation`, `Location`, `Retry-After`."""
    place = f"/subscriptions/{call.subscription}/providers/Microsoft.DBforPostgreSQL/locations/{quote(location)}"
    urls = {
        name: signed(cloud, call, f"{place}/{kind}/{uuid.UUID(operation.id)}")
        for name, kind in (("Azure-AsyncOperation", "azureAsyncOperation"), ("Location", "operationResults"))
    }
    return {**urls, "Retry-After": pause(cloud, operation), **operation_identifier(call)}


def pause(cloud: Cloud, operation: Operation) -> str:
    """Return what `Retry-After` says of an operation: the recorded seconds, shortened as operations are, rounded up."""
    chosen = cloud.behaviour.retry_after_s
    return str(math.ceil(retry_after_s(operation.kind) * cloud.clock.durations) if chosen is None else chosen)


def operation_identifier(call: Call) -> dict[str, str]:
    """Return the header by which the resource provider finds a request again (recorded, 2022-12-01)."""
    grant = call.grant
    if grant is None:
        return {}
    return {"x-ms-operation-identifier": f"tenantId={grant.account},objectId={grant.principal}/{call.request_id}"}


def signed(cloud: Cloud, call: Call, path: str) -> str:
    """Return the URL of an operation, with a signature as ARM's: a time, a certificate, a signature, a digest."""
    url = f"{call.base_url}{path}?api-version={call.api_version}"
    if not cloud.behaviour.signed_urls:
        return url
    ticks = int(cloud.clock.now().timestamp() * 10_000_000) + _TICKS_TO_1970
    signature = _characters(f"{path}{ticks}", _SIGNATURE_CHARACTERS)
    digest = _characters(signature, _DIGEST_CHARACTERS)
    certificate = _characters("certificate", _CERTIFICATE_CHARACTERS)
    return f"{url}&t={ticks}&c={certificate}&s={signature}&h={digest}"


@functools.lru_cache(maxsize=64)
def _characters(text: str, count: int) -> str:
    """Return so many characters that follow from a text: nobody verifies a simulated signature."""
    return base64.urlsafe_b64encode(hashlib.shake_256(text.encode()).digest(count)).decode()[:count]


def page(cloud: Cloud, call: Call, entries: Sequence[T], view: Callable[[T], dict[str, Any]]) -> Answer:
    """Return a page of a list: `value`, and `nextLink` where there is more.

    Args:
        cloud: Says how long a page is.
        call: Whose `$skiptoken` says where it begins.
        entries: All that the list has.
        view: Returns an entry as ARM shows it.

    Raises:
        Refusal: `InvalidSkipToken`.
    """
    token, size = call.query.get("$skiptoken", "0"), cloud.behaviour.page_size
    if not token.isdecimal():
        raise bad_request("InvalidSkipToken", f"The skip token '{token}' is invalid.")
    first = int(token)
    content: dict[str, Any] = {"value": [view(entry) for entry in entries[first : first + size]]}
    if first + size < len(entries):
        link = f"{call.base_url}{quote(call.path)}?api-version={call.api_version}&$skiptoken={first + size}"
        content["nextLink"] = link
    return json_answer(content)
