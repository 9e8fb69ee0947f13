"""What a list of the project answers is not asked again: calls on Cloud SQL's wire, counted by one clock."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from devcloud.gcp.server import Served
from providers.external.client import Target
from providers.external.observation import Present
from providers.gcp.inside import databases, users
from providers.gcp.instances.client import clients
from providers.gcp.listed import FRESH, InstanceAnswers, encoded_answer
from providers.gcp.models import CloudSQLDatabaseParameters, CloudSQLUserParameters
from providers.gcp.names import owner_labels
from providers.gcp.operation_list import read_operations
from runtime.errors import Blocked
from tests.providers.gates import OPEN
from tests.providers.gcp.answers import OWNER, instance, target
from tests.providers.gcp.sql_world import ListedSql, SqlWorld
from tests.providers.gcp.wire import Wire, account_on, operation

HOUR = timedelta(hours=1)
NAME = "fl-orders-abcdefghij"
GET, CAS, USERS = f"GET instances/{NAME}", f"GET instances/{NAME}/listServerCas", f"GET instances/{NAME}/users"
UNREACHABLE = {"items": [], "warnings": [{"code": "REGION_UNREACHABLE", "message": "europe-west1"}]}


@pytest.mark.slow
async def test_instance_at_rest_is_never_read_by_itself(served: Served) -> None:
    world = SqlWorld(served)
    world.ask()
    paced = ListedSql(world)
    await paced.when(lambda: world.reason("Ready") == "Available")
    await paced.until(world.now + HOUR)
    world.forget()
    passes, writes = paced.passes, len(world.kube.writes)
    await paced.until(world.now + 2 * HOUR)
    assert paced.passes > passes
    assert paced.calls() == {("instances.list", ""): 120}
    assert len(world.kube.writes) == writes


def _wire(**settings: object) -> Wire:
    wire = Wire()
    shown = instance(userLabels=owner_labels(OWNER), **settings)
    wire.answer("GET instances", {"items": [shown]})
    wire.answer(GET, shown)
    wire.answer(CAS, {"certs": [{"cert": "PEM-1\n"}]})
    wire.answer(USERS, {"items": [{"name": "app"}]})
    return wire


def _paths(wire: Wire) -> list[str]:
    return [f"{request.verb} {request.path}" for request in wire.requests]


_SPEC = CloudSQLUserParameters(instance=NAME, name="app", database=f"{NAME}/orders")


def _database() -> Target[CloudSQLDatabaseParameters]:
    return Target(f"{NAME}/app", CloudSQLDatabaseParameters(instance=NAME, name="app"), OWNER, "")


def _user() -> Target[CloudSQLUserParameters]:
    return Target(f"{NAME}/app", _SPEC, OWNER, "")


async def test_user_of_a_listed_instance_takes_two_calls() -> None:
    wire = _wire()
    async with account_on(wire) as account:
        await clients(account).account.list()
        observation = await users.clients(account).external.observe(_user())
    assert isinstance(observation, Present)
    assert observation.observed.endpoint.host == "203.0.113.7"
    assert _paths(wire) == ["GET instances", CAS, USERS]


async def test_authorities_are_read_once_until_an_operation_touches_the_instance() -> None:
    wire = _wire()
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    added = {"name": "op-1", "operationType": "UPDATE", "status": "DONE", "targetId": NAME, "endTime": now}
    wire.answer("GET operations", {"items": []}, {"items": [added]})
    async with account_on(wire) as account:
        await clients(account).account.list()
        await read_operations(account)
        external = users.clients(account).external
        for _ in range(2):
            await external.observe(_user())
        assert _paths(wire)[2:] == [CAS, USERS, USERS]
        await read_operations(account)
        wire.requests.clear()
        await external.observe(_user())
    assert _paths(wire) == [CAS, USERS]


async def test_user_of_an_instance_that_is_listed_as_stopped_looks_at_it() -> None:
    wire = _wire(activationPolicy="NEVER")
    async with account_on(wire) as account:
        await clients(account).account.list()
        with pytest.raises(Blocked):
            await users.clients(account).external.observe(_user())
    assert _paths(wire) == ["GET instances", GET]


async def test_user_looks_at_an_instance_that_was_changed_since_its_list() -> None:
    wire = _wire()
    wire.answer(f"PATCH instances/{NAME}", operation())
    async with account_on(wire) as account:
        served = clients(account)
        observation = await served.external.observe(target())
        assert isinstance(observation, Present)
        await served.external.release(target(), observation.observed, OPEN)
        wire.requests.clear()
        await users.clients(account).external.observe(_user())
    assert _paths(wire) == [GET, CAS, USERS]


async def test_absence_of_what_is_inside_is_proven_by_a_look_at_its_instance() -> None:
    wire = _wire()
    wire.answer(USERS, {"items": []})
    wire.answer(GET, instance(userLabels=owner_labels(OWNER), activationPolicy="NEVER"))
    async with account_on(wire) as account:
        await clients(account).account.list()
        with pytest.raises(Blocked):
            await users.clients(account).external.observe(_user())
        with pytest.raises(Blocked):
            await databases.clients(account).external.observe(_database())


async def test_user_that_was_seen_in_a_former_instance_of_that_name_is_looked_at() -> None:
    wire = _wire()
    former = instance(userLabels=owner_labels(OWNER))
    wire.answer("GET instances", {"items": [former]}, {"items": [{**former, "createTime": "2026-02-02T00:00:00Z"}]})
    async with account_on(wire) as account:
        served = users.clients(account)
        await clients(account).account.list()
        looked = await served.external.observe(_user())
        assert isinstance(looked, Present)
        assert served.listed is not None
        assert await served.listed.observe_listed(_user(), looked.observed.answer) is not None
        await clients(account).account.list()
        assert await served.listed.observe_listed(_user(), looked.observed.answer) is None


async def test_list_answers_what_a_look_does() -> None:
    wire = _wire()
    async with account_on(wire) as account:
        served = clients(account)
        listing = await served.account.list()
        looked = await served.external.observe(target())
        assert served.listed is not None
        listed = await served.listed.observe_listed(target(), listing.answers[NAME])
    assert isinstance(looked, Present)
    assert isinstance(listed, Present)
    assert listed.observed.spec == looked.observed.spec
    assert listed.observed.at_provider == looked.observed.at_provider
    assert looked.observed.answer == listing.answers[NAME]


async def test_instance_of_nobodys_is_not_kept_and_a_silent_region_takes_none_away() -> None:
    wire = _wire()
    other = {**instance(), "name": "stranger"}
    shown = instance(userLabels=owner_labels(OWNER))
    wire.answer("GET instances", {"items": [shown, other]}, UNREACHABLE, {"items": []})
    async with account_on(wire) as account:
        listing = clients(account).account
        assert set((await listing.list()).answers) == {NAME}
        partial = await listing.list()
        assert (partial.complete, account.instances.of(NAME) is not None) == (False, True)
        assert (await listing.list()).complete
        assert account.instances.of(NAME) is None


def test_answer_counts_while_it_is_the_newest_and_fresh() -> None:
    now = 0.0
    answers = InstanceAnswers(lambda: now)
    first, second = {"name": "a", "state": "1"}, {"name": "a", "state": "2"}
    answers.record("a", encoded_answer(second), 2.0)
    answers.record("a", encoded_answer(first), 1.0)
    assert answers.of("a") == second
    now = 2.0 + FRESH.total_seconds()
    assert answers.of("a") == second
    now += 1.0
    assert answers.of("a") is None

    answers.record_call("a")
    # A list that began before the call and ended after it.
    answers.record("a", encoded_answer(second), now - 1.0)
    assert answers.of("a") is None
    answers.record("a", encoded_answer(first), now)
    assert answers.of("a") == first
