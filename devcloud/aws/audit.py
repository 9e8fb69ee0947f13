"""What the log of calls says of a call to RDS or STS."""

from devcloud.aws.api.wire import Tree
from devcloud.simulator.audit import Entry

SECRETS = frozenset({"MasterUserPassword", "WebIdentityToken", "TdeCredentialPassword"})
"""The parameters that the log does not keep."""
_READS = ("Describe", "List", "Get")


class AwsEntry(Entry, frozen=True, kw_only=True):
    """A call; the principal is an ARN.

    Attributes:
        access_key_id: The caller's key.
    """

    access_key_id: str


def mutates(action: str) -> bool:
    """Return whether an action changes something."""
    return not action.startswith((*_READS, "AssumeRole"))


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
