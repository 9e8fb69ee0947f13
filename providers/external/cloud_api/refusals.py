"""What a cloud's refusals have in common, whatever its wire: kinds, sentences, pauses. Pure.

The sentence of a refusal stands in a condition, so it is the same each time: an id of the request belongs into the log.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import timedelta

from runtime import kubectl
from runtime.errors import Blocked, Failure, Terminal, Transient

LONGEST = 600
"""Characters of what a cloud said that a sentence takes over."""
_PAUSE = timedelta(seconds=5)
_LONGEST_PAUSE = timedelta(minutes=5)


class NotThere(Blocked):
    """The cloud said, by a typed answer, that the thing does not exist; `code` is that answer."""

    def __init__(self, message: str, *, code: str) -> None:
        super().__init__("ReferenceNotFound", message)
        self.code = code


class AlreadyThere(Blocked):
    """A call would make a thing of a name that another thing has; `code` is the answer."""

    def __init__(self, message: str, *, code: str) -> None:
        super().__init__("NameTaken", message)
        self.code = code


def protected(name: str, address: str, field: str) -> Blocked:
    """Return the refusal to delete what its own spec protects in the cloud, with the command that ends it.

    The claim of a resource that is deleted already keeps its spec no more, whatever the claim says since.
    """
    command = kubectl.set_spec(address, {"forProvider": {field: False}})
    text = f"instance {name} is protected from deletion by its resource's {field}; to let it go: {command}"
    return Blocked("DeleteBlocked", text)


def clean(text: str, hide: Iterable[str] = ()) -> str:
    """Return a cloud's text on one line, cut, and without the secret values in `hide`."""
    for secret in hide:
        if secret:
            text = text.replace(secret, "[redacted]")
    return " ".join(text.split())[:LONGEST]


def sentence(action: str, message: str, code: str) -> str:
    """Return `cannot <action>: <message> (<code>)` for a message that is clean; an empty one is a bare refusal."""
    return f"cannot {action}: {(message or 'it was refused').rstrip('.')} ({code})"


def pause_of(retry_after: str) -> timedelta:
    """Return how long the cloud wants to be left alone: `Retry-After` in seconds (RFC 9110, 10.2.3), 5 s to 5 min.

    A date, or nothing, gives the shortest pause.
    """
    try:
        pause = timedelta(seconds=float(retry_after))
    except (ValueError, OverflowError):
        return _PAUSE
    return min(max(pause, _PAUSE), _LONGEST_PAUSE)


def failure_by_code(
    code: str, text: str, *, blocked: Mapping[str, str], terminal: Mapping[str, str], is_server_error: bool
) -> Failure:
    """Return the failure class of a code; both maps lead from codes to reasons.

    A refusal that is in neither may pass: it is tried again, ever more slowly, and shown meanwhile.
    """
    if code in blocked:
        return Blocked(blocked[code], text)
    if code in terminal:
        return Terminal(terminal[code], text)
    return Transient(text, is_momentary=is_server_error)
