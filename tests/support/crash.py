"""Kill -9 at each side effect: learn the effects from a clean run, plan one crash for each, compare the end with it.

Many claims are trapped at once, each at its own effect, and one kill ends them all: a plan costs no restart of its own.
"""

from __future__ import annotations

import asyncio
import itertools
import re
from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from devcloud.postgres.tls_proxy import Endpoint, serving
from tests.support.gate import Effect, Gate, Moment, Trap
from tests.support.kinds import LEASE, PROVIDER_CONFIG, SECRET
from tests.support.kube_proxy import kube_proxy
from tests.support.processes import Program
from tests.support.sql_proxy import sql_proxy
from tests.support.system import ADMIN_SECRET, System, free_port

SCOPE = re.compile(rb"k\d{3}z")
_HOST = "127.0.0.1"
# Below a process's 16 workers, and below the provider's 8 sessions: those who are not parked must go on.
PARKED_MOST = 12
_IN_SQL_MOST = 6
_LONG_LEASE: Final = ("--lease-duration=60", "--lease-renew-deadline=45", "--lease-retry=0.5")
_SPRING_S = 180.0
COMPOSER, PROVIDER = "composer", "provider"


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

    @property
    def is_sql(self) -> bool:
        return self.effect.startswith("SQL")

    def __str__(self) -> str:
        return f"{self.actor} effect {self.trap.ordinal} ({self.effect}) {self.trap.moment.value}"


def plans(learned: Mapping[str, list[str]], turns: Sequence[tuple[Moment, ...]]) -> list[Plan]:
    """Plan crashes for every learned effect, each at the next of the turns' moments."""
    turn = itertools.cycle(turns)
    return [
        Plan(actor, Trap(ordinal, moment), effect)
        for actor, effects in learned.items()
        for ordinal, effect in enumerate(effects, start=1)
        for moment in next(turn)
    ]


def plans_by_text(
    learned: Mapping[str, list[str]], turns: Sequence[tuple[Moment, ...]], *, cloud: str = "RDS"
) -> list[Plan]:
    """Plan likewise, each effect known by its text, for a process whose reports come in numbers that differ.

    Every effect on the cloud is taken, which begins with `cloud`, and the first of each kind on the cluster; a Secret
    that was just made may be written again or not, so its second write is left out.
    """
    turn = itertools.cycle(turns)
    plans = []
    for actor, effects in learned.items():
        seen: Counter[str] = Counter()
        for effect in effects:
            seen[effect] += 1
            is_certain = effect != "PUT secrets" or "POST secrets" not in effects
            if is_certain and (effect.startswith(cloud) or seen[effect] == 1):
                plans += [Plan(actor, Trap(seen[effect], moment, effect), effect) for moment in next(turn)]
    return plans


def batches(chosen: list[Plan], *, most: int = PARKED_MOST) -> list[list[Plan]]:
    """Split plans so that no process has more parked than it can spare."""
    chosen_batches: list[list[Plan]] = []
    for plan in chosen:
        batch = next((batch for batch in chosen_batches if _has_room(batch, plan, most)), None)
        if batch is None:
            chosen_batches.append(batch := [])
        batch.append(plan)
    return chosen_batches


def _has_room(batch: list[Plan], plan: Plan, most: int) -> bool:
    of_actor = [planned for planned in batch if planned.actor == plan.actor]
    in_sql = [planned for planned in of_actor if planned.is_sql]
    return len(of_actor) < most and not (plan.is_sql and len(in_sql) >= _IN_SQL_MOST)


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


@asynccontextmanager
async def crash_rig(system: System) -> AsyncIterator[CrashRig]:
    """Put gates before the API server and PostgreSQL of a rig, and start both processes behind them."""
    async with AsyncExitStack() as stack:
        composer = await actor_of(system, stack, ("composer",), ("fairlead-system", "fairlead-composer"))
        account = ("fairlead-onprem", "fairlead-provider-onprem")
        provider = await actor_of(system, stack, ("providers", "onprem"), account)
        folder = system.folder / "sql"
        folder.mkdir(mode=0o700)
        socket = folder / ".s.PGSQL.5432"
        await stack.enter_async_context(sql_proxy(socket, system.server.server.socket, provider.gate, SCOPE))
        server = system.server
        proxy = await stack.enter_async_context(
            serving(Endpoint(host=_HOST, port=0, socket=socket, certificate=server.certificate, key=server.key))
        )
        spec = {"host": _HOST, "port": proxy.port, "limits": {"destroysPerHour": 1000}}
        # The Secret names the server that its password is for: from here on that is the gate.
        secret = SECRET.path(account[0], ADMIN_SECRET)
        await system.api.merge(secret, {"stringData": {"host": f"{_HOST}:{proxy.port}"}})
        await system.api.merge(PROVIDER_CONFIG.path("", "default"), {"spec": spec})
        made = CrashRig(system, {COMPOSER: composer, PROVIDER: provider})
        try:
            await made.start()
            yield made
        finally:
            await made.kill()


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
