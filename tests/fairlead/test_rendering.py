"""`fairlead render`: what a claim becomes, and where a mistake stands, without any API server."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from fairlead.cli import run

CLAIM = """\
apiVersion: database.fairlead.dev/v1alpha1
kind: PostgreSQLInstance
metadata:
  name: orders
  namespace: shop
spec:
  version: "16"
  size: small
"""
COMPOSITION = """\
apiVersion: fairlead.dev/v1alpha1
kind: Composition
metadata:
  name: two-steps
spec:
  compositeTypeRef:
    apiVersion: database.fairlead.dev/v1alpha1
    kind: PostgreSQLInstance
  appliesTo: {}
  environments: [defaults]
  variables:
    limit: "{{ {'small': 20}[claim.spec.size] }}"
  resources:
  - name: settings
    template:
      apiVersion: v1
      kind: ConfigMap
      data:
        team: "{{ env.defaults.team }}"
  - name: database
    dependsOn: [settings]
    template:
      apiVersion: onprem.fairlead.dev/v1alpha1
      kind: PostgresDatabase
      spec:
        forProvider:
          databaseName: orders
          username: orders
          connectionLimit: "{{ vars.limit }}"
---
apiVersion: v1
kind: ConfigMap
metadata:
  name: defaults
data:
  team: shop
"""


@pytest.fixture
def files(tmp_path: Path) -> Path:
    (tmp_path / "claim.yaml").write_text(CLAIM)
    (tmp_path / "composition.yaml").write_text(COMPOSITION)
    return tmp_path


def rendered(text: str) -> list[dict[str, object]]:
    return [document for document in YAML(typ="safe").load_all(text) if document]


def test_faults_of_all_claims_are_reported_at_once(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bad = CLAIM.replace("small", "tiny")
    (files / "claim.yaml").write_text(
        f"{bad}---\n{CLAIM.replace('orders', 'good')}---\n{bad.replace('orders', 'worse')}"
    )

    assert run(["render", str(files / "claim.yaml")]) == 2

    shown = capsys.readouterr()
    assert (shown.out, shown.err.count("spec.size: 'tiny'")) == ("", 2)


def test_a_dash_is_standard_input() -> None:
    program = "from fairlead.cli import main; main()"

    ended = subprocess.run(
        [sys.executable, "-c", program, "render", "-", "--namespace-labels="],
        input=CLAIM,
        capture_output=True,
        text=True,
        check=False,
    )

    assert (ended.returncode, ended.stderr) == (0, "")
    assert ended.stdout.startswith("# composition: postgres-onprem\n")


def test_an_identity_that_is_no_uid_is_refused(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["render", str(files / "claim.yaml"), "--identity", "a b"]) == 64
    assert "'a b' is no uid" in capsys.readouterr().err


def test_an_observed_child_counts(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run(["render", str(files / "claim.yaml"), "-c", str(files / "composition.yaml")])
    live = files / "live"
    live.mkdir()
    (live / "settings.yaml").write_text(capsys.readouterr().out)

    run(["render", str(files / "claim.yaml"), "-c", str(files / "composition.yaml"), "--observed", str(live)])

    # A ConfigMap is ready as soon as it exists.
    assert [document["kind"] for document in rendered(capsys.readouterr().out)] == ["ConfigMap", "PostgresDatabase"]


MISTAKES: dict[str, tuple[str, str, str, str, str]] = {
    "a number where a text belongs": (
        "claim",
        '"16"',
        "16",
        ":7:3:",
        "spec.version: wants string, found a whole number; quote it",
    ),
    "a value that is not offered": (
        "claim",
        "small",
        "smal",
        ":8:3:",
        "spec.size: 'smal' is none of small, medium, large, xlarge",
    ),
    "a missing field": ("claim", '  version: "16"\n', "", ":6:1:", "spec: version is missing"),
    "a claim without a name": ("claim", "  name: orders\n", "", ":3:1:", "metadata.name is missing"),
    "no claim": ("claim", CLAIM, "", ":", "holds no claim"),
    "a name that is none": ("claim", "name: orders", "name: Orders", ":4:3:", "'Orders' is no name"),
    "neither a size nor its parts": ("claim", "  size: small\n", "", ":6:1:", "spec: give exactly one of: size"),
    "an environment that is not there": (
        "composition",
        "[defaults]",
        "[dfaults]",
        ":10:18:",
        "there is no environment 'dfaults'",
    ),
    "a key that is there twice": (
        "claim",
        "  size: small",
        "  size: small\n  size: large",
        ":9:3:",
        "not YAML: found duplicate key",
    ),
    "an anchor": ("claim", "size: small", "size: &a small", ":8:9:", "anchors and aliases are refused"),
    "an alias": ("claim", "size: small", "size: *a", ":8:9:", "anchors and aliases are refused"),
    "an anchor in brackets": ("claim", "size: small", "size: {a: 1,&a b: 2}", ":8:15:", "are refused"),
    "an alias behind a quoted name": ("claim", "size: small", 'size: {"a":*b}', ":8:14:", "are refused"),
    "no object at all": ("claim", "apiVersion:", "api:", ":", "no Kubernetes object: it needs apiVersion and kind"),
    "a misspelt variable": (
        "composition",
        "vars.limit",
        "vars.limt",
        ":29:32:",
        "forProvider.connectionLimit: 'limt' is undefined",
    ),
    "a path that the claim's schema does not have, under a default": (
        "composition",
        "env.defaults.team }}",
        "claim.spec.bakcup.startTime | default('x') }}",
        ":19:30:",
        "'bakcup' is undefined, did you mean 'backup'?",
    ),
    "a broken expression": ("composition", "vars.limit }}", "vars.limit }", ":29:", ""),
    "a misspelt neighbour": ("composition", "[settings]", "[setings]", ":", ""),
    "a Composition without a name": (
        "composition",
        "  name: two-steps\n",
        "  labels: {}\n",
        ":3:1:",
        "metadata.name is missing",
    ),
    "an unknown field of a Composition": ("composition", "variables:", "variabels:", ":", ""),
}


@pytest.mark.parametrize(("file", "old", "new", "place", "message"), MISTAKES.values(), ids=MISTAKES)
def test_a_mistake_is_reported_with_its_place(  # noqa: PLR0917 - fixtures and a row of the table
    files: Path, capsys: pytest.CaptureFixture[str], file: str, old: str, new: str, place: str, message: str
) -> None:
    path = files / f"{file}.yaml"
    path.write_text(path.read_text().replace(old, new))

    code = run(["render", str(files / "claim.yaml"), "-c", str(files / "composition.yaml"), "--ready", "all"])

    shown = capsys.readouterr()
    assert (code, shown.out) == (2, "")
    assert shown.err.startswith("fairlead: ")
    assert f"{file}.yaml{place}" in shown.err
    assert message in shown.err
    assert "Traceback" not in shown.err


def test_an_unknown_composition_is_reported_with_the_nearest(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = files / "claim.yaml"
    path.write_text(f"{CLAIM}  compositionRef: {{name: postgres-onprm}}\n")

    assert run(["render", str(path)]) == 2
    assert "claim.yaml:9:20: there is no Composition 'postgres-onprm'" in capsys.readouterr().err


@pytest.mark.parametrize("missing", ["claim.yaml", "composition.yaml"])
def test_a_missing_file_is_named(files: Path, capsys: pytest.CaptureFixture[str], missing: str) -> None:
    (files / missing).unlink()

    assert run(["render", str(files / "claim.yaml"), "-c", str(files / "composition.yaml")]) == 2
    assert f"{missing}: cannot be read: No such file or directory" in capsys.readouterr().err
