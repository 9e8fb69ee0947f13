"""What a project's operations show of its instances, and when a look is due by itself."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from providers.gcp.account import GcpAccount
from providers.gcp.operation_list import read_operations
from providers.gcp.operations import KEPT, Entry, OperationLog, entry_of, is_look_due, period_of
from runtime.errors import Failure
from tests.providers.gcp.wire import Wire, refused

NOW = datetime(2026, 11, 24, 12, tzinfo=UTC)
MINUTE, HOUR = timedelta(minutes=1), timedelta(hours=1)
LIST = "GET operations"


def shown(at: datetime, *, kind: str = "UPDATE_USER", status: str = "DONE", name: str = "op-1") -> dict[str, Any]:
    """Return an operation on instance `a` as a list shows it."""
    text = at.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    times = {"insertTime": text} if status == "PENDING" else {"insertTime": text, "startTime": text}
    times |= {"endTime": text} if status == "DONE" else {}
    return {"name": name, "operationType": kind, "status": status, "targetId": "a", **times}


def log_of(*operations: dict[str, Any], began: datetime = NOW, covers: datetime = NOW - KEPT) -> OperationLog:
    """Return a log that has read these."""
    log = OperationLog()
    log.record([entry for entry in map(entry_of, operations) if entry is not None], began, covers=covers)
    return log


@pytest.mark.parametrize(
    ("says", "operation", "is_untouched"),
    [
        ("an operation since", shown(NOW - 10 * MINUTE), False),
        ("one shortly before, which the look may not show", shown(NOW - HOUR - MINUTE), False),
        ("one long before", shown(NOW - HOUR - 5 * MINUTE), True),
        ("one of before that is still open", shown(NOW - 5 * HOUR, status="RUNNING"), False),
        ("one that has not begun", shown(NOW - 5 * HOUR, status="PENDING"), False),
        ("a backup", shown(NOW - 10 * MINUTE, kind="BACKUP_VOLUME"), True),
        ("a kind that is not known here", shown(NOW - 10 * MINUTE, kind="SOMETHING_NEW"), False),
        ("one that failed", {**shown(NOW - 10 * MINUTE), "error": {"errors": []}}, False),
        ("one at another instance", {**shown(NOW - 10 * MINUTE), "targetId": "b"}, True),
    ],
)
def test_look_counts_until_an_operation(says: str, operation: dict[str, Any], is_untouched: bool) -> None:  # noqa: FBT001 - a column
    assert log_of(operation).is_untouched("a", NOW - HOUR) is is_untouched, says


def test_instance_is_deleted_where_that_is_the_last_of_its_operations() -> None:
    made, deleted = shown(NOW - HOUR, kind="CREATE"), shown(NOW - MINUTE, kind="DELETE", name="op-2")
    failed, again = {**deleted, "error": {"errors": [{}]}}, shown(NOW, kind="CLONE", name="op-3")
    logs = (log_of(made, deleted), log_of(made), log_of(made, failed), log_of(made, deleted, again))
    assert [log.is_deleted("a") for log in logs] == [True, False, False, False]


def test_nothing_is_untouched_of_which_the_log_does_not_know() -> None:
    assert not OperationLog().is_untouched("a", NOW)
    log = log_of(covers=NOW - HOUR)
    assert log.is_untouched("a", NOW - 30 * MINUTE)
    assert not log.is_untouched("a", NOW - HOUR)
    # The next list goes on where this one ended, one after a gap does not.
    log.record((), NOW + MINUTE, covers=NOW - 10 * MINUTE)
    assert log.is_untouched("a", NOW - 30 * MINUTE)
    log.record((), NOW + HOUR, covers=NOW + 30 * MINUTE)
    assert not log.is_untouched("a", NOW + 10 * MINUTE)


def test_mark_changes_with_each_beginning_and_end_alone() -> None:
    kept = [
        log_of(*operations).mark("a")
        for operations in (
            (),
            (shown(NOW - HOUR, status="RUNNING"),),
            (shown(NOW - HOUR),),
            (shown(NOW - HOUR), shown(NOW - MINUTE, name="op-2", status="PENDING")),
        )
    ]
    assert len(set(kept)) == len(kept)
    assert log_of(shown(NOW - HOUR), shown(NOW, name="op-2", kind="EXPORT")).mark("a") == kept[2]


def test_operation_without_a_time_is_none() -> None:
    assert entry_of({"name": "op-1", "targetId": "a"}) is None
    entry = entry_of(shown(NOW, status="PENDING"))
    assert entry == Entry("op-1", "a", NOW, NOW, is_open=True, is_harmless=False, kind="UPDATE_USER")


def test_each_name_is_due_once_a_period_and_all_of_them_are_spread_over_it() -> None:
    names = [f"fl-{number}/app" for number in range(500)]
    seen = dict.fromkeys(names, NOW - timedelta(days=3))
    due: dict[int, int] = {}
    # Passes of each ten minutes, for two periods.
    for tenth in range(72):
        now = NOW + tenth * 10 * MINUTE
        for name in names:
            if is_look_due(name, seen[name], now, len(names)):
                seen[name] = now
                due[tenth] = due.get(tenth, 0) + 1
    assert sum(due.values()) >= 2 * len(names)
    # Half an hour is a twelfth of them; of the first moment three times are due at once.
    assert due[0] <= 3 * 500 / 36 * 1.6
    assert all(due[tenth] <= 500 / 36 * 1.9 for tenth in range(3, 72))


def test_time_that_was_missed_is_not_made_up_for() -> None:
    name, now = "fl-1/app", NOW
    while not is_look_due(name, now - HOUR, now, 1):
        now += MINUTE
    assert is_look_due(name, now - 2 * KEPT, now + 29 * MINUTE, 1)
    assert not is_look_due(name, now - 2 * KEPT, now + 31 * MINUTE, 1)
    assert not is_look_due(name, now, now + MINUTE, 1)


@pytest.mark.parametrize(("objects", "hours"), [(1, 6), (2_000, 6), (2_200, 6), (2_300, 12), (16_000, 48)])
def test_period_is_longer_where_there_are_more(objects: int, hours: int) -> None:
    assert period_of(objects) == hours * HOUR


def _page(*operations: dict[str, Any], token: str = "") -> dict[str, Any]:
    return {"items": list(operations), **({"nextPageToken": token} if token else {})}


async def test_first_list_goes_back_a_day_and_the_next_ones_to_the_one_before(wire: Wire, account: GcpAccount) -> None:
    now = datetime.now(UTC)
    new, old, older = (shown(now - ago, name=str(ago)) for ago in (MINUTE, KEPT - HOUR, KEPT + HOUR))
    wire.answer(
        LIST, _page(new, token="1"), _page(old, token="2"), _page(older, token="3"), _page(old, token="4"), _page()
    )
    await read_operations(account)
    assert len(wire.requests) == 3
    assert account.log.is_untouched("a", now - HOUR) is False
    assert account.log.is_untouched("a", now + 5 * MINUTE)
    await read_operations(account)
    assert len(wire.requests) == 4


async def test_open_operation_is_followed_by_lists_until_its_end_is_seen(wire: Wire, account: GcpAccount) -> None:
    now = datetime.now(UTC)
    begun = shown(now - 2 * HOUR, name="long", status="RUNNING", kind="IMPORT")
    other, ended = shown(now - HOUR, name="other"), {**begun, "status": "DONE", "endTime": begun["startTime"]}
    wire.answer(LIST, _page(begun), _page(other, token="1"), _page(ended))
    await read_operations(account)
    assert not account.log.is_untouched("a", now - 30 * MINUTE)
    await read_operations(account)
    assert account.log.is_untouched("a", now - 30 * MINUTE)


async def test_list_that_does_not_end_covers_what_it_read(wire: Wire, account: GcpAccount) -> None:
    now = datetime.now(UTC)
    wire.answer(LIST, _page(shown(now - HOUR, kind="BACKUP_VOLUME"), token="1"))
    await read_operations(account)
    assert len(wire.requests) == 20
    assert account.log.is_untouched("a", now - 30 * MINUTE)
    assert not account.log.is_untouched("a", now - 2 * HOUR)


async def test_list_that_is_refused_leaves_what_was_known(wire: Wire, account: GcpAccount) -> None:
    wire.answer(LIST, _page(), refused(403, "forbidden"))
    await read_operations(account)
    with pytest.raises(Failure):
        await read_operations(account)
    assert account.log.is_untouched("a", datetime.now(UTC) - HOUR)
