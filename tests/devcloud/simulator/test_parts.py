"""The small parts of the frame: history, schedule, jobs, faults' limits, routes, tokens, what the log keeps, access."""

from __future__ import annotations

import asyncio

import pytest

from devcloud.errors import DevcloudError
from devcloud.postgres.access import Access
from devcloud.simulator.audit import redacted
from devcloud.simulator.jobs import OrderedJobs


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
