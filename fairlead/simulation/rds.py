"""The simulated RDS without sockets and threads: what the SDK's requests and strangers call."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import urlsplit

from devcloud.aws.api import wire
from devcloud.aws.audit import identifier_of, mutates
from devcloud.aws.iam.principals import SECRET_KEY, Key, default_world
from devcloud.aws.jobs import Jobs
from devcloud.aws.platform import ACCESS_KEY, ACCOUNT, REGION
from devcloud.aws.region import Region, visible
from devcloud.aws.simulator import Admitted, Simulator
from devcloud.simulator.clock import Clock
from devcloud.simulator.messages import Answer, Refusal, Request
from fairlead.simulation.calls import NOBODY, PROVIDER, STRANGER, Made, Weather
from fairlead.simulation.rds_logins import InstanceLogins
from runtime import clock

CREDENTIALS: Final = {"aws_access_key_id": ACCESS_KEY, "aws_secret_access_key": SECRET_KEY}
"""What the Secret of the ProviderConfig holds."""
NETWORKS, PARAMETERS = "network:", "parameters:"
"""What stands before the names of subnet groups and parameter groups: those of other kinds may be the same."""
ALICE: Final = Key(access_key_id="alice", secret_access_key="", principal="user/alice")
# A creation of four minutes takes one.
_DURATIONS: Final = 0.25
_VERBS: Final = {
    "Create": "create",
    "Restore": "create",
    "Copy": "create",
    "Delete": "delete",
}
_KINDS: Final = {
    "DBSubnetGroup": ("networks", NETWORKS),
    "DBParameterGroup": ("parameters", PARAMETERS),
    ":subgrp:": ("networks", NETWORKS),
    ":pg:": ("parameters", PARAMETERS),
    ":snapshot:": ("backups", "backup:"),
    "DBInstance": ("servers", ""),
    ":db:": ("servers", ""),
    "DBSnapshot": ("backups", "backup:"),
}
_SILENT: Final = frozenset(
    {"creating", "deleting", "stopping", "stopped", "starting", "failed", "storage-full", "restore-error",
     "incompatible-network", "incompatible-parameters", "incompatible-restore"}
)  # fmt: skip
"""States in which an instance answers nobody."""


@dataclass(slots=True)
class Rds:
    """One account in one region; `emit` takes lines into the trace."""

    emit: Callable[..., None]
    chance: random.Random
    weather: Weather = field(default_factory=Weather)
    history: list[Made] = field(default_factory=list)
    simulator: Simulator = field(init=False)
    logins: InstanceLogins = field(init=False)

    def __post_init__(self) -> None:
        self.logins = InstanceLogins(self.emit)
        wall = Clock(durations=_DURATIONS, wall=clock.wall_seconds)
        principals = default_world(ACCOUNT, ACCESS_KEY, SECRET_KEY)
        self.simulator = Simulator(wall, principals, Jobs(self.logins))

    @property
    def region(self) -> Region:
        """All that there is."""
        return self.simulator.accounts.region(ACCOUNT, REGION)

    def servers(self) -> list[str]:
        """Return the instances, sorted."""
        return sorted(self.region.instances)

    def left(self) -> set[str]:
        """Return all that is there: instances, and the groups that somebody made."""
        networks = {f"{NETWORKS}{name}" for name in self.region.subnet_groups if name != "default"}
        return {*self.region.instances, *networks, *(f"{PARAMETERS}{name}" for name in self.region.parameter_groups)}

    def backups(self) -> list[str]:
        """Return the snapshots that people may restore, sorted."""
        snapshots = self.region.snapshots.values()
        return sorted(
            snapshot.db_snapshot_identifier
            for snapshot in snapshots
            if (snapshot.snapshot_type, snapshot.status) == ("manual", "available")
        )

    def runs(self, server: str) -> bool:
        """Return whether an instance is there and answers, or a group is there."""
        record = self.region.instances.get(server)
        if record is None:
            return server in self.left()
        behind = self.logins.servers.get(record.shown.dbi_resource_id)
        return visible(record).db_instance_status not in _SILENT and behind is not None and behind.runs

    def size_of(self, server: str, database: str) -> object:
        """Return the class of an instance."""
        del database
        return self.region.instances[server].shown.db_instance_class

    def number_of(self, server: str, database: str) -> int:
        """Return the number under which a database was made, 0 where it is not there."""
        resource_id = self.region.instances[server].shown.dbi_resource_id
        return self.logins.servers[resource_id].databases.get(database, 0)

    def admits(self, server: str, user: str, password: str, database: str) -> bool:
        """Return whether a login succeeds."""
        record = self.region.instances.get(server)
        if record is None or not self.runs(server):
            return False
        return self.logins.admits(record.shown.dbi_resource_id, user, password, database)

    def steer(self, name: str, **change: object) -> None:
        """Have something happen to an instance behind the API's back."""
        self.emit("steer", name, sorted(change.items()))
        if change.get("replace"):
            self.history.append(Made(clock.monotonic(), NOBODY, "servers.replace", name, "", had=True))
        self.simulator.control("POST", ("instances", name), change)

    async def run(self) -> None:
        """Let happen what happens by itself."""
        while True:
            await asyncio.sleep(5)
            self.simulator.tick()

    def ask(self, action: str, **parameters: Any) -> str:
        """Carry out a request of a stranger; return how it ended."""
        model = wire.service("rds").operation_model(action)
        answer = self._carried_out(Admitted(request_id="", model=model, parameters=parameters, caller=ALICE,
                                            region=REGION))  # fmt: skip
        return f"stranger {action} {identifier_of(parameters)}: {answer.status}"

    def answer(self, method: str, url: str, headers: Mapping[str, str], body: bytes) -> Answer:
        """Carry out a signed request; its answer is that of the wire."""
        parts = urlsplit(url)
        lower = {"host": parts.netloc, **{name.lower(): value for name, value in headers.items()}}
        request = Request(method=method, path=parts.path or "/", query=parts.query, headers=lower, body=body)
        try:
            call = self.simulator.admit(request)
        except Refusal as refusal:
            self.emit(round(clock.monotonic(), 6), "refused", refusal.code)
            return self.simulator.refused(refusal, None)
        return self._carried_out(call)

    def refuse(self, code: str, status: int) -> Answer:
        """Return a refusal that the cloud gives for no reason of the call's."""
        return self.simulator.refused(Refusal(code, "It was refused.", status=status), None)

    def _carried_out(self, call: Admitted) -> Answer:
        try:
            answer = self.simulator.perform(call)
        except Refusal as refusal:
            answer = self.simulator.refused(refusal, call)
        else:
            self._note(call)
        who = "" if call.caller is None else call.caller.access_key_id
        self.emit(round(clock.monotonic(), 6), who, call.action, call.identifier, answer.status)
        return answer

    def _note(self, call: Admitted) -> None:
        """Write down a change that was accepted."""
        if call.model.service_model.service_name != "rds" or not mutates(call.action):
            return
        now, who = clock.monotonic(), STRANGER if call.caller is ALICE else PROVIDER
        kind, name = _subject_of(call)
        verb = next((verb for begin, verb in _VERBS.items() if call.action.startswith(begin)), "change")
        self.history.append(Made(now, who, f"{kind}.{verb}", name, "", had=verb != "create"))
        record = self.region.instances.get(name)
        if verb == "change" and record is not None and "MasterUserPassword" in call.parameters:
            of = ("", record.shown.master_username)
            self.history += [Made(now, who, "logins.change", name, login, had=True) for login in of]


def _subject_of(call: Admitted) -> tuple[str, str]:
    """Return what a call is about: its kind, and its name as the history has it."""
    arn = str(call.parameters.get("ResourceName", ""))
    # A restore names the snapshot, too: what it makes is an instance.
    kind, before = next(of for word, of in _KINDS.items() if word in (arn or call.action))
    names = {"servers": ("TargetDBInstanceIdentifier", "DBInstanceIdentifier"), "networks": ("DBSubnetGroupName",),
             "parameters": ("DBParameterGroupName",),
             "backups": ("TargetDBSnapshotIdentifier", "DBSnapshotIdentifier")}[kind]  # fmt: skip
    name = arn.rsplit(":", 1)[-1] or next(str(call.parameters[key]) for key in names if call.parameters.get(key))
    return kind, f"{before}{name.lower()}"
