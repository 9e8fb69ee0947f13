"""What carries the SDK's requests to the simulated RDS in the same process, with faults on the way."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Final, TypeVar
from urllib.parse import parse_qs

from botocore.awsrequest import AWSPreparedRequest, AWSResponse
from botocore.exceptions import ConnectTimeoutError, ReadTimeoutError

from devcloud.aws.audit import mutates
from devcloud.simulator.messages import Answer
from fairlead.simulation.process_life import ProcessLife
from fairlead.simulation.rds import Rds
from providers.aws.account import AwsAccount, Clients, connect
from providers.aws.config import ProviderConfigSpec
from providers.external.client import Fence
from providers.external.metering import UNMETERED, Meter
from providers.external.provider import NO_ACCOUNT, RecordedAccount

T = TypeVar("T")
_LOOK: Final = "DescribeDBInstances"


class _Body:
    """The body of an answer, whole."""

    def __init__(self, content: bytes) -> None:
        self._content = content

    def stream(self, **_options: Any) -> Iterator[bytes]:
        """Yield it."""
        yield self._content


@dataclass(frozen=True, slots=True)
class Road:
    """The way of requests to a cloud: a handler of the SDK's event before a request is sent."""

    cloud: Rds

    def carry(self, request: AWSPreparedRequest, **_event: object) -> AWSResponse:
        """Carry out a request, unless it is cut before; the answer may be cut too."""
        chance, weather, url = self.cloud.chance, self.cloud.weather, str(request.url)
        body = request.body if isinstance(request.body, bytes) else str(request.body or "").encode()
        fields = {name: values[0] for name, values in parse_qs(body.decode()).items()}
        drawn = chance.random()
        if drawn < weather.cut_before:
            raise ConnectTimeoutError(endpoint_url=url)
        if mutates(fields["Action"]) and chance.random() < weather.write_cut:
            raise ReadTimeoutError(endpoint_url=url)
        answer = self._early(fields, drawn - weather.cut_before)
        if answer is None:
            headers = {name: _text(value) for name, value in request.headers.items()}
            answer = self.cloud.answer(str(request.method), url, headers, body)
        if chance.random() < weather.cut_after:
            raise ReadTimeoutError(endpoint_url=url)
        headers = {"Content-Type": answer.content_type, **answer.headers}
        return AWSResponse(url, answer.status, headers, _Body(answer.body))

    def _early(self, fields: Mapping[str, str], drawn: float) -> Answer | None:
        """Return a refusal without effect, None for none."""
        weather = self.cloud.weather
        if drawn < weather.unavailable:
            return self.cloud.refuse("ServiceUnavailable", 503)
        if drawn < weather.unavailable + weather.throttled:
            return self.cloud.refuse("Throttling", 400)
        name = fields.get("DBInstanceIdentifier", "") if fields["Action"] == _LOOK else ""
        if name and self.cloud.chance.random() < weather.absent:
            self.cloud.emit("absent", name)
            return self.cloud.refuse("DBInstanceNotFound", 404)
        return None


@dataclass(frozen=True, slots=True)
class _Travel:
    """Lets each request take its time, within the rate of an account; one of a process that was killed never ends."""

    meter: Meter
    cloud: Rds
    life: ProcessLife

    async def read(self, operation: str, request: Callable[[], Awaitable[T]]) -> T:
        """Make a request that changes nothing."""
        return await self.meter.read(operation, lambda: self._carried(request))

    async def write(self, operation: str, request: Callable[[], Awaitable[T]], fence: Fence | None = None) -> T:
        """Make a request that changes something."""
        return await self.meter.write(operation, lambda: self._carried(lambda: self.life.carry_out(request)), fence)

    async def _carried(self, request: Callable[[], Awaitable[T]]) -> T:
        chance = self.cloud.chance
        await self.life.outlive()
        await asyncio.sleep(0.02 + chance.random() * 0.2)
        await self.life.outlive()
        answer = await request()
        await asyncio.sleep(chance.random() * 0.2)
        await self.life.outlive()
        return answer


def connector(cloud: Rds, life: ProcessLife) -> Any:
    """Return what a provider connects by: its own function, with clients whose requests go another way."""

    class ClientsOfCloud(Clients):
        """Makes the SDK's clients, which open no connection."""

        def make(self, service: str, credentials: Any) -> Any:
            """Return a client; what the account itself does before a request is sent comes first."""
            client = super().make(service, credentials)
            client.meta.events.register_last("before-send", Road(cloud).carry)
            return client

    @asynccontextmanager
    async def connected(
        config: ProviderConfigSpec,
        secrets: Mapping[str, Mapping[str, str]],
        recorded: RecordedAccount = NO_ACCOUNT,
        meter: Meter = UNMETERED,
    ) -> AsyncIterator[AwsAccount]:
        async with connect(config, secrets, recorded, _Travel(meter, cloud, life), clients=ClientsOfCloud) as account:
            yield account

    return connected


def _text(value: Any) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)
