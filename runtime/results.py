"""What a reconcile returns: only *when next*. Pure."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import TypeAlias

from runtime.objects import Key


@dataclass(frozen=True, slots=True)
class Result:
    """When to look at the key again; None waits for a change (or the controller's resync)."""

    requeue_after: timedelta | None = None


SETTLED = Result()

Reconcile: TypeAlias = Callable[[Key], Awaitable[Result]]
"""One pass over one key. Raises a Failure or ApiError for trouble that no status could be written for."""
