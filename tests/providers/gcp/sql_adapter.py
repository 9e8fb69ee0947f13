"""Cloud SQL under the contract of clouds: instances of the simulated one over its wire, by a clock that is moved on."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, ClassVar

from devcloud.gcp.server import Served
from providers.gcp import INSTANCES
from runtime.objects import Object
from tests.providers.adapter import Adapter, Drift, ExternalObject, Mode, Property, Verb
from tests.providers.gates import Calls
from tests.providers.gcp.simulated_sql import OTHER_PROJECT, REGION, SimulatedSql, nested, owner_in, value_at
from tests.providers.gcp.sql_world import GatedWorld
from tests.providers.world import World

_METHODS: Mapping[Verb, str] = {"create": "insert", "update": "patch", "delete": "delete", "observe": "get"}
_ACTIONS = {verb: f"instances.{method}" for verb, method in _METHODS.items()}
_VERBS = {action: verb for verb, action in _ACTIONS.items()}
_REASONS: Mapping[Mode, str] = {
    "refused": "internalError", "forbidden": "notAuthorized", "absent": "instanceDoesNotExist", "invalid": "invalid"
}  # fmt: skip
_LACKING = {Property.CHILDREN, Property.SERVERS, Property.HALTS, Property.AUTHORITY, Property.LOGINS}
_TRIES = 3  # of a read that meets an error of the server, within one pass
_BACKUPS, _POLICY = ("settings", "backupConfiguration"), ("settings", "activationPolicy")


@dataclass
class SqlAdapter(Adapter):
    """Instances of Cloud SQL; nobody logs in to one, but to the users inside."""

    properties: ClassVar[frozenset[Property]] = frozenset(Property) - _LACKING
    has_logins: ClassVar[bool] = False
    edit: ClassVar[Object] = {"retainedBackups": 9}
    actions: ClassVar[Mapping[Verb, str]] = _ACTIONS
    hidden: ClassVar[str] = "instances.[gl]*"
    loss: ClassVar[Object] = {"databaseVersion": "POSTGRES_17"}
    # A throttle pauses the account by the real time; tests/providers/gcp/test_account.py is about it.
    errors: ClassVar[tuple[Mode, ...]] = ("refused", "forbidden")
    served: Served = field(kw_only=True)

    def __post_init__(self) -> None:
        self.calls, self.since, self.sql = Calls(self.gate), 0, SimulatedSql(self.served)
        super().__post_init__()

    def new_world(self, process: str) -> World:
        return GatedWorld(self.served, self.kube, process, self.calls, INSTANCES)

    def pass_time(self, by: timedelta) -> None:
        self.sql.control("POST", "clock", {"advance_s": by.total_seconds()})

    def objects(self) -> Mapping[str, ExternalObject]:
        shown = self.sql.instances()
        # The SDK leaves out milliseconds that are none.
        created = {name: str(shown[name]["createTime"]).replace(".000Z", "Z") for name in shown}
        return {name: ExternalObject(name, created[name], owner_in(shown[name])) for name in shown}

    def writes(self) -> list[str]:
        return [f"{_VERBS.get(call['action'])} {call['identifier']}" for call in self.sql.changes(self.since)]

    def forget(self) -> None:
        self.since = self.sql.mark()

    def fail(self, verb: Verb, mode: Mode, times: int | None = 1) -> None:
        if verb == "list":
            # An answer of 200 with a warning: that is how Cloud SQL lists in part.
            self.sql.behave(unreachable_regions=[REGION])
            return
        # Without the permission no list is shown either: what is hidden and in no whole list is believed gone.
        action = self.hidden if (verb, mode) == ("observe", "forbidden") else self.actions[verb]
        is_repeated = verb == "observe" and mode == "refused" and times is not None
        fault: Object = {"action": action, "times": _TRIES * (times or 0) if is_repeated else times}
        fault |= {"kind": "drop"} if mode == "unanswered" else {"code": _REASONS[mode], "message": "It is refused."}
        self.sql.control("POST", "faults", fault)

    def heal(self) -> None:
        self.sql.control("DELETE", "faults")
        self.sql.behave(unreachable_regions=[])

    def put(self, name: str, owner: tuple[str, ...] | None) -> None:
        values = {"installation": owner[0], "identity": owner[1], "claim": "0123456789abcdef"} if owner else {}
        self.sql.create(name, {f"fairlead-{key}": value for key, value in values.items()})

    def before_create(self, act: Callable[[], None]) -> None:
        self.calls.before_create = act

    def vanish(self, name: str) -> None:
        self.sql.steer(name, vanish=True)

    def strip_owner(self, name: str) -> None:
        labels = self.sql.instances()[name]["settings"]["userLabels"]
        self.sql.steer(name, set={"settings": {"userLabels": dict.fromkeys(labels)}})

    def change_account(self) -> None:
        world: Any = self.world
        world.lead_to(OTHER_PROJECT)

    def drifts(self) -> tuple[Drift, ...]:
        rows: tuple[tuple[str, tuple[str, ...], Any, str], ...] = (
            ("retainedBackups", (*_BACKUPS, "backupRetentionSettings", "retainedBackups"), 3, ""),
            ("deletionProtectionEnabled", ("settings", "deletionProtectionEnabled"), True, ""),
            ("tier", ("settings", "tier"), "db-custom-4-15360", "DriftHeld"),
            ("sslMode", ("settings", "ipConfiguration", "sslMode"), "ALLOW_UNENCRYPTED_AND_ENCRYPTED", "DriftHeld"),
            ("pointInTimeRecoveryEnabled", (*_BACKUPS, "pointInTimeRecoveryEnabled"), True, "HeldChange"),
        )
        return tuple(self._drift(*row) for row in rows)

    def _drift(self, name: str, path: tuple[str, ...], value: Any, held: str) -> Drift:
        return Drift(
            name,
            lambda thing: self.sql.steer(thing, set=nested(path, value)),
            lambda thing: bool(self._at(thing, path) == value),
            held,
        )

    def _at(self, name: str, path: tuple[str, ...]) -> Any:
        return value_at(self.sql.instances()[name], path)

    def backups(self) -> tuple[str, ...]:
        listed = self.sql.control("GET", "backups")
        return tuple(str(backup["id"]) for backup in listed if backup["state"] == "SUCCESSFUL")

    def refuse_backups(self) -> None:
        self.sql.behave(failing_backups=["*"])

    def operations(self) -> Mapping[str, bool]:
        return self.sql.operations()

    def overlaps(self) -> list[str]:
        return [str(call["action"]) for call in self.sql.changes() if call["outcome"] == "operationInProgress"]

    def fail_operations(self, verb: Verb, sentence: str) -> None:
        failure = {"kind": f"{verb.upper()}*", "code": "ERROR_RDBMS", "message": sentence, "times": None}
        self.sql.control("POST", "operations", failure)

    def lose_operations(self) -> None:
        for handle in self.sql.operations():
            self.sql.control("DELETE", f"operations/{handle}")

    def lag(self, by: timedelta) -> None:
        # Nothing of before the simulator was emptied is shown any more.
        self.move_on(by)
        self.sql.behave(list_lag_s=by.total_seconds(), get_lag_s=by.total_seconds())

    def stop(self, name: str) -> None:
        self.sql.steer(name, set=nested(_POLICY, "NEVER"))

    def is_running(self, name: str) -> bool:
        return bool(self._at(name, _POLICY) == "ALWAYS")
