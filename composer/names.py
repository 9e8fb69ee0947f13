"""Every name made by rule: annotations, labels, object names, field managers, identities. Pure.

The rules hold for the life of a database; a change of one of them loses it.
"""

from __future__ import annotations

import base64
import functools
import hashlib
import re
from collections.abc import Iterable
from dataclasses import dataclass

from runtime.objects import Key, Object, annotations_of

PREFIX = "fairlead.dev/"
CLAIM_LABEL = PREFIX + "claim"
STATEFUL_LABEL = PREFIX + "stateful"
EPHEMERAL_LABEL = PREFIX + "ephemeral"
COMPOSABLE_LABEL = PREFIX + "composable"
AGGREGATE_LABEL = PREFIX + "aggregate-to-composer"

IDENTITY = PREFIX + "identity"
COMPOSITION = PREFIX + "composition"
KINDS = PREFIX + "kinds"
CLAIM_NAME = PREFIX + "claim-name"
RESOURCE = PREFIX + "resource"
KEY = PREFIX + "key"
STATEFUL = PREFIX + "stateful"
DEPENDS_ON = PREFIX + "depends-on"
CONNECTION_SECRET = PREFIX + "connection-secret"
PAUSED = PREFIX + "paused"
PAUSED_REASON = PREFIX + "paused-reason"
RECONCILE_REQUESTED_AT = PREFIX + "reconcile-requested-at"
CONSENT = PREFIX + "consent"
TEARDOWN = PREFIX + "teardown"
ADOPT = PREFIX + "adopt"
MARKS = (PREFIX + "external-name", PREFIX + "incarnation", PREFIX + "account")

TEARDOWN_FINALIZER = PREFIX + "teardown"
IN_USE_FINALIZER = PREFIX + "in-use"
OWN_MANAGER = PREFIX + "composer"

_CLAIM_MANAGER = re.compile(r"fairlead\.dev/[0-9a-f]{16}")
_CLAIM_CUT = 30
_RESOURCE_CUT = 21
_HASH_LENGTH = 10


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
        """Read an identity; None when it is none."""
        uid, at, place = text.partition("@")
        namespace, slash, name = place.partition("/")
        return cls(uid, namespace, name) if uid and at and slash and name else None

    @classmethod
    def choose(cls, candidates: Iterable[str], claim: Key, uid: str) -> Identity:
        """Take the first recorded identity that speaks of this claim, else make one.

        An identity that names another object came with a copy of its manifest and is not taken.
        """
        for candidate in candidates:
            known = cls.parse(candidate)
            if known and (known.namespace, known.name) == (claim.namespace, claim.name):
                return known
        return cls(uid, claim.namespace, claim.name)


def is_reserved(name: str) -> bool:
    """Tell whether a label or an annotation is Fairlead's own, which no template sets."""
    return "fairlead.dev" in name and name.partition("/")[0].endswith("fairlead.dev")


@functools.lru_cache(maxsize=8_192)
def child_name(identity: Identity, resource: str, key: str = "") -> str:
    """Name a child: the same claim, resource and forEach key always give the same, at most 63 characters."""
    seed = f"{identity.uid}\0{resource}\0{key}".encode()
    digest = base64.b32encode(hashlib.sha256(seed).digest()).decode().lower()[:_HASH_LENGTH]
    return f"{_cut(identity.name, _CLAIM_CUT)}-{_cut(resource, _RESOURCE_CUT)}-{digest}"


def _cut(text: str, length: int) -> str:
    return text[:length].rstrip("-.")


def manager(group: str, kind: str, claim: Key) -> str:
    """Name the field manager of a claim; it outlives a restore, which changes the uid."""
    seed = f"{group}\0{kind}\0{claim.namespace}\0{claim.name}".encode()
    return PREFIX + hashlib.sha256(seed).hexdigest()[:16]


def is_claim_manager(name: str) -> bool:
    """Tell whether a field manager is one that some claim of ours has or had."""
    return _CLAIM_MANAGER.fullmatch(name) is not None


def connection_secret(claim: Key, chosen: str) -> str:
    """Name the connection Secret: as chosen, or after the claim, cut to what a Secret may be called."""
    if chosen:
        return chosen
    suffix = "-connection"
    return f"{_cut(claim.name, 253 - len(suffix))}{suffix}"


def marks_of(child: Object) -> dict[str, str]:
    """Return the marks that a provider left on a child, without the prefix."""
    annotations = annotations_of(child)
    return {mark.removeprefix(PREFIX): annotations[mark] for mark in MARKS if annotations.get(mark)}


def word(uid: str, verdict: str) -> str:
    """Spell the teardown word for the child of that uid; it is void for any other."""
    return f"{uid}/{verdict}"
