"""Names in Azure made by rule, ids of ARM, and whose a server is by its tags. Pure.

An external name is `<resource group>/<server>`, of what is inside a server `<resource group>/<server>/<name>`. Resource
groups are written in small letters: ARM takes and shows them in any.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from providers.external.ownership import Identity, Owner

NAMESPACE = "Microsoft.DBforPostgreSQL"
INSTALLATION = "fairlead-installation"
IDENTITY = "fairlead-identity"
CLAIM = "fairlead-claim"
RELEASED = "fairlead-released"
NAMESPACE_UID = "fairlead-namespace-uid"
_CLAIM_LENGTH = 30
_BY_RULE = re.compile(r"-([a-z2-7]{10})")
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


def name_of(identity: Identity, prefix: str) -> str:
    """Return `<prefix><claim, 30>-<hash>`: at most 57 of the 63 characters that a server's name may have.

    Small letters, digits and dashes, none at an end ("Naming rules and restrictions for Azure resources").
    """
    claim = re.sub(r"[^a-z0-9]+", "-", identity.claim_name.lower())[:_CLAIM_LENGTH].strip("-")
    return f"{prefix}{claim}-{identity.hash}" if claim else f"{prefix}{identity.hash}"


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


def server_of_id(resource_id: str) -> tuple[str, ServerName] | None:
    """Return subscription and server of an ARM id, whatever its letter case; None for any other id."""
    match = _SERVER_ID.fullmatch(resource_id)
    return None if match is None else (match["subscription"].lower(), ServerName(match["group"].lower(), match["name"]))


def hash_in(name: str) -> str:
    """Return the hash that a name by rule ends in, empty for any other name."""
    match = _BY_RULE.fullmatch(name[-11:])
    return match[1] if match else ""


def same_location(first: str, second: str) -> bool:
    """Return whether two locations are the same: ARM answers "UK South" to "uksouth"."""
    return first.replace(" ", "").lower() == second.replace(" ", "").lower()


def owner_tags(owner: Owner) -> dict[str, str]:
    """Return the tags that say whose it is: three that decide, three that people read, and whose namespace it is."""
    tags = {
        INSTALLATION: owner.installation,
        IDENTITY: owner.identity,
        CLAIM: owner.claim,
        "fairlead-namespace": owner.namespace,
        "fairlead-name": owner.name,
        "fairlead-resource": owner.resource,
        NAMESPACE_UID: owner.namespace_uid,
    }
    return {key: value for key, value in tags.items() if value}


def spelled_tags(tags: Mapping[str, str], wanted: Mapping[str, str]) -> dict[str, str]:
    """Return tags with the wanted spelling of their keys: ARM does not distinguish their letter case."""
    spelling = {key.lower(): key for key in wanted}
    return {spelling.get(key.lower(), key): value for key, value in tags.items()}


def owner_from(tags: Mapping[str, str]) -> Owner | None:
    """Return whose it is; None when one of the three tags that decide is missing."""
    known = {key.lower(): value for key, value in tags.items()}
    installation, identity, claim = (known.get(key, "") for key in (INSTALLATION, IDENTITY, CLAIM))
    if not (installation and identity and claim):
        return None
    namespace, name, resource = (known.get(f"fairlead-{part}", "") for part in ("namespace", "name", "resource"))
    return Owner(installation, identity, claim, namespace, name, resource, known.get(NAMESPACE_UID, ""))
