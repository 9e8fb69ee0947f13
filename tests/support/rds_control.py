"""The control API of the simulated RDS, `/_control`, beside the account that a test drives."""

from __future__ import annotations

import json
import urllib.request
from typing import Any

from devcloud.aws.server import Served


def control(served: Served, method: str, path: str, body: object = None) -> Any:
    """Make a control call; return its JSON. Raises HTTPError where it is refused."""
    request = urllib.request.Request(  # noqa: S310 - loop-back
        f"{served.url}/_control/{path}",
        method=method,
        data=None if body is None else json.dumps(body).encode(),
        headers=headers_of(served.control_token),
    )
    with urllib.request.urlopen(request, timeout=60) as reply:  # noqa: S310 - as above
        return json.load(reply)


def headers_of(token: str) -> dict[str, str]:
    """Return what a control call has to carry."""
    return {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
