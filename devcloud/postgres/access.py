"""Whom an instance lets begin a session: by the client's address, and by whether it speaks TLS. Pure."""

import ipaddress

import msgspec


class Access(msgspec.Struct, frozen=True, kw_only=True):
    """An instance's firewall.

    Attributes:
        networks: The client addresses that its rules let in, as CIDR; None is every address, `()` is none.
        requires_tls: Whether a session without TLS is refused.
    """

    networks: tuple[str, ...] | None = None
    requires_tls: bool = True

    def admits(self, host: str) -> bool:
        """Return whether a client of this address comes through the firewall."""
        if self.networks is None:
            return True
        address = ipaddress.ip_address(host)
        return any(address in ipaddress.ip_network(network) for network in self.networks)


EVERYBODY = Access()
"""Every address, with TLS."""
