"""What is kept of a project's instances, users, databases and backups. Pure.

Resources are JSON as the API shows it; what it never shows stands beside.
"""

from datetime import datetime
from typing import Literal

import msgspec

from devcloud.gcp.state.settings import Json

UserKind = Literal["BUILT_IN", "CLOUD_IAM_USER", "CLOUD_IAM_SERVICE_ACCOUNT", "CLOUD_IAM_GROUP"]
BackupState = Literal["ENQUEUED", "RUNNING", "SUCCESSFUL", "FAILED"]


class User(msgspec.Struct, frozen=True, kw_only=True):
    """A user that the API made, and `postgres`.

    Attributes:
        name: The role.
        kind: With a password, or known to IAM.
        roles: What was granted beside the usual.
    """

    name: str
    kind: UserKind = "BUILT_IN"
    roles: tuple[str, ...] = ()


class DatabaseOf(msgspec.Struct, frozen=True, kw_only=True):
    """A database inside an instance."""

    name: str
    charset: str = "UTF8"
    collation: str = "en_US.UTF8"


class Backup(msgspec.Struct, frozen=True, kw_only=True):
    """A backup: of one run (it goes with its instance, unless that keeps them), or a final one (it stays).

    Attributes:
        id: Of the run, and the last part of the name of the backup.
        project: Its project.
        instance: The name of the instance.
        kind: What made it.
        state: How far it is.
        description: Whatever somebody wrote.
        region: Where it lies.
        version: Of the instance: `POSTGRES_16`.
        at: When it was asked for.
        ended_at: When it was done or failed.
        expires_at: When it goes by itself; None for never.
        settings: The instance as it was, for a restore.
        users: Those in its data.
        databases: Those in its data.
        is_gone: Whether the instance is deleted.
        gone_at: When that happened.
    """

    id: str
    project: str
    instance: str
    kind: Literal["ON_DEMAND", "AUTOMATED", "FINAL"]
    state: BackupState = "ENQUEUED"
    description: str = ""
    region: str
    version: str
    at: datetime
    ended_at: datetime | None = None
    expires_at: datetime | None = None
    settings: Json = {}
    users: dict[str, User] = {}
    databases: dict[str, DatabaseOf] = {}
    is_gone: bool = False
    gone_at: datetime | None = None

    @property
    def key(self) -> str:
        """Under which the databases keep its data."""
        return f"{self.project}/{self.id}"


class Instance(msgspec.Struct, frozen=True, kw_only=True):
    """An instance.

    Attributes:
        uid: What no other instance ever has; the databases know it by this.
        project: The project's id.
        shown: As the API shows it, but for its etag.
        password: Of `postgres`, until its database has it.
        users: By name.
        databases: By name.
        host: Where its database answers, empty until there is one.
        next_authority: The certificate of the authority that was added and does not sign yet, empty for none.
        former_authority: The certificate of the one that signed before the last rotation, empty for none.
        logged_from: Since when its logs are kept for point-in-time recovery, None where they are not.
    """

    uid: str
    project: str
    shown: Json
    password: str
    users: dict[str, User] = {}
    databases: dict[str, DatabaseOf] = {}
    host: str = ""
    next_authority: Json = {}
    former_authority: Json = {}
    logged_from: datetime | None = None

    def __repr__(self) -> str:
        return f"Instance({self.key}, {self.uid})"

    @property
    def name(self) -> str:
        """Its name."""
        return str(self.shown["name"])

    @property
    def key(self) -> str:
        """Project and name."""
        return f"{self.project}:{self.name}"

    @property
    def state(self) -> str:
        """As the API shows it: RUNNABLE is also what its owner stopped."""
        return str(self.shown["state"])

    @property
    def is_stopped(self) -> bool:
        """Whether its owner stopped it."""
        return bool(self.shown["settings"]["activationPolicy"] == "NEVER")

    @property
    def runs(self) -> bool:
        """Whether its database answers."""
        return self.state == "RUNNABLE" and not self.is_stopped

    @property
    def keeps_logs(self) -> bool:
        """Whether it can be recovered to a point in time."""
        return bool(self.shown["settings"]["backupConfiguration"].get("pointInTimeRecoveryEnabled"))

    def shows(self, **changes: object) -> "Instance":
        """Return it with other fields of its resource."""
        return msgspec.structs.replace(self, shown={**self.shown, **changes})


class Project(msgspec.Struct, frozen=True, kw_only=True):
    """A project: its id is the name of people, its number the one of machines."""

    id: str
    number: str
