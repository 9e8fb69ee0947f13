"""Every attack of docs/dev/security-corpus.md is made by a test that there is, and is counted once."""

from __future__ import annotations

import re
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.security.attack import ACCEPTED
from tests.security.test_attacks import ATTACKS

_ROOT = Path(__file__).resolve().parents[2]
_PAGE = (_ROOT / "docs" / "dev" / "security-corpus.md").read_text(encoding="utf-8")
_ROW = re.compile(r"^\| (\d+)(†?) \| (T\d)[a-z-]* \| (.+) \| `(tests/[^`]+)` \|$", re.MULTILINE)
_COUNT = re.compile(r"^\| (T\d) \| (\d+) \| (\d+) \| (\d+) \|$", re.MULTILINE)


class Row(NamedTuple):
    """One attack of the page."""

    number: int
    got_through: bool
    threat: str
    test: str


ROWS = [Row(int(number), bool(mark), threat, test) for number, mark, threat, _, test in _ROW.findall(_PAGE)]


@pytest.fixture(scope="module")
def collected() -> set[str]:
    """Return the names of all tests in the files that the page names, as pytest collects them."""
    files = sorted({row.test.partition("::")[0] for row in ROWS})
    command = (sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider", *files)
    ended = subprocess.run(command, cwd=_ROOT, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stdout[-2000:]
    return {line for line in ended.stdout.splitlines() if "::" in line}


def test_each_attack_is_counted_once_and_by_its_row() -> None:
    numbers = [row.number for row in ROWS]
    stay = {attack.number for attack in ATTACKS if attack.answer is ACCEPTED}
    by_threat = {
        threat: (
            sum(row.threat == threat for row in ROWS),
            sum(row.threat == threat and row.got_through for row in ROWS),
            sum(row.threat == threat and row.number in stay for row in ROWS),
        )
        for threat in sorted({row.threat for row in ROWS})
    }

    assert numbers == list(range(1, 630))
    assert by_threat == {threat: tuple(map(int, counts)) for threat, *counts in _COUNT.findall(_PAGE)}
    assert Counter(attack.number for attack in ATTACKS).most_common(1)[0][1] == 1


def test_each_attack_has_a_test_that_makes_it(collected: set[str]) -> None:
    missing = [row for row in ROWS if row.test not in collected and not _numbered(row, collected)]

    assert missing == []


def test_what_must_stay_possible_is_what_the_page_says() -> None:
    page = (_ROOT / "docs" / "security.md").read_text(encoding="utf-8")
    stay = [attack.number for attack in ATTACKS if attack.answer is ACCEPTED]

    assert stay == [264, 274]
    assert {int(number) for number in re.findall(r"^- No\. (\d+):", page, re.MULTILINE)} == set(stay)


def _numbered(row: Row, collected: set[str]) -> bool:
    """Return whether the test is parametrized by the attacks' numbers, and has this one."""
    begin = re.compile(re.escape(row.test) + rf"\[{row.number}(?!\d)")
    return "[" not in row.test and any(begin.match(name) for name in collected)


def test_a_test_that_there_is_not_would_be_seen(collected: set[str]) -> None:
    first = ROWS[0]._replace(number=999)

    assert first.test not in collected
    assert not _numbered(first, collected)
