"""google-cloud-sql's asyncio clients over the public API: each call is the HTTP request that its method names.

The package has transports for gRPC alone, and the public endpoint of the Cloud SQL Admin API answers REST alone. A
channel of gRPC's own shape sends JSON instead: clients, types of requests and answers, and errors are the package's.

Impure: it sends requests.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Final, NoReturn, Self, TypeVar
from urllib.parse import quote

import aiohttp
import grpc
from google.protobuf import json_format
from grpc import aio

from providers.external.client import Fence
from providers.external.cloud_api.http import without_resending
from providers.gcp.methods import Method, by_rpc
from providers.gcp.proxy import proxy_of
from providers.gcp.refusals import ABSENT, THERE, Refusal, refusal_in
from runtime import clock
from runtime.errors import Transient

ArgumentT = TypeVar("ArgumentT")
ResultT = TypeVar("ResultT")
_LARGE: Final = 32_768

ENDPOINT = "https://sqladmin.googleapis.com"
AGENT = "fairlead-provider-gcp"
_CONNECT_SECONDS = 5
_READ_SECONDS = 15
_LONGEST_ANSWER_BYTES = 64 * 1024 * 1024
_FIRST_ERROR = 300
_STATUS = {
    400: grpc.StatusCode.INVALID_ARGUMENT,
    401: grpc.StatusCode.UNAUTHENTICATED,
    403: grpc.StatusCode.PERMISSION_DENIED,
    404: grpc.StatusCode.NOT_FOUND,
    409: grpc.StatusCode.ABORTED,
    412: grpc.StatusCode.FAILED_PRECONDITION,
    429: grpc.StatusCode.RESOURCE_EXHAUSTED,
    501: grpc.StatusCode.UNIMPLEMENTED,
    503: grpc.StatusCode.UNAVAILABLE,
    504: grpc.StatusCode.DEADLINE_EXCEEDED,
}
_fence: ContextVar[Fence | None] = ContextVar("fence", default=None)
_bare: ContextVar[Mapping[str, Any] | None] = ContextVar("bare", default=None)


@contextmanager
def sending(fence: Fence | None, bare: Mapping[str, Any] | None) -> Iterator[None]:
    """Have the requests of this block ask a fence before they leave, and carry what messages cannot hold.

    `bare` is merged into the body: None takes a key of a map away, and an empty list empties one, while the package's
    messages leave out whatever is empty.
    """
    fences, bares = _fence.set(fence), _bare.set(bare)
    try:
        yield
    finally:
        _fence.reset(fences)
        _bare.reset(bares)


class RefusedCall(aio.AioRpcError):  # type: ignore[misc]  # gRPC ships no types
    """An answer that is no success, as the package's clients expect one; `refusal` is what it said."""

    def __init__(self, refusal: Refusal) -> None:
        metadata = aio.Metadata(("http-status", str(refusal.status)), ("reason", refusal.reason))
        super().__init__(code_of(refusal), metadata, aio.Metadata(), details=refusal.said)
        self.refusal = refusal


def code_of(refusal: Refusal) -> grpc.StatusCode:
    """Return gRPC's status: by the reason where one status of HTTP stands for several things."""
    if refusal.reason in THERE:
        return grpc.StatusCode.ALREADY_EXISTS
    if refusal.reason in ABSENT:
        return grpc.StatusCode.NOT_FOUND
    return _STATUS.get(refusal.status, grpc.StatusCode.UNKNOWN)


class RestChannel(aio.Channel):  # type: ignore[misc]  # gRPC ships no types
    """A channel to one endpoint; `token` returns what the Authorization header carries."""

    def __init__(self, endpoint: str, token: Callable[[], Awaitable[str]]) -> None:
        # The package's transport appends to it.
        self._unary_unary_interceptors: list[Any] = []
        self.endpoint = endpoint.rstrip("/")
        self._token = token
        self._methods = by_rpc()
        self._session: aiohttp.ClientSession | None = None
        self._proxy = proxy_of(self.endpoint)

    def unary_unary(
        self, method: str, request_serializer: Any = None, response_deserializer: Any = None, **_options: Any
    ) -> RestCall:
        """Return what makes one call; one that is not in the table is never made."""
        return RestCall(self, self._methods.get(method), method, request_serializer, response_deserializer)

    def unary_stream(self, *_arguments: Any, **_options: Any) -> NoReturn:
        """Refuse: no call that is made streams."""
        raise NotImplementedError

    stream_unary = stream_stream = unary_stream

    async def send(self, method: Method, path: str, query: Sequence[tuple[str, str]], body: Any) -> str:
        """Send one request and return the text of its answer.

        Raises:
            RefusedCall: It was refused.
            Transient: There was no answer.
            FenceClosed: The time for it is over.
        """
        headers = {"Authorization": f"Bearer {await self._token()}"}
        fence = _fence.get()
        if fence is not None:
            fence.check()
        url = f"{self.endpoint}/{path}"
        try:
            async with self._opened().request(
                method.verb,
                url,
                params=list(query),
                json=body,
                headers=headers,
                allow_redirects=False,
                proxy=self._proxy,
            ) as answer:
                text = (await _whole(answer)).decode(errors="replace")
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            is_broken = isinstance(error, aiohttp.ClientConnectionError) and not isinstance(error, TimeoutError)
            raise Transient(
                f"no answer from {self.endpoint} ({type(error).__name__})", is_momentary=is_broken
            ) from None
        if answer.status >= _FIRST_ERROR:
            lowered = {name.lower(): value for name, value in answer.headers.items()}
            raise RefusedCall(refusal_in(answer.status, text, lowered))
        return text

    def _opened(self) -> aiohttp.ClientSession:
        if self._session is None:
            times = aiohttp.ClientTimeout(total=_CONNECT_SECONDS + _READ_SECONDS, connect=_CONNECT_SECONDS)
            session = aiohttp.ClientSession(timeout=times, headers={"User-Agent": AGENT}, trust_env=False)
            self._session = without_resending(session)
        return self._session

    async def close(self, grace: float | None = None) -> None:
        """Close the connections."""
        del grace
        if self._session is not None:
            await self._session.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_error: object) -> None:
        await self.close()

    def get_state(self, try_to_connect: bool = False) -> grpc.ChannelConnectivity:  # noqa: FBT001, FBT002 - gRPC's shape
        """Return that calls can be made."""
        del try_to_connect
        return grpc.ChannelConnectivity.READY

    async def wait_for_state_change(self, last_observed_state: grpc.ChannelConnectivity) -> None:
        """Wait for ever: the state never changes."""
        del last_observed_state
        await asyncio.Event().wait()

    async def channel_ready(self) -> None:
        """Return at once."""


async def by_size(size: int, read: Callable[[ArgumentT], ResultT], argument: ArgumentT) -> ResultT:
    """Return what `read` makes of an argument of so many bytes or characters: in a thread where that takes long.

    A page of 500 instances is a third of a second of processor time, in which the loop would renew no Lease.
    """
    return read(argument) if size < _LARGE else await clock.computed(read, argument)


class RestCall(aio.UnaryUnaryMultiCallable):  # type: ignore[misc]  # gRPC ships no types
    """One method of the package's clients, called by them with a message."""

    def __init__(self, channel: RestChannel, method: Method | None, rpc: str, request: Any, answer: Any) -> None:
        self._channel = channel
        self._method = method
        self._rpc = rpc
        self._request = request
        self._answer = answer

    async def __call__(self, request: Any, **_options: Any) -> Any:
        """Send the message as its method says, and return the answer as the message that the method has."""
        if self._method is None:
            raise NotImplementedError(f"{self._rpc} is in no table of methods")
        fields = json_format.MessageToDict(type(request).pb(request))
        body = fields.pop("body", None)
        bare = _bare.get()
        if bare is not None:
            body = merged(body or {}, bare)
        path = path_of(self._method.path, fields)
        query = [(name, text) for name, value in fields.items() for text in _queried(value)]
        text = await self._channel.send(self._method, path, query, body)
        try:
            return await by_size(len(text), self._read, text or "{}")
        except json_format.ParseError:
            raise Transient(f"the answer of {self._channel.endpoint} is no JSON of Cloud SQL's") from None

    def _read(self, text: str) -> Any:
        return self._answer.__self__.from_json(text, ignore_unknown_fields=True)


async def _whole(answer: aiohttp.ClientResponse) -> bytes:
    """Return the body of an answer, all the pieces in which it came: a list of 500 instances is some megabytes.

    Raises:
        Transient: It is longer than any answer should be.
    """
    body = bytearray()
    async for piece in answer.content.iter_any():
        body += piece
        if len(body) > _LONGEST_ANSWER_BYTES:
            raise Transient(f"the answer is longer than {_LONGEST_ANSWER_BYTES:,} bytes")
    return bytes(body)


def path_of(pattern: str, fields: dict[str, Any]) -> str:
    """Fill in a path, and take what it names out of the fields; a name never makes another path."""

    def filled(match: re.Match[str]) -> str:
        value = str(fields.pop(match[2], ""))
        parts = value.split("/") if match[1] else [value]
        if not value or any(part in {"", ".", ".."} for part in parts):
            raise ValueError(f"{value!r} is no name in a path")
        return "/".join(quote(part, safe="") for part in parts)

    return re.sub(r"\{(\+?)(\w+)\}", filled, pattern)


def merged(body: Mapping[str, Any], more: Mapping[str, Any]) -> dict[str, Any]:
    """Return a body with the members of another one put into it, object by object."""
    whole = dict(body)
    for name, value in more.items():
        known = whole.get(name)
        is_object = isinstance(value, Mapping)
        whole[name] = merged(known if isinstance(known, Mapping) else {}, value) if is_object else value
    return whole


def bare_of(body: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return those members of a body that a message may not hold: None, false, zero, what is empty; None for none."""
    bare: dict[str, Any] = {}
    for name, value in body.items():
        inner = bare_of(value) if isinstance(value, Mapping) else None
        if inner is not None:
            bare[name] = inner
        elif value is None or value in ("", [], 0):
            bare[name] = value
    return bare or None


def typed_of(body: Mapping[str, Any]) -> dict[str, Any]:
    """Return a body without None, which a message cannot hold."""
    return {name: _typed(value) for name, value in body.items() if value is not None}


def _typed(value: Any) -> Any:
    return typed_of(value) if isinstance(value, Mapping) else value


def _queried(value: Any) -> list[str]:
    """Return a field as the texts that a query has of it: a list is repeated."""
    if isinstance(value, list):
        return [text for element in value for text in _queried(element)]
    return [str(value).lower() if isinstance(value, bool) else str(value)]
