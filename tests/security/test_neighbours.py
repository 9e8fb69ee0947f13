"""One tenant's acts stay in the tenant's own namespace: rollouts, rate limits, quotas, fences hold for all others."""

from __future__ import annotations

import asyncio

import pytest
import pytest_asyncio

from tests.security.builders import at_once, database, databases_of, expect, owned_databases, says
from tests.support.api import JsonObject
from tests.support.home import until_gone
from tests.support.kinds import (
    CLAIM,
    COMPOSITION,
    DATABASE,
    EVENT,
    PROVIDER_CONFIG,
    SECRET,
    composition,
    condition,
    in_trouble,
    is_ready,
)
from tests.support.system import System
from tests.support.tenants import Person, tenant
from tests.support.waiting import eventually

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.apiserver, pytest.mark.postgres]


async def _ready(system: System, person: Person, *names: str, **spec: object) -> None:
    for name in names:
        await person.claim(name, **spec)
    for name in names:
        await system.until(CLAIM, person.namespace, name, is_ready)


_ON_FAILURE = ("Halt", "Rollback")


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def rollouts(
    running: System, alice: Person, mallory: Person, platform: Person
) -> dict[str, BaseException | None]:
    """Return which rollout a tenant's mistake ended; both go on beside each other."""
    return await at_once({rule: _rolls_out(running, (alice, mallory, platform), rule) for rule in _ON_FAILURE})


@pytest.mark.parametrize("on_failure", _ON_FAILURE)
async def test_a_tenants_own_mistake_neither_halts_nor_reverts_a_rollout(
    rollouts: dict[str, BaseException | None], on_failure: str
) -> None:
    expect(rollouts[on_failure])


async def _rolls_out(running: System, people: tuple[Person, Person, Person], on_failure: str) -> None:
    alice, mallory, platform = people
    name = f"fleet-{on_failure.lower()}"
    rollout = {"waves": ["100%"], "soakSeconds": 3, "maxFailed": 0, "onFailure": on_failure}
    body = composition(name, database(), connection={"from": "database"}, rollout=rollout)
    await platform.create(COMPOSITION, body)
    reference = {"compositionRef": {"name": name}}
    await _ready(running, alice, f"{name}-one", f"{name}-two", **reference)
    await _ready(running, mallory, f"{name}-own", **reference)
    await mallory.secret(f"{name}-notes", text="anything")
    before = (await running.api.get(CLAIM.path("alice", f"{name}-one")))["status"]["composition"]["revision"]

    newer = database(forProvider={"databaseName": "app", "username": "app", "connectionLimit": 7})
    await platform.edit(COMPOSITION, name, {"spec": {"resources": [newer]}})

    def moved(obj: JsonObject) -> bool:
        return bool(obj["status"]["composition"]["revision"] != before) and is_ready(obj)

    # As soon as the attacker's own claim has the new revision.
    await running.until(CLAIM, "mallory", f"{name}-own", lambda o: o["status"]["composition"]["revision"] != before)
    await mallory.edit(CLAIM, f"{name}-own", {"spec": {"connectionSecretName": f"{name}-notes"}})
    await running.until(CLAIM, "mallory", f"{name}-own", in_trouble("SecretNotOwned"))
    revision = (await running.until(CLAIM, "alice", f"{name}-one", moved))["status"]["composition"]["revision"]

    def ended(obj: JsonObject) -> bool:
        return obj.get("status", {}).get("rollout", {}).get("phase") in {"Finished", "Halted", "Reverted"}

    path = f"{COMPOSITION.path().rpartition('/')[0]}/compositionrevisions/{revision}"

    async def over() -> JsonObject | None:
        obj = await running.api.get(path)
        return obj if ended(obj) else None

    state = (await eventually(over, "the rollout has ended"))["status"]["rollout"]
    assert state["phase"] == "Finished", state
    for claim in (f"{name}-one", f"{name}-two"):
        assert moved(await running.until(CLAIM, "alice", claim, is_ready))


async def test_a_tenants_deletions_stop_nobody_elses(running: System, alice: Person, mallory: Person) -> None:
    await running.create(PROVIDER_CONFIG, running.provider_config("braked", limits=None))
    await running.create(COMPOSITION, composition("braked", database("braked"), connection={"from": "database"}))
    spec = {"compositionRef": {"name": "braked"}, "deletionPolicy": "Delete"}
    names = [f"wave-{number}" for number in range(6)]
    await asyncio.gather(_ready(running, mallory, *names, **spec), _ready(running, alice, "single", **spec))

    for name in names:
        await mallory.api.delete(CLAIM.path("mallory", name))

    async def first_three_went() -> bool:
        left = {claim["metadata"]["name"] for claim in await running.api.items(CLAIM.path("mallory"))}
        return len(left & set(names)) <= len(names) - 3

    await eventually(first_three_went, "the attacker's share of deletions is used up")
    await running.at_rest(for_s=1.0)
    await alice.api.delete(CLAIM.path("alice", "single"))
    await until_gone(running, CLAIM.path("alice", "single"))


async def test_limits_count_what_a_namespace_left_behind(running: System) -> None:
    limits = {"perNamespace": 3, "destroysPerHour": 10_000}
    await running.create(PROVIDER_CONFIG, running.provider_config("narrow", limits=limits))
    await running.create(COMPOSITION, composition("narrow", database("narrow"), connection={"from": "database"}))
    spec = {"compositionRef": {"name": "narrow"}, "deletionPolicy": "Orphan"}
    # Other tests leave databases behind, too.
    async with tenant(running, "hoarder") as hoarder:
        for turn in ("first", "second"):
            names = [f"{turn}-{number}" for number in range(3)]
            for name in names:
                await hoarder.claim(name, **spec)
            for name in names:
                await running.until(
                    CLAIM, "hoarder", name, lambda obj: is_ready(obj) or in_trouble("LimitReached")(obj)
                )
                await hoarder.api.delete(CLAIM.path("hoarder", name))
            for name in names:
                await until_gone(running, CLAIM.path("hoarder", name))

    made = await owned_databases(running, "hoarder")
    assert len(made) == 3, made


@pytest.mark.parametrize("way", ["compositionRef", "compositionSelector"])
async def test_a_composition_for_other_namespaces_serves_no_claim_that_names_it(
    running: System, mallory: Person, way: str
) -> None:
    name = f"reserved-{way.lower()}"
    selector = {"matchLabels": {"reserved": "for-others"}}
    body = composition(name, database(), labels={"team": name}, appliesTo={"namespaceSelector": selector})
    await running.create(COMPOSITION, body)
    await running.until(COMPOSITION, "", name, is_ready)
    reference = {"name": name} if way == "compositionRef" else {"matchLabels": {"team": name}}

    await mallory.claim(name, **{way: reference})

    await running.until(CLAIM, "mallory", name, says("Synced", "NotAllowed", "CompositionNotFound"))
    assert await databases_of(running, "mallory", name) == []


async def test_a_provider_config_for_others_is_neither_dialled_nor_described(running: System, mallory: Person) -> None:
    dialled: list[str] = []

    def answer(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        dialled.append("a connection")
        writer.close()

    listener = await asyncio.start_server(answer, "127.0.0.1", 0)
    port = int(listener.sockets[0].getsockname()[1])
    async with listener:
        login = {"username": "hidden_admin_name", "password": "hidden-password"}
        await running.create(SECRET, SECRET.new("fairlead-onprem", "hidden-admin", stringData=login))
        reference = {"adminSecretRef": {"name": "hidden-admin"}, "host": "127.0.0.1", "port": port}
        fence = {"allowedNamespaces": {"names": ["nobody"]}}
        await running.create(PROVIDER_CONFIG, running.provider_config("hidden", **reference, **fence))
        await running.create(COMPOSITION, composition("hidden", database("hidden"), connection={"from": "database"}))

        await mallory.claim("curious", compositionRef={"name": "hidden"})
        obj = await running.until(CLAIM, "mallory", "curious", says("Synced", "ProviderConfigNotFound"))
        await running.at_rest(for_s=1.0)

        assert dialled == []
    children = await running.api.items(DATABASE.path("mallory"))
    events = await running.api.items(EVENT.path("mallory"))
    seen = str([obj["status"], [entry.get("status") for entry in children], [entry.get("note") for entry in events]])
    for secret in (str(port), "hidden_admin_name", "hidden-password"):
        assert secret not in seen, condition(obj, "Synced")


async def test_a_claim_of_a_kind_that_the_composer_may_not_write_can_be_deleted(
    running: System, mallory: Person, platform: Person
) -> None:
    spec = {"podSelector": {}, "policyTypes": ["Ingress"]}
    template = {"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "spec": spec}
    await platform.create(COMPOSITION, composition("beyond", {"name": "wall", "template": template}))
    refused = await running.until(COMPOSITION, "", "beyond", says("Ready", "KindNotAllowed"))
    assert "NetworkPolicy" in condition(refused, "Ready")["message"]

    await mallory.claim("stuck", compositionRef={"name": "beyond"})
    await running.until(CLAIM, "mallory", "stuck", lambda obj: condition(obj, "Synced").get("status") == "False")
    await mallory.api.delete(CLAIM.path("mallory", "stuck"))

    await until_gone(running, CLAIM.path("mallory", "stuck"))
