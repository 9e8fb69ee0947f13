"""The pause of an object, as every process reads it."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from apis import names
from apis.pause import is_paused, pause_end, until

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("value", "paused"),
    [
        ("", False),
        ("false", False),
        ("true", True),
        ("True", True),
        ("until tomorrow", True),
        ("2026-11-21T12:00:01Z", True),
        ("2026-11-21T12:00:00Z", False),
        ("2026-11-21T11:59:59Z", False),
        ("2026-11-21T14:00:00+01:00", True),
        ("2026-11-21T14:00:00+03:00", False),
        ("2026-11-21T11:00:00-03:00", True),
        ("2026-11-21T11:00:00", True),
        ("2026-11-21", True),
        ("until monday", True),
    ],
)
def test_a_pause_has_an_end_or_none(value: str, *, paused: bool) -> None:
    assert is_paused({names.PAUSED: value}, NOW) is paused


def test_a_pause_that_names_no_instant_with_its_zone_has_no_end() -> None:
    assert pause_end({names.PAUSED: "true"}) is None
    assert pause_end({names.PAUSED: "2026-11-21T11:00:00"}) is None
    assert pause_end({names.PAUSED: "2026-11-21T12:00:00Z"}) == NOW


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("true", "until lifted"),
        ("2026-11-21T12:00:00Z", "until 2026-11-21T12:00:00Z"),
        ("import", "until lifted ('import' is neither true nor a time)"),
    ],
)
def test_the_end_of_a_pause_is_said_in_words(value: str, words: str) -> None:
    assert until({names.PAUSED: value}) == words
