"""The proxy by which Google is reached. Reads the environment."""

from __future__ import annotations

from runtime.environment_proxy import proxy_of_environment


def proxy_of(url: str) -> str | None:
    """Return the environment's proxy for a URL of https; this machine and its metadata server are asked by none."""
    return proxy_of_environment(url) or None if url.startswith("https:") else None
