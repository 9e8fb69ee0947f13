"""Which API server a person means; apart from what speaks to it, so that `--help` stays quick."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Server:
    """Which API server is meant.

    Attributes:
        kubeconfig: Which API server. Default: $KUBECONFIG, then ~/.kube/config, then the platform of `up`.
        context: A context of the kubeconfig. Default: its current one.
    """

    kubeconfig: Path | None = None
    context: str = ""


USUAL = Server()
