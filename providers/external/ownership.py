"""Names and owner tags made by rule from who asked: the same object always leads to the same names.

A resource that a claim composed carries the claim's identity as label and annotations; one that stands alone is its own
claim. Pure.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from apis import names
from apis.identity import connection_secret_name, name_hash
from apis.names import CLAIM_NAME, CONNECTION_SECRET, TEARDOWN_FINALIZER
from runtime.objects import Object, annotations_of, finalizers_of, key_of, labels_of, metadata, uid_of


@dataclass(frozen=True, slots=True)
class Owner:
    """Whose database it is, as written into the cloud's tags.

    Ours means that `installation`, `identity` and `claim` agree; the next three are for people to read. A namespace is
    its uid: another one of the same name may be another tenant's. Empty where it is not known.
    """

    installation: str
    identity: str
    claim: str
    namespace: str = ""
    name: str = ""
    resource: str = ""
    namespace_uid: str = ""

    def owns(self, other: Owner | None) -> bool:
        """Return whether `other` is this owner: all three tags agree."""
        return other is not None and self.tags == other.tags

    @property
    def tags(self) -> tuple[str, str, str]:
        """The three tags that decide ownership."""
        return self.installation, self.identity, self.claim

    def precedes(self, other: Owner) -> bool:
        """Return whether `other` is the same claim of the same installation under another identity."""
        return (self.installation, self.claim) == (other.installation, other.claim) and self.identity != other.identity

    def is_of(self, namespace: str, uid: str) -> bool:
        """Return whether it was made in this namespace; where no uid is known on either side the name stands for it."""
        if self.namespace_uid and uid:
            return self.namespace_uid == uid
        return self.namespace == namespace[:63]

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name} ({self.resource}) of installation {self.installation}"


@dataclass(frozen=True, slots=True)
class Identity:
    """Who asks: the identity's uid, the claim's name, the resource name and the forEach key.

    `doubtful`: it was composed for a claim, but which one can no longer be read; nothing may be done in its name.
    """

    uid: str
    claim_name: str
    resource: str
    for_each_key: str
    has_claim: bool
    doubtful: bool = False

    @property
    def hash(self) -> str:
        """Ten characters that make a cloud name unique."""
        return name_hash(self.uid, self.resource, self.for_each_key)


def identity_of(obj: Object) -> Identity:
    """Read who asks from the labels and annotations of a managed resource."""
    annotations = annotations_of(obj)
    claim_uid = labels_of(obj).get(names.CLAIM_LABEL, "")
    claim_name = annotations.get(names.CLAIM_NAME, "")
    if claim_uid and claim_name:
        resource, key = annotations.get(names.RESOURCE, ""), annotations.get(names.FOR_EACH_KEY, "")
        return Identity(claim_uid, claim_name, resource, key, has_claim=True)
    name = key_of(obj).name
    composed = bool(claim_uid or claim_name or _controller(obj))
    return Identity(uid_of(obj), name, name, "", has_claim=composed, doubtful=composed)


def _controller(obj: Object) -> bool:
    return any(reference.get("controller") for reference in metadata(obj).get("ownerReferences") or ())


def owner_of(obj: Object, installation: str, namespace_uid: str = "") -> Owner:
    """Return the tags that a database made for this object carries; `namespace_uid` is its Namespace's."""
    identity, namespace = identity_of(obj), key_of(obj).namespace
    text = f"{namespace}\0{identity.claim_name}\0{identity.resource}\0{identity.for_each_key}"
    claim = hashlib.sha256(text.encode()).hexdigest()[:16]
    people = (namespace[:63], identity.claim_name[:63], identity.resource[:63])
    return Owner(installation, identity.uid, claim, *people, namespace_uid)


def connection_secret_of(obj: Object) -> str:
    """Name the Secret to which the composer copies this resource's connection, empty without a claim.

    Nothing is taken from there unless it agrees with a keyed hash in the status: the name is a hint, and no authority.
    """
    annotations = annotations_of(obj)
    claim = annotations.get(CLAIM_NAME, "")
    return connection_secret_name(claim, annotations.get(CONNECTION_SECRET, "")) if claim else ""


def held(obj: Object) -> bool:
    """Return whether our finalizer is on the object."""
    return TEARDOWN_FINALIZER in finalizers_of(obj)
