"""Which endpoints other than a cloud's own a ProviderConfig may name. Pure.

Whoever may write a ProviderConfig could otherwise send the provider's signed requests, session tokens in them, to a
host of their own or at the metadata service of the node. The process's own command line lists what is allowed.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable
from urllib.parse import SplitResult, urlsplit

# What urlsplit would drop or let through in silence.
_NOT_PLAIN = re.compile(r"[^!-~]|[\\%@#?]")


def refusal(endpoint: str, allowed: Iterable[str]) -> str:
    """Return why nothing may be sent to an endpoint, empty when it may; no endpoint at all is the cloud's own.

    `allowed` holds hosts, which stand for all their ports, and `host:port` pairs. Only https, or http to an address of
    this machine's loopback.
    """
    if not endpoint:
        return ""
    parts = None if _NOT_PLAIN.search(endpoint) else _parts(endpoint)
    if parts is None:
        return "the endpoint is no plain URL of a host, as https://rds.example.org; nothing was sent"
    host, port = parts.hostname or "", parts.port
    named = f"[{host}]" if ":" in host else host
    with_port = f"{named}:{port or (443 if parts.scheme == 'https' else 80)}"
    if not {named, with_port} & {name.lower() for name in allowed}:
        return (
            f"the endpoint's host {with_port} is not allowed; the provider's process must be started with"
            f" --endpoint-override {with_port}, nothing was sent"
        )
    if parts.scheme == "http" and not _is_loopback(host):
        return f"the endpoint {with_port} is reached by http; use https, nothing was sent"
    return ""


def _parts(endpoint: str) -> SplitResult | None:
    try:
        parts = urlsplit(endpoint)
        usable = parts.scheme in {"http", "https"} and parts.path in {"", "/"} and parts.hostname and parts.port != 0
    except ValueError:
        return None
    return parts if usable else None


def _is_loopback(host: str) -> bool:
    """Return whether a host is an address of the loopback; a name is none, as it may lead elsewhere tomorrow."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
