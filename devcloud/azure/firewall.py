"""A server's firewall: whom its rules, its network and its parameters let in. Pure."""

import ipaddress

from devcloud.azure.refusals import invalid_value
from devcloud.azure.state.configurations import TLS_REQUIRED
from devcloud.azure.state.model import Rule, Server
from devcloud.postgres.access import Access


def refuse_rule(rule: Rule) -> None:
    """Refuse a rule that is no range of IPv4 addresses.

    Raises:
        Refusal: `InvalidParameterValue`.
    """
    bounds = []
    for parameter, text in (("startIpAddress", rule.start_ip_address), ("endIpAddress", rule.end_ip_address)):
        try:
            bounds.append(ipaddress.IPv4Address(text))
        except ipaddress.AddressValueError:
            raise invalid_value(parameter) from None
    if bounds[0] > bounds[1]:
        raise invalid_value("endIpAddress")


def access_of(server: Server) -> Access:
    """Return whom a server lets in.

    In a subnet there are no rules: who reaches it comes in. Without public access nobody does, as private endpoints are
    not simulated. The rule from 0.0.0.0 to 0.0.0.0 lets Azure's own services in, which are none of this machine.
    """
    requires_tls = server.overrides.get(TLS_REQUIRED, "on").lower() != "off"
    if server.in_vnet:
        return Access(requires_tls=requires_tls)
    if server.properties.network.public_network_access == "Disabled":
        return Access(networks=(), requires_tls=requires_tls)
    networks = [str(network) for rule in server.rules.values() for network in _networks(rule)]
    return Access(networks=tuple(networks), requires_tls=requires_tls)


def _networks(rule: Rule) -> list[ipaddress.IPv4Network]:
    first, last = ipaddress.IPv4Address(rule.start_ip_address), ipaddress.IPv4Address(rule.end_ip_address)
    return list(ipaddress.summarize_address_range(first, last))
