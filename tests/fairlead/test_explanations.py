"""`fairlead explain` and its page: every reason that a condition can have is explained once."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from apis.reasons import next_actor
from fairlead.cli import run
from fairlead.explanations import explanations
from tests.apis.test_reasons import rows
from tests.architecture import tree

_PAGE = (Path(__file__).resolve().parents[2] / "docs" / "troubleshooting.md").read_text(encoding="utf-8")


def _events() -> set[str]:
    """Return the events of the page of names that are no conditions' reasons."""
    section = (tree.ROOT / "docs" / "names.md").read_text(encoding="utf-8").split("\n## 7. ", 1)[1].split("\n## ", 1)[0]
    return {name for name in tree.words(section) if name.isalpha()}


def _alerts() -> set[str]:
    """Return the alerts of the rules for Prometheus."""
    rules = tree.DEPLOY / "observability" / "rules" / "fairlead.yaml"
    return set(re.findall(r"- alert: (\w+)", rules.read_text(encoding="utf-8")))


def test_an_event_is_explained_as_its_reason_is(capsys: pytest.CaptureFixture[str]) -> None:
    assert len(_events()) > 10
    assert [run(["explain", event]) for event in sorted(_events())] == [0] * len(_events())
    assert "ConnectionMoved\n  means: " in capsys.readouterr().out


def test_every_reason_of_the_contract_is_explained_once_and_no_other() -> None:
    reasons = [line.split("`")[1] for line in _PAGE.splitlines() if line.startswith("| `")]

    assert sorted(reasons) == sorted((*(reason for _, reason in rows()), *_events(), *_alerts()))
    assert sorted(explanations(_PAGE)) == sorted(reasons), "a row of the page is not of three columns"


@pytest.mark.parametrize("reason", [reason for _, reason in rows() if "developer" in next_actor(reason)])
def test_the_output_says_what_a_developer_must_do(reason: str) -> None:
    assert explanations(_PAGE)[reason].cure not in {"Nothing.", "Wait."}


def test_a_reason_is_explained_in_any_letter_case(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["explain", "databaselost"]) == 0

    text = capsys.readouterr().out
    assert text.startswith("DatabaseLost\n  means: ")
    assert "next move: the platform team" in text
    assert max(map(len, text.splitlines())) <= 100


def test_every_reason_is_printed_without_an_argument(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["explain"]) == 0
    assert capsys.readouterr().out.count("  means: ") == len(rows()) + len(_events()) + len(_alerts())


def test_a_reason_that_is_none_gets_the_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["explain", "DatabaseLots"]) == 64
    assert "did you mean 'DatabaseLost'?" in capsys.readouterr().err
