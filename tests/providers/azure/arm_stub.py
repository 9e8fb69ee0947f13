"""Azure Resource Manager in a dictionary, over its own wire: 202s, signed URLs of operations, pages, its letter case.

Its answers are those of recordings of 2026: what is sent as `uksouth` comes back as `UK South`.
"""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

SUBSCRIPTION = "11111111-2222-3333-4444-555555555555"
TYPE = "Microsoft.DBforPostgreSQL/flexibleServers"
SIGNATURE = "t=639048272740467845&c=" + "M" * 3000
PAGE = 2


@dataclass
class Opened:
    """An operation that runs for so many polls."""

    server: str
    polls: int
    effect: Any


@dataclass
class ArmStub:
    """What is in the subscription, and what was asked; `polls` is how long each operation takes."""

    url: str = ""
    polls: int = 0
    servers: dict[str, dict[str, Any]] = field(default_factory=dict)
    children: dict[str, dict[str, Any]] = field(default_factory=dict)
    operations: dict[str, Opened] = field(default_factory=dict)
    log: list[str] = field(default_factory=list)
    versions: set[str] = field(default_factory=set)
    faults: list[tuple[str, int, str]] = field(default_factory=list)
    foreign: set[str] = field(default_factory=set)
    remaining: int = 11999
    retry_after: str = "0"
    answered_as: str = ""
    connected: list[Any] = field(default_factory=list)
    broken: set[str] = field(default_factory=set)
    appears_after: tuple[str, int] = ("", 0)
    numbers: itertools.count[int] = field(default_factory=lambda: itertools.count(1))

    def sent(self, method: str) -> list[str]:
        """Return the last parts of the paths to which a method was sent."""
        return [line.split(" ")[1].rsplit("/", 1)[-1] for line in self.log if line.startswith(f"{method} ")]

    @property
    def changing(self) -> list[str]:
        """The requests that change something."""
        return [line for line in self.log if line.split(" ")[0] in {"PUT", "PATCH", "DELETE"}]

    @web.middleware
    async def _logged(self, request: web.Request, handler: Any) -> web.StreamResponse:
        self.log.append(f"{request.method} {request.path}")
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

    async def available(self, request: web.Request) -> web.Response:
        name = (await request.json())["name"]
        taken = name in self.foreign or any(key.endswith(f"/{name}") for key in self.servers)
        availability = {"nameAvailable": not taken, "reason": "AlreadyExists" if taken else ""}
        return web.json_response(availability)

    def _begin(self, request: web.Request, server: str, effect: Any) -> web.Response:
        number = f"op{next(self.numbers)}"
        self.operations[number] = Opened(server, self.polls, effect)
        base = f"{self.url}/subscriptions/{SUBSCRIPTION}/providers/Microsoft.DBforPostgreSQL/locations/uksouth"
        query = f"api-version={request.query['api-version']}&{SIGNATURE}"
        url = f"{base}/azureAsyncOperation/{number}?{query}"
        if not self.polls:
            self._end(number)
        headers = {"Azure-AsyncOperation": url, "Location": url, "Retry-After": "0"}
        return web.json_response({"operation": "UpsertServerManagementOperationV2"}, status=202, headers=headers)

    def _end(self, number: str) -> None:
        operation = self.operations[number]
        if operation.effect is not None:
            operation.effect()
        operation.effect = None

    def _busy(self, server: str) -> bool:
        return any(operation.server == server and operation.effect for operation in self.operations.values())

    async def poll(self, request: web.Request) -> web.Response:
        operation = self.operations.get(request.match_info["op"])
        if operation is None:
            return refusal(404, "NotFound")
        operation.polls -= 1
        if operation.polls >= 0:
            return web.json_response({"status": "InProgress"}, headers={"Retry-After": self.retry_after})
        self._end(request.match_info["op"])
        return web.json_response({"status": "Succeeded"})

    async def server(  # noqa: PLR0911 - one answer for each case
        self, request: web.Request
    ) -> web.Response:
        group, name = request.match_info["rg"].lower(), request.match_info["name"]
        key = f"{group}/{name}"
        present = self.servers.get(key)
        match request.method:
            case "PUT" if present is not None:
                return refusal(409, "ServerNameAlreadyExists")
            case "PUT":
                body = await request.json()
                self.servers[key] = made(body, request.path, name, next(self.numbers))
                return self._begin(request, key, lambda: self._state(key, "Ready"))
            case "GET" if present is not None:
                return web.json_response(present)
            case "DELETE" if present is None:
                return web.Response(status=204)
            case _ if present is None:
                return refusal(404, "ResourceNotFound")
            case _ if self._busy(key):
                return refusal(409, "ServerIsBusy")
            case "PATCH":
                body = await request.json()
                present["properties"]["state"] = "Updating"
                return self._begin(request, key, lambda: self._patched(key, body))
            case _:
                present["properties"]["state"] = "Dropping"
                return self._begin(request, key, lambda: self.servers.pop(key))

    def _state(self, key: str, state: str) -> None:
        self.servers[key]["properties"]["state"] = state

    def _patched(self, key: str, body: dict[str, Any]) -> None:
        server = self.servers[key]
        for name, value in body.get("properties", {}).items():
            if isinstance(value, dict):
                server["properties"].setdefault(name, {}).update(value)
            elif name != "administratorLoginPassword":
                server["properties"][name] = value
        server["sku"] |= body.get("sku", {})
        server["tags"] = body.get("tags", server["tags"])
        self._state(key, "Ready")

    async def listed(self, request: web.Request) -> web.Response:
        start, members = int(request.query.get("$skiptoken", 0)), list(self.servers.values())
        page: dict[str, Any] = {"value": members[start : start + PAGE]}
        if start + PAGE < len(members):
            query = f"api-version={request.query['api-version']}&$skiptoken={start + PAGE}"
            page["nextLink"] = f"{self.url}{request.path}?{query}"
        return web.json_response(page)

    def _appeared(self, key: str, name: str, present: dict[str, Any] | None) -> dict[str, Any] | None:
        """Return a child that somebody else makes after so many looks at it."""
        word, reads = self.appears_after
        self.appears_after = (word, reads - 1)
        if reads > 0:
            return present
        known = {"value": "9", "source": "user-override", "startIpAddress": "192.0.2.1", "endIpAddress": "192.0.2.1"}
        self.children[key] = {"name": name, "properties": known}
        return self.children[key]

    async def child(self, request: web.Request) -> web.Response:
        server = f"{request.match_info['rg'].lower()}/{request.match_info['name']}"
        kind, name = request.match_info["kind"], request.match_info["child"]
        key = f"{server}/{kind}/{name}"
        present = self.children.get(key)
        if server not in self.servers:
            return refusal(404, "ParentResourceNotFound" if request.method == "PUT" else "ResourceNotFound")
        if present is None and kind == "configurations":
            present = self.children[key] = parameter(name)
        if kind == self.appears_after[0]:
            present = self._appeared(key, name, present)
        if request.method == "GET":
            return refusal(404, "ResourceNotFound") if present is None else web.json_response(present)
        if request.method == "DELETE" and present is None:
            return web.Response(status=204)
        if self._busy(server):
            return refusal(409, "ServerIsBusy")
        if request.method == "DELETE":
            return self._begin(request, server, lambda: self.children.pop(key, None))
        body = await request.json()
        known = present or {"name": name, "properties": {}}
        after = {**known, "properties": {**known["properties"], **body["properties"]}}
        return self._begin(request, server, lambda: self.children.update({key: after}))


def refusal(status: int, code: str) -> web.Response:
    return web.json_response({"error": {"code": code, "message": f"This is {code}."}}, status=status)


def made(body: dict[str, Any], path: str, name: str, number: int) -> dict[str, Any]:
    """Return a server as ARM shows what a PUT asked for, its defaults added, before it is Ready."""
    hidden = {"administratorLoginPassword", "createMode"}
    properties = {key: value for key, value in body["properties"].items() if key not in hidden}
    return {
        "id": path.replace("resourceGroups", "resourcegroups"),
        "name": name,
        "type": TYPE,
        "location": "UK South" if body["location"] == "uksouth" else body["location"],
        "tags": body.get("tags", {}),
        "sku": body["sku"],
        "systemData": {"createdAt": f"2026-01-13T05:56:{number:02}.1234567Z"},
        "properties": {
            "backup": {"backupRetentionDays": 7, "geoRedundantBackup": "Disabled"},
            "highAvailability": {"mode": "Disabled", "state": "NotEnabled"},
            "maintenanceWindow": {"customWindow": "Disabled", "dayOfWeek": 0, "startHour": 0, "startMinute": 0},
            "network": {"publicNetworkAccess": "Enabled"},
            "authConfig": {"activeDirectoryAuth": "Disabled", "passwordAuth": "Enabled"},
            "dataEncryption": {"type": "SystemManaged"},
            "storage": {"storageSizeGB": 32, "autoGrow": "Disabled", "type": "", "tier": "P4", "iops": 120},
            "replicationRole": "Primary",
            "availabilityZone": "1",
            "minorVersion": "4",
            "fullyQualifiedDomainName": "127.0.0.1",
            **properties,
            "state": "Starting",
        },
    }


def parameter(name: str) -> dict[str, Any]:
    """Return a configuration that nobody set."""
    unit = {"work_mem": "KB", "statement_timeout": "ms"}.get(name, "")
    known = {"value": "4096", "defaultValue": "4096", "source": "system-default", "dataType": "Integer", "unit": unit}
    return {"name": name, "properties": {**known, "isDynamicConfig": True, "isConfigPendingRestart": False}}


@asynccontextmanager
async def serving(stub: ArmStub) -> AsyncIterator[ArmStub]:
    """Serve a subscription on a port of this machine."""
    app = web.Application(middlewares=[stub._logged])
    group = "/subscriptions/{sub}/{groups:resource[Gg]roups}/{rg}/providers/" + TYPE
    provider = "/subscriptions/{sub}/providers/Microsoft.DBforPostgreSQL"
    app.router.add_get("/subscriptions/{sub}", stub.subscription)
    app.router.add_post(f"{provider}/checkNameAvailability", stub.available)
    app.router.add_get(f"{provider}/flexibleServers", stub.listed)
    app.router.add_get(provider + "/locations/{location}/azureAsyncOperation/{op}", stub.poll)
    app.router.add_route("*", group + "/{name}", stub.server)
    app.router.add_route("*", group + "/{name}/{kind}/{child}", stub.child)
    runner = web.AppRunner(app, handler_cancellation=True)
    await runner.setup()
    try:
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        port = runner.addresses[0][1]
        stub.url = f"http://127.0.0.1:{port}"
        yield stub
    finally:
        await runner.cleanup()
