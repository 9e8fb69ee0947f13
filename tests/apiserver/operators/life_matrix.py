"""A claim through each other operator's resources: its life, a failure, a rest, every way to go; logins by psql."""

from __future__ import annotations

import asyncio
import secrets
from typing import Any

import pytest
import pytest_asyncio

from tests.apiserver.operators.conftest import LIMIT_S, LOGIN, Stage, passed, psql_prints, watched
from tests.apiserver.operators.test_life import have_its_life
from tests.apiserver.policies.actors import As
from tests.support.api import ApiError, JsonObject
from tests.support.audit import WRITES, Match
from tests.support.kinds import CLAIM, COMPOSITION, NAMESPACE, SECRET, claim, condition, in_trouble, is_ready
from tests.support.operators.played import (
    ALL,
    CNPG,
    ZALANDO,
    Step,
    cnpg_authority,
    cnpg_login,
    zalando_login,
)
from tests.support.system import COMPOSER, System
from tests.support.waiting import eventually

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.apiserver, pytest.mark.postgres]


async def test_a_claim_is_served_edited_rotated_held_lost_made_again_left_and_taken_over(stage: Stage) -> None:
    await have_its_life(stage)


async def test_a_hundred_passes_at_rest_write_nothing_but_the_answers_to_who_asked(operating: System) -> None:
    system, namespaces = operating, [watched(operator.name) for operator in ALL]
    for operator in ALL:
        await system.until(COMPOSITION, "", f"postgres-{operator.name}", is_ready, limit_s=LIMIT_S)
        await Stage(system, operator).ready_claim("quiet")
    await system.at_rest()
    audit = system.audit()
    # One claim waits for its next pass while another has its own.
    await asyncio.gather(*(_pass_often(system, namespace, "quiet", 100) for namespace in namespaces))
    await system.at_rest()
    for namespace in namespaces:
        written = audit.table(Match(user=COMPOSER, verbs=WRITES, namespace=namespace))
        assert written == {("patch", "postgresqlinstances", "status"): 100}, namespace


async def _pass_often(system: System, namespace: str, name: str, times: int) -> None:
    for _ in range(times):
        await passed(system, namespace, name)


async def test_a_cluster_that_somebody_scales_is_put_back(operating: System) -> None:
    api, namespace = operating.api, watched(CNPG.name)
    await operating.until(COMPOSITION, "", f"postgres-{CNPG.name}", is_ready, limit_s=LIMIT_S)
    await Stage(operating, CNPG).ready_claim("scaled")
    before = await CNPG.child(api, namespace, "scaled")
    path = CNPG.source.path(namespace, before["metadata"]["name"])

    await api.merge(f"{path}/scale", {"spec": {"replicas": 3}})

    async def put_back() -> bool:
        after = await api.get(path)
        is_seen = after["metadata"]["generation"] > before["metadata"]["generation"] + 1
        return is_seen and bool(after["spec"]["instances"] == before["spec"]["instances"])

    await eventually(put_back, "there are as many instances as the claim has", limit_s=LIMIT_S)


async def test_a_failure_is_reported_in_the_operators_words(stage: Stage) -> None:
    operator = stage.operator
    await stage.system.create(CLAIM, claim(stage.namespace, "failing", **LOGIN))
    await operator.fail(stage.system.api, stage.namespace, "failing")

    def has_failed(obj: JsonObject) -> bool:
        stalled = condition(obj, "Stalled")
        return stalled.get("reason") == "ChildFailed" and operator.failure[1] in stalled["message"]

    failed = await stage.system.until(CLAIM, stage.namespace, "failing", has_failed, limit_s=LIMIT_S)
    assert condition(failed, "Ready")["status"] == "False"
    assert "binding" not in failed["status"]


async def test_under_delete_everything_goes(stage: Stage) -> None:
    operator, api, namespace = stage.operator, stage.system.api, stage.namespace
    await stage.ready_claim("gone", deletionPolicy="Delete")

    await stage.system.delete(CLAIM, namespace, "gone")

    for kind in operator.kinds:

        async def none_left(kind: Any = kind) -> bool:
            return not await operator.children(api, namespace, "gone", kind)

        await eventually(none_left, f"no {kind.kind} is left", limit_s=LIMIT_S)
    assert await stage.passwords("gone") == {}
    # The cluster's garbage collector deletes it after its claim.
    await api.until_gone(SECRET.path(namespace, "gone-connection"), limit_s=LIMIT_S)


async def test_what_holds_data_is_deleted_by_the_platform_alone_and_never_replaced(stage: Stage) -> None:
    operator, api, namespace = stage.operator, stage.system.api, stage.namespace
    await stage.ready_claim("guarded")
    source = await operator.child(api, namespace, "guarded")
    path, uid = operator.source.path(namespace, source["metadata"]["name"]), source["metadata"]["uid"]
    # It may write and delete all objects of a cluster, as an administrator of a namespace may there.
    collector = As(api, "system:serviceaccount:kube-system:generic-garbage-collector")
    with pytest.raises(ApiError, match="holds the data of claim guarded"):
        await collector.request("DELETE", path)
    with pytest.raises(ApiError, match=r"label \S+ says whose data"):
        await collector.merge(path, {"metadata": {"labels": {"fairlead.dev/claim": None}}})
    await collector.merge(path, {"metadata": {"labels": {"of": "somebody"}}})

    await api.delete(path)

    held = await stage.until_in_trouble("guarded", "HeldDeletion")
    text = condition(held, "Stalled")["message"]
    assert f"={uid}" in text
    assert condition(held, "Ready")["status"] == "False"
    await api.merge(path, {"metadata": {"finalizers": []}})
    await stage.until_in_trouble("guarded", "DatabaseLost")
    lost = await stage.passed("guarded")
    assert condition(lost, "Ready")["status"] == "False"
    assert await operator.children(api, namespace, "guarded") == []


async def test_a_namespace_that_is_deleted_waits_for_what_holds_data(stage: Stage) -> None:
    operator, api = stage.operator, stage.system.api
    async with stage.system.namespace(cloud=operator.name) as namespace:
        await stage.system.create(CLAIM, claim(namespace, "orders", **LOGIN))
        await operator.bring_up(api, namespace, "orders")
        await stage.system.until(CLAIM, namespace, "orders", is_ready, limit_s=LIMIT_S)
        source = await operator.child(api, namespace, "orders")

        await api.delete(NAMESPACE.path("", namespace))

        held = await stage.system.until(CLAIM, namespace, "orders", in_trouble("HeldDeletion"), limit_s=LIMIT_S)
        assert "is being deleted" in condition(held, "Stalled")["message"]
        await passed(stage.system, namespace, "orders")
        left = await api.get(operator.source.path(namespace, source["metadata"]["name"]))
        assert left["metadata"]["uid"] == source["metadata"]["uid"]
        assert "deletionTimestamp" not in left["metadata"]

        await api.merge(NAMESPACE.path("", namespace), {"metadata": {"labels": {"fairlead.dev/ephemeral": "true"}}})
        await api.until_gone(CLAIM.path(namespace, "orders"), limit_s=LIMIT_S)


async def test_a_password_that_is_gone_is_not_made_again_before_a_new_token(wanting: Stage) -> None:
    stage = wanting
    api, namespace = stage.system.api, stage.namespace
    await stage.ready_claim("lost")
    ((secret, password),) = (await stage.passwords("lost")).items()

    await api.delete(SECRET.path(namespace, secret))

    unknown = await stage.until_in_trouble("lost", "PasswordUnknown")
    assert secret in condition(unknown, "Stalled")["message"]
    assert condition(unknown, "Ready")["status"] == "True"
    await stage.passed("lost")
    assert await stage.passwords("lost") == {}
    assert (await stage.binding("lost"))["password"] == password

    await stage.rotate("lost", "again")
    await stage.until_ready("lost")

    async def published() -> bool:
        return (await stage.binding("lost"))["password"] in (await stage.passwords("lost")).values()

    await eventually(published, "the other password is published", limit_s=LIMIT_S)


# With a real PostgreSQL behind what the operators write


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def database(operating: System) -> str:
    """Return the password of the role `orders_app`, which owns the database `orders` on the rig's server."""
    server, password = operating.server.server, secrets.token_hex(8)
    await server.execute(f"CREATE ROLE orders_app LOGIN PASSWORD '{password}'")
    await server.execute("CREATE DATABASE orders OWNER orders_app")
    return password


async def test_psql_logs_in_with_what_cloudnativepg_publishes(operating: System, database: str) -> None:
    system, namespace = operating, watched(CNPG.name)
    at = {"host": system.server.host, "port": str(system.server.port)}
    await system.create(CLAIM, claim(namespace, "real", **LOGIN))
    authority = cnpg_authority(system.server.authority_pem.decode())
    await CNPG.play(system.api, namespace, "real", Step(None, secret=authority))
    await CNPG.play(system.api, namespace, "real", Step(None, secret=cnpg_login(database, **at)))
    for step in CNPG.rise[2:]:
        await CNPG.play(system.api, namespace, "real", step)
    await system.until(CLAIM, namespace, "real", is_ready, limit_s=LIMIT_S)

    binding = await system.binding(namespace, "real")
    assert binding["sslmode"] == "verify-full"
    assert await psql_prints(system, binding, hostaddr=system.server.host) == "orders_app in orders"


async def test_psql_logs_in_with_what_zalandos_operator_publishes(operating: System, database: str) -> None:
    system, namespace = operating, watched(ZALANDO.name)
    await system.create(CLAIM, claim(namespace, "real", **LOGIN))
    await ZALANDO.play(system.api, namespace, "real", Step(None, secret=zalando_login(database)))
    await ZALANDO.play(system.api, namespace, "real", ZALANDO.rise[-1])
    await system.until(CLAIM, namespace, "real", is_ready, limit_s=LIMIT_S)

    # The name of a Service is known within a cluster alone.
    binding = await system.binding(namespace, "real")
    assert await psql_prints(system, binding, hostaddr=system.server.host) == "orders_app in orders"
