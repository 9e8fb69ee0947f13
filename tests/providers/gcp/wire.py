"""A server with the Cloud SQL Admin API's wire: it gives the answers of a test in their order, and records requests."""

from __future__ import annotations

from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

from devcloud.gcp.server import ACCOUNT
from providers.external.metering import UNMETERED, Meter
from providers.gcp.account import GcpAccount
from providers.gcp.channel import RestChannel
from providers.gcp.config import Credentials, ProviderConfigSpec
from providers.gcp.credentials import Tokens

PROJECT = "shop-prod-314159"


@dataclass(frozen=True)
class Request:
    """One request as it came."""

    verb: str
    path: str
    query: dict[str, str]
    body: Any
    authorization: str


def refused(status: int, reason: str, said: str = "It was refused.") -> tuple[int, dict[str, Any]]:
    """Return an answer that refuses."""
    return status, {"error": {"code": status, "message": said, "errors": [{"reason": reason, "message": said}]}}


def operation(name: str = "op-1", **more: Any) -> dict[str, Any]:
    """Return an operation as a call that changes something answers it."""
    return {"name": name, "status": "PENDING", "insertTime": "2026-11-23T06:00:00.5Z", **more}


@dataclass
class Wire:
    """Answers by verb and path below the project; each list is used up, its last member stays."""

    answers: dict[str, list[Any]] = field(default_factory=dict)
    requests: list[Request] = field(default_factory=list)

    @property
    def changes(self) -> list[str]:
        """The requests that change something, in their order."""
        return [f"{request.verb} {request.path}" for request in self.requests if request.verb != "GET"]

    def answer(self, call: str, *answers: Any) -> None:
        """Answer a call, `GET instances/x`, with these one after the other."""
        self.answers[call] = list(answers)

    async def _respond(self, request: web.Request) -> web.StreamResponse:
        path = request.path.removeprefix(f"/v1/projects/{PROJECT}/")
        body = await request.json() if request.can_read_body else None
        authorization = request.headers.get("Authorization", "")
        self.requests.append(Request(request.method, path, dict(request.query), body, authorization))
        answers = self.answers.get(f"{request.method} {path}")
        if not answers:
            status, refusal = refused(404, "instanceDoesNotExist" if path.count("/") == 1 else "notFound")
            return web.json_response(refusal, status=status)
        first = answers.pop(0) if len(answers) > 1 else answers[0]
        if first is None:
            assert request.transport is not None
            request.transport.close()
        status, content = first if isinstance(first, tuple) else (200, first)
        if isinstance(content, bytes):
            return web.Response(body=content, status=status)
        return web.json_response(content, status=status)


@dataclass
class Given:
    """Credentials whose one token is given; another one is the same again."""

    token: str | None
    expiry: None = None
    service_account_email: str = ACCOUNT

    def __post_init__(self) -> None:
        self._first_token = self.token

    def refresh(self, _request: object) -> None:
        self.token = self._first_token


@asynccontextmanager
async def account_at(
    endpoint: str, token: str, config: ProviderConfigSpec, meter: Meter = UNMETERED
) -> AsyncIterator[GcpAccount]:
    """Connect to an endpoint with a token that nobody is asked for."""
    with ThreadPoolExecutor(1) as pool:
        tokens = Tokens(Given(token), pool)
        async with RestChannel(endpoint, tokens.token) as channel:
            yield GcpAccount(config, channel, tokens, meter)


@asynccontextmanager
async def account_on(wire: Wire, **config: Any) -> AsyncIterator[GcpAccount]:
    """Serve a wire on this machine and connect to it."""
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", wire._respond)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    spec = ProviderConfigSpec(project=PROJECT, credentials=Credentials(source="MetadataServer"), **config)
    try:
        async with account_at(url, "token-of-the-test", spec) as account:
            yield account
    finally:
        await runner.cleanup()
