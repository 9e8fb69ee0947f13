"""Recorded exchanges with the real Cloud SQL, made again with the simulated one, and what differs then.

A recording is a text: exchanges apart by a line `---`, each a request and its answer with headers and JSON, as Config
Connector's tests write them. They are normalised: ids are `${...}`, times are one time, settingsVersion is `123`, polls
of a running operation are left out. So every exchange of a file is made in its order, an operation is polled until it
is DONE, and of the answers are compared: status, the whole of an error, every field by name and type, and the values
that follow from what was asked.
"""

from __future__ import annotations

import json
import re
import urllib.parse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from tests.devcloud.gcp.conftest import Cloud, Json, Reply, until

# What is Google's to choose, random, or was overwritten in the recording: names and types are compared, values are not.
_FREE = frozenset(
    {
        *("user", "etag", "insertTime", "startTime", "endTime", "createTime", "expirationTime"),
        *("ipAddress", "cert", "certSerialNumber", "commonName", "sha1Fingerprint", "settingsVersion"),
        *("databaseInstalledVersion", "maintenanceVersion", "upgradableDatabaseVersions", "zone", "gceZone"),
        *("serviceAccountEmailAddress", "satisfiesPzi"),
    }
)
# What MySQL has and PostgreSQL lacks.
_OF_MYSQL = frozenset({"passwordPolicy", "flagRecommenderEnabled"})
_DEFAULT_USERS = frozenset({"root", "postgres"})
_VERSION = "POSTGRES_16"


class Exchange(msgspec.Struct, frozen=True):
    """A request and its answer, ids still `${...}`."""

    method: str
    url: str
    request: Json
    status: int
    answer: Json
    name: str

    @property
    def is_of_a_default_user(self) -> bool:
        """Whether it concerns `root`, whom PostgreSQL has not."""
        return self.method != "GET" and "name=root" in self.url


class Recording(msgspec.Struct, frozen=True):
    """The exchanges of one file."""

    name: str
    exchanges: tuple[Exchange, ...]


def recordings(folder: Path) -> Iterator[Recording]:
    """Yield the recordings of Cloud SQL below a folder."""
    for path in sorted(folder.rglob("*.http.log")):
        text = path.read_text(encoding="utf-8")
        if "sqladmin.googleapis.com" in text:
            blocks = text.split("\n---\n")
            yield Recording(path.name, tuple(_parsed(block.strip(), path.name) for block in blocks if block.strip()))


def _parsed(block: str, name: str) -> Exchange:
    first, _, rest = block.partition("\n")
    method, _, url = first.partition(" ")
    match = re.search(r"^(\d{3}) .*$", rest, re.MULTILINE)
    assert match is not None, f"{name}: no status in {block[:200]}"
    return Exchange(
        method, url, _json(rest[: match.start()]), int(match[1]), _json(rest[match.end() :]), f"{name}: {method} {url}"
    )


def _json(text: str) -> Json:
    start = re.search(r"^\{", text, re.MULTILINE)
    content: Json = json.loads(text[start.start() :]) if start is not None else {}
    return content


class Replay:
    """A recording that is made again, from its first exchange to its last."""

    def __init__(self, cloud: Cloud) -> None:
        self._cloud = cloud
        self._operation = ""

    def differences(self, recording: Recording) -> Iterator[str]:
        """Yield in words how answers differ, nothing when they do not."""
        for exchange in recording.exchanges:
            if not exchange.is_of_a_default_user:
                yield from (f"{exchange.name}: {line}" for line in self.difference(exchange))

    def difference(self, exchange: Exchange) -> Iterator[str]:
        """Make an exchange again; yield how the answers differ."""
        reply = self._again(exchange)
        if reply.body.get("kind") == "sql#operation":
            self._operation = reply.body["name"]
        recorded = self._known(exchange.answer)
        if exchange.status != reply.status:
            yield f"HTTP status: {reply.status}, was {exchange.status} ({reply.body})"
        elif exchange.status >= 400:
            yield from _unequal("error", recorded, reply.body)
        else:
            yield from _compared(_comparable(recorded), _comparable(reply.body))

    def _again(self, exchange: Exchange) -> Reply:
        url = urllib.parse.urlsplit(self._text(exchange.url))
        query = f"?{_without_host(url.query)}" if url.query else ""
        path = f"{url.path.strip('/')}{query}"
        body = self._request(exchange) if exchange.method in {"POST", "PUT", "PATCH"} else None
        if "/operations/" not in path or exchange.answer.get("status") != "DONE":
            return self._cloud.send(exchange.method, path, body)
        until(lambda: self._cloud.send("GET", path).body, lambda operation: operation["status"] == "DONE")
        return self._cloud.send("GET", path)

    def _request(self, exchange: Exchange) -> Json:
        body = self._known(exchange.request)
        if "/users" in exchange.url:
            return {name: value for name, value in body.items() if name not in {"host", *_OF_MYSQL}}
        if exchange.method == "PUT":
            present = self._cloud.send("GET", urllib.parse.urlsplit(self._text(exchange.url)).path.strip("/")).body
            body["settings"]["settingsVersion"] = present["settings"]["settingsVersion"]
            body["maintenanceVersion"] = present["maintenanceVersion"]
        return body

    def _known(self, content: Json) -> Json:
        filled: Json = json.loads(self._text(json.dumps(content)))
        return filled

    def _text(self, text: str) -> str:
        values = {
            "projectId": self._cloud.served.project,
            "uniqueId": "r1",
            "operationID": self._operation,
            "projectNumber": "123456789012",
        }
        text = re.sub(r"\$\{(\w+)\}", lambda match: values.get(match[1], match[0]), text)
        return re.sub(r"MYSQL_8_0\b", _VERSION, text)


def _without_host(query: str) -> str:
    pairs = urllib.parse.parse_qsl(query)
    return urllib.parse.urlencode([(name, value) for name, value in pairs if name != "host"])


def _comparable(body: Json) -> Json:
    """Return an answer without what only one of the two engines has."""
    if body.get("kind") == "sql#usersList":
        items = [_of_both(item) for item in body.get("items", []) if item["name"] not in _DEFAULT_USERS]
        return {"kind": body["kind"], **({"items": items} if items else {})}
    result = _of_both(body)
    if "ipAddresses" in result:
        # An instance of MySQL has no OUTGOING one.
        result["ipAddresses"] = [item for item in result["ipAddresses"] if item["type"] != "OUTGOING"]
    gemini = result.get("geminiConfig")
    if gemini is not None:
        result["geminiConfig"] = {name: gemini[name] for name in ("entitled", "activeQueryEnabled") if name in gemini}
    return result


def _of_both(body: Json) -> Json:
    return {name: value for name, value in body.items() if name not in _OF_MYSQL}


def _compared(recorded: Any, simulated: Any, path: str = "") -> Iterator[str]:
    """Yield what a recorded answer has that the simulated one lacks, or has with another type or value."""
    leaf = re.sub(r"\[\]$", "", path.rpartition(".")[2])
    match recorded, simulated:
        case dict(), dict():
            for name, value in recorded.items():
                if name in simulated:
                    yield from _compared(value, simulated[name], f"{path}.{name}")
                else:
                    yield f"{path}.{name} is missing"
        case list(), list() if leaf in _FREE:
            return
        case list(), list():
            if len(recorded) != len(simulated):
                yield f"{path} has {len(simulated)} members, had {len(recorded)}"
            for value, other in zip(recorded, simulated, strict=False):
                yield from _compared(value, other, f"{path}[]")
        case _ if type(recorded) is not type(simulated):
            yield f"{path} is {type(simulated).__name__}, was {type(recorded).__name__}"
        case _ if leaf not in _FREE and recorded != simulated:
            yield f"{path} is {simulated!r}, was {recorded!r}"


def _unequal(part: str, recorded: object, simulated: object) -> Iterator[str]:
    if recorded != simulated:
        yield f"{part}: {simulated}, was {recorded}"
