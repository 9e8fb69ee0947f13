"""Names in Cloud SQL made by rule, and whose an instance is by its labels. Pure.

Labels of Google Cloud have keys and values of at most 63 characters: lower-case letters, digits, `_` and `-`
(https://cloud.google.com/sql/docs/postgres/label-instance). Whatever else a value of ours holds is written as `_`
and two hexadecimal digits for each of its bytes in UTF-8, `_` itself as `_5f`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from providers.external.ownership import Identity, Owner

INSTALLATION = "fairlead-installation"
IDENTITY = "fairlead-identity"
CLAIM = "fairlead-claim"
NAMESPACE_UID = "fairlead-namespace-uid"
RELEASED = "fairlead-released"
_OURS = "fairlead-"
_LONGEST = 63
_PLAIN = re.compile(r"[a-z0-9-]")
_ESCAPED = re.compile(r"_([0-9a-f]{2})")
_CLAIM_LENGTH = 30
_BY_RULE = re.compile(r"-([a-z2-7]{10})")


def name_of(identity: Identity, prefix: str) -> str:
    """Return `<prefix><claim, 30>-<hash>`: lower-case letters, digits and dashes, a letter first.

    `project:instance` together have at most 98 characters (https://cloud.google.com/sql/docs/postgres/instance-settings):
    57 are left beside the longest id of a project.
    """
    claim = re.sub(r"[^a-z0-9]+", "-", identity.claim_name.lower())[:_CLAIM_LENGTH].strip("-")
    return f"{prefix}{claim}-{identity.hash}" if claim else f"{prefix}{identity.hash}"


def hash_in(name: str) -> str:
    """Return the hash that a name by rule ends in, empty for any other name."""
    match = _BY_RULE.fullmatch(name[-11:])
    return match[1] if match else ""


def child_name(server: str | None, name: str) -> str:
    """Return the external name of what is inside an instance: `<instance>/<name>`."""
    return f"{server or ''}/{name}"


def own_name(external_name: str) -> str:
    """Return the name that something has inside its instance."""
    return external_name.partition("/")[2] or external_name


def child_fields(external_name: str) -> dict[str, str]:
    """Return the fields of what is inside an instance that its external name says."""
    instance, _, name = external_name.partition("/")
    return {"instance": instance, "name": name}


def encoded(value: str) -> str:
    """Return a value as a label can hold it, cut so that no character is cut in two."""
    text = ""
    for character in value:
        more = character if _PLAIN.fullmatch(character) else "".join(f"_{byte:02x}" for byte in character.encode())
        if len(text) + len(more) > _LONGEST:
            break
        text += more
    return text


def decoded(value: str) -> str:
    """Return what a label of ours stands for; what we did not write is returned as far as it can be read."""
    parts = _ESCAPED.split(value)
    data = b"".join(bytes.fromhex(part) if place % 2 else part.encode() for place, part in enumerate(parts))
    return data.decode(errors="replace")


def owner_labels(owner: Owner) -> dict[str, str]:
    """Return the labels that say whose it is: three that decide, three that people read, and whose namespace it is."""
    labels = {
        INSTALLATION: owner.installation,
        IDENTITY: owner.identity,
        CLAIM: owner.claim,
        "fairlead-namespace": owner.namespace,
        "fairlead-name": owner.name,
        "fairlead-resource": owner.resource,
        NAMESPACE_UID: owner.namespace_uid,
    }
    return {key: encoded(value) for key, value in labels.items() if value}


def owner_from(labels: Mapping[str, str]) -> Owner | None:
    """Return whose it is; None when one of the three labels that decide is missing."""
    installation, identity, claim = (decoded(labels.get(key, "")) for key in (INSTALLATION, IDENTITY, CLAIM))
    if not (installation and identity and claim):
        return None
    namespace, name, resource = (
        decoded(labels.get(f"{_OURS}{part}", "")) for part in ("namespace", "name", "resource")
    )
    return Owner(installation, identity, claim, namespace, name, resource, decoded(labels.get(NAMESPACE_UID, "")))


def peoples_labels(labels: Mapping[str, str]) -> dict[str, str]:
    """Return the labels that are not ours."""
    return {key: value for key, value in labels.items() if not key.startswith(_OURS)}
