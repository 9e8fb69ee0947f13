"""Where a secret could show outside of Secrets, and the texts that give it away."""

from __future__ import annotations

import asyncio
import base64
import os
import sys
import urllib.parse
from dataclasses import dataclass

import aiohttp
import msgspec

from tests.support.api import JsonObject
from tests.support.system import System


@dataclass(frozen=True, slots=True)
class Exposure:
    """What could be seen outside Secrets, by place, and the secrets that are not to be in it."""

    places: dict[str, str]
    canaries: dict[str, str]

    def shown(self, place: str) -> list[str]:
        """Return the names of the secrets that a place gives away."""
        text = self.places[place]
        return [name for name, secret in self.canaries.items() if any(form in text for form in forms_of(secret))]


def content_of(secret: JsonObject) -> dict[str, str]:
    """Return the texts of a Secret; what is no text stays in base64."""
    texts = {}
    for key, value in (secret.get("data") or {}).items():
        try:
            texts[key] = base64.b64decode(value).decode()
        except UnicodeDecodeError:
            texts[key] = value
    return texts


async def metrics_at(port: int) -> str:
    """Return the metrics of a process of this machine."""
    async with aiohttp.ClientSession() as session, session.get(f"http://127.0.0.1:{port}/metrics") as answer:
        return await answer.text()


async def printed_by(system: System, about: str, *arguments: str) -> str:
    """Return what a command of `fairlead` prints about the rig: about a claim of that name."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", "from fairlead.cli import main; main()"),
        *(*arguments, "--kubeconfig", str(system.plane.kubeconfig)),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        env=dict(os.environ) | {"COLUMNS": "400"},
    )
    output, _ = await asyncio.wait_for(process.communicate(), 180)
    assert about.encode() in output, output
    return output.decode()


def forms_of(secret: str) -> set[str]:
    """Return the texts that give a secret away."""
    coded = base64.b64encode(secret.encode()).decode()
    return {secret, coded, urllib.parse.quote(secret, safe=""), msgspec.json.encode(secret).decode()[1:-1]}
