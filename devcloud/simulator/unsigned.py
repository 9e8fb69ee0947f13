"""Whom the simulator answers where no signature is asked for: a program of this machine that holds a token. Pure.

A page in a browser can send requests to a loop-back address, too: it is known by `Origin`, by `Sec-Fetch-Site` (Fetch
Metadata Request Headers), by a `Host` that was rebound, and by a body that needs no preflight.
"""

from __future__ import annotations

import hmac
from collections.abc import Mapping

_JSON = "application/json"


def refusal_of(method: str, headers: Mapping[str, str], *, own: str, token: str, scheme: str = "Bearer ") -> str:
    """Return why a request is not answered, empty when it is.

    Args:
        method: Its HTTP method.
        headers: Its headers, names in lower case.
        own: The host and port that the server listens on.
        token: What `Authorization` must hold behind `scheme`; empty when nobody was given one.
        scheme: What stands before the token.
    """
    host = headers.get("host", "")
    if host != own:
        return f"Host is {host[:100]!r}, not {own}"
    for name in ("origin", "sec-fetch-site"):
        if name in headers:
            return f"a request with {name} comes from a page of a browser"
    if method == "POST" and headers.get("content-type", "").partition(";")[0].strip().lower() != _JSON:
        return f"Content-Type must be {_JSON}"
    if not token:
        return "closed: the simulator was started without a token for this"
    header = headers.get("authorization", "")
    if not hmac.compare_digest(header.encode(), f"{scheme}{token}".encode()):
        return f"Authorization must be {scheme}<the token of the file that the simulator was started with>"
    return ""
