"""The simulated flexible servers as `fairlead demo` shows them."""

from __future__ import annotations

from pathlib import Path

from devcloud.stories import Stage, Story, one_claim


async def _play(stage: Stage, folder: Path, octet: int) -> None:
    del folder, octet
    title = "The same claim in a namespace labelled cloud=azure becomes a flexible server (simulated, sped up)"
    await one_claim(stage, STORY, title=title, resources="flexibleservers")


STORY = Story(namespace="demo-azure", labels={"cloud": "azure"}, play=_play)
