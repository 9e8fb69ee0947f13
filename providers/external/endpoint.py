"""How an application reaches a database, and how whoever answers there proves that it is the server. Pure.

The three ways are libpq's (PostgreSQL manual, "SSL Mode Descriptions"), so that what applications read in the
connection Secret is what the provider itself goes by.
"""

from __future__ import annotations

from dataclasses import dataclass, field

VERIFIED = "verify-full"
"""The sslmode by which whoever answers is proven to be the server: by its name and an authority."""
VERIFIED_BY_AUTHORITY = "verify-ca"
"""The sslmode where an authority of its own alone proves the server, as at an IP address that no certificate names."""
UNVERIFIED = "require"
"""The sslmode of a connection that is encrypted, and nobody knows with whom."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where a database answers, and how a client connects by `sslmode`.

    `ca` is the PEM of the authority's certificates, one after the other, and of both while it changes; empty where the
    system's roots serve. The same certificates come in the same order each time: another text is another authority.
    """

    host: str
    port: int
    database: str
    sslmode: str
    ca: str = field(default="", repr=False)

    @property
    def is_verified(self) -> bool:
        """Whether a password may be sent there: there is a host, and it has to prove that it is the server.

        By its authority alone only where that signs no others: of the system's anybody gets a certificate.
        """
        is_proven = self.sslmode == VERIFIED or (self.sslmode == VERIFIED_BY_AUTHORITY and bool(self.ca))
        return bool(self.host) and is_proven

    def __str__(self) -> str:
        """Return host and port, or that there is none yet."""
        return f"{self.host}:{self.port}" if self.host else "the database"


NO_ENDPOINT = Endpoint("", 0, "", "")
