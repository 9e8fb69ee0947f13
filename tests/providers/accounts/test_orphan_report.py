"""What a ProviderConfig says of things without a resource: every kind, cut at a limit, honest on failure."""

from __future__ import annotations

from typing import Any

import pytest

from providers.accounts.orphan_report import MOST, reports_of
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

    async def list_without_resource(self, config: str) -> WithoutResource:
        if self._names is None:
            raise Transient(f"{config}: no answer")
        others = tuple(f"other-{name}" for name in self._names)
        return WithoutResource({name: _owner(name) for name in self._names}, others, self._whole)


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
