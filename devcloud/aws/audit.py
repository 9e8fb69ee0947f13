"""What was called, by whom, and what came of it: as CloudTrail keeps it, without passwords."""

from collections import deque
from datetime import datetime
from typing import Any

import msgspec

from devcloud.aws.api.wire import Tree

_KEPT = 200_000
_SECRET = frozenset({"MasterUserPassword", "WebIdentityToken", "TdeCredentialPassword"})
_READS = ("Describe", "List", "Get")


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """A call.

    Attributes:
        seq: Counts from 1.
        at: The simulated time.
        account: Of the caller, empty for one that is not known.
        region: From the signature.
        principal: The caller's ARN.
        access_key_id: Its key.
        action: As `ModifyDBInstance`.
        identifier: Of what it concerned, empty for none.
        params: The parameters, secrets blotted out.
        request_id: As in the answer.
        outcome: `ok`, an error's code, `dropped` or `hung`.
        mutating: Whether the action changes something.
    """

    seq: int = 0
    at: datetime
    account: str
    region: str
    principal: str
    access_key_id: str
    action: str
    identifier: str
    params: dict[str, Any]
    request_id: str
    outcome: str
    mutating: bool


class Audit:
    """The calls of late, oldest first."""

    def __init__(self) -> None:
        self._entries: deque[Entry] = deque(maxlen=_KEPT)
        self._seq = 0

    def add(self, entry: Entry) -> None:
        """Write a call down."""
        self._seq += 1
        self._entries.append(msgspec.structs.replace(entry, seq=self._seq))

    def since(self, seq: int) -> list[Entry]:
        """Return the calls after one."""
        return [entry for entry in self._entries if entry.seq > seq]

    def clear(self) -> None:
        """Forget all; numbers go on."""
        self._entries.clear()


def mutates(action: str) -> bool:
    """Return whether an action changes something."""
    return not action.startswith((*_READS, "AssumeRole"))


def without_secrets(parameters: Tree) -> Tree:
    """Return parameters with every secret value blotted out."""
    return {name: "****" if name in _SECRET else value for name, value in parameters.items()}


_IDENTIFIERS = (
    "DBInstanceIdentifier",
    "TargetDBInstanceIdentifier",
    "DBSnapshotIdentifier",
    "TargetDBSnapshotIdentifier",
    "DBSubnetGroupName",
    "DBParameterGroupName",
    "ResourceName",
    "RoleArn",
    "SourceIdentifier",
)


def identifier_of(parameters: Tree) -> str:
    """Return which resource a call concerns: a name, the last part of an ARN, or nothing."""
    identifier = next((str(parameters[name]) for name in _IDENTIFIERS if parameters.get(name)), "")
    return identifier.rsplit(":", 1)[-1] if identifier.startswith("arn:") else identifier
