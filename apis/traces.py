"""Which claim's trace a pass over an object is part of. Pure."""

from __future__ import annotations

from apis import names
from apis.identity import Identity
from runtime.objects import Object, annotations_of, labels_of, uid_of
from runtime.trace_ids import Subject


def subject_of(obj: Object) -> Subject:
    """Return the claim that a child belongs to; a claim, and what belongs to none, is its own subject."""
    of_claim = labels_of(obj).get(names.CLAIM_LABEL)
    if of_claim:
        return Subject(of_claim, is_owner=False)
    identity = Identity.parse(annotations_of(obj).get(names.IDENTITY, ""))
    return Subject(identity.uid if identity else uid_of(obj), is_owner=True)
