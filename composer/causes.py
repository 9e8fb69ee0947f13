"""Causes: why a claim is not ready or not in sync. Pure."""

from __future__ import annotations

import msgspec

from apis.reasons import IN_SYNC, ReasonClass, class_of_claim
from runtime.conditions import MESSAGE_LIMIT
from runtime.text import readable


class Cause(msgspec.Struct, frozen=True):
    """One reason why a claim is not ready or not in sync; `resource` is the composed resource it is about."""

    reason: str
    message: str
    resource: str = ""
    reason_class: ReasonClass = ReasonClass.STALLED

    @property
    def is_in_sync(self) -> bool:
        """Whether all that could be applied is applied all the same."""
        return self.reason_class is ReasonClass.PROGRESS and self.reason in IN_SYNC


def cause(reason: str, message: str, *, resource: str = "", shown_as: ReasonClass | None = None) -> Cause:
    """Return a cause of the class that its reason has, unless `shown_as` says otherwise.

    The message is made printable and cut: it may repeat any text.
    """
    reason_class = class_of_claim(reason) if shown_as is None else shown_as
    return Cause(reason, readable(message, MESSAGE_LIMIT), resource, reason_class)


def most_severe(causes: tuple[Cause, ...]) -> Cause | None:
    """Return the most severe cause, among equals the one that comes first in the composition."""
    return min(causes, key=lambda cause: cause.reason_class, default=None)
