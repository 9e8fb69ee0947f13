"""The official google-cloud-sql clients on the public REST wire: a channel that turns each call into its HTTP request.

The package has transports for gRPC alone, the public endpoint has REST alone. Which method and path a call has is read
from the discovery document that google-api-python-client brings, so this is independent of the simulator's own routes.
"""

from __future__ import annotations

import asyncio
import json
import re
import urllib.parse
from collections.abc import Callable
from pathlib import Path
from typing import Any, Self

import grpc
import grpc.aio
from google.cloud import sqladmin_v1
from google.protobuf import json_format
from googleapiclient.discovery_cache import DISCOVERY_DOC_DIR

from tests.devcloud.gcp.conftest import Json, fetch

_RESOURCES = {
    "SqlInstancesService": "instances",
    "SqlOperationsService": "operations",
    "SqlUsersService": "users",
    "SqlDatabasesService": "databases",
    "SqlBackupRunsService": "backupRuns",
    "SqlBackupsService": "backups",
    "SqlConnectService": "connect",
    "SqlFlagsService": "flags",
    "SqlTiersService": "tiers",
}
_CODES = {
    400: grpc.StatusCode.INVALID_ARGUMENT,
    401: grpc.StatusCode.UNAUTHENTICATED,
    403: grpc.StatusCode.PERMISSION_DENIED,
    404: grpc.StatusCode.NOT_FOUND,
    409: grpc.StatusCode.ABORTED,
    412: grpc.StatusCode.FAILED_PRECONDITION,
    429: grpc.StatusCode.RESOURCE_EXHAUSTED,
}


def document(version: str) -> Json:
    """Return the discovery document of a version of the API."""
    content: Json = json.loads(Path(DISCOVERY_DOC_DIR, f"sqladmin.{version}.json").read_text(encoding="utf-8"))
    return content


def failed(code: grpc.StatusCode, message: str, reason: str) -> grpc.aio.AioRpcError:
    """Return an answer of an error, as the asynchronous client of gRPC raises it."""
    return grpc.aio.AioRpcError(code, grpc.aio.Metadata(), grpc.aio.Metadata(("reason", reason)), message)


class Rest:
    """A server's address and a token."""

    def __init__(self, url: str, token: str) -> None:
        self._url = url
        self._headers = {"Authorization": f"Bearer {token}"}
        self._document = document("v1")

    def call(self, rpc: str, request: Any, answer: Any) -> Any:
        """Make the HTTP request of a call; return the message of its answer.

        Raises:
            AioRpcError: It is refused.
        """
        method = self._method(rpc)
        content = json_format.MessageToDict(type(request).pb(request))
        body = content.pop("body", None)
        path = re.sub(r"\{\+?(\w+)\}", lambda match: str(content.pop(match[1])), method["path"])
        query = {name: str(value).lower() if isinstance(value, bool) else str(value) for name, value in content.items()}
        url = f"{self._url}/{path}?{urllib.parse.urlencode(query)}"
        reply = fetch(url, method["httpMethod"], body, self._headers)
        if reply.status >= 400:
            raise failed(_CODES.get(reply.status, grpc.StatusCode.UNKNOWN), reply.message, reply.reason)
        return answer.from_json(json.dumps(reply.body), ignore_unknown_fields=True)

    def _method(self, rpc: str) -> Json:
        _, service, name = rpc.split("/")
        resources = {key.lower(): value for key, value in self._document["resources"].items()}
        methods = resources[_RESOURCES[service.rpartition(".")[2]].lower()]["methods"]
        method: Json = next(value for key, value in methods.items() if key.lower() == name.lower())
        return method


class AsyncCall(grpc.aio.UnaryUnaryMultiCallable):  # type: ignore[misc]  # grpc has no types
    """A method of an asynchronous stub."""

    def __init__(self, call: Callable[[Any], Any]) -> None:
        self._call = call

    async def __call__(self, request: Any, **_: Any) -> Any:
        return await asyncio.to_thread(self._call, request)


class AsyncChannel(grpc.aio.Channel):  # type: ignore[misc]  # grpc has no types
    """What an asynchronous transport takes for a channel."""

    def __init__(self, rest: Rest) -> None:
        self._rest = rest
        self._unary_unary_interceptors: list[Any] = []

    def unary_unary(
        self, method: str, request_serializer: Any = None, response_deserializer: Any = None, *_: Any, **__: Any
    ) -> AsyncCall:
        del request_serializer
        answer = response_deserializer.__self__
        return AsyncCall(lambda request: self._rest.call(method, request, answer))

    def stream_stream(self, *_: Any, **__: Any) -> Any:
        raise NotImplementedError

    unary_stream = stream_unary = stream_stream

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self, grace: float | None = None) -> None:
        del grace

    def get_state(self, *_: Any, **__: Any) -> grpc.ChannelConnectivity:
        return grpc.ChannelConnectivity.READY

    async def wait_for_state_change(self, last_observed_state: Any) -> None:
        del last_observed_state

    async def channel_ready(self) -> None:
        pass


def async_client(service: str, rest: Rest) -> Any:
    """Return the official asynchronous client of a service."""
    client = getattr(sqladmin_v1, f"{service}ServiceAsyncClient")
    return client(transport=client.get_transport_class("grpc_asyncio")(channel=AsyncChannel(rest)))
