"""Which Composition `fairlead render` takes where the labels of a namespace decide, and what it says of that."""

from __future__ import annotations

from pathlib import Path

import pytest

from fairlead.cli import run
from tests.fairlead.test_rendering import CLAIM

NETWORK = """\
apiVersion: v1
kind: ConfigMap
metadata: {name: aws}
data: {subnetIds: "subnet-0a1b,subnet-1a2b", securityGroupIds: sg-0a1b}
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Return a claim in a file of its own."""
    path = tmp_path / "claim.yaml"
    path.write_text(CLAIM)
    return path


def test_a_named_composition_whose_fence_is_not_checked_is_rendered_with_a_word(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (file).write_text(f"{NETWORK}---\n{CLAIM}  compositionRef: {{name: postgres-aws}}\n")

    assert run(["render", str(file)]) == 0

    assert "whether its claims may use Composition postgres-aws is not checked" in capsys.readouterr().err


@pytest.mark.parametrize("labels", ["cloud", "=aws", "cloud=a b", "a=b;c=d"])
def test_labels_that_are_none_are_refused(file: Path, capsys: pytest.CaptureFixture[str], labels: str) -> None:
    assert run(["render", str(file), "--namespace-labels", labels]) == 64
    assert "is no label; write cloud=aws,team=shop" in capsys.readouterr().err


def test_what_the_kind_of_a_child_does_not_allow_is_refused_with_its_place(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (file).write_text(f"{NETWORK.replace('sg-0a1b', 'sg0a1b')}---\n{CLAIM}")

    assert run(["render", str(file), "--namespace-labels", "cloud=aws"]) == 2

    assert "forProvider.vpcSecurityGroupIds[0]: 'sg0a1b' does not match ^sg-" in capsys.readouterr().err
