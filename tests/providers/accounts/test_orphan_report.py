"""What a ProviderConfig says of things without a resource: every kind, cut at a limit, honest on failure."""

from __future__ import annotations

import json
from typing import Any, cast

import pytest

from apis.names import FIND, RECONCILE_REQUESTED_AT
from providers.accounts.orphan_report import MOST, MOST_UNMANAGED, reports_of, search_of
from providers.accounts.orphans import WithoutResource
from providers.external.ownership import Owner
from runtime.errors import Transient


def _owner(name: str = "orders") -> Owner:
    return Owner("i", "u", "c", namespace="shop", name=name, resource="db")


class Listed:
    """A kind of which the account holds these names without a resource; None for a list that fails."""

    def __init__(self, kind: str, names: list[str] | None, *, whole: bool = True) -> None:
        self.kind = kind
        self._names = names
        self._whole = whole

    async def list_without_resource(self, config: str, within: str = "") -> WithoutResource:
        assert not within
        if self._names is None:
            raise Transient(f"{config}: no answer")
        others = tuple(f"other-{name}" for name in self._names)
        tags = {others[0]: {"costs": "77"}} if others else {}
        return WithoutResource({name: _owner(name) for name in self._names}, others, self._whole, tags)


CASES = [
    pytest.param([Listed("A", ["b", "a"]), Listed("B", [])], ["a", "b"], True, id="in order"),
    pytest.param([Listed("A", None), Listed("B", ["b"])], ["b"], False, id="a list that fails leaves the others"),
    pytest.param([Listed("A", ["a"], whole=False)], ["a"], False, id="a list in part"),
    pytest.param([Listed("A", [f"{n:03}" for n in range(MOST)])], None, True, id="as many as fit"),
    pytest.param([Listed("A", [f"{n:03}" for n in range(MOST + 1)])], None, False, id="one more than fits"),
]


@pytest.mark.parametrize(("kinds", "names", "complete"), CASES)
async def test_every_kind_is_listed_and_what_is_missing_is_said(
    kinds: list[Any],
    names: list[str] | None,
    complete: bool,  # noqa: FBT001 - a row of the table
) -> None:
    report, unmanaged = await reports_of("default", kinds)

    assert report["complete"] is complete
    assert [item["name"] for item in report["items"]] == (names or [f"{n:03}" for n in range(MOST)])
    assert names is None or [item["name"] for item in unmanaged["items"]] == [f"other-{name}" for name in names]


@pytest.mark.parametrize(
    ("search", "others"),
    [
        ({"name": "*1"}, ["other-1"]),
        ({"tags": {"costs": "77"}}, ["other-0"]),
        ({"tags": {"costs": "78"}}, []),
        ({"after": "A/other-1"}, ["other-2"]),
        ({"after": "A/other-1", "token": "of another"}, ["other-0", "other-1", "other-2"]),
    ],
)
async def test_a_request_says_which_part_is_listed(search: dict[str, Any], others: list[str]) -> None:
    annotations = {FIND: json.dumps({"token": "t", **search}), RECONCILE_REQUESTED_AT: "t"}
    meant = search_of({"metadata": {"annotations": annotations}})

    reports = await reports_of("default", [cast("Any", Listed("A", ["0", "1", "2"]))], meant)

    assert [item["name"] for item in reports.unmanaged["items"]] == others


async def test_what_has_no_room_is_counted() -> None:
    listed: Any = Listed("A", [f"{n:04}" for n in range(MOST_UNMANAGED + 7)])

    reports = await reports_of("default", [listed])

    assert (reports.unmanaged["left"], reports.orphans["left"]) == (7, MOST_UNMANAGED + 7 - MOST)
