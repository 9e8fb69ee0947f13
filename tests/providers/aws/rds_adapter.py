"""RDS under the contract of clouds: the simulated RDS over its wire, by a clock that is moved on."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, ClassVar

from botocore.credentials import Credentials

from devcloud.aws.server import Served
from providers.aws.account import Clients
from runtime.objects import Object
from tests.providers.adapter import Drift, ExternalObject, Mode, Property, Verb
from tests.providers.adapter_parts import SimulatedAdapter, drifts_of, owner_in, owner_tags
from tests.providers.aws.rds_world import GatedWorld
from tests.providers.gates import Calls
from tests.providers.world import World
from tests.support.simulator_control import control

_ACTIONS: Mapping[Verb, str] = {
    "create": "CreateDBInstance",
    "update": "ModifyDBInstance",
    "password": "ModifyDBInstance",
    "delete": "DeleteDBInstance",
    "observe": "DescribeDBInstances",
    "list": "DescribeDBInstances",
}
_CODES: Mapping[Mode, str] = {
    "refused": "InternalFailure",
    "throttled": "Throttling",
    "forbidden": "AccessDenied",
    "absent": "DBInstanceNotFound",
    "invalid": "InvalidParameterValue",
}
_REGION = "eu-west-1"
# Somebody else of the same account, and a user of another one.
_FOREIGN, _OTHER_ACCOUNT = ("AKIASOMEBODYELSE0001", "secret-1"), ("AKIAOTHERACCOUNT0001", "secret-2")


@dataclass
class RdsAdapter(SimulatedAdapter):
    """Instances of RDS."""

    properties: ClassVar[frozenset[Property]] = frozenset(
        {Property.TAGS, Property.BACKUPS, Property.LAG, Property.NOT_FOUND, Property.ACCOUNTS, Property.LOSS}
    )
    edit: ClassVar[Object] = {"backupRetentionPeriod": 5}
    loss: ClassVar[Object] = {"backupRetentionPeriod": 0}
    # A throttle pauses the account by the real time; tests/providers/aws/test_retries.py is about it.
    errors: ClassVar[tuple[Mode, ...]] = ("refused", "forbidden")
    served: Served = field(kw_only=True)

    def __post_init__(self) -> None:
        self.calls = Calls(self.gate)
        for (key, secret), account in ((_FOREIGN, "123456789012"), (_OTHER_ACCOUNT, "210987654321")):
            body = {"access_key_id": key, "secret_access_key": secret, "account": account}
            control(self.served, "POST", "keys", body)
        super().__post_init__()
        self._use_keys(*self.served.credentials)

    def _use_keys(self, key: str, secret: str) -> None:
        self.store_secret("keys", {"aws_access_key_id": key, "aws_secret_access_key": secret})

    def new_world(self, process: str) -> World:
        return GatedWorld(self.served, self.kube, process, self.calls)

    def _instances(self) -> dict[str, Object]:
        trees = control(self.served, "GET", "instances")
        return {str(tree["DBInstanceIdentifier"]): tree for tree in trees}

    def objects(self) -> Mapping[str, ExternalObject]:
        shown = {}
        for name, tree in self._instances().items():
            tags = {tag["Key"]: tag["Value"] for tag in tree.get("TagList") or ()}
            shown[name] = ExternalObject(name, str(tree["DbiResourceId"]), owner_in(tags, "fairlead-"))
        return shown

    def writes(self) -> list[str]:
        calls = control(self.served, "GET", "audit?since=0")
        own = (call for call in calls if call["mutating"] and call["access_key_id"] != _FOREIGN[0])
        return [f"{_verb(call)} {call['identifier']}" for call in own]

    def fail(self, verb: Verb, mode: Mode, times: int | None = 1) -> None:
        fault: Object = {"action": _ACTIONS[verb], "times": times, "message": "It is refused."}
        fault |= {"kind": "drop"} if mode == "unanswered" else {"code": _CODES[mode]}
        control(self.served, "POST", "faults", fault)

    def put(self, name: str, owner: tuple[str, ...] | None) -> None:
        self._foreigner().create_db_instance(
            DBInstanceIdentifier=name, Engine="postgres", DBInstanceClass="db.t4g.micro", AllocatedStorage=20,
            MasterUsername="app", MasterUserPassword="Sufficient-1",
            Tags=[{"Key": key, "Value": value} for key, value in owner_tags(owner, "fairlead-").items()],
        )  # fmt: skip

    def _foreigner(self) -> Any:
        return Clients(_REGION, self.served.url).make("rds", Credentials(*_FOREIGN))

    def before_create(self, act: Callable[[], None]) -> None:
        self.calls.before_create = act

    def vanish(self, name: str) -> None:
        control(self.served, "POST", f"instances/{name}", {"vanish": True})

    def delete_by_hand(self, name: str) -> None:
        self._foreigner().delete_db_instance(DBInstanceIdentifier=name, SkipFinalSnapshot=True)

    def strip_owner(self, name: str) -> None:
        tree = self._instances()[name]
        keys = [tag["Key"] for tag in tree["TagList"]]
        self._foreigner().remove_tags_from_resource(ResourceName=tree["DBInstanceArn"], TagKeys=keys)

    def change_account(self) -> None:
        self._use_keys(*_OTHER_ACCOUNT)

    def drifts(self) -> tuple[Drift, ...]:
        fields: dict[str, tuple[Any, str]] = {
            "backupRetentionPeriod": (3, ""),
            "deletionProtection": (True, ""),
            "copyTagsToSnapshot": (False, ""),
            "publiclyAccessible": (True, "DriftHeld"),
        }

        def change(thing: str, name: str, value: Any) -> None:
            control(self.served, "POST", f"instances/{thing}", {"set": {_theirs(name): value}})

        return drifts_of(fields, change, lambda thing, name: self._instances()[thing][_theirs(name)])

    def backups(self) -> tuple[str, ...]:
        snapshots = control(self.served, "GET", "snapshots")
        kept = (tree for tree in snapshots if tree["SnapshotType"] == "manual" and tree["Status"] == "available")
        return tuple(str(tree["DBSnapshotIdentifier"]) for tree in kept)

    def refuse_backups(self) -> None:
        control(self.served, "POST", "behaviour", {"quotas": {"snapshots": 0}})

    def lag(self, by: timedelta) -> None:
        seconds = by.total_seconds()
        control(self.served, "POST", "behaviour", {"list_lag_s": seconds, "get_lag_s": seconds})


def _theirs(name: str) -> str:
    return name[0].upper() + name[1:]


def _verb(call: Object) -> str:
    if call["action"] == "ModifyDBInstance" and "MasterUserPassword" in call["params"]:
        return "password"
    verbs = {action: verb for verb, action in _ACTIONS.items() if verb != "password"}
    return verbs.get(str(call["action"]), "update")
