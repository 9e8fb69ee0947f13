"""What carries the provider's requests to the simulated Azure in the same process, with faults on the way."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from http import HTTPStatus
from typing import Any, Final
from urllib.parse import urlencode, urlsplit

from azure.core.exceptions import ServiceRequestError, ServiceResponseError
from azure.core.pipeline.transport import AsyncHttpTransport
from azure.core.rest import HttpRequest
from azure.core.rest._http_response_impl_async import AsyncHttpResponseImpl
from azure.core.utils import CaseInsensitiveDict

from devcloud.simulator.messages import Answer
from fairlead.simulation.arm import ENDPOINT, SERVERS, Azure
from fairlead.simulation.process_life import ProcessLife, logins_of
from providers.azure.arm import AzureAccount, connect
from providers.external.database_ids import DatabaseIds

_READS: Final = frozenset({"GET", "POST"})


class _Response(AsyncHttpResponseImpl):
    """An answer that was read to its end."""

    def __init__(self, request: HttpRequest, answer: Answer) -> None:
        super().__init__(
            request=request,
            internal_response=None,
            status_code=answer.status,
            reason=HTTPStatus(answer.status).phrase,
            content_type=answer.content_type,
            headers=CaseInsensitiveDict({"Content-Type": answer.content_type, **answer.headers}),
            stream_download_generator=None,
        )
        self._content = answer.body

    async def close(self) -> None:
        self._is_closed = True


class Transport(AsyncHttpTransport[HttpRequest, AsyncHttpResponseImpl]):
    """Carries requests to one cloud, for one life of the provider's process."""

    def __init__(self, cloud: Azure, life: ProcessLife) -> None:
        self._cloud = cloud
        self._life = life

    async def send(self, request: HttpRequest, **_options: Any) -> AsyncHttpResponseImpl:
        """Carry out a request, unless it is cut before; the answer may be cut too."""
        chance, weather = self._cloud.chance, self._cloud.weather
        await self._life.outlive()
        await asyncio.sleep(0.02 + chance.random() * 0.2)
        await self._life.outlive()
        drawn = chance.random()
        if drawn < weather.cut_before:
            raise ServiceRequestError("cut")
        if request.method not in _READS and chance.random() < weather.write_cut:
            raise ServiceResponseError("cut")
        answer = self._early(request, drawn - weather.cut_before)
        if answer is None:
            answer = await self._answered(request)
        await asyncio.sleep(chance.random() * 0.2)
        await self._life.outlive()
        if chance.random() < weather.cut_after:
            raise ServiceResponseError("cut")
        return _Response(request, answer)

    async def _answered(self, request: HttpRequest) -> Answer:
        async def answered() -> Answer:
            return self._cloud.answer(request.method, request.url, request.headers, _body_of(request))

        changes = request.method != "GET" and request.url.startswith(ENDPOINT)
        return await (self._life.carry_out(answered) if changes else answered())

    def _early(self, request: HttpRequest, drawn: float) -> Answer | None:
        """Return a refusal of ARM without effect, None for none."""
        weather = self._cloud.weather
        if not request.url.startswith(ENDPOINT):
            return None
        if drawn < weather.unavailable:
            return self._cloud.refuse("ServiceUnavailable", 503)
        if drawn < weather.unavailable + weather.throttled:
            return self._cloud.refuse("SubscriptionRequestsThrottled", 429)
        above, _, server = urlsplit(request.url).path.partition(f"{SERVERS}/")
        is_server = request.method == "GET" and above and server and "/" not in server
        if is_server and self._cloud.chance.random() < weather.absent:
            self._cloud.emit("absent", server)
            return self._cloud.refuse("ResourceNotFound", 404)
        return None

    async def open(self) -> None:
        """Open nothing."""

    async def close(self) -> None:
        """Close nothing."""

    async def __aexit__(self, *_details: object) -> None:
        """Close nothing."""


def connector(cloud: Azure, life: ProcessLife) -> Any:
    """Return what a provider connects by: its own function, with another transport and other logins."""

    @asynccontextmanager
    async def connected(*arguments: Any) -> AsyncIterator[AzureAccount]:
        async with connect(*arguments, transport=lambda _ca: Transport(cloud, life)) as account:
            account.database_ids = DatabaseIds(logins_of(life, cloud.chance, cloud.log_in))
            yield account

    return connected


def _body_of(request: HttpRequest) -> bytes:
    content: Any = request.content
    if isinstance(content, dict):
        return urlencode(content).encode()
    return content.encode() if isinstance(content, str) else content or b""
