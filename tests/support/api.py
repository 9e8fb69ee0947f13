"""A tiny raw client of the API server for tests: an oracle that shares no code with the runtime under test."""

import base64
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import msgspec

from tests.support.waiting import eventually

JsonObject = dict[str, Any]
APPLY = "application/apply-patch+yaml"
MERGE = "application/merge-patch+json"
JSON_PATCH = "application/json-patch+json"
USER_AGENT = "fairlead-tests"


class ApiError(Exception):
    """The API server refused: `status` is the HTTP code, `body` its Status object."""

    def __init__(self, status: int, body: JsonObject) -> None:
        super().__init__(f"{status} {body.get('reason', '')}: {body.get('message', body)}")
        self.status = status
        self.body = body


@dataclass(frozen=True, slots=True)
class Api:
    """Requests by path, bodies as dictionaries. `path` builds the path of a resource or of one object."""

    session: aiohttp.ClientSession
    server: str

    @staticmethod
    def path(api_version: str, plural: str, namespace: str = "", name: str = "", subresource: str = "") -> str:
        root = f"/api/{api_version}" if "/" not in api_version else f"/apis/{api_version}"
        scope = f"/namespaces/{namespace}" if namespace else ""
        tail = "".join(f"/{part}" for part in (name, subresource) if part)
        return f"{root}{scope}/{plural}{tail}"

    async def request(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        content_type: str = "application/json",
        query: dict[str, str] | None = None,
    ) -> JsonObject:
        data = None if body is None else msgspec.json.encode(body)
        headers = {"Content-Type": content_type} if data is not None else {}
        async with self.session.request(method, self.server + path, data=data, headers=headers, params=query) as answer:
            raw = await answer.read()
            try:
                decoded = msgspec.json.decode(raw)
            except msgspec.DecodeError:
                decoded = {"message": raw.decode(errors="replace")}
            content: JsonObject = decoded if isinstance(decoded, dict) else {"message": decoded}
            if answer.status >= 400:
                raise ApiError(answer.status, content)
            return content

    async def get(self, path: str, **query: str) -> JsonObject:
        return await self.request("GET", path, query=query)

    async def find(self, path: str) -> JsonObject | None:
        try:
            return await self.get(path)
        except ApiError as error:
            if error.status == 404:
                return None
            raise

    async def items(self, path: str, **query: str) -> list[JsonObject]:
        items: list[JsonObject] = (await self.get(path, **query))["items"]
        return items

    async def create(self, path: str, body: JsonObject, **query: str) -> JsonObject:
        return await self.request("POST", path, body, query=query)

    async def replace(self, path: str, body: JsonObject) -> JsonObject:
        return await self.request("PUT", path, body)

    async def merge(self, path: str, body: JsonObject) -> JsonObject:
        return await self.request("PATCH", path, body, content_type=MERGE)

    async def json_patch(self, path: str, operations: list[JsonObject]) -> JsonObject:
        return await self.request("PATCH", path, operations, content_type=JSON_PATCH)

    async def apply(
        self, path: str, body: JsonObject, *, manager: str = "fairlead-tests", force: bool = True
    ) -> JsonObject:
        query = {"fieldManager": manager, "force": "true" if force else "false"}
        return await self.request("PATCH", path, body, content_type=APPLY, query=query)

    async def delete(self, path: str, *, propagation: str = "Background") -> None:
        await self.request(
            "DELETE", path, {"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": propagation}
        )

    async def until_gone(self, path: str, *, limit_s: float = 60.0) -> None:
        async def gone() -> bool:
            return await self.find(path) is None

        await eventually(gone, f"{path} is gone", limit_s=limit_s)

    async def until_served(self, path: str, *, limit_s: float = 60.0) -> None:
        """Wait until a kind is listed: first its path is unknown, then its storage is being made (429)."""

        async def served() -> bool:
            try:
                return await self.find(path) is not None
            except ApiError as error:
                if error.status == 429:
                    return False
                raise

        await eventually(served, f"{path} is served", limit_s=limit_s)


@asynccontextmanager
async def connect(kubeconfig: Path) -> AsyncIterator[Api]:
    """Open a client with the credentials of a kubeconfig that devcloud wrote (JSON)."""
    document = _document(kubeconfig)
    cluster, user = document["clusters"][0]["cluster"], document["users"][0]["user"]
    context = ssl.create_default_context(cadata=base64.b64decode(cluster["certificate-authority-data"]).decode())
    headers = {"User-Agent": USER_AGENT}
    if "token" in user:
        headers["Authorization"] = f"Bearer {user['token']}"
    else:
        context.load_cert_chain(_client_pair(kubeconfig, user))
    limit = aiohttp.ClientTimeout(total=60)
    connector = aiohttp.TCPConnector(ssl=context, limit=64)
    async with aiohttp.ClientSession(connector=connector, headers=headers, timeout=limit) as session:
        yield Api(session, cluster["server"])


def _document(kubeconfig: Path) -> JsonObject:
    content: JsonObject = msgspec.json.decode(kubeconfig.read_bytes())
    return content


def _client_pair(kubeconfig: Path, user: dict[str, str]) -> Path:
    # OpenSSL reads a client's certificate from files only.
    pair = kubeconfig.with_name(f"{kubeconfig.name}.client.pem")
    pair.touch(mode=0o600)
    pair.write_bytes(base64.b64decode(user["client-certificate-data"]) + base64.b64decode(user["client-key-data"]))
    return pair
