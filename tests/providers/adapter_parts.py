"""What adapters of the contract suite share: the control API, owners as tags, foreign changes, filled specs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, ClassVar

from runtime.objects import Object
from tests.providers.adapter import Adapter, Drift
from tests.providers.world import World
from tests.support.simulator_control import Served, control


@dataclass
class SimulatedAdapter(Adapter):
    """A cloud that is simulated over its wire, and steered by the control API that all simulated clouds have."""

    served: Served = field(kw_only=True)

    def pass_time(self, by: timedelta) -> None:
        control(self.served, "POST", "clock", {"advance_s": by.total_seconds()})

    def forget(self) -> None:
        control(self.served, "DELETE", "audit")

    def heal(self) -> None:
        control(self.served, "DELETE", "faults")


class FilledWorld(World):
    """Resources with a value in each field of `forProvider`; `parameters` of what is asked for replace them."""

    fields: ClassVar[Object]

    def parameters(self, spec: Object) -> Object:
        return {**self.fields, **spec.pop("parameters", {})}


def owner_in(tags: Mapping[str, str], prefix: str = "") -> tuple[str, str] | None:
    """Return installation and identity of an object's tags; None where they name no owner."""
    identity = tags.get(f"{prefix}identity")
    return None if identity is None else (tags[f"{prefix}installation"], identity)


def owner_tags(owner: tuple[str, ...] | None, prefix: str = "") -> dict[str, str]:
    """Return the tags of an installation and an identity, for another claim's object where no claim is named as well.

    None without an owner.
    """
    words = zip(("installation", "identity", "claim"), (*owner, "0123456789abcdef") if owner else (), strict=False)
    return {f"{prefix}{key}": value for key, value in words}


def drifts_of(
    values: Mapping[str, tuple[Any, str]],
    change: Callable[[str, str, Any], object],
    shown: Callable[[str, str], Any],
) -> tuple[Drift, ...]:
    """Return foreign changes: of each field the value, and the reason under which it is held, empty if put back.

    `change` takes an object's name, a field and a value; `shown` an object's name and a field.
    """

    def drift(name: str, value: Any, held: str) -> Drift:
        return Drift(
            name, lambda thing: change(thing, name, value), lambda thing: bool(shown(thing, name) == value), held
        )

    return tuple(drift(name, value, held) for name, (value, held) in values.items())
