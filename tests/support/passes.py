"""How many passes the controllers of a process have ended."""

import re
from collections import Counter
from collections.abc import Mapping

import aiohttp

_PASSES = re.compile(
    r'^controller_runtime_reconcile_total\{controller="(?P<controller>[^"]+)",[^}]*\} (?P<count>\S+)$', re.MULTILINE
)


async def passes_by_controller(port: int) -> Mapping[str, int]:
    """Return how many passes each controller of a process has ended, by its own metrics."""
    async with aiohttp.ClientSession() as session, session.get(f"http://127.0.0.1:{port}/metrics") as answer:
        text = await answer.text()
    ended: Counter[str] = Counter()
    for match in _PASSES.finditer(text):
        ended[match["controller"]] += int(float(match["count"]))
    return ended
