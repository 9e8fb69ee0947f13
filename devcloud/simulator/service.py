"""What a simulated cloud implements: from a request to its answer, what happens by itself, what is kept."""

from collections.abc import Callable
from datetime import datetime
from typing import Any, Protocol, TypeVar

import msgspec

from devcloud.simulator.behaviour import BehaviourT
from devcloud.simulator.controls import Controls
from devcloud.simulator.dataplane import DataPlane
from devcloud.simulator.faults import Fault
from devcloud.simulator.messages import Answer, Refusal, Request
from devcloud.simulator.operations import Operations


class Call(Protocol):
    """A request whose caller and action are known."""

    @property
    def action(self) -> str:
        """What faults and the log call it: `ModifyDBInstance`, `instances.patch`."""
        ...

    @property
    def identifier(self) -> str:
        """Which resource it concerns, empty for none."""
        ...


class Saved(msgspec.Struct, frozen=True, kw_only=True):
    """What a cloud keeps beyond its process; it derives its own, with more."""

    now: datetime


class UnsignedRoute(msgspec.Struct, frozen=True, kw_only=True):
    """A GET without the cloud's signature: what a machine's agent or metadata server answers.

    Attributes:
        path: Where.
        token: What `Authorization` must hold; empty closes the route.
        scheme: What stands before the token.
        respond: Gives the answer.
    """

    path: str
    token: str
    scheme: str = ""
    respond: Callable[[], Answer]


CallT = TypeVar("CallT", bound=Call)
SavedT = TypeVar("SavedT", bound=Saved)


class Service(Protocol[CallT, BehaviourT, SavedT]):
    """A simulated cloud.

    An answer is given without a pause, so it is whole; what takes time goes on in jobs and operations.

    Attributes:
        name: As in `devcloud.<name>`.
        title: What it is, for messages: `simulated RDS`.
        routes: The methods and paths that it answers, as aiohttp writes them: `("POST", "/")`, `("*", "/{path:.*}")`.
        fault_type: Its faults, with its own codes by default.
        saved_type: What it keeps beyond the process.
        controls: What tests steer.
        databases: What is behind its instances.
        operations: Its long-running operations, None where it has none.
    """

    name: str
    title: str
    routes: tuple[tuple[str, str], ...]
    fault_type: type[Fault]
    saved_type: type[SavedT]
    controls: Controls[BehaviourT]
    databases: DataPlane
    operations: Operations | None

    def admit(self, request: Request) -> CallT:
        """Return what is called and by whom.

        Raises:
            Refusal: An unknown caller or action, a parameter that is none.
        """
        ...

    def perform(self, call: CallT) -> Answer:
        """Carry a call out.

        Raises:
            Refusal: The service says no.
        """
        ...

    def refused(self, refusal: Refusal, call: CallT | None) -> Answer:
        """Return the answer of a refusal, also of a request that was not admitted."""
        ...

    def record(self, call: CallT, outcome: str) -> None:
        """Write a call down in the log."""
        ...

    def tick(self) -> None:
        """Let happen whose time has come."""
        ...

    def reset(self) -> None:
        """Drop all resources; whoever can call stays. The controls are reset beside."""
        ...

    def control(self, method: str, path: tuple[str, ...], content: Any) -> Any:
        """Carry out a call of the control API that this cloud adds; return what becomes JSON.

        Raises:
            ControlError: There is none (`no_route`), or it makes no sense.
        """
        ...

    def versions(self) -> tuple[int, ...]:
        """Return counters that change whenever something changes of what is kept."""
        ...

    def saved(self) -> SavedT:
        """Return what is kept beyond the process."""
        ...

    def restore(self, saved: SavedT) -> None:
        """Have what a former process kept, and begin again the work that was under way.

        Raises:
            msgspec.ValidationError: It is none; nothing was changed.
        """
        ...

    async def close(self) -> None:
        """End the jobs that are under way."""
        ...
