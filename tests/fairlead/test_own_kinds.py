"""Kinds beside ours on the command line: their CRDs are given as files, as an API server would have them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from fairlead.cli import run
from fairlead.exits import Exit
from tests.support.second_api import SecondApi

API = SecondApi("cache.example.org")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder with both CRDs, a Composition and a claim."""
    stateful = API.node_crd(composable="true")
    stateful["metadata"]["labels"]["fairlead.dev/stateful"] = "true"
    claim = API.cache.new("shop", "sessions", spec={"memoryMB": 64})
    _write(tmp_path / "crds.yaml", API.cache_crd(), stateful)
    _write(tmp_path / "composition.yaml", API.composition("caches"))
    _write(tmp_path / "claim.yaml", claim)
    return tmp_path


def _write(path: Path, *objects: dict[str, Any]) -> None:
    yaml = YAML()
    # Aliases are refused, and one part may stand in two kinds.
    yaml.representer.ignore_aliases = lambda _: True
    with path.open("w") as file:
        yaml.dump_all(list(objects), file)


def _render(folder: Path, *more: str) -> int:
    return run(["render", str(folder / "claim.yaml"), "-c", str(folder / "composition.yaml"), *more])


def test_a_claim_of_another_api_is_rendered_by_its_own_crd(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert _render(folder, "--crds", str(folder / "crds.yaml")) == Exit.DONE

    _, settings, node = YAML(typ="safe").load_all(f"{{}}\n{capsys.readouterr().out}")
    assert (settings["kind"], settings["data"]) == ("ConfigMap", {"maxmemory": "64mb"})
    assert (node["kind"], node["spec"]) == ("Node", {"memory": "64Mi"})
    # It holds data, as its CRD says: the collector must not take it with its claim.
    assert node["metadata"]["finalizers"] == ["fairlead.dev/teardown"]
    assert "ownerReferences" not in node["metadata"]
    assert "ownerReferences" in settings["metadata"]


def test_a_kind_without_its_crd_is_no_kind_of_claim(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert _render(folder) == Exit.INVALID_INPUT
    assert "Cache is no kind of claim" in capsys.readouterr().err


def test_claim_and_composition_of_another_api_are_validated(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = [str(folder / name) for name in ("claim.yaml", "composition.yaml")]

    assert run(["validate", *files, "--crds", str(folder / "crds.yaml")]) == Exit.DONE
    assert capsys.readouterr().out.count("is valid") == 2
