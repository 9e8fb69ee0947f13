"""The listed mutants can be planted, and those of a seed are a function of it."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tests.mutants.listed import listed
from tests.mutants.seeded import seeded

_ROOT = Path(__file__).resolve().parents[2]


def _planted(file: str, old: str, new: str) -> str:
    return (_ROOT / file).read_text(encoding="utf-8").replace(old, new, 1)


def test_a_listed_mutant_changes_one_place_of_a_module_that_still_parses() -> None:
    mutants = listed()
    counts = {mutant.name: (_ROOT / mutant.file).read_text(encoding="utf-8").count(mutant.old) for mutant in mutants}

    assert {name: count for name, count in counts.items() if count != 1} == {}
    for mutant in mutants:
        ast.parse(_planted(mutant.file, mutant.old, mutant.new))


@pytest.mark.slow
def test_mutants_of_a_seed_are_the_same_each_time_and_each_differs_from_the_code() -> None:
    mutants = seeded(_ROOT, 7, 20)

    assert mutants == seeded(_ROOT, 7, 20)
    assert [mutant.name for mutant in mutants if mutant.old == mutant.new] == []
    for mutant in mutants:
        ast.parse(_planted(mutant.file, mutant.old, mutant.new))
