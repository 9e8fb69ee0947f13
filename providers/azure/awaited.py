"""Databases in which the two logins of their server have no rights yet: each is made after its server.

Memory of one process: of a server that it has not looked at it knows nothing, and says so. Pure state.
"""

from __future__ import annotations

from providers.azure.names import ServerName


class AwaitedRights:
    """The databases of one subscription that are not to be used yet, by server."""

    def __init__(self) -> None:
        self._databases: dict[str, str] = {}

    def record(self, server: ServerName, database: str) -> None:
        """Record that the logins of a server have no rights in a database that it is to have."""
        self._databases[str(server).lower()] = database

    def record_none(self, server: ServerName) -> None:
        """Record that all logins of a server have their rights, or that it has none that need any."""
        self._databases[str(server).lower()] = ""

    def awaits(self, server: ServerName, database: str) -> bool:
        """Return whether the logins of a server have no rights in a database yet, as far as is known."""
        return self._databases.get(str(server).lower()) == database

    def knows(self, server: ServerName) -> bool:
        """Return whether the logins of a server were looked at."""
        return str(server).lower() in self._databases
