"""Every console block of the pages on taking over does what the page shows, at 80 columns too.

`GOLDEN=write pytest tests/simulation/test_pages.py` writes anew what 80 columns show.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

import pytest

from fairlead.simulation import virtual_time
from tests.simulation.console import Console, Shown, at_columns, blocks_of, without_numbers
from tests.simulation.takeover import on_the_server, team_of

pytestmark = pytest.mark.slow

_DOCS: Final = Path(__file__).resolve().parents[2] / "docs"
_GOLDEN: Final = Path(__file__).parent / "golden"
_PAGES: Final = ("import",)
_CLOUDS: Final = {"awspc": "aws", "gcppc": "gcp", "azurepc": "azure", "onprempc": "onprem"}
# What the other tools of the pages print.
_PRINTED: Final = {
    "terraform show": """{"values": {"root_module": {"resources": [{
        "mode": "managed", "address": "aws_db_instance.shop", "type": "aws_db_instance",
        "values": {"identifier": "shop-prod", "engine": "postgres"}}]}}}""",
    "kubectl get": """
apiVersion: v1
kind: List
items:
  - apiVersion: rds.aws.upbound.io/v1beta3
    kind: Instance
    metadata: {name: shop-x7, annotations: {crossplane.io/external-name: shop-prod}}
    spec: {forProvider: {engine: postgres, region: eu-west-1}}
""",
}
BLOCKS: Final = [(f"{page}-{at}", block) for page in _PAGES for at, block in enumerate(blocks_of(_DOCS / f"{page}.md"))]


@pytest.mark.parametrize(("name", "block"), BLOCKS, ids=[name for name, _ in BLOCKS])
def test_a_block_does_what_the_page_shows(
    name: str, block: tuple[Shown, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    narrow = virtual_time.run(f"page {name}", lambda: _entered(block, tmp_path, monkeypatch))
    if os.environ.get("GOLDEN") == "write":
        (_GOLDEN / f"{name}.txt").write_text(narrow)

    assert narrow == (_GOLDEN / f"{name}.txt").read_text(encoding="utf-8")


async def _entered(block: tuple[Shown, ...], folder: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    text = " ".join(shown.command for shown in block)
    (cloud,) = {cloud for word, cloud in _CLOUDS.items() if f"{word}/" in text}
    team = team_of(cloud, monkeypatch)
    team.namespaces = ("shop",)
    await team.begin(cloud)
    for name in ("shop_eu", "shop_us") if "shop_*" in text else ():
        on_the_server(team.platform.cloud, name)
    console = Console(team, folder, _PRINTED, monkeypatch)
    narrow = ""
    for shown in block:
        output = await console.enter(shown.command)
        assert shown.agrees(at_columns(output, 120)), f"$ {shown.command}\n{output}"
        narrow += without_numbers(f"$ {shown.command}\n{at_columns(output, 80)}")
    await team.end()
    return narrow
