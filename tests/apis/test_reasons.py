"""The page of names and the command line agree on who acts next."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from apis.reasons import next_actor

_PAGE = Path(__file__).resolve().parents[2] / "docs" / "names.md"
_HEADING = re.compile(r"\| \*\*(?P<heading>.*)\*\* \| \|")
_REASON = re.compile(r"\| `(?P<reason>[A-Za-z]+)` \|")
# The first three of their heading; the rest of it is the platform team's.
_DEVELOPERS = {"CompositionNotFound", "ReferenceNotFound", "SecretNotFound"}


def rows() -> list[tuple[str, str]]:
    section = _PAGE.read_text().split("## 6. Conditions")[1].split("## 7.")[0]
    heading, reasons = "", []
    for line in section.splitlines():
        if match := _HEADING.match(line):
            heading = match["heading"]
        elif match := _REASON.match(line):
            reasons.append((heading, match["reason"]))
    return reasons


def expected(heading: str, reason: str) -> str:
    mover = heading.rpartition("move: ")[2] if "move: " in heading else ""
    if reason in _DEVELOPERS or mover.startswith("developer"):
        return "developer"
    for word in ("platform", "nobody", "composer", "a person"):
        if mover.startswith(word):
            return word
    return "nobody" if mover.startswith("Fairlead") else ""


@pytest.mark.parametrize(("heading", "reason"), rows(), ids=lambda value: value)
def test_the_page_and_the_command_name_the_same_mover(heading: str, reason: str) -> None:
    mover = expected(heading, reason)

    assert mover in next_actor(reason)
    assert bool(mover) == bool(next_actor(reason))


@pytest.mark.parametrize("reason", ["EnvironmentNotFound", "KindNotInstalled", "InUse"])
def test_an_object_missing_in_the_cluster_is_not_called_the_account(reason: str) -> None:
    assert next_actor(reason) == "the platform team (the settings)"


def test_the_page_was_read() -> None:
    assert len(rows()) > 70
