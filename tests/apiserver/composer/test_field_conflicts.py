"""Who else writes a child's fields, as the managedFields of a real API server show it."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.audit import WRITES, Match
from tests.support.kinds import CLAIM, CONFIG_MAP, EVENT, claim, composition, is_ready
from tests.support.system import COMPOSER, System
from tests.support.waiting import eventually

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.apiserver, pytest.mark.postgres]

SETTINGS = {
    "name": "settings",
    "template": {"apiVersion": "v1", "kind": "ConfigMap", "data": {"size": "{{ claim.spec.size }}"}},
}
# Ten times taken back, then one apply without the field.
MOST_WRITES = 10 + 1


async def _made(system: System, namespace: str, name: str, composition_name: str) -> str:
    """Make a claim and wait until it is Ready; return the name of its ConfigMap."""
    await system.create(CLAIM, claim(namespace, name, compositionRef={"name": composition_name}))
    await system.until(CLAIM, namespace, name, is_ready)
    (child,) = await system.children(namespace, name)
    return str(child["metadata"]["name"])


async def _warnings(system: System, namespace: str) -> list[str]:
    events = await system.api.items(EVENT.path(namespace))
    return [event["note"] for event in events if event["reason"] == "FieldTakenBack"]


async def _data(system: System, namespace: str, name: str) -> Any:
    return (await system.api.get(CONFIG_MAP.path(namespace, name)))["data"]


async def test_the_first_edit_of_a_claim_warns_of_nobody(composing: System, namespace: str) -> None:
    async with composing.composition(composition(f"{namespace}-c", SETTINGS)) as name:
        child = await _made(composing, namespace, "edited", name)
        await composing.at_rest(for_s=1.0)
        audit = composing.audit()

        for size in ("large", "medium"):
            await composing.edit(CLAIM, namespace, "edited", {"spec": {"size": size}})

            async def has_come(size: str = size) -> bool:
                return bool(await _data(composing, namespace, child) == {"size": size})

            await eventually(has_come, "the edit")
            await composing.at_rest(for_s=1.0)

        assert await _warnings(composing, namespace) == []
        applies = audit.requests(Match(user=COMPOSER, verbs=WRITES, resource="configmaps", namespace=namespace))
        assert len(applies) == 2
        assert {request.code for request in applies} == {200}
