"""Versions that are asked for against versions that run."""

from __future__ import annotations

import pytest

from providers.external.cloud_api.versions import covers, major_of, satisfies


@pytest.mark.parametrize(
    ("wanted", "running", "is_covered", "is_satisfied"),
    [
        ("16", "16.4", True, True),
        ("16.4", "16.4", True, True),
        ("16", "16", True, True),
        ("1", "16.4", False, False),
        ("16.4", "16.40", False, True),
        ("16.4", "16.10", False, True),
        ("16.10", "16.4", False, False),
        ("16.4", "16", False, False),
        ("16", "17.1", False, False),
        ("17", "16.9", False, False),
        ("16.4", "16.4-R1", False, False),
    ],
)
def test_a_minor_version_may_run_ahead_and_a_major_one_may_not(
    wanted: str, running: str, *, is_covered: bool, is_satisfied: bool
) -> None:
    assert covers(wanted, running) is is_covered
    assert satisfies(wanted, running) is is_satisfied


def test_the_major_version_is_the_first_number() -> None:
    assert [major_of(version) for version in ("16", "16.4", "16.4-R1", "")] == ["16", "16", "16", ""]
