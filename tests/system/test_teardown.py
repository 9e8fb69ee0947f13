"""Nothing is destroyed that a claim did not order: whoever deletes what, the same row of data is found again."""

from __future__ import annotations

import asyncio
import re

import pytest

from tests.support.api import ApiError, JsonObject
from tests.support.home import Home, claim, furnish, move_in, until_gone
from tests.support.kinds import (
    CLAIM,
    CRD,
    DATABASE,
    NAMESPACE,
    SECRET,
    composition,
    condition,
    is_ready,
)
from tests.support.reset import only_claims_of
from tests.support.staff import Staff, collector_has_looked
from tests.support.system import COMPOSER, PROVIDER, System
from tests.support.waiting import eventually

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.apiserver, pytest.mark.postgres]

_POLICIES = ("Orphan", "Snapshot", "Delete")
_WAYS = (("Orphan", "Foreground"), ("Snapshot", "Orphan"), ("Delete", "Background"), ("Delete", "Orphan"))
"""Where a cascade could do the opposite of a policy."""


# A claim that is deleted


async def test_a_deletion_follows_its_policy_whatever_the_cascade(staff: Staff, namespace: str) -> None:
    ends = {"Orphan": _orphaned, "Snapshot": _retired, "Delete": _dropped}
    async with asyncio.TaskGroup() as group:
        for policy, cascade in _WAYS:
            name = f"{policy}-{cascade}".lower()
            body = claim(namespace, name, deletionPolicy=policy)
            group.create_task(ends[policy](staff.system, body, cascade), name=name)


async def _orphaned(system: System, body: JsonObject, cascade: str) -> None:
    home = await move_in(system, body)
    secret_path, credentials_path = [await home.secret_path(suffix) for suffix in ("connection", "credentials")]

    async with await system.login(home.namespace, home.name) as session:
        await home.delete(propagation=cascade)
        cursor = await session.execute("SELECT note FROM keepsake")
        assert await cursor.fetchall() == [(home.row,)]

    await home.untouched()
    assert await home.logins() != []
    for path in (secret_path, credentials_path):
        assert "ownerReferences" not in (await system.api.get(path))["metadata"]
    await collector_has_looked(system, home.namespace, name=f"probe-{home.name}")
    assert await system.api.find(secret_path) is not None


async def _retired(system: System, body: JsonObject, cascade: str) -> None:
    home = await move_in(system, body)

    await home.delete(propagation=cascade)

    assert home.drops() == 0
    [name] = await home.names()
    assert re.fullmatch(r"retired_\d{8}\w*", name), name
    assert await home.logins() == []
    assert await home.rows_behind() == [home.row]


async def _dropped(system: System, body: JsonObject, cascade: str) -> None:
    home = await move_in(system, body)
    child = (await home.child())["metadata"]["name"]

    await home.delete(propagation=cascade)

    assert home.drops_carried_out() == 1
    assert await home.names() == []
    assert await home.logins() == []
    stays = await _stays_of_ours(system, home.namespace)
    assert [name for name in stays if name.startswith((home.name, child))] == []


async def test_children_are_torn_down_wave_by_wave(staff: Staff, namespace: str) -> None:
    system = staff.system
    async with system.composition(_two_waves("waves")) as name:
        body = claim(namespace, name, deletionPolicy="Delete", compositionRef={"name": name})
        home = await move_in(system, body)
        names = {child["metadata"]["annotations"]["fairlead.dev/resource"]: child for child in await home.children()}
        first, second = (names[resource]["metadata"]["name"] for resource in ("first", "second"))
        audit, mark = system.audit(), system.sql.mark()

        await home.delete(propagation="Foreground")

    writes = [
        request
        for request in audit.writes()
        if request.resource == DATABASE.plural and request.user in {COMPOSER, PROVIDER}
    ]
    last_of_second = max(index for index, request in enumerate(writes) if request.name == second)
    first_instruction = min(
        index for index, request in enumerate(writes) if request.name == first and request.user == COMPOSER
    )
    assert last_of_second < first_instruction, [(request.user[-20:], request.verb, request.name) for request in writes]
    stem = body["spec"]["databaseName"]
    pattern = re.compile(rf"DROP DATABASE.*{stem}_(one|two)", re.IGNORECASE)
    dropped = [drop[1] for statement in system.sql.carried_out(mark) if (drop := pattern.search(statement))]
    assert dropped == ["two", "one"]


async def test_a_protected_claim_is_held_by_admission_and_by_the_controller(staff: Staff, namespace: str) -> None:
    system = staff.system
    home = await move_in(system, claim(namespace, "protected", deletionPolicy="Delete", deletionProtection=True))
    with pytest.raises(ApiError, match="protected from deletion"):
        await system.api.delete(home.path)

    policy = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings/fairlead-deletion-protection"
    binding = await system.api.get(policy)
    await system.api.delete(policy)
    try:
        await _delete_when_unguarded(system, home)
        # Foreground stamps the child too: it must not go either.
        held = await home.until_stalled("DeletionProtected")
    finally:
        kept = {key: binding["metadata"][key] for key in ("name", "labels") if key in binding["metadata"]}
        # By its first manager: else the next install meets a conflict.
        await system.api.apply(policy, {**binding, "metadata": kept}, manager="kubectl")

    assert "deletionProtection" in condition(held, "Stalled")["message"]
    await home.untouched()
    await system.api.merge(home.path, {"spec": {"deletionProtection": False}})
    await until_gone(system, home.path)
    assert home.drops_carried_out() == 1


# A namespace that is deleted


async def test_a_namespace_deleted_leaves_the_database_and_a_returning_claim_finds_its_predecessor(
    staff: Staff,
) -> None:
    system = staff.system
    async with system.namespace() as namespace:
        body = claim(namespace, "orders", deletionPolicy="Delete")
        home = await move_in(system, body)
        await system.api.delete(NAMESPACE.path("", namespace))
        await until_gone(system, NAMESPACE.path("", namespace))
        await home.untouched()

        await system.namespaced(namespace)
        await system.create(CLAIM, body)
        await home.until_stalled("PredecessorFound")
        await home.untouched()

        await system.api.merge(home.path, {"metadata": {"annotations": {"fairlead.dev/adopt": "none"}}})
        await system.until(CLAIM, namespace, home.name, is_ready)
        neighbour = await furnish(system, namespace, home.name)
        assert neighbour.oid != home.oid
        await home.untouched()


# A definition that is deleted. The last tests: every object of the kind goes with it.


async def test_the_claims_definition_deleted_leaves_every_database_and_secret(staff: Staff, namespace: str) -> None:
    system = staff.system
    homes = await asyncio.gather(
        *(move_in(system, claim(namespace, policy.lower(), deletionPolicy=policy)) for policy in _POLICIES)
    )
    logins = [await system.login(namespace, home.name) for home in homes]
    definition = CRD.path("", f"{CLAIM.plural}.{CLAIM.group}")
    kept = await _bare(system, definition)
    await only_claims_of(system, namespace)

    await system.api.delete(definition)
    await until_gone(system, definition)

    await collector_has_looked(system, namespace)
    for home, login in zip(homes, logins, strict=True):
        await home.untouched()
        async with login:
            assert await (await login.execute("SELECT note FROM keepsake")).fetchall() == [(home.row,)]
        secret = await system.api.get(SECRET.path(namespace, f"{home.name}-connection"))
        assert "ownerReferences" not in secret["metadata"]

    await system.create(CRD, kept)
    await system.api.until_served(CLAIM.path())
    await system.create(CLAIM, claim(namespace, homes[0].name))
    await homes[0].until_stalled("PredecessorFound")
    await move_in(system, claim(namespace, "newcomer"))


def _two_waves(name: str) -> JsonObject:
    def resource(label: str, suffix: str, **more: object) -> JsonObject:
        login = "{{ claim.spec.username | default('waves') }}" + suffix
        database = "{{ claim.spec.databaseName | default('waves') }}" + suffix
        spec = {"forProvider": {"databaseName": database, "username": login}}
        template = {"apiVersion": DATABASE.api_version, "kind": DATABASE.kind, "spec": spec}
        return {"name": label, "template": template, **more}

    first, second = resource("first", "_one"), resource("second", "_two", dependsOn=["first"])
    obj = composition(name, first, second, connection={"from": "first"})
    obj["spec"]["deletionPolicies"] = list(_POLICIES)
    return obj


async def _delete_when_unguarded(system: System, home: Home) -> None:
    """Delete as soon as the API server has noticed that the policy is gone."""

    async def accepted() -> bool:
        try:
            await system.api.delete(home.path, propagation="Foreground")
        except ApiError as error:
            if "protected from deletion" in str(error):
                return False
            raise
        return True

    await eventually(accepted, "the deletion is accepted")


async def _stays_of_ours(system: System, namespace: str) -> list[str]:
    items = [*await system.api.items(SECRET.path(namespace)), *await system.api.items(DATABASE.path(namespace))]
    return [item["metadata"]["name"] for item in items]


async def _bare(system: System, path: str) -> JsonObject:
    """Return a definition as one would apply it again."""
    obj = await system.api.get(path)
    meta = {key: obj["metadata"][key] for key in ("name", "labels", "annotations") if key in obj["metadata"]}
    return {"apiVersion": obj["apiVersion"], "kind": obj["kind"], "metadata": meta, "spec": obj["spec"]}
