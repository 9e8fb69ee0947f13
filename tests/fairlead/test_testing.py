"""`fairlead test`: the tests beside Compositions, and what they say when a Composition changed."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from fairlead.cli import run
from tests.fairlead.test_rendering import CLAIM, COMPOSITION
from tests.fairlead.test_validate import BACKUP as CRD
from tests.fairlead.test_validate import FOREIGN

_ROOT = Path(__file__).resolve().parents[2]
_CLAIM = "".join(f"    {line}\n" for line in CLAIM.splitlines())
_TEST = f"""\
apiVersion: fairlead.dev/v1alpha1
kind: CompositionTest
metadata:
  name: first
spec:
  composition: two-steps
  environments:
    defaults:
      team: shop
  claim:
{_CLAIM}"""


class Case(msgspec.Struct, frozen=True):
    spec: str
    exit_code: int
    says: str = ""


CASES = {
    "what waits": Case("  expect: {waiting: [database]}", 0),
    "what no longer waits": Case("  expect: {waiting: []}", 3, 'waiting: expected [], found ["database"]'),
    "a resource that comes after another": Case(
        "  ready: all\n  expect: {waiting: [], children: [{resource: database, object: {spec: {forProvider: "
        "{connectionLimit: 20}}}}]}",
        0,
    ),
    "a value that is another": Case(
        "  ready: all\n  expect: {children: [{resource: database, object: "
        "{spec: {forProvider: {connectionLimit: 21}}}}]}",
        3,
        "database.spec.forProvider.connectionLimit: expected 21, found 20",
    ),
    "a field that is not there": Case(
        "  expect: {children: [{resource: settings, object: {data: {owner: x}}}]}",
        3,
        'settings.data.owner: expected "x", found nothing',
    ),
    "a child that is not there": Case(
        "  expect: {children: [{resource: database}]}", 3, "database: expected, found none; made: settings"
    ),
    "a child that is there": Case("  expect: {absent: [settings]}", 3, "settings: expected none, found one"),
    "what a child reports": Case(
        "  observed: [{resource: settings, status: {}}]\n  expect: {waiting: []}",
        0,
    ),
    "an error": Case(
        "  environments: {defaults: null}\n  expect: {error: {reason: RenderFailed, says: \"'defaults'\"}}", 0
    ),
    "an error that did not come": Case(
        "  expect: {error: {reason: RenderFailed}}", 3, "error: expected RenderFailed, found none"
    ),
    "an error that nobody expected": Case(
        "  environments: {defaults: null}\n  expect: {}", 3, "'defaults' is undefined"
    ),
    "an environment that is nowhere": Case(
        "  environments: {defaults: null}\n  expect: {}",
        3,
        "there is no environment 'defaults': put its ConfigMap beside the Compositions",
    ),
    "the environment beside the Composition": Case(
        "  environments: {}\n  expect: {children: [{resource: settings, object: {data: {team: shop}}}]}", 0
    ),
    "an environment of the test goes before the one beside the Composition": Case(
        "  environments: {defaults: {team: books}}\n"
        "  expect: {children: [{resource: settings, object: {data: {team: books}}}]}",
        0,
    ),
    "another status": Case("  expect: {status: {a: 1}}", 3, 'status: expected {"a":1}, found {}'),
    "an unknown composition": Case("  composition: three-steps\n  expect: {}", 2, "there is no Composition"),
    "a misspelt field": Case("  expect: {goldn: x}", 2, "unknown field `goldn`"),
}  # fmt: skip


def _folder(tmp_path: Path, spec: str) -> Path:
    replaced = {line.partition(":")[0] for line in spec.splitlines()}
    kept = (
        _TEST.replace("  environments:\n    defaults:\n      team: shop\n", "")
        if "  environments" in replaced
        else _TEST
    )
    kept = kept.replace("  composition: two-steps\n", "") if "  composition" in replaced else kept
    (tmp_path / "tests").mkdir(exist_ok=True)
    (tmp_path / "two-steps.yaml").write_text(COMPOSITION)
    (tmp_path / "tests" / "first.yaml").write_text(kept + spec + "\n")
    return tmp_path


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_a_composition_is_tested(case: Case, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code = run(["test", str(_folder(tmp_path, case.spec))])
    output = capsys.readouterr()

    assert code == case.exit_code, output.out + output.err
    assert case.says in output.out + output.err
    assert ("1 passed, 0 failed" in output.out) == (case.exit_code == 0)


def test_a_golden_file_is_written_once_and_compared_from_then_on(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = _folder(tmp_path, "  expect: {golden: golden/first.yaml}")
    golden = folder / "tests" / "golden" / "first.yaml"

    assert run(["test", str(folder)]) == 3
    assert run(["test", str(folder), "--update"]) == 0
    assert "team: shop" in golden.read_text()
    assert run(["test", str(folder)]) == 0
    golden.write_text(golden.read_text().replace("team: shop", "team: books"))
    capsys.readouterr()

    assert run(["test", str(folder)]) == 3
    assert "expected 'team: books', found 'team: shop'" in capsys.readouterr().out


def test_a_foreign_kind_is_compared_with_its_crd(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = _folder(tmp_path, "  ready: all\n  expect: {waiting: []}")
    (folder / "two-steps.yaml").write_text(FOREIGN.partition("        forProvider:")[0] + "        instnces: 3\n")
    (folder / "tests" / "crds.yaml").write_text(CRD)

    assert run(["test", str(folder), "--crds", str(folder / "tests" / "crds.yaml")]) == 3
    assert "did you mean 'instances'?" in capsys.readouterr().out


def test_a_folder_without_tests_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "two-steps.yaml").write_text(COMPOSITION)

    assert run(["test", str(tmp_path)]) == 2
    assert "holds no test" in capsys.readouterr().err


def test_the_shipped_compositions_pass_their_tests(capsys: pytest.CaptureFixture[str]) -> None:
    code = run(["test", str(_ROOT / "compositions")])

    assert code == 0, capsys.readouterr().out
    tested = (_ROOT / "compositions" / "tests").glob("*.yaml")
    assert {path.stem for path in tested} == {path.stem for path in (_ROOT / "compositions").glob("*.yaml")}
