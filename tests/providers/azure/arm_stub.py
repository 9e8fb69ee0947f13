"""What a client of ARM meets on the wire: faults, throttles, pages, connections that break, polls, a token's host."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

SUBSCRIPTION = "11111111-2222-3333-4444-555555555555"
PAGE = 2


@dataclass
class ArmStub:
    """What is in the subscription, and what was asked; `operations` are the polls that are left until each has ended.

    `faults` are parts of request lines with a status and a code; methods in `broken` get no answer. `preconditions` are
    those of PUTs (`If-None-Match`).
    """

    url: str = ""
    servers: dict[str, dict[str, Any]] = field(default_factory=dict)
    operations: dict[str, int] = field(default_factory=dict)
    log: list[str] = field(default_factory=list)
    preconditions: list[str] = field(default_factory=list)
    versions: set[str] = field(default_factory=set)
    faults: list[tuple[str, int, str]] = field(default_factory=list)
    remaining: int = 11999
    retry_after: str = "0"
    answered_as: str = ""
    broken: set[str] = field(default_factory=set)

    @web.middleware
    async def _logged(self, request: web.Request, handler: Any) -> web.StreamResponse:
        self.log.append(f"{request.method} {request.path}")
        if request.method == "PUT":
            self.preconditions.append(request.headers.get("If-None-Match", ""))
        self.versions.add(request.query.get("api-version", ""))
        if not request.headers.get("Authorization", "").startswith("Bearer "):
            return refusal(401, "InvalidAuthenticationToken")
        for fault in tuple(self.faults):
            if fault[0] in f"{request.method} {request.path}":
                self.faults.remove(fault)
                return refusal(fault[1], fault[2])
        if request.method in self.broken and request.transport is not None:
            request.transport.abort()
        response: web.StreamResponse = await handler(request)
        response.headers["x-ms-ratelimit-remaining-subscription-reads"] = str(self.remaining)
        return response

    async def subscription(self, request: web.Request) -> web.Response:
        identifier = self.answered_as or request.match_info["sub"]
        return web.json_response({"id": f"/subscriptions/{identifier}", "subscriptionId": identifier})

    async def listed(self, request: web.Request) -> web.Response:
        start, members = int(request.query.get("$skiptoken", 0)), list(self.servers.values())
        page: dict[str, Any] = {"value": members[start : start + PAGE]}
        if start + PAGE < len(members):
            query = f"api-version={request.query['api-version']}&$skiptoken={start + PAGE}"
            page["nextLink"] = f"{self.url}{request.path}?{query}"
        return web.json_response(page)

    async def poll(self, request: web.Request) -> web.Response:
        handle = request.match_info["op"]
        if handle not in self.operations:
            return refusal(404, "NotFound")
        self.operations[handle] -= 1
        status = "InProgress" if self.operations[handle] >= 0 else "Succeeded"
        return web.json_response({"status": status}, headers={"Retry-After": self.retry_after})

    async def availability(self, _request: web.Request) -> web.Response:
        return web.json_response({"nameAvailable": True})

    async def server(self, request: web.Request) -> web.Response:
        present = self.servers.get(f"{request.match_info['rg'].lower()}/{request.match_info['name']}")
        return refusal(404, "ResourceNotFound") if present is None else web.json_response(present)


def refusal(status: int, code: str) -> web.Response:
    return web.json_response({"error": {"code": code, "message": f"This is {code}."}}, status=status)


@asynccontextmanager
async def serving(stub: ArmStub) -> AsyncIterator[ArmStub]:
    """Serve a subscription on a port of this machine."""
    app = web.Application(middlewares=[stub._logged])
    provider = "/subscriptions/{sub}/providers/Microsoft.DBforPostgreSQL"
    app.router.add_get("/subscriptions/{sub}", stub.subscription)
    app.router.add_get(f"{provider}/flexibleServers", stub.listed)
    app.router.add_get(provider + "/locations/{location}/azureAsyncOperation/{op}", stub.poll)
    app.router.add_post(f"{provider}/checkNameAvailability", stub.availability)
    group = "/subscriptions/{sub}/resourceGroups/{rg}/providers/Microsoft.DBforPostgreSQL"
    app.router.add_route("*", group + "/flexibleServers/{name}", stub.server)
    runner = web.AppRunner(app, handler_cancellation=True)
    await runner.setup()
    try:
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        stub.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
        yield stub
    finally:
        await runner.cleanup()
