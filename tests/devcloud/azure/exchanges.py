"""Recorded exchanges with the real ARM, made again with the simulated one, and what differs then.

A recording is a file of go-vcr (version 1 or 2): requests and answers in time order, subscriptions and passwords
scrubbed. Each request is sent again, in its order, to a simulator that holds nothing at first; handles of operations in
its path are those that the simulator gave for the same request. Where a poll was recorded as ended, the simulated time
moves on until it is. Compared are the status, the headers that steer a client, and the JSON of the answer, without what
no two runs share: times, minor versions, the date of the first backup, the sentences of refusals.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import msgspec
from ruamel.yaml import YAML

from tests.devcloud.azure.conftest import PASSWORD, PROVIDER, Arm, Reply

_SUBSCRIPTION = "00000000-0000-0000-0000-000000000000"
_HANDLE = re.compile(r"/(azureAsyncOperation|operationResults|operationresults)/([^/?]+)")
_VOLATILE = frozenset({"createdAt", "earliestRestoreDate", "minorVersion", "startTime"})
_LONG = 1_000
_LIMIT_S = 60.0


class Exchange(msgspec.Struct, frozen=True, kw_only=True):
    """A request and its recorded answer; headers by name in small letters."""

    method: str
    url: str
    request: str
    status: int
    headers: dict[str, str]
    body: str


class Recording(msgspec.Struct, frozen=True):
    """The exchanges of a file."""

    name: str
    exchanges: tuple[Exchange, ...]


def recordings(folder: Path) -> Iterator[Recording]:
    """Yield the recordings of flexible servers below a folder."""
    for path in sorted(folder.rglob("Test_DBForPostgreSQL_FlexibleServer_*.yaml")):
        content = YAML(typ="safe").load(path.read_text(encoding="utf-8"))
        yield Recording(path.name, tuple(map(_exchange, content["interactions"])))


def _exchange(interaction: dict[str, Any]) -> Exchange:
    request, response = interaction["request"], interaction["response"]
    return Exchange(
        method=request["method"],
        url=request["url"],
        request=request.get("body") or "",
        status=response["code"],
        headers={name.lower(): values[0] for name, values in response["headers"].items()},
        body=response["body"],
    )


def differences(arm: Arm, recording: Recording) -> list[str]:
    """Make a recording again; return in words how the answers differ, nothing when they do not."""
    # In those runs children of different kinds were worked on at once.
    is_signed = any("&s=" in exchange.headers.get("location", "") for exchange in recording.exchanges)
    arm.behave(children_overlap=True, signed_urls=is_signed, throttle=None)
    handles: dict[str, str] = {}
    result: list[str] = []
    for number, exchange in enumerate(recording.exchanges):
        reply = _again(arm, exchange, handles)
        _learn(exchange, reply, handles)
        place = f"{number} {exchange.method} {urlsplit(exchange.url).path.rpartition('/')[2][:40]}"
        result += [f"{place}: {text}" for text in _compared(exchange, reply, handles)]
    return result


def _again(arm: Arm, exchange: Exchange, handles: dict[str, str]) -> Reply:
    parts = urlsplit(exchange.url)
    path = parts.path.replace(_SUBSCRIPTION, arm.served.subscription)
    match = _HANDLE.search(path)
    if match is not None:
        path = path.replace(match[2], handles.get(match[2], match[2]))
    version = re.search(r"api-version=([\d-]+)", parts.query)
    body = json.loads(exchange.request.replace("{PASSWORD}", PASSWORD)) if exchange.request else None
    limit = time.monotonic() + _LIMIT_S
    while True:
        # Quoted as it was recorded: "UK%20South".
        url = f"{arm.served.url}{path}?api-version={'' if version is None else version[1]}"
        reply = arm.call(exchange.method, url, body)
        if match is None or not _is_earlier(reply, exchange):
            return reply
        assert time.monotonic() < limit, f"never ended: {reply}"
        arm.advance(5)


def _is_earlier(reply: Reply, exchange: Exchange) -> bool:
    """Return whether an operation still goes on that had ended when it was recorded."""
    if not exchange.body:
        return reply.status == 202 and exchange.status == 200
    # A refusal has no status: it is compared as it is.
    recorded = json.loads(exchange.body).get("status")
    return bool((reply.body or {}).get("status") == "InProgress" and recorded not in {None, "InProgress"})


def _learn(exchange: Exchange, reply: Reply, handles: dict[str, str]) -> None:
    for name in ("azure-asyncoperation", "location"):
        recorded = _HANDLE.search(exchange.headers.get(name, ""))
        simulated = _HANDLE.search(reply.headers.get(name, ""))
        if recorded is not None and simulated is not None:
            handles[recorded[2]] = simulated[2]


def _compared(exchange: Exchange, reply: Reply, handles: dict[str, str]) -> Iterator[str]:
    if exchange.status != reply.status:
        yield f"status {reply.status}, was {exchange.status}"
    if exchange.headers.get("retry-after") != reply.headers.get("retry-after"):
        yield f"Retry-After {reply.headers.get('retry-after')}, was {exchange.headers.get('retry-after')}"
    for name in ("azure-asyncoperation", "location"):
        recorded, simulated = _place(exchange.headers.get(name)), _place(reply.headers.get(name))
        if recorded != simulated:
            yield f"{name} {simulated}, was {recorded}"
    limits = [name for name in exchange.headers if name.startswith("x-ms-ratelimit-remaining-")]
    yield from (f"{name} is missing" for name in limits if name not in reply.headers)
    recorded_body = _plain(json.loads(exchange.body), handles) if exchange.body else None
    simulated_body = _plain(reply.body, handles)
    if recorded_body != simulated_body:
        yield f"{simulated_body}, was {recorded_body}"


def _place(url: str | None) -> tuple[str, bool] | None:
    """Return where a URL of an operation leads, and whether it is a long one."""
    if url is None:
        return None
    return urlsplit(url).path.rpartition("/")[0].split("/subscriptions/")[1].partition("/")[2], len(url) > _LONG


def _plain(content: Any, handles: dict[str, str]) -> Any:
    """Return what two runs share of an answer."""
    if isinstance(content, str):
        return handles.get(content, re.sub(r"^/subscriptions/[^/]+", "/subscriptions/s", content))
    if not isinstance(content, dict):
        return content
    if "error" in content and "code" in content["error"]:
        return {"error": content["error"]["code"]}
    return {name: _plain(value, handles) for name, value in content.items() if name not in _VOLATILE}


def server_path(arm: Arm, name: str) -> str:
    """Return the path of a server as recordings have it."""
    return f"/subscriptions/{_SUBSCRIPTION}/resourceGroups/{arm.group}/{PROVIDER}/flexibleServers/{name}"
