"""REST APIs as a discovery document describes them: paths with parameters, JSON bodies, bearer tokens. Pure."""

import re
import secrets
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import msgspec

from devcloud.simulator.messages import Refusal

_SCHEME = "bearer "
_PARAMETER = re.compile(r"\{(\w+)\}")


class Route(msgspec.Struct, frozen=True):
    """A method and a path, as `projects/{project}/instances/{instance}`, and the action that they call."""

    method: str
    path: str
    action: str


class Match(msgspec.Struct, frozen=True):
    """The action that a request calls, and the parameters of its path."""

    action: str
    parameters: Mapping[str, str]


class Routes:
    """The routes of an API."""

    def __init__(self, routes: Sequence[Route], *, ignore_case: bool = False) -> None:
        """Keep the routes.

        Args:
            routes: The first that matches wins.
            ignore_case: Whether the names in paths may come in any letter case, as in Azure.
        """
        flags = re.IGNORECASE if ignore_case else 0
        self._routes = [(route, re.compile(_pattern(route.path), flags)) for route in routes]

    def match(self, method: str, path: str) -> Match | None:
        """Return what a method and a path call, None for nothing."""
        for route, pattern in self._routes:
            match = pattern.fullmatch(path.strip("/"))
            if match is not None and method == route.method:
                return Match(route.action, match.groupdict())
        return None


def _pattern(path: str) -> str:
    parts = _PARAMETER.split(path.strip("/"))
    # Every second part is the name of a parameter.
    return "".join(f"(?P<{part}>[^/]+)" if index % 2 else re.escape(part) for index, part in enumerate(parts))


def json_object(body: bytes, *, code: str) -> dict[str, Any]:
    """Return the object that a body holds, an empty one for an empty body.

    Raises:
        Refusal: It is none; the code is the cloud's own, the status 400.
    """
    if not body.strip():
        return {}
    try:
        return msgspec.json.decode(body, type=dict[str, Any])
    except msgspec.DecodeError as error:
        raise Refusal(code, f"The request body is no JSON object: {error}", status=400) from None


class Grant(msgspec.Struct, frozen=True, kw_only=True):
    """Whom a token stands for.

    Attributes:
        principal: By the cloud's own name.
        account: Its project or subscription.
        expires_at: When it ends, None for never.
    """

    principal: str
    account: str
    expires_at: datetime | None = None


class Tokens:
    """The bearer tokens (RFC 6750) that were given out; what a cloud answers without a good one is its own.

    Attributes:
        grants: By token.
    """

    def __init__(self) -> None:
        self.grants: dict[str, Grant] = {}

    def issue(self, grant: Grant) -> str:
        """Return a new token."""
        token = secrets.token_urlsafe(32)
        self.grants[token] = grant
        return token

    def holder(self, headers: Mapping[str, str], now: datetime) -> Grant | None:
        """Return whom the `Authorization` of a request stands for; None without one, with a wrong or an expired one."""
        header = headers.get("authorization", "")
        if not header.lower().startswith(_SCHEME):
            return None
        grant = self.grants.get(header[len(_SCHEME) :].strip())
        expired = grant is not None and grant.expires_at is not None and grant.expires_at <= now
        return None if expired else grant
