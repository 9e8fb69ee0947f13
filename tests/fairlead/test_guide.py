"""The Compositions of the guide (docs/compositions.md) are valid, and its commands say what the page says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from fairlead.cli import run
from fairlead.exits import Exit

_ROOT = Path(__file__).resolve().parents[2]
_PAGE = (_ROOT / "docs" / "compositions.md").read_text(encoding="utf-8")
_FILES: dict[str, str] = dict(re.findall(r"```yaml\n# (\S+\.yaml)\n(.*?)```", _PAGE, re.DOTALL))
_CLUSTERS = """\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: clusters.postgresql.cnpg.io}
spec:
  group: postgresql.cnpg.io
  scope: Namespaced
  names: {kind: Cluster, plural: clusters, singular: cluster, listKind: ClusterList}
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}}
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec: {type: object, x-kubernetes-preserve-unknown-fields: true}
          status: {type: object, x-kubernetes-preserve-unknown-fields: true}
"""


@pytest.fixture
def written(tmp_path: Path) -> Path:
    for name, text in {**_FILES, "crds/clusters.yaml": _CLUSTERS}.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    return tmp_path


def _compositions() -> list[str]:
    return [name for name in _FILES if "/" not in name]


def test_the_guide_has_a_composition_for_each_step() -> None:
    assert _compositions() == ["smallest.yaml", "sizes.yaml", "two.yaml", "cnpg.yaml"]


@pytest.mark.parametrize("name", _compositions())
def test_a_composition_of_the_guide_is_valid_and_renders_the_example(
    name: str, written: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    crds = ["--crds", str(written / "crds")]

    assert run(["validate", str(written / name), *crds]) == Exit.DONE, capsys.readouterr().out
    claim = str(_ROOT / "examples" / "orders.yaml")
    assert run(["render", claim, "-c", str(written / name), *crds]) == Exit.DONE, capsys.readouterr().err


def test_the_test_of_the_guide_passes(written: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in set(_compositions()) - {"sizes.yaml"}:
        (written / name).unlink()

    code = run(["test", str(written), "--crds", str(written / "crds")])

    out = capsys.readouterr().out
    assert (code, out.strip() in _PAGE) == (Exit.DONE, True), out


def test_the_mistake_of_the_guide_is_said_as_the_guide_says(
    written: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = written / "smallest.yaml"
    # The page counts the line that names the file.
    file.write_text("# smallest.yaml\n" + file.read_text().replace("claim.spec.version", "claim.spec.versions"))
    monkeypatch.chdir(written)

    assert run(["validate", "smallest.yaml"]) == Exit.INVALID_INPUT
    captured = capsys.readouterr()
    assert next(line for line in (captured.out + captured.err).splitlines() if "versions" in line) in _PAGE
