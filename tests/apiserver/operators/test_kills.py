"""Kill -9 of the composer at each side effect of a claim that wants a password: one password, one object."""

from __future__ import annotations

import asyncio
import secrets
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from functools import partial
from typing import TypeAlias, TypeVar

import pytest
import pytest_asyncio

from devcloud.controlplane import Programs
from tests.apiserver.operators.conftest import LIMIT_S, LOGIN, install
from tests.support.crash import COMPOSER, PARKED_MOST, CrashRig, Plan, actor_of
from tests.support.gate import Moment, Trap
from tests.support.kinds import CLAIM, SECRET, claim, is_ready
from tests.support.operators.played import ACK
from tests.support.system import System, decoded, rig
from tests.support.waiting import eventually, in_background

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.apiserver, pytest.mark.postgres]

_CLEAN = "k000z"
_NAME = "orders"
T = TypeVar("T")
# Those of a claim, by the names of their Secrets.
Passwords: TypeAlias = dict[str, str]
Begin: TypeAlias = Callable[[System, Sequence[str]], Awaitable[None]]
# Of the password, and of the connection: each once.
_MADE = "POST secrets"
_TOKEN = {"passwordRotation": {"token": "2026-12"}}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def crashing(
    tmp_path_factory: pytest.TempPathFactory, control_plane_programs: Programs
) -> AsyncIterator[CrashRig]:
    async with AsyncExitStack() as stack:
        folder = tmp_path_factory.mktemp(f"rig-{secrets.token_hex(2)}")
        installed = await stack.enter_async_context(rig(folder, control_plane_programs))
        await install(installed, ACK, {})
        account = ("fairlead-system", "fairlead-composer")
        made = CrashRig(installed, {COMPOSER: await actor_of(installed, stack, ("composer",), account)})
        try:
            await made.start()
            yield made
        finally:
            await made.kill()


async def _begin(system: System, scopes: Sequence[str]) -> None:
    for scope in scopes:
        await system.namespaced(scope, cloud=ACK.name)
        await system.create(CLAIM, claim(scope, _NAME, deletionPolicy="Delete", **LOGIN))


async def _rotate(system: System, scopes: Sequence[str]) -> None:
    for scope in scopes:
        await system.edit(CLAIM, scope, _NAME, {"spec": _TOKEN})


async def _until(rig: CrashRig, probe: Callable[[], Awaitable[T | None]], expected: str) -> T:
    """Wait for a state; a composer that ends meanwhile, as one that lost its Lease does, is started again."""

    async def seen() -> T | None:
        await rig.start()
        return await probe()

    return await eventually(seen, expected, limit_s=LIMIT_S)


async def _settle(rig: CrashRig, scopes: Sequence[str], former: Mapping[str, Passwords] | None = None) -> None:
    """Let the operator bring all up, and wait until each claim is Ready with one password; not with a `former` one."""
    api, retired = rig.system.api, former or {}
    for scope in scopes:
        await _until(rig, partial(ACK.children, api, scope, _NAME), f"the instance of {scope}")
        await ACK.bring_up(api, scope, _NAME)
    for scope in scopes:

        async def is_settled(scope: str = scope) -> bool:
            ready = is_ready(await api.get(CLAIM.path(scope, _NAME)))
            passwords = await _passwords(rig.system, scope)
            return ready and len(passwords) == 1 and passwords.keys().isdisjoint(retired.get(scope, {}))

        await _until(rig, is_settled, f"the claim of {scope} is Ready and has one password")
    await rig.system.at_rest()


async def _passwords(system: System, scope: str) -> Passwords:
    items = await system.api.items(SECRET.path(scope))
    made = (secret for secret in items if secret.get("type") == "fairlead.dev/password")
    return {secret["metadata"]["name"]: decoded(secret)["password"] for secret in made}


async def _is_whole(system: System, scope: str) -> None:
    """Assert that there is one password and one object, which refers to it, and that the password is published."""
    ((secret, password),) = (await _passwords(system, scope)).items()
    (instance,) = await ACK.children(system.api, scope, _NAME)
    assert instance["spec"]["masterUserPassword"]["name"] == secret
    assert (await system.binding(scope, _NAME))["password"] == password


async def _end(system: System, scopes: Sequence[str]) -> None:
    for scope in scopes:
        await system.api.delete(CLAIM.path(scope, _NAME))


async def _nothing_is_left(rig: CrashRig, scope: str) -> None:
    api = rig.system.api

    async def is_gone() -> bool:
        return await api.find(CLAIM.path(scope, _NAME)) is None

    await _until(rig, is_gone, f"the claim of {scope} is gone")
    assert await _passwords(rig.system, scope) == {}
    assert await ACK.children(api, scope, _NAME) == []


def _plans(effects: Sequence[str]) -> list[Plan]:
    """Plan a kill at each moment around each effect; of those whose number differs, around the first alone."""
    seen: Counter[str] = Counter()
    plans = []
    for effect in effects:
        seen[effect] += 1
        if seen[effect] == 1 or effect == _MADE:
            plans += [Plan(COMPOSER, Trap(seen[effect], moment, effect), effect) for moment in Moment]
    return plans


async def _crash(rig: CrashRig, planned: Mapping[str, Plan], begin: Begin, *, is_end: bool = False) -> None:
    """Trap each scope at its effect while the step begins, kill once all are trapped, and start again.

    So many at a time as the composer has workers for. Meanwhile the operator brings up what there is, unless the
    claims end.
    """
    scopes = list(planned)
    for batch in (scopes[start : start + PARKED_MOST] for start in range(0, len(scopes), PARKED_MOST)):
        rig.arm({scope: planned[scope] for scope in batch})
        async with in_background(_play(rig.system, () if is_end else batch)):
            await begin(rig.system, batch)
            sprung = await rig.until_sprung()
        assert sprung.keys() == set(batch)
        await rig.kill()
        await rig.start()


async def _play(system: System, scopes: Sequence[str]) -> None:
    """Bring up the object of each scope as it comes, as an operator does, until cancelled."""
    await asyncio.gather(*(ACK.bring_up(system.api, scope, _NAME) for scope in scopes))


async def _learned(rig: CrashRig, scope: str) -> tuple[list[Plan], list[Plan], list[Plan]]:
    """Return the kills of a claim's begin, of its rotation and of its end, as one that is not killed passes them."""
    system, gate = rig.system, rig.gates[COMPOSER]
    await _begin(system, [scope])
    await _settle(rig, [scope])
    created = gate.effects(scope)
    assert created.count(_MADE) == 2
    gate.forget()
    before = {scope: await _passwords(system, scope)}
    await _rotate(system, [scope])
    await _settle(rig, [scope], before)
    rotated = gate.effects(scope)
    assert {_MADE, "PATCH dbinstances", "PUT secrets", "DELETE secrets"} <= set(rotated)
    await _is_whole(system, scope)
    gate.forget()
    await _end(system, [scope])
    await _nothing_is_left(rig, scope)
    ended = gate.effects(scope)
    assert {"DELETE dbinstances", "DELETE secrets"} <= set(ended)
    return _plans(created), _plans(rotated), _plans(ended)


async def test_a_kill_at_each_side_effect_leaves_one_password_and_one_object(crashing: CrashRig) -> None:
    system = crashing.system
    created, rotated, ended = await _learned(crashing, _CLEAN)
    scopes = [f"k{number:03}z" for number in range(1, 1 + max(len(created), len(rotated), len(ended)))]

    await _crash(crashing, dict(zip(scopes, created, strict=False)), _begin)
    await _begin(system, scopes[len(created) :])
    await _settle(crashing, scopes)
    for scope in scopes:
        await _is_whole(system, scope)

    before = {scope: await _passwords(system, scope) for scope in scopes[: len(rotated)]}
    await _crash(crashing, dict(zip(scopes, rotated, strict=False)), _rotate)
    await _settle(crashing, list(before), before)
    for scope in before:
        await _is_whole(system, scope)

    await _crash(crashing, dict(zip(scopes, ended, strict=False)), _end, is_end=True)
    await _end(system, scopes[len(ended) :])
    for scope in scopes:
        await _nothing_is_left(crashing, scope)
