"""Kill -9 at a side effect of a process behind a gate.

Many claims are trapped at once, each at its own effect, and one kill ends them all: a plan costs no restart of its own.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from tests.support.gate import Effect, Gate, Trap
from tests.support.kinds import LEASE
from tests.support.kube_proxy import kube_proxy
from tests.support.processes import Program
from tests.support.system import System, free_port

# Below a process's 16 workers: those who are not parked must go on.
PARKED_MOST = 12
_LONG_LEASE: Final = ("--lease-duration=60", "--lease-renew-deadline=45", "--lease-retry=0.5")
_SPRING_S = 180.0
COMPOSER: Final = "composer"


@dataclass(slots=True)
class Actor:
    """One process that may die.

    Attributes:
        module: After `python -m`.
        namespace: Of its Lease.
        kubeconfig: Its way to the API server, through the gate.
        gate: What all its effects pass.
        flags: More of its flags.
    """

    module: tuple[str, ...]
    namespace: str
    kubeconfig: Path
    gate: Gate
    flags: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Plan:
    """One crash: who dies, at which of its effects on one claim, when around it; `effect` is the clean run's text."""

    actor: str
    trap: Trap
    effect: str

    def __str__(self) -> str:
        return f"{self.actor} effect {self.trap.ordinal} ({self.effect}) {self.trap.moment.value}"


@dataclass(slots=True)
class CrashRig:
    """A system whose processes reach the API server and their cloud through gates."""

    system: System
    actors: Mapping[str, Actor]
    programs: dict[str, Program] = field(default_factory=dict)
    kills: int = 0

    @property
    def gates(self) -> dict[str, Gate]:
        return {name: actor.gate for name, actor in self.actors.items()}

    async def start(self) -> None:
        """Start what does not run, each with a new identity."""
        await asyncio.gather(*(self._start(name) for name in self.actors if not self._runs(name)))

    async def kill(self) -> None:
        """Kill -9 all processes at once, then cut what they had open."""
        await asyncio.gather(*(program.kill9() for program in self.programs.values()))
        self.kills += 1
        for gate in self.gates.values():
            gate.open()

    def arm(self, planned: Mapping[str, Plan]) -> None:
        """Set the traps of a batch of plans, by scope."""
        for actor, gate in self.gates.items():
            gate.arm({scope: plan.trap for scope, plan in planned.items() if plan.actor == actor})

    async def until_sprung(self) -> dict[str, Effect]:
        """Wait until every trap has sprung, within a generous limit; return what was met at each.

        A process that ends meanwhile, as one does that lost its Lease with calls in flight, is started again, as by
        whoever supervises it: the traps stay set.
        """
        loop = asyncio.get_running_loop()
        deadline = loop.time() + _SPRING_S
        while not all(gate.all_sprung for gate in self.gates.values()) and loop.time() < deadline:
            await asyncio.gather(self.start(), *(gate.until_sprung(limit_s=1.0) for gate in self.gates.values()))
        return {scope: effect for gate in self.gates.values() for scope, effect in gate.sprung().items()}

    def _runs(self, name: str) -> bool:
        return name in self.programs and self.programs[name].is_running

    async def _start(self, name: str) -> None:
        port, actor = free_port(), self.actors[name]
        # Whoever held the Lease is dead: nobody waits for it to lapse, and no busy machine takes it from a living one.
        await self.system.api.request("DELETE", LEASE.path(actor.namespace))
        flags = ("--kubeconfig", str(actor.kubeconfig), "--namespace", actor.namespace, *actor.flags)
        program = Program(
            (*actor.module, *flags, "--health-port", str(port), *_LONG_LEASE),
            log=self.system.folder / f"{len(self.system.started)}-{name}-after-{self.kills}-kills.log",
        )
        await program.start()
        self.programs[name] = program
        self.system.started.append(program)
        await program.until_healthy(port)


async def actor_of(
    system: System,
    stack: AsyncExitStack,
    module: tuple[str, ...],
    account: tuple[str, str],
    *flags: str,
    gate: Gate | None = None,
) -> Actor:
    """Put a gate before the API server of one process, which has a ServiceAccount (namespace, name) of its own."""
    gate = gate or Gate()
    direct = await system.plane.service_account_kubeconfig(*account)
    through = await stack.enter_async_context(kube_proxy(system.plane.folder, direct, gate))
    return Actor(module, account[0], through, gate, flags)
