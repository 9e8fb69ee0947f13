"""The Compositions of the benchmark of bombs: one that does no harm, and one that is a bomb for certain tokens."""

from __future__ import annotations

from typing import Any, Final

from tests.support.kinds import composition

BOMB_PREFIX: Final = "edited-"
"""Tokens that begin so make a claim of `bomb` use up the limits of a render; all other claims of it are harmless."""

_PATH: Final = "claim.spec.passwordRotation.token | default('')"
_TWICE: Final = {f"v{n}": f"{{{{ [vars.v{n - 1}] * 100 }}}}" for n in range(1, 9)}


def harmless(name: str) -> dict[str, Any]:
    """Return a Composition of one ConfigMap that holds the claim's token."""
    return composition(name, _settings({"token": f"{{{{ {_PATH} }}}}"}))


def bomb(name: str) -> dict[str, Any]:
    """Return a Composition whose lists double: it is accepted, since it does no harm for the claims of a check."""
    text = f"{{{{ vars.v8 if '{BOMB_PREFIX}' in ({_PATH}) else '' }}}}"
    return composition(name, _settings({"x": text}), variables={"v0": f"{{{{ {_PATH} }}}}", **_TWICE})


def _settings(data: dict[str, str]) -> dict[str, Any]:
    return {"name": "settings", "template": {"apiVersion": "v1", "kind": "ConfigMap", "data": data}}
