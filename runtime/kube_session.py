"""Connection to the API server: address, trust, identity. The only importer of kubernetes_asyncio.

Reads the kubeconfig (or the Pod's ServiceAccount) again every minute and after a 401, so that a rotated token, client
certificate or CA is taken up without a restart.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import msgspec
from aiohttp.abc import AbstractStreamWriter
from aiohttp.connector import Connection
from yarl import URL

from runtime import clock, fence
from runtime.environment_proxy import proxy_of_environment
from runtime.errors import NoAnswer, NotLeading
from runtime.kube_library import bare_packages

with bare_packages():
    from kubernetes_asyncio.client.configuration import Configuration
    from kubernetes_asyncio.client.rest import RESTClientObject
    from kubernetes_asyncio.config.config_exception import ConfigException
    from kubernetes_asyncio.config.incluster_config import load_incluster_config
    from kubernetes_asyncio.config.kube_config import load_kube_config

_REREAD_SECONDS = 60.0
_REREAD_AFTER_REFUSAL_SECONDS = 5.0
_CONNECTIONS = 200
_READ_BYTES = 2**21  # an event of a watch holds a whole object on one line


class _FencedRequest(aiohttp.ClientRequest):
    """A request that asks its task's fence in the moment in which its bytes leave.

    Without a body that is `send`. With one, `send` only prepares: the bytes are written by a task of its own, turns
    of the loop later, and a freeze in between would let them out long after the Lease went to another.
    """

    async def send(self, conn: Connection) -> aiohttp.ClientResponse:
        fence.check(self.method)
        return await super().send(conn)

    async def write_bytes(
        self, writer: AbstractStreamWriter, conn: Connection, content_length: int | None = None
    ) -> None:
        try:
            fence.check(self.method)
        except NotLeading as refusal:
            # Whoever waits for the answer gets the reason in its place.
            if conn.protocol is not None:
                conn.protocol.set_exception(refusal)
            conn.close()
            return
        await super().write_bytes(writer, conn, content_length)


@dataclass(frozen=True, slots=True)
class _Identity:
    """What a session was built from; a difference means a new session."""

    host: str
    files: tuple[bytes, ...]
    verify_tls: bool
    server_name: str | None
    proxy: str | None


@dataclass(frozen=True, slots=True)
class Session:
    """An open connection pool, where it leads and what each request must carry."""

    http: aiohttp.ClientSession
    base: URL
    headers: Mapping[str, str]
    options: Mapping[str, str]


class _Cluster(msgspec.Struct):
    server: str


class _NamedCluster(msgspec.Struct):
    name: str
    cluster: _Cluster


class _NamedUser(msgspec.Struct):
    name: str
    user: dict[str, object]


class _Chosen(msgspec.Struct):
    cluster: str
    user: str


class _NamedContext(msgspec.Struct):
    name: str
    context: _Chosen


class _KubeConfig(msgspec.Struct, rename="kebab"):
    """What a kubeconfig may have (v1.Config of client-go); several files together must have all of it."""

    current_context: str = ""
    clusters: list[_NamedCluster] | None = None
    users: list[_NamedUser] | None = None
    contexts: list[_NamedContext] | None = None


class SessionSource:
    """Gives the current `Session`; builds a new one when address, trust or client certificate changed."""

    def __init__(
        self,
        *,
        user_agent: str,
        kubeconfig: Path | None = None,
        context: str = "",
        monotonic: Callable[[], float] = clock.monotonic,
    ) -> None:
        self._monotonic = monotonic
        self._user_agent = user_agent
        self._kubeconfigs = (kubeconfig,) if kubeconfig else _kubeconfigs_of_environment()
        self._context = context
        self._identity: _Identity | None = None
        self._session: Session | None = None
        self._retired: list[aiohttp.ClientSession] = []
        self._read_at = float("-inf")
        self._lock = asyncio.Lock()

    async def current(self, *, refused: bool = False) -> Session:
        """Return the session to use now; `refused` (the last one got a 401) reads the files again earlier.

        Raises NoAnswer when there never was a readable configuration.
        """
        limit = _REREAD_AFTER_REFUSAL_SECONDS if refused else _REREAD_SECONDS
        if self._session is not None and self._monotonic() - self._read_at < limit:
            return self._session
        async with self._lock:
            if self._session is None or self._monotonic() - self._read_at >= limit:
                await self._read()
            if self._session is None:
                raise NoAnswer("no readable Kubernetes configuration; set KUBECONFIG or run in a Pod")
            return self._session

    async def close(self) -> None:
        """Close every connection, also those of sessions that were replaced."""
        sessions = [*self._retired, *([self._session.http] if self._session else [])]
        self._session = None
        for session in sessions:
            await session.close()

    async def _read(self) -> None:
        try:
            configuration = await self._configuration()
            identity = _identity_of(configuration)
            http = self._pool(configuration, identity)
        except (ConfigException, OSError) as error:
            if self._session is None:
                raise NoAnswer(f"cannot read the Kubernetes configuration: {error}") from error
            # A file in the middle of its rotation: what was read before serves until the next look.
            self._read_at = self._monotonic()
            return
        self._identity = identity
        self._session = Session(
            http=http,
            base=URL(str(configuration.host), encoded=True),
            headers=self._headers(configuration),
            options=_options(configuration),
        )
        self._read_at = self._monotonic()

    def _pool(self, configuration: Configuration, identity: _Identity) -> aiohttp.ClientSession:
        if self._session is not None and identity == self._identity:
            return self._session.http
        pool: aiohttp.ClientSession = RESTClientObject(configuration).pool_manager
        fresh = aiohttp.ClientSession(
            connector=pool.connector, trust_env=False, read_bufsize=_READ_BYTES, request_class=_FencedRequest
        )
        pool.detach()
        if self._session is not None:
            # Streams in flight end by themselves; the old pool is closed with the client.
            self._retired.append(self._session.http)
        return fresh

    async def _configuration(self) -> Configuration:
        configuration = Configuration()
        configuration.connection_pool_maxsize = _CONNECTIONS
        if not self._kubeconfigs:
            load_incluster_config(  # type: ignore[no-untyped-call]  # the library leaves it unannotated
                client_configuration=configuration, try_refresh_token=False
            )
            return configuration
        there = [path for path in self._kubeconfigs if path.is_file()]
        if not there:
            named = os.pathsep.join(map(str, self._kubeconfigs))
            if any(path.is_dir() for path in self._kubeconfigs):
                raise ConfigException(f"{named} is a folder, no kubeconfig")
            raise ConfigException(f"kubeconfig {named} does not exist")
        # The loader below fails in many ways on a file of another shape, or one in the middle of a write.
        context = _context_in([_kubeconfig_in(path) for path in there], self._context)
        await load_kube_config(
            config_file=os.pathsep.join(map(str, there)),
            context=context,
            client_configuration=configuration,
            persist_config=False,
        )
        return configuration

    def _headers(self, configuration: Configuration) -> Mapping[str, str]:
        token = configuration.api_key.get("BearerToken")
        identity = {"Authorization": str(token).strip()} if token else {}
        return {"User-Agent": self._user_agent, **identity}


def _kubeconfigs_of_environment() -> tuple[Path, ...]:
    """Return the files that $KUBECONFIG lists, or the usual one; none in a Pod."""
    named = os.environ.get("KUBECONFIG", "")
    if named:
        return tuple(Path(part) for part in named.split(os.pathsep) if part)
    if "KUBERNETES_SERVICE_HOST" in os.environ:
        return ()
    return (Path.home() / ".kube" / "config",)


def _kubeconfig_in(path: Path) -> _KubeConfig:
    """Read a kubeconfig as far as we look into it. Raises ConfigException that says why a file is none."""
    try:
        return msgspec.convert(_object_in(path.read_bytes()), _KubeConfig)
    except UnicodeDecodeError as error:
        raise ConfigException(f"{path} is no kubeconfig: no text, not UTF-8 at byte {error.start}") from error
    except (msgspec.DecodeError, msgspec.ValidationError) as error:
        raise ConfigException(f"{path} is no kubeconfig: {' '.join(str(error).split())}") from error


def _object_in(data: bytes) -> Any:
    content = msgspec.yaml.decode(data.decode())
    if content is None:
        raise msgspec.ValidationError("it is empty")
    if not isinstance(content, dict):
        raise msgspec.ValidationError(f"wants an object, found {'a list' if isinstance(content, list) else 'a text'}")
    return content


def _context_in(files: Sequence[_KubeConfig], wanted: str) -> str:
    """Return the context to use: the wanted one, else the first that a file calls current, as kubectl does.

    Raises ConfigException when it is not there, or names a cluster or a user that is not.
    """
    chosen = wanted or next((config.current_context for config in files if config.current_context), "")
    contexts = {context.name: context.context for file in reversed(files) for context in file.contexts or ()}
    if chosen not in contexts:
        offered = ", ".join(sorted(contexts)) or "none"
        problem = f"has no context {chosen!r}" if chosen else "names no current context"
        raise ConfigException(f"the kubeconfig {problem}; contexts: {offered}")
    clusters = {cluster.name for file in files for cluster in file.clusters or ()}
    users = {user.name for file in files for user in file.users or ()}
    for kind, name, names in (
        ("cluster", contexts[chosen].cluster, clusters),
        ("user", contexts[chosen].user, users),
    ):
        if name not in names:
            raise ConfigException(f"context {chosen!r} of the kubeconfig names {kind} {name!r}, which is not there")
    return chosen


def _identity_of(configuration: Configuration) -> _Identity:
    paths = (configuration.ssl_ca_cert, configuration.cert_file, configuration.key_file)
    return _Identity(
        host=str(configuration.host),
        files=tuple(Path(path).read_bytes() if path else b"" for path in paths),
        verify_tls=configuration.verify_ssl,
        server_name=configuration.tls_server_name,
        proxy=configuration.proxy,
    )


def _options(configuration: Configuration) -> Mapping[str, str]:
    proxy = configuration.proxy or proxy_of_environment(str(configuration.host))
    options = {"proxy": proxy, "server_hostname": configuration.tls_server_name}
    return {name: value for name, value in options.items() if value}
