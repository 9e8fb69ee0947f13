"""What a list of the account answers is not asked again; slow changes and refusals: calls on the wire, by one clock."""

from __future__ import annotations

import base64
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pytest

from devcloud.aws.server import Served
from runtime.objects import SECRETS, Key, Object
from tests.providers.aws.rds_world import RdsPaced, RdsWorld, at_rest
from tests.providers.listed_paced import ListedPaced
from tests.support.simulator_control import control

pytestmark = pytest.mark.rds
POLICY: Object = {"deletionPolicy": "Snapshot", "maintenance": {"apply": "Immediate"}}
LARGER: Object = {"parameters": {"dbInstanceClass": "db.t4g.large"}, **POLICY}
HOUR = timedelta(hours=1)
LIST, LOOK = "DescribeDBInstances", "DescribeDBInstances of one"


class ListedRds(ListedPaced, RdsPaced):
    """Passes of one resource, with the lists that its provider makes, at the simulated RDS."""

    def counts(self) -> Counter[str]:
        """Return how often each action of RDS was called since the last `forget`; a look by name apart from a list."""
        counts: Counter[str] = Counter()
        for call in control(self.rds, "GET", "audit?since=0"):
            if call["action"] == "GetCallerIdentity":
                # Of STS, which has rates of its own.
                continue
            single = call["action"] == "DescribeDBInstances" and call["identifier"]
            counts[f"{call['action']} of one" if single else call["action"]] += 1
        return counts


def _new(served: Served) -> tuple[RdsWorld, ListedRds]:
    world = RdsWorld(served)
    return world, ListedRds(world)


async def _ready(served: Served, **spec: Any) -> tuple[RdsWorld, ListedRds]:
    world, paced = _new(served)
    world.ask(**POLICY, **spec)
    await paced.settle()
    await paced.until(world.now + HOUR)
    paced.forget()
    return world, paced


async def test_of_ten_that_are_created_at_once_each_takes_three_calls_and_lists_are_shared(stopped: Served) -> None:
    world = RdsWorld(stopped)
    names = [f"db-{number}" for number in range(10)]
    paced = ListedRds(world, names[0])
    for name in names:
        world.ask(name, **POLICY)
        paced.add(name)
    await paced.when(lambda: all(world.reason("Synced", name) == "InSync" for name in names))
    counts = paced.counts()
    # One on which the create is decided, and one on which the password is published.
    assert (counts["CreateDBInstance"], counts[LOOK]) == (10, 20)
    assert counts[LIST] <= 10, counts


@dataclass(frozen=True)
class Work:
    """What somebody asks for, when it is done, the one change that it takes, and the most calls."""

    begin: Callable[[RdsWorld], object]
    is_over: Callable[[RdsWorld], bool]
    action: str
    most: int
    is_new: bool = False


def _is_in_sync(world: RdsWorld) -> bool:
    return world.reason() == "InSync"


WORK = {
    "a create": Work(lambda world: world.ask(**POLICY), _is_in_sync, "CreateDBInstance", 12, is_new=True),
    "a change": Work(
        lambda world: world.ask(**LARGER),
        lambda world: _is_in_sync(world) and world.status["atProvider"]["dbInstanceClass"] == "db.t4g.large",
        "ModifyDBInstance",
        10,
    ),
    "a rotation": Work(
        lambda world: world.ask(passwordRotation={"token": "2"}, **POLICY),
        lambda world: _is_in_sync(world) and world.status["rotation"]["token"] == "2",
        "ModifyDBInstance",
        6,
    ),
    "a deletion with a final snapshot": Work(
        RdsWorld.delete, lambda world: world.get() is None, "DeleteDBInstance", 10
    ),
}


@pytest.mark.parametrize("work", WORK.values(), ids=WORK)
async def test_work_takes_one_change_and_few_calls(stopped: Served, work: Work) -> None:
    world, paced = _new(stopped) if work.is_new else await _ready(stopped)
    work.begin(world)
    paced.wake()
    await paced.when(lambda: work.is_over(world))
    counts = paced.counts()
    assert counts[work.action] == 1
    assert sum(counts.values()) <= work.most, counts


async def test_resource_at_rest_is_never_read_by_itself(stopped: Served) -> None:
    world, paced = await _ready(stopped)
    passes, writes = paced.passes, len(world.kube.writes)
    await paced.until(world.now + 2 * HOUR)
    # A dozen resyncs, and a list a minute.
    assert paced.passes - passes >= 10
    assert paced.counts() == {LIST: 120}
    assert len(world.kube.writes) == writes


async def test_resource_is_observed_by_the_first_list_after_a_restart(stopped: Served) -> None:
    world, _ = await _ready(stopped)
    writes = len(world.kube.writes)
    restarted = RdsWorld(stopped, kube=world.kube)
    restarted.now = world.now
    again = ListedRds(restarted)
    await again.until(restarted.now + HOUR)
    counts = again.counts()
    assert again.passes >= 5
    assert counts[LOOK] == 0
    # The lister's own, and one more for the first pass, which does not wait for it.
    assert 60 <= counts[LIST] <= 62
    assert len(world.kube.writes) == writes
    assert (restarted.reason("Ready"), restarted.reason()) == ("Available", "InSync")


async def test_change_by_others_is_looked_at_once_and_put_back(stopped: Served) -> None:
    world, paced = await _ready(stopped, parameters={"backupRetentionPeriod": 7})
    world.steer(set={"BackupRetentionPeriod": 3})
    began = world.now
    await paced.when(lambda: paced.calls("ModifyDBInstance") > 0)
    assert world.now - began <= timedelta(seconds=61)
    # The one on which it is decided, and the one that follows the change.
    assert paced.counts()[LOOK] == 2


async def test_lost_credentials_secret_is_seen_without_a_look(stopped: Served) -> None:
    world, paced = await _ready(stopped)
    del world.kube.objects[SECRETS, Key("team", "db-credentials")]
    await paced.until(world.now + timedelta(minutes=15))
    assert world.reason("Synced") == "PasswordUnknown"
    assert paced.counts()[LOOK] == 0


async def test_refused_lists_leave_looks_by_name(stopped: Served) -> None:
    world, paced = await _ready(stopped)
    fault = {"action": "DescribeDBInstances", "identifier": "", "code": "AccessDenied", "times": None}
    control(stopped, "POST", "faults", fault)
    world.ask(**LARGER)
    paced.wake()
    await paced.until(world.now + timedelta(minutes=20))
    assert (world.get() or {})["status"]["atProvider"]["dbInstanceClass"] == "db.t4g.large"
    assert world.reason("Ready") == "Available"
    assert paced.counts()[LOOK] > 10

    world.heal()
    await paced.until(world.now + timedelta(minutes=10))
    paced.forget()
    await paced.until(world.now + HOUR)
    assert paced.counts()[LOOK] == 0


async def test_requested_reconcile_looks_by_name(stopped: Served) -> None:
    world, paced = await _ready(stopped)
    world.annotate(**{"reconcile-requested-at": "now"})
    paced.wake()
    await paced.step()
    assert paced.counts()[LOOK] == 1


async def test_window_of_an_hour_is_met_with_a_resync_of_six(stopped: Served) -> None:
    world = RdsWorld(stopped, resync=timedelta(hours=6))
    # Without lists, which show nothing of a window and are made every minute.
    paced = RdsPaced(world)
    # World time begins on a Saturday at noon.
    window = {"preferredMaintenanceWindow": "sun:05:00-sun:06:00"}
    policy: Object = {"deletionPolicy": "Snapshot"}
    world.ask(parameters=window, **policy)
    await paced.until(world.now + HOUR)
    world.ask(parameters={**window, "port": 5433}, **policy)
    paced.wake()
    await paced.until(world.now + HOUR)
    assert (world.reason(), paced.calls("ModifyDBInstance")) == ("WaitingForWindow", 0)

    opens = world.now.replace(hour=5, minute=0, second=0, microsecond=0) + timedelta(days=1)
    await paced.until(opens - timedelta(seconds=1))
    assert paced.calls("ModifyDBInstance") == 0
    await paced.until(opens + timedelta(minutes=2))
    assert paced.calls("ModifyDBInstance") == 1


SECRET: Object = {"passwordSecretRef": {"name": "own", "key": "password"}}


def _own_password(world: RdsWorld, password: str) -> None:
    data = {"password": base64.b64encode(password.encode()).decode()}
    world.kube.store(SECRETS, {"metadata": {"name": "own", "namespace": "team"}, "data": data})


async def test_new_content_of_a_users_own_secret_is_seen_within_two_minutes(stopped: Served) -> None:
    world = RdsWorld(stopped)
    paced = RdsPaced(world)
    _own_password(world, "Sufficient-1")
    world.ask(**POLICY, **SECRET)
    await paced.until(world.now + HOUR)
    assert (world.reason("Ready"), world.secret["current"]) == ("Available", "Sufficient-1")
    paced.forget()

    _own_password(world, "Sufficient-2")
    await paced.until(world.now + timedelta(minutes=2))
    assert paced.calls("ModifyDBInstance") == 1
    await paced.until(world.now + timedelta(minutes=5))
    assert (world.secret["current"], paced.calls("ModifyDBInstance")) == ("Sufficient-2", 1)


@pytest.mark.parametrize("created", [False, True], ids=["at creation", "later"])
async def test_users_own_password_that_rds_refuses_is_sent_rarely_and_its_repair_is_seen_within_two_minutes(
    stopped: Served, *, created: bool
) -> None:
    world = RdsWorld(stopped)
    paced = RdsPaced(world)
    _own_password(world, "Sufficient-1" if created else "forbidden/slash")
    world.ask(**POLICY, **SECRET)
    await paced.until(world.now + HOUR)
    _own_password(world, "forbidden/slash")
    paced.forget()
    await paced.until(world.now + HOUR)
    action = "ModifyDBInstance" if created else "CreateDBInstance"
    assert (1 if created else 0) <= paced.calls(action) <= 20
    assert world.reason() == "InvalidPassword"
    assert "forbidden/slash" not in str(world.get())

    _own_password(world, "Sufficient-3")
    calls = paced.calls(action)
    await paced.until(world.now + timedelta(minutes=2))
    assert paced.calls(action) == calls + 1
    await paced.until(world.now + HOUR)
    assert (world.reason("Ready"), world.secret["current"], paced.crashes) == ("Available", "Sufficient-3", 0)


@pytest.mark.parametrize("code", ["InvalidParameterValue", "StorageQuotaExceeded"])
async def test_storage_that_is_too_large_leaves_the_database_ready_and_is_withdrawn_before_rds_has_it(
    stopped: Served, code: str
) -> None:
    world, paced = await at_rest(stopped, **POLICY)
    world.refuse("ModifyDBInstance", code)
    since = len(paced.conditions)
    world.ask(parameters={"allocatedStorage": 7000}, **POLICY)
    paced.wake()
    await paced.until(world.now + HOUR)
    assert "Ready=True Available" in paced.reported(since)
    assert not any(line.startswith("Ready=False") for line in paced.reported(since))
    assert world.reason() in {"InvalidValue", "QuotaExceeded"}
    assert (world.get() or {})["status"]["atProvider"]["allocatedStorage"] == 20

    world.ask(**POLICY)
    paced.wake()
    await paced.settle()
    assert paced.conditions[-1] == ("Ready=True Available", "Synced=True InSync")


async def test_storage_that_rds_has_stays_and_is_no_error_where_less_is_asked_for(stopped: Served) -> None:
    world, paced = await at_rest(stopped, **POLICY)
    world.ask(parameters={"allocatedStorage": 200}, **POLICY)
    paced.wake()
    await paced.until(world.now + 10 * HOUR)
    paced.forget()
    world.ask(parameters={"allocatedStorage": 100}, **POLICY)
    paced.wake()
    await paced.settle()
    status = (world.get() or {})["status"]
    assert (paced.conditions[-1], paced.calls()) == (("Ready=True Available", "Synced=True InSync"), 0)
    (held,) = status["drift"]
    assert (held["path"], held["desired"], held["observed"], held["action"]) == (
        "allocatedStorage", "100", "200", "Tolerated",
    )  # fmt: skip
