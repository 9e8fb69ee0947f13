"""`fairlead simulate`: a claim over time in each simulated cloud."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fairlead.cli import run
from fairlead.exits import Exit
from fairlead.simulation import clouds

_CLAIM = """
apiVersion: database.fairlead.dev/v1alpha1
kind: PostgreSQLInstance
metadata: {name: orders, namespace: shop}
spec:
  version: "16"
  size: SIZE
  deletionPolicy: Delete
  passwordRotation: {token: "TOKEN"}
"""


def _file(folder: Path, name: str, *, size: str = "small", number: int = 1) -> str:
    path = folder / name
    path.write_text(_CLAIM.replace("SIZE", size).replace("TOKEN", str(number)), encoding="utf-8")
    return str(path)


@pytest.mark.parametrize("cloud", [pytest.param(name, marks=pytest.mark.slow) for name in clouds.NAMES])
def test_a_claim_is_made_edited_rotated_and_deleted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], cloud: str
) -> None:
    files = _file(tmp_path, "claim.yaml"), _file(tmp_path, "rotated.yaml", number=2)

    assert run(["simulate", files[0], "--then", files[1], "--cloud", cloud, "--delete", "-o", "json"]) == Exit.DONE

    story = json.loads(capsys.readouterr().out)
    made, rotated, deleted = story["steps"]
    assert made["claims"] == {"shop/orders": "Ready: Available: everything composed is ready"}
    assert [line["text"].split()[0] for line in made["lines"] if line["subject"] == "cloud"].count("create") > 0
    assert rotated["claims"] == made["claims"]
    assert rotated["lines"] != []
    assert (deleted["claims"], deleted["lines"][-1]["text"]) == ({}, "gone")
    # The platform team's own server stays.
    assert [name for name in story["left"] if "orders" in name] == []
    assert [step["began"] for step in story["steps"]] == sorted(step["began"] for step in story["steps"])


@pytest.mark.slow
def test_a_login_that_fails_during_a_rotation_is_counted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = _file(tmp_path, "claim.yaml"), _file(tmp_path, "rotated.yaml", number=2)

    run(["simulate", files[0], "--then", files[1], "--cloud", "azure"])

    shown = capsys.readouterr().out
    assert "logins of shop/orders failed for" in shown
    assert "left in the cloud: fl-orders-" in shown


def test_what_is_not_ready_at_the_end_is_the_exit_code(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    claim = Path(_file(tmp_path, "claim.yaml"))
    claim.write_text(claim.read_text(encoding="utf-8") + "  compositionRef: {name: other}\n", encoding="utf-8")

    assert run(["simulate", str(claim)]) == Exit.STALLED
    assert "not Ready, Stalled" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("content", "arguments", "code", "text"),
    [
        (_CLAIM, ["--cloud", "mars"], Exit.USAGE, "there are gcp, azure, aws, onprem"),
        ("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n", [], Exit.INVALID_INPUT, "holds no claim"),
        (_CLAIM.replace("version:", "versoin:"), [], Exit.INVALID_INPUT, "versoin"),
    ],
    ids=["no such cloud", "no claim", "a mistake"],
)
def test_bad_input_is_refused_in_words(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], *, content: str, arguments: list[str], code: Exit, text: str
) -> None:
    path = tmp_path / "file.yaml"
    path.write_text(content, encoding="utf-8")

    assert run(["simulate", str(path), *arguments]) == code
    assert text in capsys.readouterr().err


def test_a_cloud_whose_sdk_is_not_installed_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing(_cloud: str) -> clouds.CloudDescription:
        raise ModuleNotFoundError(name="google.auth")

    monkeypatch.setattr(clouds, "described", missing)

    assert run(["simulate", _file(tmp_path, "claim.yaml"), "--cloud", "gcp"]) == Exit.TOOL_FAILED
    assert "google.auth is not installed: install fairlead[cli,devcloud,gcp]" in capsys.readouterr().err
