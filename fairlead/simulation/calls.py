"""Calls of a cloud, whichever it is: what befalls them on the way, and what they changed there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

PROVIDER: Final = "provider"
STRANGER: Final = "stranger"
NOBODY: Final = ""


@dataclass(slots=True)
class Weather:
    """How often calls of the provider fail: cut before or after their effect, 503, 429, or one 404 of what is there.

    `write_cut` is how often one that changes something is cut before its effect.
    """

    write_cut: float = 0.0
    cut_before: float = 0.0
    cut_after: float = 0.0
    unavailable: float = 0.0
    throttled: float = 0.0
    absent: float = 0.0


@dataclass(frozen=True, slots=True)
class Made:
    """One call that changed something, as the cloud saw it.

    Attributes:
        at: Seconds of the life.
        principal: `provider`, `stranger`, or empty for what happened behind the API.
        action: What was done to what: `create`, `change`, `delete` or `replace` of `servers`, `databases`, `logins`,
            `rules` or `settings`, as `databases.create`; any other action of the cloud by its own name.
        server: The server, by its name.
        name: What is inside of it, empty for the server itself.
        had: Whether what it names was there before.
    """

    at: float
    principal: str
    action: str
    server: str
    name: str
    had: bool
