"""The teardown instruction: what a provider is to do with what a deleted object stands for in the cloud. Pure.

The composer alone writes it, into annotation `fairlead.dev/teardown`, as `<uid of the object>/<policy>`: a copy of the
manifest has another uid, for which it is void.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final, Literal

from apis import names
from runtime.objects import Object, annotations_of, uid_of

DeletionPolicy = Literal["Orphan", "Snapshot", "Delete"]
"""`spec.deletionPolicy` of claims and managed resources."""


class Policy(StrEnum):
    """What a deletion does with the database: a deletion policy, or Detach, after which another object takes it."""

    ORPHAN = "Orphan"
    SNAPSHOT = "Snapshot"
    DELETE = "Delete"
    DETACH = "Detach"


ENDING: Final = (Policy.DELETE, Policy.SNAPSHOT)
"""Policies by which a provider ends what an object stands for in the cloud."""

_POLICIES: Final = frozenset(policy.value for policy in Policy)


def instruction(uid: str, policy: str) -> str:
    """Return the instruction for the object of that uid; it is void for any other."""
    return f"{uid}/{policy}"


def instruction_of(obj: Object) -> Policy | None:
    """Return the policy of an object's instruction, None while there is none; one for another uid is void."""
    uid, _, policy = annotations_of(obj).get(names.TEARDOWN, "").partition("/")
    if uid != uid_of(obj) or policy not in _POLICIES:
        return None
    return Policy(policy)


def policy_with(live: Object, teardown: str) -> str:
    """Return the `spec.deletionPolicy` that must go with an instruction, empty where none must."""
    present = (live.get("spec") or {}).get("deletionPolicy", "")
    return teardown if teardown in ("Delete", "Snapshot", "Orphan") and teardown != present else ""
