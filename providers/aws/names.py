"""Names in RDS made by rule, and whose a thing is by its tags. Pure.

Tags are `[{"Key": ..., "Value": ...}]` as RDS takes and shows them; keys that begin with `aws:` are AWS's own.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import TypeAlias

from providers.external.ownership import Identity, Owner

Tag: TypeAlias = dict[str, str]

INSTALLATION = "fairlead-installation"
IDENTITY = "fairlead-identity"
CLAIM = "fairlead-claim"
RELEASED = "fairlead-released"
NAMESPACE_UID = "fairlead-namespace-uid"
_NOT_PEOPLES = ("fairlead-", "aws:")
_CLAIM_LENGTH = 30
_BY_RULE = re.compile(r"-([a-z2-7]{10})")


def name_of(identity: Identity, prefix: str) -> str:
    """Return `<prefix><claim, 30>-<hash>`, at most 57 characters of what RDS allows in names of all its kinds.

    Letters, digits and single dashes, a letter first and no dash last ("CreateDBInstance", DBInstanceIdentifier).
    """
    claim = re.sub(r"[^a-z0-9]+", "-", identity.claim_name.lower())[:_CLAIM_LENGTH].strip("-")
    return f"{prefix}{claim}-{identity.hash}" if claim else f"{prefix}{identity.hash}"


def hash_in(name: str) -> str:
    """Return the hash that a name by rule ends in, empty for any other name."""
    match = _BY_RULE.fullmatch(name[-11:])
    return match[1] if match else ""


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


def tags_of(owner: Owner, extra: Mapping[str, str] | None = None) -> list[Tag]:
    """Return the tags that a create call carries: those that the spec asks for, and the owner's."""
    return encoded_tags({**(extra or {}), **owner_tags(owner)})


def encoded_tags(tags: Mapping[str, str]) -> list[Tag]:
    """Return tags as RDS takes them, in a stable order."""
    return [{"Key": key, "Value": tags[key]} for key in sorted(tags)]


def decoded_tags(tags: Iterable[Mapping[str, str]]) -> dict[str, str]:
    """Return tags by their keys."""
    return {tag["Key"]: tag.get("Value", "") for tag in tags}


def owner_from(tags: Mapping[str, str]) -> Owner | None:
    """Return whose it is; None when one of the three tags that decide is missing."""
    installation, identity, claim = (tags.get(key, "") for key in (INSTALLATION, IDENTITY, CLAIM))
    if not (installation and identity and claim):
        return None
    namespace, name, resource = (tags.get(f"fairlead-{part}", "") for part in ("namespace", "name", "resource"))
    return Owner(installation, identity, claim, namespace, name, resource, tags.get(NAMESPACE_UID, ""))


def peoples_tags(tags: Mapping[str, str]) -> dict[str, str]:
    """Return the tags that are neither ours nor AWS's own."""
    return {key: value for key, value in tags.items() if not key.startswith(_NOT_PEOPLES)}
