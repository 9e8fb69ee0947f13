"""Every console block of the pages on taking over does what the page shows, at 80 columns too.

`GOLDEN=write pytest tests/simulation/test_pages.py` writes anew what 80 columns show.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from fairlead.simulation import virtual_time
from tests.simulation.console import Console, Shown, at_columns, blocks_of, without_numbers
from tests.simulation.takeover import on_the_server, team_of

pytestmark = pytest.mark.slow

_DOCS: Final = Path(__file__).resolve().parents[2] / "docs"
_GOLDEN: Final = Path(__file__).parent / "golden"
_PAGES: Final = ("import", "migrate-from-terraform", "migrate-from-crossplane", "migrate-from-a-script")
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
_TENANTS: Final = _DOCS.parent / "tests" / "fairlead" / "imports" / "crossplane" / "onprem.yaml"


def _chapters(page: str) -> Iterator[tuple[str, str, list[Shown]]]:
    """Yield the commands of a page that follow each other at one cloud, under a name of their own."""
    cloud, commands, count = "", list[Shown](), 0
    for block in blocks_of(_DOCS / f"{page}.md"):
        text = " ".join(shown.command for shown in block)
        its = next((cloud for word, cloud in _CLOUDS.items() if f"{word}/" in text), cloud)
        if its != cloud and commands:
            yield f"{page}-{count}", cloud, commands
            commands, count = [], count + 1
        cloud, commands = its, [*commands, *block]
    yield f"{page}-{count}", cloud, commands


CHAPTERS: Final = [chapter for page in _PAGES for chapter in _chapters(page)]


@pytest.mark.parametrize(("name", "cloud", "commands"), CHAPTERS, ids=[name for name, *_ in CHAPTERS])
def test_the_commands_of_a_page_do_what_it_shows(
    name: str, cloud: str, commands: list[Shown], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "platform").mkdir()
    (tmp_path / "platform" / "tenants.yaml").write_bytes(_TENANTS.read_bytes())
    team = team_of(cloud, monkeypatch)
    console = Console(team, tmp_path, _PRINTED, monkeypatch)

    narrow = virtual_time.run(f"page {name}", lambda: _entered(console, commands))
    if os.environ.get("GOLDEN") == "write":
        (_GOLDEN / f"{name}.txt").write_text(narrow)

    assert narrow == (_GOLDEN / f"{name}.txt").read_text(encoding="utf-8")


async def _entered(console: Console, commands: list[Shown]) -> str:
    """Enter the commands; return what 80 columns show."""
    team, narrow = console.team, ""
    team.namespaces = ("shop",)
    await team.begin(team.platform.description.name)
    if any("shop_*" in shown.command for shown in commands):
        on_the_server(team.platform.cloud, "shop_eu")
        on_the_server(team.platform.cloud, "shop_us")
    for shown in commands:
        output = await console.enter(shown.command)
        assert shown.agrees(at_columns(output, 120)), f"$ {shown.command}\n{output}"
        narrow += without_numbers(f"$ {shown.command}\n{at_columns(output, 80)}")
    await team.end()
    return narrow
