"""One run through the life of many claims, with a crash planned for each effect of each step."""

from __future__ import annotations

import abc
import asyncio
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from tests.support.api import JsonObject
from tests.support.crash import PARKED_MOST, CrashRig, Plan, batches, plans
from tests.support.end_state import differences
from tests.support.gate import Effect, Moment
from tests.support.kinds import CLAIM, SECRET, is_ready
from tests.support.system import decoded
from tests.support.waiting import eventually

STEPS = ("create", "update", "rotate", "delete")
_CLEAN = "k000z"
_LIMIT_S = 600.0
_REST_S = 1.5
_LOGINS_AT_ONCE = 16


@dataclass(slots=True)
class CrashRun(abc.ABC):
    """Claims of equal spec, one per plan, that go through the steps together.

    Attributes:
        learned: The effects of each step in a clean run, by process.
        clean: What a clean run leaves after each step.
        planned: The crashes of each step.
        at_once: How many of one process are trapped together.
        steps: What the claims go through, in order.
        crashed: The steps among them in which processes are killed.
        homes: What was planted in each claim's database.
    """

    rig: CrashRig
    learned: dict[str, dict[str, list[str]]] = field(default_factory=dict)
    clean: dict[str, object] = field(default_factory=dict)
    planned: dict[str, list[Plan]] = field(default_factory=dict)
    homes: dict[str, object] = field(default_factory=dict)
    done: list[str] = field(default_factory=list)
    at_once: int = PARKED_MOST
    steps: tuple[str, ...] = STEPS
    crashed: tuple[str, ...] = STEPS

    # What a claim of this cloud is

    @abc.abstractmethod
    def expected(self) -> Mapping[tuple[str, str], str]:
        """Return, by step and process, how an effect begins that a clean run must show.

        A gate beside the road would plan no crash at all.
        """

    @abc.abstractmethod
    def name_of(self, scope: str) -> str:
        """Return the name of the scope's claim; its namespace is the scope."""

    @abc.abstractmethod
    async def make(self, scope: str) -> None:
        """Make a scope's namespace and claim."""

    def edit(self) -> JsonObject:
        """Return the change of the claim's spec that the step `update` makes."""
        return {"size": "medium"}

    @abc.abstractmethod
    async def end_states(self, scopes: Sequence[str]) -> Mapping[str, object]:
        """Return what is left of each scope, as a dataclass with names that are the same in every run."""

    @abc.abstractmethod
    async def plant(self, scope: str) -> object:
        """Put a row into the claim's database; return what is needed to find both again."""

    @abc.abstractmethod
    async def is_home(self, scope: str, planted: Any) -> None:
        """Prove that the published password finds the row, in the one database that the cloud holds for the scope."""

    def keeps_login(self, step: str) -> bool:
        """Return whether what is published logs in at every instant of a step, with nobody at work."""
        return step != "delete"

    async def logs_in(self, binding: Mapping[str, str]) -> bool:
        """Return whether a connection Secret opens the database."""
        return await self.rig.system.logs_in_by(binding)

    def plan(self, learned: Mapping[str, list[str]], turns: Sequence[tuple[Moment, ...]]) -> list[Plan]:
        """Plan a step's crashes."""
        return plans(learned, turns)

    # The run

    async def learn(self, turns: Sequence[tuple[Moment, ...]]) -> Self:
        """Take one claim through all steps undisturbed, and plan crashes from what was seen."""
        for step in self.steps:
            for gate in self.rig.gates.values():
                gate.forget()
            await self._act(step, [_CLEAN])
            await self._until_done(step, _CLEAN)
            await self.rig.system.at_rest(for_s=_REST_S)
            self.learned[step] = {actor: gate.effects(_CLEAN) for actor, gate in self.rig.gates.items()}
            self.clean[step] = (await self.end_states([_CLEAN]))[_CLEAN]
            if step in self.crashed:
                self.planned[step] = self.plan(self.learned[step], turns)
            if step != "delete":
                await self._is_at_home(_CLEAN)
        for (step, actor), beginning in self.expected().items():
            if step not in self.steps:
                continue
            effects = self.learned[step][actor]
            assert any(effect.startswith(beginning) for effect in effects), (step, actor, effects)
        return self

    @property
    def scopes(self) -> list[str]:
        """Return the claims, as many as the step with the most plans needs."""
        return [f"k{number:03}z" for number in range(1, 1 + max(len(planned) for planned in self.planned.values()))]

    async def crash(self, step: str) -> None:
        """Crash each effect of a step; at the end each claim must be as the clean run left its own."""
        for earlier in self.steps[: self.steps.index(step)]:
            if earlier not in self.done:
                await self._act(earlier, self.scopes)
                await self._until_clean(earlier, [])
        crashed: list[tuple[Plan, str, Effect | None]] = []
        free = list(self.scopes)
        for batch in batches(self.planned[step], most=self.at_once):
            planned = {free.pop(0): plan for plan in batch}
            sprung = await self._crash_batch(step, planned)
            crashed += [(plan, scope, sprung.get(scope)) for scope, plan in planned.items()]
        await self._act(step, free)
        await self._until_clean(step, crashed)
        missed = [
            str(plan) for plan, _scope, effect in crashed if effect is None and not self.may_be_missed(step, plan)
        ]
        assert missed == [], f"no crash happened at {missed}"

    def may_be_missed(self, step: str, plan: Plan) -> bool:
        """Return whether a run may end before this effect: two reports become one where the second comes soon."""
        effects = self.learned[step][plan.actor]
        reports = [effect for effect in effects if effect.endswith("/status")]
        return plan.trap.ordinal > len(effects) - (len(reports) - len(set(reports)))

    async def _crash_batch(self, step: str, planned: dict[str, Plan]) -> dict[str, Effect]:
        self.rig.arm(planned)
        await self._act(step, list(planned))
        sprung = await self.rig.until_sprung()
        await self.rig.kill()
        if self.keeps_login(step):
            await self._published_log_in(planned)
        await self.rig.start()
        return sprung

    async def _act(self, step: str, scopes: list[str]) -> None:
        await asyncio.gather(*(self._act_one(step, scope) for scope in scopes))

    async def _act_one(self, step: str, scope: str) -> None:
        system = self.rig.system
        match step:
            case "create":
                await self.make(scope)
            case "update":
                await system.edit(CLAIM, scope, self.name_of(scope), {"spec": self.edit()})
            case "rotate":
                await system.edit(CLAIM, scope, self.name_of(scope), {"spec": {"passwordRotation": {"token": "again"}}})
            case "delete":
                await system.api.delete(CLAIM.path(scope, self.name_of(scope)))
            case _:
                raise ValueError(step)

    async def _until_done(self, step: str, scope: str) -> None:
        path = CLAIM.path(scope, self.name_of(scope))
        if step == "delete":
            await self.rig.system.api.until_gone(path, limit_s=_LIMIT_S)
            return
        await self.rig.system.until(CLAIM, scope, self.name_of(scope), is_ready, limit_s=_LIMIT_S)

    async def _until_clean(self, step: str, crashed: list[tuple[Plan, str, Effect | None]]) -> None:
        """Wait until every claim is as the clean one was, and its published password finds its row."""
        last: dict[str, list[str]] = {}

        async def clean() -> bool:
            # A process that lost its Lease with calls in flight has ended: whoever supervises it starts it again.
            await self.rig.start()
            states = await self.end_states(self.scopes)
            last.clear()
            last.update({scope: wrong for scope in states if (wrong := differences(states[scope], self.clean[step]))})
            return not last

        plan_of = {scope: plan for plan, scope, _effect in crashed}
        try:
            await eventually(clean, f"all is as after an undisturbed {step}", limit_s=_LIMIT_S)
        except AssertionError:
            lines = [f"{scope}, {plan_of.get(scope, 'no crash')}: {'; '.join(wrong)}" for scope, wrong in last.items()]
            raise AssertionError(f"after {step}, {len(lines)} not as undisturbed:\n" + "\n".join(lines)) from None
        if step != "delete":
            await asyncio.gather(*(self._is_at_home(scope) for scope in self.scopes))
            await self._says_no_password()
        self.done.append(step)

    async def _is_at_home(self, scope: str) -> None:
        """Prove that the published password logs in and that the planted row is there; plant it the first time."""
        if scope not in self.homes:
            self.homes[scope] = await self.plant(scope)
        await self.is_home(scope, self.homes[scope])

    async def _published_log_in(self, planned: dict[str, Plan]) -> None:
        """Prove, while nobody is at work, that each password that is published now logs in."""
        system = self.rig.system

        room = asyncio.Semaphore(_LOGINS_AT_ONCE)

        async def refused(scope: str) -> str:
            async with room:
                published = await system.api.find(SECRET.path(scope, f"{self.name_of(scope)}-connection"))
                if published is None or await self.logs_in(decoded(published)):
                    return ""
                return f"{scope} {decoded(published)['username']}: {planned.get(scope, 'no crash')}"

        refusals = [refusal for refusal in await asyncio.gather(*(refused(scope) for scope in self.scopes)) if refusal]
        assert refusals == [], f"published passwords that do not log in: {refusals}"

    async def _says_no_password(self) -> None:
        """Prove that neither process nor server wrote a published password to its log."""
        system = self.rig.system
        bindings = await asyncio.gather(*(system.binding(scope, self.name_of(scope)) for scope in self.scopes))
        logs = [system.server.server.log, *(program.log for program in system.started)]
        passwords = [binding["password"] for binding in bindings]
        leaking = await asyncio.to_thread(_holding, logs, passwords)
        assert leaking == [], f"logs that hold a password: {leaking}"


def _holding(logs: list[Path], passwords: list[str]) -> list[str]:
    """Return the names of the logs that hold one of these texts."""
    any_of_them = re.compile("|".join(map(re.escape, passwords)))
    return [log.name for log in logs if any_of_them.search(log.read_text(errors="replace"))]


def summary(run: CrashRun) -> str:
    """Return what was learned, for a person."""
    lines = []
    for step, by_actor in run.learned.items():
        for actor, effects in by_actor.items():
            lines += [f"{step} {actor} {number}: {text}" for number, text in enumerate(effects, start=1)]
    return "\n".join(lines)
