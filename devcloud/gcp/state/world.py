"""All that there is: projects, instances, backups, names that are reserved, and what instances showed of late."""

from datetime import datetime

import msgspec

from devcloud.gcp.refusals import no_instance, not_running, wrong_state
from devcloud.gcp.state.model import Backup, Instance, Project
from devcloud.gcp.state.settings import Json
from devcloud.simulator.clock import Clock
from devcloud.simulator.history import History
from devcloud.simulator.messages import Refusal
from runtime import randomness

_PENDING = frozenset({"PENDING_CREATE", "PENDING_DELETE"})
_OPEN = frozenset({"ENQUEUED", "RUNNING"})


class World:
    """The resources of all projects, by `project:name`.

    Attributes:
        clock: The simulated time.
        projects: By id.
        instances: Those that there are.
        backups: By project and id.
        reserved: Until when the name of a deleted instance stays taken.
        history: What instances showed of late.
        unsettled: Instances and backups whose state an operation ends, each with the instance of that operation.
        changes: How often something changed.
    """

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.projects: dict[str, Project] = {}
        self.instances: dict[str, Instance] = {}
        self.backups: dict[str, Backup] = {}
        self.reserved: dict[str, datetime] = {}
        self.history: History[Json] = History()
        self.unsettled: dict[str, str] = {}
        self.changes = 0

    def project(self, name: str) -> Project | None:
        """Return a project by id or number."""
        return next((project for project in self.projects.values() if name in {project.id, project.number}), None)

    def put(self, instance: Instance) -> None:
        """Have an instance, new or changed."""
        self.changes += 1
        if instance.keeps_logs != (instance.logged_from is not None):
            logged_from = self.clock.now() if instance.keeps_logs else None
            instance = msgspec.structs.replace(instance, logged_from=logged_from)
        self.instances[instance.key] = instance
        self._note(instance.key, instance.key, is_open=instance.state in _PENDING)
        self.history.add(instance.key, self.clock.now(), instance.shown)

    def remove(self, key: str) -> None:
        """Have an instance no more."""
        self.changes += 1
        del self.instances[key]
        self.unsettled.pop(key, None)
        self.history.add(key, self.clock.now(), None)

    def put_backup(self, backup: Backup) -> None:
        """Have a backup, new or changed."""
        self.changes += 1
        self.backups[backup.key] = backup
        self._note(backup.key, f"{backup.project}:{backup.instance}", is_open=backup.state in _OPEN)

    def drop_backup(self, key: str) -> None:
        """Have a backup no more."""
        self.changes += 1
        self.backups.pop(key, None)
        self.unsettled.pop(key, None)

    def reserve(self, key: str, until: datetime) -> None:
        """Keep the name of a deleted instance taken for a while."""
        self.changes += 1
        self.reserved[key] = until

    def is_reserved(self, key: str) -> bool:
        """Return whether a name is taken by an instance that is deleted."""
        return key in self.reserved and self.clock.now() < self.reserved[key]

    def instance(self, project: str, name: str) -> Instance:
        """Return an instance.

        Raises:
            Refusal: There is none.
        """
        instance = self.instances.get(f"{project}:{name}")
        if instance is None:
            raise no_instance()
        return instance

    def changeable(self, project: str, name: str) -> Instance:
        """Return an instance whose settings may be changed now; a stopped one's may.

        Raises:
            Refusal: There is none, or its state allows no change.
        """
        instance = self.instance(project, name)
        if instance.state != "RUNNABLE":
            raise wrong_state()
        return instance

    def running(self, project: str, name: str) -> Instance:
        """Return an instance whose users and databases can be asked for.

        Raises:
            Refusal: There is none, or it does not run.
        """
        instance = self.instance(project, name)
        if not instance.runs:
            raise not_running()
        return instance

    def backup(self, project: str, backup_id: str) -> Backup:
        """Return a backup.

        Raises:
            Refusal: There is none.
        """
        backup = self.backups.get(f"{project}/{backup_id}")
        if backup is None:
            raise Refusal("notFound", "The requested backup does not exist.")
        return backup

    def new_backup_id(self) -> str:
        """Return the id of a new backup: its time in milliseconds, as Google's, no two the same."""
        number = int(self.clock.now().timestamp() * 1000)
        taken = {backup.id for backup in self.backups.values()}
        while str(number) in taken:
            number += 1
        return str(number)

    def clear(self) -> None:
        """Have nothing but the projects."""
        self.changes += 1
        for key in list(self.instances):
            self.history.add(key, self.clock.now(), None)
        self.instances.clear()
        self.backups.clear()
        self.reserved.clear()
        self.unsettled.clear()

    def _note(self, key: str, instance: str, *, is_open: bool) -> None:
        if is_open:
            self.unsettled[key] = instance
        else:
            self.unsettled.pop(key, None)


def new_uid() -> str:
    """Return the id of one incarnation of an instance, which no other has."""
    return f"i-{randomness.token_hex(10)}"
