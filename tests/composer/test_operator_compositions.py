"""The Compositions for other operators: valid for every claim, as their tests say, with whichever CRDs there are."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from composer.kinds.catalog import catalog
from composer.validation.validate import CheckRequest, check, remarks
from fairlead.rendering import shipped_kinds
from fairlead.testing import run_tests
from fairlead.validate import validate
from tests.support import yaml_texts
from tests.support.operators.played import ALL, crd_files, crds

_FOLDER = Path(__file__).resolve().parents[2] / "compositions" / "operators"
_ENVIRONMENTS = {operator.name: dict(operator.environment) for operator in ALL if operator.environment}


def composition_of(operator: str) -> dict[str, Any]:
    """Return the spec of an operator's Composition."""
    spec: dict[str, Any] = yaml_texts.load(_FOLDER / f"postgres-{operator}.yaml")["spec"]
    return spec


def _gathered(folder: Path) -> Path:
    """Copy the CRDs of all operators into a folder; return it."""
    for operator in ALL:
        for path in crd_files(operator.name):
            shutil.copy(path, folder / f"{operator.name}-{path.name}")
    return folder


def test_each_operator_has_a_composition_and_a_test() -> None:
    names = {f"postgres-{operator.name}.yaml" for operator in ALL}

    assert {path.name for path in _FOLDER.glob("*.yaml")} == names
    assert {path.name for path in (_FOLDER / "tests").glob("*.yaml")} == names


@pytest.mark.parametrize("operator", [operator.name for operator in ALL])
def test_a_composition_is_valid_for_all_claims_but_the_largest(operator: str) -> None:
    known = {**shipped_kinds("database.fairlead.dev_*.yaml"), **catalog(crds(operator))}
    request = CheckRequest(composition_of(operator), known, _ENVIRONMENTS)

    assert [str(problem) for problem in check(request)] == []
    assert [str(remark) for remark in remarks(request) if "no row of the table holds" not in str(remark)] == []


def test_all_compositions_pass_the_strict_validation_of_the_command_line(tmp_path: Path) -> None:
    validity = validate([_FOLDER], _gathered(tmp_path))

    assert (validity.faults, validity.remarks) == ((), ())
    assert len(validity.good) == len(ALL)


def test_the_compositions_make_of_claims_what_their_tests_say(tmp_path: Path) -> None:
    results = run_tests(_FOLDER, crds=_gathered(tmp_path))

    assert len(results) == 4 * len(ALL) + 1
    assert [line for result in results for line in result.lines() if result.differences] == []
