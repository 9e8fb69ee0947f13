"""Build the control plane from Go modules."""

from pathlib import Path

from devcloud.locks import Progress

KUBERNETES_VERSION = "v1.34.3"


async def build(module: Path, target: Path, progress: Progress) -> None:
    raise NotImplementedError
