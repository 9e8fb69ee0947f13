"""The pages on kind and on EKS: which images the chart runs with their values, and what it lets them reach."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.support import helm as helm_program
from tests.support.helm import ROOT, Rendered, objects, template

pytestmark = pytest.mark.slow

KIND = ROOT / "deploy" / "examples" / "kind"
PAGES = {name: (ROOT / "docs" / f"{name}.md").read_text(encoding="utf-8") for name in ("kind", "eks")}


def _blocks(page: str) -> list[str]:
    return re.findall(r"^```\w*\n(.*?)^```", PAGES[page], re.DOTALL | re.MULTILINE)


def _deployments(rendered: Rendered) -> dict[str, tuple[int, str]]:
    """Return replicas and image of each Deployment by its name."""
    specs = {key[2]: document["spec"] for key, document in rendered.items() if key[0] == "Deployment"}
    return {
        name: (spec["replicas"], spec["template"]["spec"]["containers"][0]["image"]) for name, spec in specs.items()
    }


def test_on_kind_the_chart_runs_the_composer_and_the_on_prem_provider_of_loaded_images() -> None:
    rendered = objects(template(helm_program.program(), "--values", KIND / "values.yaml"))

    assert _deployments(rendered) == {
        "fairlead-composer": (1, "localhost/fairlead-composer:0.1.0"),
        "fairlead-provider-onprem": (1, "localhost/fairlead-provider-onprem:0.1.0"),
    }
    loaded = re.findall(r"localhost/\S+", "\n".join(_blocks("kind")))
    assert {image for _, image in _deployments(rendered).values()} == set(loaded)


def test_on_eks_the_chart_runs_the_provider_of_aws_and_lets_it_reach_its_identity(tmp_path: Path) -> None:
    (text,) = (block for block in _blocks("eks") if block.startswith("# values.yaml"))
    values = tmp_path / "values.yaml"
    values.write_text(text)

    registry = "123456789012.dkr.ecr.eu-west-1.amazonaws.com/fairlead"
    options = ("--values", values, "--set", f"image.repository={registry}")
    rendered = objects(template(helm_program.program(), *options))

    assert {name: image for name, (_, image) in _deployments(rendered).items()} == {
        "fairlead-composer": f"{registry}/fairlead-composer:0.1.0",
        "fairlead-provider-aws": f"{registry}/fairlead-provider-aws:0.1.0",
    }
    egress = rendered["NetworkPolicy", "fairlead-aws", "fairlead-ingress"]["spec"]["egress"]
    agent = {"to": [{"ipBlock": {"cidr": "169.254.170.23/32"}}], "ports": [{"port": 80, "protocol": "TCP"}]}
    assert agent in egress
