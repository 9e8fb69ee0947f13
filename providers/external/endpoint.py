"""How an application reaches a database. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field

VERIFIED = "verify-full"
"""The sslmode by which whoever answers is proven to be the server: by its name and an authority."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where a database answers, and how a client connects; `ca` is PEM, empty where the system's roots serve."""

    host: str
    port: int
    database: str
    sslmode: str
    ca: str = field(default="", repr=False)

    @property
    def is_verified(self) -> bool:
        """Whether a password may be sent there: there is a host, and it has to prove that it is the server."""
        return bool(self.host) and self.sslmode == VERIFIED

    def __str__(self) -> str:
        """Return host and port, or that there is none yet."""
        return f"{self.host}:{self.port}" if self.host else "the database"


NO_ENDPOINT = Endpoint("", 0, "", "")
