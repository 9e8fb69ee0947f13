"""The small parts of the frame: history, schedule, jobs, faults' limits, routes, tokens, what the log keeps, access."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

import pytest

from devcloud.errors import DevcloudError
from devcloud.postgres.access import Access
from devcloud.simulator import work
from devcloud.simulator.audit import redacted
from devcloud.simulator.behaviour import Behaviour, TagRobot, Throttle, replaced
from devcloud.simulator.clock import Clock
from devcloud.simulator.controls import Controls
from devcloud.simulator.dataplane import Database
from devcloud.simulator.faults import Limiter
from devcloud.simulator.history import History, Schedule
from devcloud.simulator.jobs import OrderedJobs, carry_out
from devcloud.simulator.messages import Refusal
from devcloud.simulator.rest import Grant, Match, Route, Routes, Tokens, json_object
from tests.devcloud.recorded import Recorded

START = datetime(2026, 1, 1, tzinfo=UTC)


def after(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


def test_history_shows_what_was_at_a_moment_and_keeps_so_much_of_what_changed_often() -> None:
    history: History[str] = History()
    history.add("db-1", after(10), "creating")
    history.add("db-1", after(20), "available")
    history.add("db-1", after(30), None)

    moments = (5, 10, 25, 30)
    assert [history.as_of("db-1", after(moment)) for moment in moments] == [None, "creating", "available", None]
    assert history.as_of("db-2", START) is None
    assert history.names() == ["db-1"]

    numbers: History[int] = History()
    for number in range(20):
        numbers.add("db-1", after(number), number)
    assert numbers.as_of("db-1", START) == 8


def test_schedule_yields_what_is_due_in_its_order_also_what_is_added_meanwhile() -> None:
    schedule = Schedule()
    for name, seconds in (("later", 20), ("first", 5), ("never", 100)):
        schedule.add(after(seconds), name)

    names = []
    for name in schedule.due(after(30)):
        names.append(name)
        if name == "first":
            schedule.add(after(10), "second")
    assert names == ["first", "second", "later"]
    assert list(schedule.due(after(30))) == []


async def test_jobs_of_an_instance_are_done_in_order_and_a_failed_one_is_logged(
    capsys: pytest.CaptureFixture[str],
) -> None:
    jobs, done, held, ended = OrderedJobs("toy"), [], asyncio.Event(), asyncio.Event()

    async def hold() -> None:
        await held.wait()
        done.append("a1")

    async def fail() -> None:
        raise DevcloudError("there is no room")

    async def note(name: str) -> None:
        done.append(name)
        if name == "c1":
            ended.set()

    jobs.submit("a", hold)
    jobs.submit("a", fail)
    jobs.submit("a", lambda: note("a3"))
    jobs.submit("b", lambda: note("b1"))
    jobs.submit_last("c", lambda: note("c1"))
    await asyncio.sleep(0.01)
    assert done == ["b1"]
    held.set()
    await ended.wait()

    assert done == ["b1", "a1", "a3", "c1"]
    assert capsys.readouterr().err == "toy: a: there is no room\n"
    await jobs.close()


@pytest.mark.parametrize(
    ("item", "calls", "port"),
    [
        (work.Make(), ["created db 5432 None boss p"], 5432),
        (work.MoveTo("renamed", 5433), ["moved renamed 5433"], 5433),
        (work.SetPassword("q"), ["password r-1 q"], None),
        (work.Drop(keeps=True), ["stopped r-1"], None),
        (work.Drop(keeps=False), ["deleted r-1"], None),
    ],
    ids=["make", "move", "password", "drop and keep backups", "drop"],
)
async def test_work_is_carried_out_and_gives_the_address_that_may_have_changed(
    item: work.Work, calls: list[str], port: int | None
) -> None:
    databases = Recorded()
    database = Database(
        resource_id="r-1", identifier="db", port=5432, username="boss", password="p", db_name=None, version="16"
    )

    address = await carry_out(item, database, databases)

    assert databases.calls == calls
    assert (None if address is None else address.port) == port


def test_limiter_gives_tokens_by_account_and_kind_and_fills_with_the_time() -> None:
    now = 0.0
    limiter, throttle = Limiter(lambda: now), Throttle(accounts=("a",), read_per_s=1, write_per_s=1, burst=1)

    def takes(account: str, *, mutating: bool) -> bool:
        return limiter.take(throttle, (account, ""), mutating=mutating)

    assert [takes("a", mutating=False), takes("a", mutating=False), takes("a", mutating=True)] == [True, False, True]
    assert takes("b", mutating=False)
    assert limiter.take(None, ("a", ""), mutating=False)
    now = 1.0
    assert takes("a", mutating=False)


def test_tag_robot_comes_again_and_again() -> None:
    wall = 1_000_000.0
    controls = Controls(Clock(wall=lambda: wall), Behaviour())
    assert not controls.robot_comes()
    robot = TagRobot(strip=("fairlead-*",), every_s=5)
    controls.behaviour = replaced(controls.behaviour, {"tag_robot": {"strip": ["fairlead-*"]}})

    assert controls.behaviour.tag_robot == robot
    assert [robot.strips("fairlead-identity"), robot.strips("team")] == [True, False]
    wall += 6
    assert [controls.robot_comes(), controls.robot_comes()] == [True, False]
    wall += 6
    assert controls.robot_comes()


ROUTES = Routes(
    (
        Route("GET", "subscriptions/{subscription}/servers/{server}", "servers.get"),
        Route("POST", "subscriptions/{subscription}/servers/{server}/stop", "servers.stop"),
    ),
    ignore_case=True,
)


@pytest.mark.parametrize(
    ("method", "path", "match"),
    [
        ("GET", "/subscriptions/s1/servers/db", Match("servers.get", {"subscription": "s1", "server": "db"})),
        ("GET", "/Subscriptions/S1/SERVERS/Db", Match("servers.get", {"subscription": "S1", "server": "Db"})),
        ("POST", "/subscriptions/s1/servers/db/stop", Match("servers.stop", {"subscription": "s1", "server": "db"})),
        ("GET", "/subscriptions/s1/servers/db/stop", None),
        ("GET", "/subscriptions/s1/servers", None),
        ("DELETE", "/subscriptions/s1/servers/db", None),
    ],
)
def test_routes_match_a_method_and_a_path(method: str, path: str, match: Match | None) -> None:
    assert ROUTES.match(method, path) == match


def test_routes_mind_the_letter_case_unless_they_ignore_it() -> None:
    routes = Routes((Route("GET", "v1/servers", "servers.list"),))

    assert routes.match("GET", "/v1/servers") == Match("servers.list", {})
    assert routes.match("GET", "/V1/servers") is None


def test_body_that_is_no_json_object_is_refused() -> None:
    assert json_object(b" ", code="invalid") == {}
    assert json_object(b'{"a": 1}', code="invalid") == {"a": 1}
    for body in (b"[]", b"{", b'"a"'):
        with pytest.raises(Refusal) as error:
            json_object(body, code="invalid")
        assert (error.value.code, error.value.status) == ("invalid", 400)


@pytest.mark.parametrize(
    ("header", "is_known"),
    [
        ("Bearer {}", True),
        ("bearer {}", True),
        ("Basic {}", False),
        ("{}", False),
        ("Bearer other", False),
        ("", False),
    ],
)
def test_token_is_known_by_its_header(header: str, is_known: bool) -> None:  # noqa: FBT001 - a case
    tokens = Tokens()
    token = tokens.issue(Grant(principal="provider@p", account="p", expires_at=after(60)))
    headers = {"authorization": header.format(token)}

    assert (tokens.holder(headers, START) is not None) is is_known
    assert tokens.holder(headers, after(60)) is None


def test_log_keeps_no_secret_however_deep() -> None:
    content = {"name": "db", "properties": {"password": "p", "tier": "t"}, "users": [{"password": "q"}, "x"]}

    assert redacted(content, {"password"}) == {
        "name": "db",
        "properties": {"password": "****", "tier": "t"},
        "users": [{"password": "****"}, "x"],
    }


@pytest.mark.parametrize(
    ("networks", "host", "admitted"),
    [
        (None, "203.0.113.9", True),
        ((), "203.0.113.9", False),
        (("203.0.113.0/24",), "203.0.113.9", True),
        (("198.51.100.0/24", "203.0.113.9/32"), "203.0.113.9", True),
        (("198.51.100.0/24",), "203.0.113.9", False),
        (("::1/128",), "203.0.113.9", False),
    ],
)
def test_access_admits_the_addresses_of_its_networks(
    networks: tuple[str, ...] | None,
    host: str,
    admitted: bool,  # noqa: FBT001 - a case
) -> None:
    assert Access(networks=networks).admits(host) is admitted
