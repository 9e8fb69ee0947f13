"""Helm itself, built once from its Go module into our cache, and what it renders from the chart."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

from tests.support import go_tools

ROOT = Path(__file__).resolve().parents[2]
CHART = ROOT / "deploy" / "helm" / "fairlead"
# The release's own namespace: none of ours.
RELEASE = "fairlead-release"

Rendered = dict[tuple[str, str, str], dict[str, Any]]
"""Objects by kind, namespace (empty without one) and name."""


def program() -> Path:
    """Return Helm; the first call on a machine builds it, which takes minutes."""
    return go_tools.program("helm")


def run(helm: Path, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """Run Helm without a cluster and without the user's own settings."""
    home = {
        name: str(helm.parent / "home") for name in ("HOME", "HELM_CONFIG_HOME", "HELM_CACHE_HOME", "HELM_DATA_HOME")
    }
    return subprocess.run(
        [helm, *arguments], env={"PATH": os.environ["PATH"], **home}, capture_output=True, text=True, check=False
    )


def template(helm: Path, *options: str | Path, namespace: str = RELEASE) -> str:
    """Return what `helm template` prints for the chart. Raises AssertionError with Helm's words when it refuses."""
    ended = run(helm, "template", "fairlead", CHART, "--namespace", namespace, "--kube-version", "1.30", *options)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


def objects(text: str) -> Rendered:
    """Return the objects of a YAML text. Raises AssertionError for one that stands there twice."""
    documents = [doc for doc in YAML(typ="safe", pure=True).load_all(text) if doc]
    rendered = {_key(doc): doc for doc in documents}
    assert len(rendered) == len(documents)
    return rendered


def _key(document: dict[str, Any]) -> tuple[str, str, str]:
    meta = document["metadata"]
    return document["kind"], meta.get("namespace", ""), meta["name"]
