"""What tests choose of any cloud's conduct beside its rules: lag, rate, a robot. Pure; a cloud adds its own."""

from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import Any, TypeVar

import msgspec


class Throttle(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Requests a second that an account has in a region, reads and writes apart, and how many may come at once.

    Attributes:
        accounts: Whose; empty is everybody's.
    """

    accounts: tuple[str, ...] = ()
    read_per_s: float = 20.0
    write_per_s: float = 5.0
    burst: int = 50


class TagRobot(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A policy's robot that takes tags (or labels) of these patterns off every resource, ever again."""

    strip: tuple[str, ...]
    every_s: float = 5.0

    def strips(self, key: str) -> bool:
        """Return whether it takes a tag away."""
        return any(fnmatchcase(key, pattern) for pattern in self.strip)


class Behaviour(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What every cloud has of it.

    Attributes:
        list_lag_s: How old the answer of a list is, in simulated seconds.
        get_lag_s: The same of a read by name.
        throttle: None for no limit.
        tag_robot: None for none.
    """

    list_lag_s: float = 0.0
    get_lag_s: float = 0.0
    throttle: Throttle | None = None
    tag_robot: TagRobot | None = None


BehaviourT = TypeVar("BehaviourT", bound=Behaviour)


def replaced(behaviour: BehaviourT, changes: Mapping[str, Any]) -> BehaviourT:
    """Return the conduct with some of it chosen anew.

    Raises:
        msgspec.ValidationError: It is none.
    """
    return msgspec.convert({**msgspec.to_builtins(behaviour), **changes}, type(behaviour))
