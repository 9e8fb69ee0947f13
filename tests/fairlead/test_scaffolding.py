"""`fairlead crd new` and `fairlead composition new`: what they write passes every check that we have."""

from __future__ import annotations

from pathlib import Path

import pytest

from fairlead.cli import run
from fairlead.exits import Exit
from fairlead.yaml_files import documents_in

VALUES = """\
replicaCount: 2
image: {repository: nginx, tag: "1.25"}
size: small
features: [a, b]
ingress: {enabled: false}
storageGiB: 20
"""
DATABASE = """\
      kind: PostgresDatabase
      spec:
        forProvider:
          databaseName: "{{ claim.spec.databaseName | default(NAME) }}"
          username: "{{ claim.spec.username | default(NAME) }}"
          version: '{{ claim.spec.version }}'
          extensions: '{{ claim.spec.extensions | default(none) }}'
          parameters: '{{ claim.spec.parameters | default(none) }}'
""".replace("NAME", "'db_' ~ claim.metadata.name | dns_label(47) | replace('-', '_')")
SETTINGS = """\
  variables:
    replicaCount: 2
    image:
      repository: nginx
      tag: '1.25'
    size: "{{ claim.spec.size | default('small') }}"
    features:
    - a
    - b
    ingress:
      enabled: false
    storageGiB: '{{ claim.spec.storageGiB | default(20) }}'
  resources:
  - name: settings
    template:
      apiVersion: v1
      kind: ConfigMap
      data:
        replicaCount: '{{ vars.replicaCount | string }}'
        image.repository: '{{ vars.image.repository | string }}'
        image.tag: '{{ vars.image.tag | string }}'
        size: '{{ vars.size | string }}'
        features: "{{ vars.features | join(',') }}"
        ingress.enabled: '{{ vars.ingress.enabled | string | lower }}'
        storageGiB: '{{ vars.storageGiB | string }}'
"""


def test_a_new_kind_passes_every_check(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    new = ["crd", "new", "Queue", "--group", "queues.example.org", "-o", str(tmp_path)]
    crds, compositions = str(tmp_path / "crds"), str(tmp_path / "compositions")

    assert run(new) == Exit.DONE
    capsys.readouterr()
    assert run(["crd", "check", crds]) == Exit.DONE
    assert run(["validate", compositions, str(tmp_path / "examples"), "--crds", crds, "--strict"]) == Exit.DONE
    assert run(["test", compositions, "--crds", crds]) == Exit.DONE
    assert run(["offers", "-c", compositions, "--crds", crds]) == Exit.DONE
    out, errors = capsys.readouterr()
    assert "small: replicas 1" in out
    assert errors == "2 valid\n"
    kinds = [document.content["kind"] for document in documents_in(tmp_path / "deploy")]
    assert kinds == ["ValidatingAdmissionPolicyBinding"] * 3 + ["ClusterRole"] * 4
    assert run(new) == Exit.REFUSED


@pytest.mark.parametrize(
    ("kind", "group"), [("queue", "queues.example.org"), ("Queue", "aws.fairlead.dev"), ("Q", "q")]
)
def test_a_kind_that_nobody_would_serve_is_refused(kind: str, group: str, tmp_path: Path) -> None:
    assert run(["crd", "new", kind, "--group", group, "-o", str(tmp_path)]) == Exit.USAGE
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("options", "part"),
    [(["--kind", "PostgresDatabase.onprem.fairlead.dev"], DATABASE), (["--values", "values.yaml"], SETTINGS)],
    ids=["of a kind", "of values"],
)
def test_a_new_composition_passes_its_own_test(
    options: list[str], part: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("values.yaml").write_text(VALUES)

    assert run(["composition", "new", "first", *options, "-o", "made"]) == Exit.DONE
    assert capsys.readouterr().err == ""
    assert Path("made/first.yaml").read_text().endswith(part)
    assert run(["test", "made"]) == Exit.DONE
    assert Path("made/tests/golden/first.yaml").read_text().startswith("# composition: first\n---\n# resource: ")
    assert run(["composition", "new", "first", *options, "-o", "made"]) == Exit.REFUSED


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ([], Exit.USAGE),
        (["--kind", "Nothing.example.org"], Exit.INVALID_INPUT),
        (["--values", "/dev/null"], Exit.INVALID_INPUT),
    ],
)
def test_a_composition_of_nothing_is_not_begun(options: list[str], code: Exit, tmp_path: Path) -> None:
    assert run(["composition", "new", "first", *options, "-o", str(tmp_path)]) == code
    assert list(tmp_path.iterdir()) == []
