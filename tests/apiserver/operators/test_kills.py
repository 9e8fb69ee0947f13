"""Kill -9 of the composer at each side effect of a claim that wants a password: one password, one object."""

from __future__ import annotations

import asyncio
import itertools
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from typing import TypeAlias

import pytest
import pytest_asyncio

from devcloud.controlplane import Programs
from tests.apiserver.operators.conftest import LIMIT_S, LOGIN, install
from tests.support.crash import COMPOSER, CrashRig, Plan, actor_of, plans_by_text
from tests.support.gate import Moment
from tests.support.kinds import CLAIM, SECRET, claim, is_ready
from tests.support.operators.played import ACK
from tests.support.system import System, decoded, rig
from tests.support.waiting import in_background

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.apiserver, pytest.mark.postgres]

_CLEAN = "k000z"
_NAME = "orders"
Begin: TypeAlias = Callable[[System, Sequence[str]], Awaitable[None]]
_TURNS = tuple((moment,) for moment in Moment)
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


async def _settle(system: System, scopes: Sequence[str]) -> None:
    """Let the operator bring all up, and wait until each claim is Ready."""
    for scope in scopes:
        await ACK.bring_up(system.api, scope, _NAME)
    for scope in scopes:
        await system.until(CLAIM, scope, _NAME, is_ready, limit_s=LIMIT_S)
    await system.at_rest()


async def _passwords(system: System, scope: str) -> dict[str, str]:
    items = await system.api.items(SECRET.path(scope))
    made = (secret for secret in items if secret.get("type") == "fairlead.dev/password")
    return {secret["metadata"]["name"]: decoded(secret)["password"] for secret in made}


async def _is_whole(system: System, scope: str) -> None:
    """Assert that there is one password and one object, which refers to it, and that the password is published."""
    ((secret, password),) = (await _passwords(system, scope)).items()
    (instance,) = await ACK.children(system.api, scope, _NAME)
    assert instance["spec"]["masterUserPassword"]["name"] == secret
    assert (await system.binding(scope, _NAME))["password"] == password


async def _crash(rig: CrashRig, planned: dict[str, Plan], begin: Begin) -> None:
    """Trap each scope at its effect while the step begins, kill once all are trapped, and start again."""
    rig.arm(planned)
    async with in_background(_play(rig.system, tuple(planned))):
        await begin(rig.system, tuple(planned))
        sprung = await rig.until_sprung()
    assert sprung.keys() == planned.keys()
    await rig.kill()
    await rig.start()


async def _play(system: System, scopes: Sequence[str]) -> None:
    """Bring up the object of each scope as it comes, as an operator does, until cancelled."""
    await asyncio.gather(*(ACK.bring_up(system.api, scope, _NAME) for scope in scopes))


async def test_a_kill_at_each_side_effect_leaves_one_password_and_one_object(crashing: CrashRig) -> None:
    system, gate, numbers = crashing.system, crashing.gates[COMPOSER], itertools.count(1)
    await _begin(system, [_CLEAN])
    await _settle(system, [_CLEAN])
    created = gate.effects(_CLEAN)
    assert "POST secrets" in created
    gate.forget()
    await _rotate(system, [_CLEAN])
    await _settle(system, [_CLEAN])
    rotated = gate.effects(_CLEAN)
    assert {"POST secrets", "DELETE secrets"} <= set(rotated)
    await _is_whole(system, _CLEAN)

    first = {f"k{next(numbers):03}z": plan for plan in plans_by_text({COMPOSER: created}, _TURNS)}
    await _crash(crashing, first, _begin)
    await _settle(system, tuple(first))
    for scope in first:
        await _is_whole(system, scope)

    second = dict(zip(first, plans_by_text({COMPOSER: rotated}, _TURNS), strict=False))
    before = {scope: await _passwords(system, scope) for scope in second}
    await _crash(crashing, second, _rotate)
    await _settle(system, tuple(second))
    for scope in second:
        await _is_whole(system, scope)
        assert (await _passwords(system, scope)).keys().isdisjoint(before[scope])

    await asyncio.gather(*(system.delete(CLAIM, scope, _NAME) for scope in first))
    for scope in first:
        assert await _passwords(system, scope) == {}
        assert await ACK.children(system.api, scope, _NAME) == []
