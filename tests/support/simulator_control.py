"""The control API of a simulated cloud, `/_control`, beside the account that a test drives."""

from __future__ import annotations

import json
import ssl
import urllib.request
from typing import Any, Protocol


class Served(Protocol):
    """A simulated cloud that serves."""

    @property
    def url(self) -> str:
        """Its one endpoint."""

    @property
    def control_token(self) -> str:
        """What a control call carries."""


def control(
    served: Served, method: str, path: str, body: object = None, *, context: ssl.SSLContext | None = None
) -> Any:
    """Make a control call; return its JSON. Raises HTTPError where it is refused."""
    return send(served, method, f"_control/{path}", body, headers_of(served.control_token), context=context)


def send(
    served: Served,
    method: str,
    path: str,
    body: object,
    headers: dict[str, str],
    *,
    context: ssl.SSLContext | None = None,
) -> Any:
    """Make a call with a body of JSON, with a context over TLS; return its JSON. Raises HTTPError when refused."""
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(f"{served.url}/{path}", method=method, data=data, headers=headers)  # noqa: S310 - loop-back
    with urllib.request.urlopen(request, timeout=60, context=context) as reply:  # noqa: S310 - as above
        return json.load(reply)


def headers_of(token: str) -> dict[str, str]:
    """Return what a control call has to carry."""
    return {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
