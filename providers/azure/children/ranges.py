"""Ranges of IPv4 addresses, as a network or by their first and last address. Pure."""

from __future__ import annotations

from ipaddress import AddressValueError, IPv4Address, IPv4Network, NetmaskValueError

from providers.azure.models import FlexibleServerFirewallRuleParameters
from runtime.errors import Terminal

_AZURE = "0.0.0.0"  # noqa: S104 - an address that is refused


def of_spec(spec: FlexibleServerFirewallRuleParameters) -> tuple[str, str]:
    """Return first and last address of a rule; raises Terminal `InvalidValue` for what is no range."""
    if spec.cidr is None:
        return spec.start_ip_address or "", spec.end_ip_address or ""
    try:
        network = IPv4Network(spec.cidr)
    except (AddressValueError, NetmaskValueError, ValueError):
        text = f"{spec.cidr} is no IPv4 network with its host bits zero, and Azure's rules know no other"
        raise Terminal("InvalidValue", text) from None
    return str(network[0]), str(network[-1])


def is_all_of_azure(spec: FlexibleServerFirewallRuleParameters) -> bool:
    """Return whether a range is 0.0.0.0 alone, which Azure reads as its own services, those of other customers too."""
    addresses = (spec.start_ip_address or "", spec.end_ip_address or "")
    return spec.cidr == f"{_AZURE}/32" or {_plain(address) for address in addresses} == {_AZURE}


def as_spec(spec: FlexibleServerFirewallRuleParameters, start: str, end: str) -> dict[str, str | None]:
    """Return the fields of a rule as the spec writes them, for the addresses that Azure shows."""
    if spec.cidr is None:
        return {"start_ip_address": start, "end_ip_address": end}
    same = _plain(start) == _plain(of_spec(spec)[0]) and _plain(end) == _plain(of_spec(spec)[1])
    return {"cidr": spec.cidr if same else f"{start}-{end}"}


def _plain(address: str) -> str:
    try:
        return str(IPv4Address(address))
    except AddressValueError:
        return address
