"""The simulated Cloud SQL as `fairlead demo` shows it."""

from __future__ import annotations

from pathlib import Path

from devcloud.stories import Stage, Story, one_claim


async def _play(stage: Stage, folder: Path, octet: int) -> None:
    del folder, octet
    title = "The same claim in a namespace labelled cloud=gcp becomes a Cloud SQL instance (simulated, sped up)"
    await one_claim(stage, STORY, title=title, resources="cloudsqlinstances,cloudsqldatabases,cloudsqlusers")


STORY = Story(namespace="demo-gcp", labels={"cloud": "gcp"}, play=_play)
