"""The port to the API server over HTTP: raw bytes in and out, no generated models, no retries.

Guarantees of `runtime.kube` hold: a time-out on every request, errors as the types of `runtime.errors`.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote_plus

import aiohttp
import msgspec
from yarl import URL

from runtime import fence, metrics
from runtime.connectivity import Connectivity
from runtime.errors import ApiError, Invalid, NoAnswer, WriteConflict
from runtime.kube import Page, Selection, WatchEvent
from runtime.kube_errors import from_answer, without_values
from runtime.kube_session import SessionSource
from runtime.objects import Key, Object, Resource, deleting, dumps, key_of, loads
from runtime.preconditions import is_bound, is_tested
from runtime.tracing import TRACING
from runtime.writes import WRITES

DEFAULT_REQUEST_TIMEOUT: Final = timedelta(seconds=10)

_CONNECT_SECONDS: Final = 5.0
_WATCH_GRACE_SECONDS: Final = 30.0
_JSON: Final = "application/json"
_ACCEPT_METADATA: Final = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
_ACCEPT_METADATA_LIST: Final = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
_UNAUTHORIZED: Final = 401
# What stands in a query as it is; the slash of a field manager does too.
_UNQUOTED: Final = re.compile(r"[A-Za-z0-9._~/-]*")


class _ListMeta(msgspec.Struct, rename="camel"):
    resource_version: str = ""
    next_page: str = msgspec.field(default="", name="continue")


class _List(msgspec.Struct):
    metadata: _ListMeta
    items: list[msgspec.Raw] | None = None


class _Line(msgspec.Struct):
    type: str
    object: msgspec.Raw


_LIST_DECODER = msgspec.json.Decoder(_List)
_LINE_DECODER = msgspec.json.Decoder(_Line)


@dataclass(frozen=True, slots=True)
class _Request:
    method: str
    path: str
    query: Mapping[str, str] = field(default_factory=dict)
    body: bytes | None = None
    content_type: str = _JSON
    accept: str = _JSON


class KubeClient:
    """`runtime.kube.Kube` over HTTP. Build it with `connect`, end it with `close`."""

    def __init__(self, sessions: SessionSource, *, request_timeout: timedelta = DEFAULT_REQUEST_TIMEOUT) -> None:
        self._sessions = sessions
        self.connectivity = Connectivity()
        self._timeout = aiohttp.ClientTimeout(total=request_timeout.total_seconds(), sock_connect=_CONNECT_SECONDS)

    @classmethod
    async def connect(
        cls,
        *,
        user_agent: str,
        kubeconfig: Path | None = None,
        context: str = "",
        request_timeout: timedelta = DEFAULT_REQUEST_TIMEOUT,
    ) -> KubeClient:
        """Return a client for `kubeconfig`, else $KUBECONFIG, else the Pod's ServiceAccount. Sends nothing yet.

        `context` is one of the kubeconfig's, empty for its current one. Raises NoAnswer when no configuration is
        readable.
        """
        sessions = SessionSource(user_agent=user_agent, kubeconfig=kubeconfig, context=context)
        await sessions.current()
        return cls(sessions, request_timeout=request_timeout)

    async def close(self) -> None:
        """Close all connections."""
        await self._sessions.close()

    async def get(self, resource: Resource, key: Key, *, metadata_only: bool = False) -> Object:
        """Read one object live; NotFound when absent."""
        accept = _ACCEPT_METADATA if metadata_only else _JSON
        return await self._object(_Request("GET", resource.path(key), accept=accept))

    async def create(self, resource: Resource, obj: Object, *, manager: str) -> Object:
        """POST with fieldValidation=Strict; AlreadyExists when the name is taken."""
        namespace = obj["metadata"].get("namespace", "")
        query = {"fieldManager": manager, "fieldValidation": "Strict"}
        WRITES.wrote(resource, key_of(obj))
        return await self._object(_Request("POST", resource.path(namespace=namespace), query, dumps(obj)))

    async def review(self, resource: Resource, spec: Object) -> Object:
        """POST a question that is answered and never stored; return the answer."""
        body = {"apiVersion": resource.api_version, "kind": resource.kind, "spec": spec}
        return await self._object(_Request("POST", resource.path(), body=dumps(body)))

    async def apply(
        self, resource: Resource, obj: Object, *, manager: str, force: bool = False, subresource: str = ""
    ) -> Object:
        """Server-side apply; ApplyConflict without `force` names managers and fields."""
        query = {"fieldManager": manager, "fieldValidation": "Strict"} | ({"force": "true"} if force else {})
        path = resource.path(key_of(obj), subresource=subresource)
        _require("apply", path, bound=is_bound(obj))
        WRITES.wrote(resource, key_of(obj))
        return await self._object(_Request("PATCH", path, query, dumps(obj), "application/apply-patch+yaml"))

    async def replace(self, resource: Resource, obj: Object, *, manager: str) -> Object:
        """PUT; WriteConflict unless `metadata.resourceVersion` is the stored one."""
        query = {"fieldManager": manager, "fieldValidation": "Strict"}
        _require("PUT", resource.path(key_of(obj)), bound=is_bound(obj))
        WRITES.wrote(resource, key_of(obj))
        return await self._object(_Request("PUT", resource.path(key_of(obj)), query, dumps(obj)))

    async def json_patch(
        self, resource: Resource, key: Key, operations: list[dict[str, Any]], *, manager: str, subresource: str = ""
    ) -> Object:
        """RFC 6902 patch; WriteConflict when a `test` fails."""
        query = {"fieldManager": manager, "fieldValidation": "Strict"}
        path = resource.path(key, subresource=subresource)
        request = _Request("PATCH", path, query, dumps(operations), "application/json-patch+json")
        _require("JSON patch", path, bound=is_tested(operations))
        WRITES.wrote(resource, key)
        tested = any(operation["op"] == "test" for operation in operations)
        try:
            return await self._object(request)
        except Invalid as error:
            if tested and not error.causes:
                # A failed `test` comes as 422 without a cause; a refused field always has one.
                raise WriteConflict(error.message, status=error.status, reason=error.reason) from error
            raise

    async def delete(
        self, resource: Resource, key: Key, *, uid: str, resource_version: str, propagation: str = "Background"
    ) -> Object | None:
        """Delete this object at this version; return it as it is while finalizers hold it, else None."""
        _require("deletion", resource.path(key), bound=bool(uid and resource_version))
        options = {
            "apiVersion": "v1",
            "kind": "DeleteOptions",
            "preconditions": {"uid": uid, "resourceVersion": resource_version},
            "propagationPolicy": propagation,
        }
        WRITES.wrote(resource, key)
        answer = await self._object(_Request("DELETE", resource.path(key), body=dumps(options)))
        # What is gone at once is answered by a Status, by some kinds with the object as it was.
        return answer if answer.get("kind") == resource.kind and deleting(answer) else None

    async def list_page(
        self, resource: Resource, selection: Selection, *, limit: int = 500, next_page: str = ""
    ) -> Page:
        """Read one page of a consistent LIST; Gone when the token expired. `limit` 0 reads all at once."""
        query = _selected(selection)
        if limit:
            query["limit"] = str(limit)
        if next_page:
            query["continue"] = next_page
        accept = _ACCEPT_METADATA_LIST if selection.metadata_only else _JSON
        path = resource.path(namespace=selection.namespace)
        body = await self._send(_Request("GET", path, query, accept=accept))
        try:
            page = _LIST_DECODER.decode(body)
        except msgspec.DecodeError as error:
            raise NoAnswer(f"unreadable list of {resource.plural}: {error}") from error
        items = tuple(bytes(item) for item in page.items or ())
        return Page(items, page.metadata.resource_version, page.metadata.next_page)

    async def watch(
        self,
        resource: Resource,
        selection: Selection,
        *,
        resource_version: str,
        timeout: timedelta,  # noqa: ASYNC109  # the server's own time-out
    ) -> AsyncIterator[WatchEvent]:
        """Stream events after `resource_version` with bookmarks; ends after the server's `timeout`.

        A line that is not an event raises ApiError; a broken connection NoAnswer.
        """
        seconds = timeout.total_seconds()
        query = _selected(selection) | {
            "watch": "true",
            "allowWatchBookmarks": "true",
            "resourceVersion": resource_version,
            "timeoutSeconds": str(max(1, int(seconds))),
        }
        accept = _ACCEPT_METADATA if selection.metadata_only else _JSON
        request = _Request("GET", resource.path(namespace=selection.namespace), query, accept=accept)
        limits = aiohttp.ClientTimeout(total=seconds + _WATCH_GRACE_SECONDS, sock_connect=_CONNECT_SECONDS)
        response = await self._open(request, limits)
        try:
            if response.status != 200:  # noqa: PLR2004 - OK, RFC 9110
                raise from_answer(response.status, await response.read())
            async for line in _lines(response.content):
                yield _event(line)
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise NoAnswer(f"watch of {resource.plural} broke: {_words(error)}") from error
        finally:
            response.close()

    async def raw(self, method: str, path: str, body: bytes | None = None) -> bytes:
        """Any other request, JSON in and out; `path` may carry an encoded query."""
        return await self._send(_Request(method, path, body=body))

    async def _object(self, request: _Request) -> Object:
        body = await self._send(request)
        try:
            return loads(body)
        except msgspec.DecodeError as error:
            raise NoAnswer(f"{request.method} {request.path}: unreadable answer: {error}") from error

    async def _send(self, request: _Request) -> bytes:
        with TRACING.of_call(f"kubernetes {request.method}", **{"url.path": request.path}) as finish:
            try:
                async with fence.bounded():
                    response, body = await self._answer(request)
            except TimeoutError as error:
                raise NoAnswer(f"{request.method} {request.path}: unanswered when the Lease ends") from error
            finish(str(response.status))
        if not 200 <= response.status < 300:  # noqa: PLR2004 - the class of successes, RFC 9110
            refusal = from_answer(response.status, body, retry_after=response.headers.get("Retry-After", ""))
            raise without_values(refusal) if "/secrets" in request.path else refusal
        return body

    async def _answer(self, request: _Request) -> tuple[aiohttp.ClientResponse, bytes]:
        response = await self._open(request, self._timeout)
        try:
            return response, await response.read()
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise NoAnswer(f"{request.method} {request.path}: {_words(error)}") from error
        finally:
            response.release()

    async def _open(self, request: _Request, limits: aiohttp.ClientTimeout) -> aiohttp.ClientResponse:
        response = await self._dial(request, limits, refused=False)
        if response.status != _UNAUTHORIZED:
            return response
        # A rotated token: the files are read again and the request, which changed nothing, is sent once more.
        response.close()
        return await self._dial(request, limits, refused=True)

    async def _dial(self, request: _Request, limits: aiohttp.ClientTimeout, *, refused: bool) -> aiohttp.ClientResponse:
        session = await self._sessions.current(refused=refused)
        url, host = _url(session.base, request), session.base.authority
        headers = {**session.headers, "Accept": request.accept, "Content-Type": request.content_type}
        self.connectivity.sent()
        metrics.begin_requests(request.method, host)
        try:
            response = await session.http.request(
                request.method,
                url,
                data=request.body,
                headers=headers,
                timeout=limits,
                allow_redirects=False,
                **session.options,  # type: ignore[arg-type]  # proxy and server_hostname, both strings
            )
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            metrics.REST_REQUESTS.labels("<error>", request.method, host).inc()
            raise NoAnswer(f"{request.method} {request.path}: {_words(error)}") from error
        self.connectivity.answered()
        metrics.REST_REQUESTS.labels(str(response.status), request.method, host).inc()
        return response


def _require(write: str, path: str, *, bound: bool) -> None:
    """Refuse a controller's write that does not name the object and the version that it was decided on.

    Delivered late, it would land on what its successor has written since. Raises ValueError: a defect of the caller.
    """
    if fence.is_bound() and not bound:
        raise ValueError(f"{write} of {path}: nothing was sent, since it names no uid and resourceVersion")


def _url(base: URL, request: _Request) -> URL:
    """Return the URL of a request, put together from parts that are encoded already: none is parsed again."""
    path, _, query = request.path.partition("?")
    return URL.build(
        scheme=base.scheme,
        authority=base.authority,
        path=base.raw_path.rstrip("/") + path,
        query_string=_query_text(request.query) or query,
        encoded=True,
    )


def _query_text(query: Mapping[str, str]) -> str:
    """Return the query part of a URL (RFC 3986, section 3.4), empty for no fields.

    `urlencode` takes as long for one request as a decision of a controller; most values need no quoting at all.
    """
    fields = (f"{name}={text if _UNQUOTED.fullmatch(text) else quote_plus(text)}" for name, text in query.items())
    return "&".join(fields)


def _selected(selection: Selection) -> dict[str, str]:
    named = {"labelSelector": selection.labels, "fieldSelector": selection.fields}
    return {name: value for name, value in named.items() if value}


async def _lines(content: aiohttp.StreamReader) -> AsyncIterator[bytes]:
    """Split a stream at newlines; what follows the last newline is a cut line and is given too."""
    rest = bytearray()
    async for chunk in content.iter_any():
        rest += chunk
        if b"\n" not in chunk:
            continue
        *whole, last = bytes(rest).split(b"\n")
        rest = bytearray(last)
        for line in whole:
            yield line
    if rest:
        yield bytes(rest)


def _event(line: bytes) -> WatchEvent:
    try:
        event = _LINE_DECODER.decode(line)
    except msgspec.DecodeError as error:
        raise ApiError(f"unreadable watch event: {error}", status=200, reason="Unreadable") from error
    return WatchEvent(event.type, bytes(event.object))


def _words(error: BaseException) -> str:
    return str(error) or type(error).__name__
