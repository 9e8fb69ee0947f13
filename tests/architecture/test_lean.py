"""A command loads what it needs: `--help` and `render` no Kubernetes client and no SDK, a process no other cloud's."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.architecture import tree
from tests.architecture.test_wheel import CLAIM

HEAVY = frozenset(
    {
        "aiohttp",
        "azure",
        "boto3",
        "botocore",
        "cryptography",
        "google",
        "grpc",
        "kubernetes_asyncio",
        "msal",
        "prometheus_client",
        "psycopg",
        "uvloop",
    }
)


def _loaded(cwd: Path, *arguments: str) -> set[str]:
    """Run Python and return the top-level names of all modules that it loaded."""
    return {name.split(".")[0] for name in _modules(cwd, *arguments)}


def _modules(cwd: Path, *arguments: str) -> set[str]:
    """Run Python and return the full names of all modules that it loaded."""
    result = subprocess.run(
        [sys.executable, "-X", "importtime", *arguments], cwd=cwd, capture_output=True, text=True, check=False
    )
    complaint = [line for line in result.stderr.splitlines() if not line.startswith("import time:")]
    assert result.returncode == 0, "\n".join(complaint)
    return set(re.findall(r"^import time:.*\|\s+(\S+)$", result.stderr, re.MULTILINE))


MAIN = "import sys; from fairlead.cli import main; main()"


def test_the_probe_sees_what_is_loaded() -> None:
    assert _loaded(tree.ROOT, "-c", "import kubernetes_asyncio") & HEAVY >= {"kubernetes_asyncio", "aiohttp"}


MODELS = "kubernetes_asyncio.client.models"


def test_the_probe_sees_the_generated_models_of_the_kubernetes_client() -> None:
    assert MODELS in _modules(tree.ROOT, "-c", "import kubernetes_asyncio")


@pytest.mark.parametrize("process", ["composer.process", "providers.process"])
def test_no_process_loads_the_generated_models_of_the_kubernetes_client(process: str) -> None:
    loaded = _modules(tree.ROOT, "-c", f"import {process}, runtime.kube_session")

    assert "kubernetes_asyncio.config.kube_config" in loaded
    assert {name for name in loaded if name.startswith(MODELS)} == set()


def test_the_kubernetes_client_is_whole_for_whoever_else_imports_it() -> None:
    used = "runtime.kube_session; import kubernetes_asyncio as k; assert k.client.V1Pod and k.config.load_kube_config"
    subprocess.run([sys.executable, "-c", f"import {used}"], cwd=tree.ROOT, check=True)


def test_help_loads_nothing_heavy() -> None:
    assert _loaded(tree.ROOT, "-c", MAIN, "--help") & HEAVY == set()


def test_render_loads_nothing_heavy(tmp_path: Path) -> None:
    (tmp_path / "claim.yaml").write_text(CLAIM, encoding="utf-8")

    assert _loaded(tmp_path, "-c", MAIN, "render", "claim.yaml") & HEAVY == set()


SDKS = {
    "aws": {"boto3", "botocore"},
    "azure": {"azure", "msal"},
    "gcp": {"google", "grpc"},
    "onprem": {"psycopg"},
}


def test_the_composer_loads_no_sdk() -> None:
    loaded = _loaded(tree.ROOT, "-c", "import composer.__main__")

    assert loaded & set().union(*SDKS.values()) == set()


@pytest.mark.parametrize("cloud", tree.clouds("providers"))
def test_a_provider_loads_one_sdk(cloud: str) -> None:
    loaded = _loaded(tree.ROOT, "-c", f"import providers.__main__, providers.{cloud} as cloud; cloud.PROVIDER")

    assert sum(bool(loaded & sdk) for sdk in SDKS.values()) <= 1
