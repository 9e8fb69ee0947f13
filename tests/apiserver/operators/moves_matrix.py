"""A claim that moves between Fairlead's provider and another operator: held before its data would be left behind."""

from __future__ import annotations

import pytest

from tests.apiserver.operators.conftest import LIMIT_S, LOGIN, passed
from tests.support.audit import Match
from tests.support.kinds import CLAIM, COMPOSITION, DATABASE, NAMESPACE, claim, condition, in_trouble, is_ready
from tests.support.operators.played import CNPG
from tests.support.system import COMPOSER, System

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.apiserver, pytest.mark.postgres]

_CHOICE = {"compositionRef": {"name": "postgres-cnpg"}}


async def test_a_claim_is_held_between_onprem_and_cloudnativepg_until_the_consent_that_it_names(
    operating: System,
) -> None:
    system = operating
    provider = await system.start_provider("--no-elect")
    await system.until(COMPOSITION, "", f"postgres-{CNPG.name}", is_ready, limit_s=LIMIT_S)
    async with system.namespace() as namespace:
        await system.create(CLAIM, claim(namespace, "orders", **LOGIN))
        await system.until(CLAIM, namespace, "orders", is_ready, limit_s=LIMIT_S)
        (former,) = await system.api.items(DATABASE.path(namespace))
        before = await system.binding(namespace, "orders")
        assert await system.logs_in_by(before)
        audit = system.audit()

        # By the label the namespace may use the other Composition; who has one keeps it.
        await system.api.merge(NAMESPACE.path("", namespace), {"metadata": {"labels": {"cloud": CNPG.name}}})
        assert is_ready(await passed(system, namespace, "orders"))
        await system.edit(CLAIM, namespace, "orders", {"spec": _CHOICE})

        held = await system.until(CLAIM, namespace, "orders", in_trouble("HeldDeletion"), limit_s=LIMIT_S)
        consent = f"database={former['metadata']['uid']}"
        assert f"fairlead.dev/consent={consent}`" in condition(held, "Stalled")["message"]
        assert condition(held, "Ready")["status"] == "True"
        await passed(system, namespace, "orders")
        assert await CNPG.children(system.api, namespace, "orders") == []
        (kept,) = await system.api.items(DATABASE.path(namespace))
        assert (kept["metadata"]["uid"], kept["spec"]) == (former["metadata"]["uid"], former["spec"])
        assert audit.count(Match(user=COMPOSER, verbs=frozenset({"delete"}), namespace=namespace)) == 0
        assert await system.binding(namespace, "orders") == before
        assert await system.logs_in_by(before)

        annotation = {"metadata": {"annotations": {"fairlead.dev/consent": consent}}}
        await system.edit(CLAIM, namespace, "orders", annotation)
        await CNPG.bring_up(system.api, namespace, "orders")
        await system.until(CLAIM, namespace, "orders", is_ready, limit_s=LIMIT_S)

        (source,) = await CNPG.children(system.api, namespace, "orders")
        assert (await system.binding(namespace, "orders"))["host"] == f"{source['metadata']['name']}-rw"
        await system.api.until_gone(DATABASE.path(namespace, former["metadata"]["name"]), limit_s=LIMIT_S)
        # Under Orphan, which is the default, the former database stays with its login.
        assert await system.logs_in_by(before)
    await provider.kill9()
