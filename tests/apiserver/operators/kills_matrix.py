"""Kill -9 of the composer at each side effect of a claim that wants a password: one password, one object."""

from __future__ import annotations

import asyncio
import secrets
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import TypeAlias, TypeVar

import pytest
import pytest_asyncio

from devcloud.controlplane import Programs
from tests.apiserver.operators.conftest import LIMIT_S, LOGIN, WANTING, install
from tests.support.crash import COMPOSER, PARKED_MOST, CrashRig, Plan, actor_of
from tests.support.gate import Moment, Trap
from tests.support.kinds import CLAIM, SECRET, claim, is_ready
from tests.support.operators.converting import converting
from tests.support.operators.played import ACK, Played, value_at
from tests.support.system import System, decoded, rig
from tests.support.waiting import eventually, in_background

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.apiserver, pytest.mark.postgres]

_NAME = "orders"
T = TypeVar("T")
# Those of a claim, by the names of their Secrets.
Passwords: TypeAlias = dict[str, str]
# Of the password, and of the connection: each once.
_MADE = "POST secrets"
_EVERY_S = 0.2
_TOKEN = {"passwordRotation": {"token": "2026-12"}}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def crashing(
    tmp_path_factory: pytest.TempPathFactory, control_plane_programs: Programs
) -> AsyncIterator[CrashRig]:
    async with AsyncExitStack() as stack:
        folder = tmp_path_factory.mktemp(f"rig-{secrets.token_hex(2)}")
        installed = await stack.enter_async_context(rig(folder, control_plane_programs))
        webhook = await stack.enter_async_context(converting(folder))
        for operator in WANTING:
            await install(installed, operator, webhook)
        account = ("fairlead-system", "fairlead-composer")
        # One that was killed holds no Lease, which the next one would wait for.
        composer = await actor_of(installed, stack, ("composer",), account, "--no-elect")
        made = CrashRig(installed, {COMPOSER: composer})
        try:
            await made.start()
            yield made
        finally:
            await made.kill()


@dataclass(frozen=True, slots=True)
class Claims:
    """Claims of one operator, each in a namespace of its own, which is the scope of its crash."""

    rig: CrashRig
    operator: Played

    @property
    def system(self) -> System:
        return self.rig.system

    def scopes(self, number: int) -> list[str]:
        """Return the names of so many scopes; the first one's claim is not killed."""
        return [f"k{WANTING.index(self.operator)}{index:02}z" for index in range(number)]

    # What a person does

    async def begin(self, scopes: Sequence[str]) -> None:
        for scope in scopes:
            await self.system.namespaced(scope, cloud=self.operator.name)
            await self.system.create(CLAIM, claim(scope, _NAME, deletionPolicy="Delete", **LOGIN))

    async def rotate(self, scopes: Sequence[str]) -> None:
        for scope in scopes:
            await self.system.edit(CLAIM, scope, _NAME, {"spec": _TOKEN})

    async def end(self, scopes: Sequence[str]) -> None:
        for scope in scopes:
            await self.system.api.delete(CLAIM.path(scope, _NAME))

    # What is seen then

    async def until(self, probe: Callable[[], Awaitable[T | None]], expected: str) -> T:
        """Wait for a state; where it does not come, say what the claims say of themselves."""
        try:
            return await eventually(probe, expected, limit_s=LIMIT_S)
        except AssertionError as error:
            claims = await self.system.api.items(CLAIM.path())
            statuses = {obj["metadata"]["namespace"]: obj.get("status", {}).get("conditions") for obj in claims}
            raise AssertionError(f"{error}; conditions of the claims: {statuses}") from None

    async def settle(self, scopes: Sequence[str], former: Mapping[str, Passwords] | None = None) -> None:
        """Let the operator bring all up, and wait until each claim is Ready with one password; not with a `former` one.

        Again and again: what one object reports has the next one made, and what is edited meanwhile is to be reported.
        """
        api, retired = self.system.api, former or {}
        for scope in scopes:

            async def is_settled(scope: str = scope) -> bool:
                await self.operator.bring_up_what_is_there(api, scope, _NAME)
                ready = is_ready(await api.get(CLAIM.path(scope, _NAME)))
                passwords = await _passwords(self.system, scope)
                return ready and len(passwords) == 1 and passwords.keys().isdisjoint(retired.get(scope, {}))

            await self.until(is_settled, f"the claim of {scope} is Ready and has one password")
        await self.system.at_rest()

    async def is_whole(self, scope: str) -> None:
        """Assert that there is one password and one object of each kind, and that it is referred to and published."""
        ((secret, password),) = (await _passwords(self.system, scope)).items()
        made = {kind: await self.operator.children(self.system.api, scope, _NAME, kind) for kind in self.operator.kinds}
        assert {kind: len(objects) for kind, objects in made.items()} == dict.fromkeys(self.operator.kinds, 1)
        reference = self.operator.password_ref
        assert reference is not None
        assert value_at(made[reference.kind][0], reference.path) == secret
        assert (await self.system.binding(scope, _NAME))["password"] == password

    async def nothing_is_left(self, scope: str) -> None:
        api = self.system.api

        async def is_gone() -> bool:
            return await api.find(CLAIM.path(scope, _NAME)) is None

        await self.until(is_gone, f"the claim of {scope} is gone")
        assert await _passwords(self.system, scope) == {}
        for kind in self.operator.kinds:
            assert await self.operator.children(api, scope, _NAME, kind) == []

    # Crashes

    def plans(self, effects: Sequence[str]) -> list[Plan]:
        """Plan a kill at each moment around each effect; of those whose number differs, around the first alone.

        ACK's stand for all operators where an effect concerns neither a password nor the object that names it.
        """
        seen: Counter[str] = Counter()
        plans = []
        for effect in effects:
            seen[effect] += 1
            is_counted = seen[effect] == 1 or effect == _MADE
            if is_counted and (self.operator == ACK or self._is_of_the_password(effect)):
                plans += [Plan(COMPOSER, Trap(seen[effect], moment, effect), effect) for moment in Moment]
        return plans

    def _is_of_the_password(self, effect: str) -> bool:
        reference = self.operator.password_ref
        return reference is not None and effect.split()[1] in ("secrets", reference.kind.plural)

    async def crash(
        self,
        planned: Mapping[str, Plan],
        begin: Callable[[Sequence[str]], Awaitable[None]],
        *,
        is_end: bool = False,
    ) -> None:
        """Trap each scope at its effect while the step begins, kill once all are trapped, and start again.

        So many at a time as the composer has workers for. Meanwhile the operator brings up what there is, unless the
        claims end.
        """
        scopes = list(planned)
        for batch in (scopes[start : start + PARKED_MOST] for start in range(0, len(scopes), PARKED_MOST)):
            self.rig.arm({scope: planned[scope] for scope in batch})
            async with in_background(self._play(() if is_end else batch)):
                await begin(batch)
                sprung = await self.rig.until_sprung()
            assert sprung.keys() == set(batch)
            await self.rig.kill()
            await self.rig.start()

    async def _play(self, scopes: Sequence[str]) -> None:
        """Bring up what there is of each scope again and again, as an operator does, until cancelled."""
        api = self.system.api
        while scopes:
            await asyncio.gather(*(self.operator.bring_up_what_is_there(api, scope, _NAME) for scope in scopes))
            await asyncio.sleep(_EVERY_S)

    async def learned(self, scope: str) -> tuple[list[Plan], list[Plan], list[Plan]]:
        """Return the kills of a claim's begin, rotation and end, by the effects of one claim that is not killed."""
        gate, reference = self.rig.gates[COMPOSER], self.operator.password_ref
        assert reference is not None
        await self.begin([scope])
        await self.settle([scope])
        created = gate.effects(scope)
        assert created.count(_MADE) == 2
        gate.forget()
        before = {scope: await _passwords(self.system, scope)}
        await self.rotate([scope])
        await self.settle([scope], before)
        rotated = gate.effects(scope)
        assert {_MADE, f"PATCH {reference.kind.plural}", "PUT secrets", "DELETE secrets"} <= set(rotated)
        await self.is_whole(scope)
        gate.forget()
        await self.end([scope])
        await self.nothing_is_left(scope)
        ended = gate.effects(scope)
        assert {f"DELETE {reference.kind.plural}", "DELETE secrets"} <= set(ended)
        return self.plans(created), self.plans(rotated), self.plans(ended)


async def _passwords(system: System, scope: str) -> Passwords:
    items = await system.api.items(SECRET.path(scope))
    made = (secret for secret in items if secret.get("type") == "fairlead.dev/password")
    return {secret["metadata"]["name"]: decoded(secret)["password"] for secret in made}


@pytest.mark.parametrize("operator", WANTING, ids=lambda operator: operator.name)
async def test_a_kill_at_each_side_effect_leaves_one_password_and_one_object(
    crashing: CrashRig, operator: Played
) -> None:
    claims = Claims(crashing, operator)
    (clean,) = claims.scopes(1)
    created, rotated, ended = await claims.learned(clean)
    scopes = claims.scopes(1 + max(len(created), len(rotated), len(ended)))[1:]

    await claims.crash(dict(zip(scopes, created, strict=False)), claims.begin)
    await claims.begin(scopes[len(created) :])
    await claims.settle(scopes)
    for scope in scopes:
        await claims.is_whole(scope)

    before = {scope: await _passwords(crashing.system, scope) for scope in scopes[: len(rotated)]}
    await claims.crash(dict(zip(scopes, rotated, strict=False)), claims.rotate)
    await claims.settle(list(before), before)
    for scope in before:
        await claims.is_whole(scope)

    await claims.crash(dict(zip(scopes, ended, strict=False)), claims.end, is_end=True)
    await claims.end(scopes[len(ended) :])
    for scope in scopes:
        await claims.nothing_is_left(scope)
