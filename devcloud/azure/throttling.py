"""ARM's token buckets: how many requests are left, and when there is a token again. Pure."""

import math
from collections.abc import Callable
from typing import Literal

from devcloud.azure.behaviour import ArmThrottle
from devcloud.azure.refusals import Throttled

Verb = Literal["read", "write", "delete"]
# A subscription's buckets of all principals, as recordings show them (2026-01).
_GLOBAL = {"read": 16_500, "write": 12_000, "delete": 12_000}
_GLOBAL_FACTOR = 15


def verb_of(method: str) -> Verb:
    """Return which bucket a request takes from."""
    return "read" if method in {"GET", "HEAD"} else "delete" if method == "DELETE" else "write"


class Buckets:
    """The buckets of all subscriptions and principals, by the real time."""

    def __init__(self, wall: Callable[[], float]) -> None:
        self._wall = wall
        self._levels: dict[tuple[str, str, Verb], tuple[float, float]] = {}

    def take(self, throttle: ArmThrottle | None, subscription: str, principal: str, verb: Verb) -> dict[str, str]:
        """Take the token of a request; return the headers that say how many are left.

        Raises:
            Throttled: There is none left.
        """
        limit = throttle if throttle is not None else ArmThrottle()
        rate, burst = {
            "read": (limit.read_per_s, limit.read_burst),
            "write": (limit.write_per_s, limit.burst),
            "delete": (limit.delete_per_s, limit.burst),
        }[verb]
        left = self._taken((subscription, principal, verb), rate, burst)
        total = self._taken((subscription, "", verb), rate * _GLOBAL_FACTOR, _GLOBAL[verb])
        is_limited = throttle is not None and (not throttle.accounts or subscription in throttle.accounts)
        if is_limited and (left < 0 or total < 0):
            wait_s = max(1, math.ceil(-left / rate))
            message = (
                f"Number of '{verb}' requests for subscription '{subscription}' actor '{principal}' exceeded. Please "
                f"try again after '{wait_s}' seconds after additional tokens are available. Refer to "
                "https://aka.ms/arm-throttling for additional information."
            )
            raise Throttled(message, wait_s)
        names = {"": left, "global-": total}
        return {
            f"x-ms-ratelimit-remaining-subscription-{name}{verb}s": str(max(0, int(n))) for name, n in names.items()
        }

    def _taken(self, key: tuple[str, str, Verb], rate: float, burst: int) -> float:
        """Return how many tokens are left after this one; below 0, what is missing, and nothing was taken."""
        now = self._wall()
        level, since = self._levels.get(key, (float(burst), now))
        level = min(float(burst), level + (now - since) * rate)
        self._levels[key] = (level - 1 if level >= 1 else level, now)
        return level - 1
