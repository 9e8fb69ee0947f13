"""Names made by rule from who asks: the same claim, resource and key always lead to the same names. Pure.

The rules hold for the life of a database; a change of one of them loses it.
"""

from __future__ import annotations

import base64
import functools
import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from apis import names
from runtime.objects import Key, Object, annotations_of, key_of, uid_of

CA_KEY: Final = "ca.crt"
"""Key of the credentials Secret that holds the certificates of the server's authority."""

_CLAIM_CUT = 30
_RESOURCE_CUT = 21
_HASH_LENGTH = 10
_LONGEST_NAME = 253
LONGEST_CHILD_NAME: Final = 63
"""The most characters of a child's name: as many as a DNS label and the value of a label have."""


@dataclass(frozen=True, slots=True)
class Identity:
    """Who a claim is for ever: its uid at first sight, and where it lives. Written `<uid>@<namespace>/<name>`."""

    uid: str
    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.uid}@{self.namespace}/{self.name}"

    @classmethod
    @functools.lru_cache(maxsize=8_192)
    def parse(cls, text: str) -> Identity | None:
        """Return the identity that a text spells; None when it spells none."""
        uid, at, place = text.partition("@")
        namespace, slash, name = place.partition("/")
        return cls(uid, namespace, name) if uid and at and slash and name else None

    @classmethod
    def choose(cls, candidates: Iterable[str], claim: Key, uid: str) -> Identity:
        """Return the first recorded identity that is of this claim, else a new one.

        An identity that names another object came with a copy of its manifest and is not taken.
        """
        for candidate in candidates:
            recorded = cls.parse(candidate)
            if recorded and (recorded.namespace, recorded.name) == (claim.namespace, claim.name):
                return recorded
        return cls(uid, claim.namespace, claim.name)


def name_hash(uid: str, resource: str, key: str = "") -> str:
    """Return ten characters that make a name unique: base32 of sha256 over identity uid, resource name and key."""
    digest = hashlib.sha256(f"{uid}\0{resource}\0{key}".encode()).digest()
    return base64.b32encode(digest).decode().lower()[:_HASH_LENGTH]


@dataclass(frozen=True, slots=True)
class NameRule:
    """What a Composition says of the names of a resource's objects: how they begin, and how long they may be."""

    prefix: str = ""
    limit: int = 0

    def room(self, resource: str) -> int:
        """Return how many characters of the claim's name go into a name, at most; 0 or less is no name."""
        around = len(self.prefix) + len(_cut(resource, _RESOURCE_CUT)) + _HASH_LENGTH + len("--")
        return min(_CLAIM_CUT, (self.limit or LONGEST_CHILD_NAME) - around)

    def longest(self, resource: str) -> int:
        """Return how long the names of a resource's objects become."""
        return len(self.prefix) + self.room(resource) + len(_cut(resource, _RESOURCE_CUT)) + _HASH_LENGTH + len("--")


PLAIN: Final = NameRule()
"""The rule of a resource whose Composition says nothing of names."""


@functools.lru_cache(maxsize=8_192)
def child_name(identity: Identity, resource: str, key: str = "", rule: NameRule = PLAIN) -> str:
    """Return the name of a child: the same claim, resource and forEach key give the same, at most 63 characters.

    Under a rule of its own it is a DNS label, too: without dots.
    """
    claim = identity.name if rule == PLAIN else identity.name.replace(".", "-")
    start = f"{rule.prefix}{_cut(claim, rule.room(resource))}"
    return f"{start}-{_cut(resource, _RESOURCE_CUT)}-{name_hash(identity.uid, resource, key)}"


def connection_secret_name(claim_name: str, chosen: str = "") -> str:
    """Return the name of the connection Secret: as chosen, or after the claim, cut to what a Secret may be called."""
    if chosen:
        return chosen
    suffix = "-connection"
    return f"{_cut(claim_name, _LONGEST_NAME - len(suffix))}{suffix}"


def credentials_secret_key(resource: Key) -> Key:
    """Return the key of a managed resource's credentials Secret."""
    return Key(resource.namespace, f"{resource.name}-credentials")


def _cut(text: str, length: int) -> str:
    return text[:length].rstrip("-.")


def identity_of(claim: Object) -> Identity:
    """Return the identity of a claim: annotation first, then status."""
    recorded = (annotations_of(claim).get(names.IDENTITY, ""), str((claim.get("status") or {}).get("identity") or ""))
    return Identity.choose(filter(None, recorded), key_of(claim), uid_of(claim))
