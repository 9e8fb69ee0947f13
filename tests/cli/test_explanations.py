"""`fairlead explain` and its page: every reason that a condition can have is explained once."""

from __future__ import annotations

from pathlib import Path

import pytest

from fairlead.cli import run
from fairlead.explanations import explanations
from fairlead.moves import next_move
from tests.cli.test_moves import rows

_PAGE = (Path(__file__).resolve().parents[2] / "docs" / "troubleshooting.md").read_text(encoding="utf-8")


def test_every_reason_of_the_contract_is_explained_once_and_no_other() -> None:
    told = [line.split("`")[1] for line in _PAGE.splitlines() if line.startswith("| `")]

    assert sorted(told) == sorted(reason for _, reason in rows())
    assert sorted(explanations(_PAGE)) == sorted(told), "a row of the page is not of three columns"


@pytest.mark.parametrize("reason", [reason for _, reason in rows() if "developer" in next_move(reason)])
def test_what_a_developer_must_do_is_said(reason: str) -> None:
    assert explanations(_PAGE)[reason].cure not in {"Nothing.", "Wait."}


def test_a_reason_is_explained_in_any_letter_case(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["explain", "databaselost"]) == 0

    told = capsys.readouterr().out
    assert told.startswith("DatabaseLost\n  means: ")
    assert "next move: the platform team" in told
    assert max(map(len, told.splitlines())) <= 100


def test_without_a_reason_all_are_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["explain"]) == 0
    assert capsys.readouterr().out.count("  means: ") == len(rows())


def test_a_reason_that_is_none_gets_the_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["explain", "DatabaseLots"]) == 64
    assert "did you mean 'DatabaseLost'?" in capsys.readouterr().err
