"""Faults that tests ask for, and the rate limit that they set. Pure."""

from collections.abc import Callable
from fnmatch import fnmatchcase
from typing import Literal

import msgspec

from devcloud.simulator.behaviour import Throttle
from devcloud.simulator.messages import Refusal


class Fault(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What goes wrong. A cloud that has a code and a sentence of its own for it derives its own.

    Attributes:
        action: Which calls, as a pattern: `CreateDBInstance`, `Describe*`, `instances.*`.
        kind: `error` answers with a code; `drop` closes the connection; `hang` never answers; `delay` answers late.
        code: The code of an `error`.
        message: Its sentence.
        status: Its HTTP status; None is what the cloud says of the code.
        times: How often; None is until the fault is taken away.
        identifier: Of which resource alone, as a pattern.
        after_effect: Whether the call has its effect first; by default `drop` and `hang` do, `error` does not.
        seconds: How long a `delay` is.
    """

    action: str = "*"
    kind: Literal["error", "drop", "hang", "delay"] = "error"
    code: str = "internalError"
    message: str = "Internal error."
    status: int | None = None
    times: int | None = 1
    identifier: str | None = None
    after_effect: bool | None = None
    seconds: float = 1.0

    @property
    def comes_after(self) -> bool:
        """Whether the call has its effect first."""
        return self.kind in {"drop", "hang"} if self.after_effect is None else self.after_effect

    @property
    def refusal(self) -> Refusal:
        """The answer of an `error`."""
        return Refusal(self.code, self.message, status=self.status)


class Faults:
    """The faults that are to come, oldest first."""

    def __init__(self) -> None:
        self.waiting: list[Fault] = []

    def add(self, fault: Fault) -> None:
        """Let a fault come."""
        self.waiting.append(fault)

    def take(self, action: str, identifier: str) -> Fault | None:
        """Return the fault of a call, which then has come once more."""
        for index, fault in enumerate(self.waiting):
            named = fault.identifier is None or fnmatchcase(identifier, fault.identifier)
            if not named or not fnmatchcase(action, fault.action):
                continue
            left = None if fault.times is None else fault.times - 1
            self.waiting[index : index + 1] = [] if left == 0 else [msgspec.structs.replace(fault, times=left)]
            return fault
        return None


class Limiter:
    """A bucket of tokens for each account, region and kind of call, by the real time."""

    def __init__(self, wall: Callable[[], float]) -> None:
        self._wall = wall
        self._buckets: dict[tuple[str, str, bool], tuple[float, float]] = {}

    def take(self, throttle: Throttle | None, scope: tuple[str, str], *, mutating: bool) -> bool:
        """Take the token of a call by an account in a region; return False when there is none left."""
        if throttle is None or (throttle.accounts and scope[0] not in throttle.accounts):
            return True
        key, now = (*scope, mutating), self._wall()
        tokens, since = self._buckets.get(key, (float(throttle.burst), now))
        rate = throttle.write_per_s if mutating else throttle.read_per_s
        tokens = min(float(throttle.burst), tokens + (now - since) * rate)
        self._buckets[key] = (tokens - 1 if tokens >= 1 else tokens, now)
        return tokens >= 1
