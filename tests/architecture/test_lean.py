"""A command loads what it needs: `--help` and `render` no Kubernetes client and no SDK, a process no other cloud's."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.architecture import tree
from tests.architecture.test_wheel import CLAIM

pytestmark = pytest.mark.slow

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


def _packages(modules: set[str]) -> set[str]:
    return {name.split(".")[0] for name in modules}


def _modules(cwd: Path, *arguments: str) -> set[str]:
    """Run Python and return the full names of all modules that it loaded."""
    result = subprocess.run(
        [sys.executable, "-X", "importtime", *arguments], cwd=cwd, capture_output=True, text=True, check=False
    )
    complaint = [line for line in result.stderr.splitlines() if not line.startswith("import time:")]
    assert result.returncode == 0, "\n".join(complaint)
    return set(re.findall(r"^import time:.*\|\s+(\S+)$", result.stderr, re.MULTILINE))


MAIN = "import sys; from fairlead.cli import main; main()"


MODELS = "kubernetes_asyncio.client.models"


def test_help_loads_nothing_heavy() -> None:
    assert _packages(_modules(tree.ROOT, "-c", MAIN, "--help")) & (HEAVY | {"jinja2"}) == set()


def test_render_loads_nothing_heavy(tmp_path: Path) -> None:
    (tmp_path / "claim.yaml").write_text(CLAIM, encoding="utf-8")

    assert _packages(_modules(tmp_path, "-c", MAIN, "render", "claim.yaml")) & HEAVY == set()


SDKS = {
    "aws": {"boto3", "botocore"},
    "azure": {"azure", "msal"},
    "gcp": {"google", "grpc"},
    "onprem": {"psycopg"},
}


def _of_process(source: str) -> set[str]:
    """Return the packages that a process loads: none of its modules is a generated model of the Kubernetes client."""
    loaded = _modules(tree.ROOT, "-c", f"{source}; import runtime.kube_session")
    assert "kubernetes_asyncio.config.kube_config" in loaded
    assert {name for name in loaded if name.startswith(MODELS)} == set()
    return _packages(loaded)


def test_the_composer_loads_no_sdk_and_no_generated_models() -> None:
    loaded = _of_process("import composer.__main__, composer.process")

    assert loaded & set().union(*SDKS.values()) == set()


@pytest.mark.parametrize("cloud", tree.clouds("providers"))
def test_a_provider_loads_one_sdk_and_no_generated_models(cloud: str) -> None:
    loaded = _of_process(f"import providers.__main__, providers.process, providers.{cloud} as cloud; cloud.PROVIDER")

    assert sum(bool(loaded & sdk) for sdk in SDKS.values()) <= 1
