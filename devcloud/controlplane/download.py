"""Download."""

from pathlib import Path

from devcloud.locks import Progress


async def fetch(target: Path, progress: Progress) -> bool:
    return False
