"""External names, ids of ARM, and whose a server is by its tags. Pure.

An external name is `<resource group>/<server>`, of what is inside a server `<resource group>/<server>/<name>`. Resource
groups are written in small letters: ARM takes and shows them in any.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple
from urllib.parse import unquote

from providers.external.cloud_api.tags import owner_from
from providers.external.ownership import Owner

NAMESPACE = "Microsoft.DBforPostgreSQL"
_SERVER_ID = re.compile(
    r"/subscriptions/(?P<subscription>[^/]+)/resourceGroups/(?P<group>[^/]+)"
    r"/providers/Microsoft\.DBforPostgreSQL/flexibleServers/(?P<name>[^/]+)",
    re.IGNORECASE,
)


class ServerName(NamedTuple):
    """A server by its resource group and name; both empty where it is not known."""

    group: str
    name: str

    def __str__(self) -> str:
        """Return the external name."""
        return f"{self.group}/{self.name}"


NO_SERVER = ServerName("", "")


def external_name(group: str, name: str) -> str:
    """Return the external name of a server."""
    return str(ServerName(group.lower(), name))


def server_in(name: str) -> ServerName:
    """Return the server of an external name, its own or the one that it is inside of."""
    parts = name.split("/")
    if len(parts) not in {2, 3} or not all(parts[:2]):
        return NO_SERVER
    return ServerName(parts[0], parts[1])


def child_in(name: str) -> str:
    """Return the name inside its server that an external name ends in, empty for none."""
    parts = name.split("/")
    return parts[2] if len(parts) == len(("group", "server", "child")) else ""


def server_in_path(path: str) -> ServerName | None:
    """Return the server that the path of a request leads to, or into; None for any other path."""
    match = _SERVER_ID.match(path)
    return None if match is None else ServerName(unquote(match["group"]).lower(), unquote(match["name"]))


def server_of_id(resource_id: str) -> tuple[str, ServerName] | None:
    """Return subscription and server of an ARM id, whatever its letter case; None for any other id."""
    match = _SERVER_ID.fullmatch(resource_id)
    return None if match is None else (match["subscription"].lower(), ServerName(match["group"].lower(), match["name"]))


def same_location(first: str, second: str) -> bool:
    """Return whether two locations are the same: ARM answers "UK South" to "uksouth"."""
    return first.replace(" ", "").lower() == second.replace(" ", "").lower()


def spelled_tags(tags: Mapping[str, str], wanted: Mapping[str, str]) -> dict[str, str]:
    """Return tags with the wanted spelling of their keys: ARM does not distinguish their letter case."""
    spelling = {key.lower(): key for key in wanted}
    return {spelling.get(key.lower(), key): value for key, value in tags.items()}


def lowercase_tags(tags: Mapping[str, Any]) -> dict[str, str]:
    """Return tags with their keys in small letters, as ours are spelled and as a digest of them is made."""
    return {str(key).lower(): str(value) for key, value in tags.items()}


def owner_in(tags: Mapping[str, str]) -> Owner | None:
    """Return whose a server is by its tags, in whatever letter case ARM answers their keys; None for nobody's."""
    return owner_from(lowercase_tags(tags))
