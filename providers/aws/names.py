"""Names in RDS made by rule, those of final snapshots included, and whose a thing is by its tags. Pure.

Tags are `[{"Key": ..., "Value": ...}]` as RDS takes and shows them; keys that begin with `aws:` are AWS's own.
"""

from __future__ import annotations

import hashlib
import itertools
import re
from collections.abc import Iterable, Mapping
from typing import TypeAlias

from apis.names import PREFIX
from providers.aws import states
from providers.external.ownership import Identity, Owner
from runtime import kubectl

LONGEST_SNAPSHOT = 255
"""Of a snapshot's identifier (DeleteDBInstance, FinalDBSnapshotIdentifier)."""

_FINAL_PREFIX = "fl-final"

_MARK_LENGTH = 8

_NUMBER_LENGTH = 5

_TRIED = 5

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
    found = _BY_RULE.fullmatch(name[-11:])
    return found[1] if found else ""


def owner_tags(owner: Owner) -> dict[str, str]:
    """Return the tags that say whose it is: three that decide, three that people read, and whose namespace it is."""
    found = {
        INSTALLATION: owner.installation,
        IDENTITY: owner.identity,
        CLAIM: owner.claim,
        "fairlead-namespace": owner.namespace,
        "fairlead-name": owner.name,
        "fairlead-resource": owner.resource,
        NAMESPACE_UID: owner.namespace_uid,
    }
    return {key: value for key, value in found.items() if value}


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


def stem_of(name: str, incarnation: str, prefix: str | None) -> str:
    """Return what the final snapshots of one incarnation, and of no other, begin with."""
    mark = hashlib.sha256(incarnation.encode()).hexdigest()[:_MARK_LENGTH]
    room = LONGEST_SNAPSHOT - _MARK_LENGTH - _NUMBER_LENGTH
    stem = re.sub(r"-{2,}", "-", f"{prefix or _FINAL_PREFIX}-{name}")[:room].rstrip("-")
    return f"{stem}-{mark}"


def names_for(stem: str, taken: Iterable[str]) -> tuple[str, ...]:
    """Return the stem's first names that no snapshot in `taken` has; an earlier one is not what is there now."""
    present = set(taken)
    numbered = (stem if number == 1 else f"{stem}-{number}" for number in itertools.count(1))
    return tuple(itertools.islice((name for name in numbered if name not in present), _TRIED))


def taken_by_others(name: str, tried: tuple[str, ...]) -> str:
    """Return what to say when each name that was tried is another snapshot's."""
    return (
        f"instance {name} is not deleted: snapshots of other instances have the names of its final snapshot,"
        f" {tried[0]} to {tried[-1]}; delete or copy them, set finalDBSnapshotIdentifierPrefix, or choose the deletion"
        " policy Delete or Orphan"
    )


def final_refused(name: str, state: str) -> str:
    """Return what to say of an instance of which RDS takes no final snapshot as it is."""
    return (
        f"instance {name} is {state}, and RDS takes no final snapshot of it: nothing is deleted;"
        f" {states.advice(state)}, or choose the deletion policy Delete or Orphan"
    )


def final_failed(name: str, snapshot: str) -> str:
    """Return what to say when the final snapshot of an instance that is gone came to nothing."""
    return (
        f"the final snapshot {snapshot} of instance {name} failed, and the instance is gone: what is left are its"
        " automated backups, if any. Restore from these, then choose the deletion policy Delete or Orphan to let the"
        " object go"
    )


def renamed(name: str, now: str, address: str) -> str:
    """Return what to say of an instance that lives on under another name; `address` is its resource's for kubectl."""
    command = kubectl.annotate(address, PREFIX + "external-name", now, overwrites=True)
    return (
        f"instance {name} was renamed and is called {now} now; nothing is changed or let go. Rename it back to {name};"
        f" or, to go on with it under that name: {command}"
    )
