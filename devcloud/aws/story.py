"""The simulated RDS as `fairlead demo` shows it."""

from __future__ import annotations

from pathlib import Path

from devcloud.stories import Stage, Story, one_claim


async def _play(stage: Stage, folder: Path, octet: int) -> None:
    del folder, octet
    title = "The same claim in a namespace labelled cloud=aws becomes an RDS instance (simulated, sped up)"
    await one_claim(stage, STORY, title=title, resources="rdsinstances")


STORY = Story(namespace="demo-aws", labels={"cloud": "aws"}, play=_play)
