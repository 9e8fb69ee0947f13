"""The oids of databases that their cloud gives no id, as logins listed them: one that was made again has another.

Memory of one process, shared by all who connect to the servers of an account. A restart begins with none.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final

from providers.external.credential import Credential, LoginAnswer, TryLogin
from providers.external.endpoint import Endpoint
from providers.external.login import try_login
from providers.external.observation import OID_MARK, is_known_as
from runtime import clock

_LISTING: Final[TryLogin] = partial(try_login, lists=True)


class DatabaseIds:
    """The oids of the databases of one account, by server; `connect` tries a login that lists them."""

    def __init__(
        self,
        connect: TryLogin = _LISTING,
        monotonic: Callable[[], float] = clock.monotonic,
    ) -> None:
        self.connect = connect
        self._monotonic = monotonic
        self._servers: dict[tuple[str, int], str] = {}
        self._oids: dict[str, dict[str, int]] = {}
        self._made_at: dict[tuple[str, str], float] = {}
        self._unlisted: set[tuple[str, str]] = set()
        self._logins: dict[str, tuple[Endpoint, Credential]] = {}

    def record_endpoint(self, endpoint: Endpoint, server: str) -> None:
        """Record by which endpoint a server is reached."""
        if endpoint.host:
            self._servers[endpoint.host, endpoint.port] = server

    async def try_login(self, endpoint: Endpoint, credential: Credential) -> LoginAnswer:
        """Try a login, and record the databases that it listed, but for those that were made meanwhile."""
        began, server = self._monotonic(), self._servers.get((endpoint.host, endpoint.port))
        answer = await self.connect(endpoint, credential)
        if server is not None and answer.databases is not None:
            listed = {name: oid for name, oid in answer.databases if began > self._made_at.get((server, name), -1.0)}
            self._oids[server] = listed
            self._logins[server] = endpoint, credential
            self._unlisted.difference_update((server, name) for name in listed)
        return answer

    def record_made(self, server: str, name: str) -> None:
        """Record that a database is made now: what was listed of one of its name is of another."""
        self._made_at[server, name] = self._monotonic()
        self._oids.get(server, {}).pop(name, None)
        self._unlisted.add((server, name))

    async def list_made(self, server: str, name: str) -> None:
        """List the databases of a server once more where this one was made since, by the login that was taken last.

        Until its oid is recorded another one of its name, which somebody made in its place, is taken for it.
        """
        login = self._logins.get(server)
        if (server, name) in self._unlisted and login is not None:
            self._unlisted.discard((server, name))
            await self.try_login(*login)

    def incarnation(self, server: str, name: str, known: str, recorded: str) -> tuple[str, tuple[str, ...]]:
        """Return what identifies a database, and what did before its oid was known.

        `known` is what its cloud identifies it by, `recorded` what was recorded of it.
        """
        oid = self._oids.get(server, {}).get(name)
        if oid is not None:
            return f"{known}{OID_MARK}{oid}", (known,)
        return (recorded if is_known_as(known, recorded) else known), ()
