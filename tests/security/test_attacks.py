"""The corpus of attacks by one request each, on a running platform: what a tenant or a stolen token may not do.

The tables lie beside it; docs/dev/security-corpus.md has all attacks, those of other tests too.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass

import msgspec
import pytest
import pytest_asyncio

from tests.security import attacks_of_processes, attacks_of_tenants
from tests.security.attack import Attack
from tests.security.builders import databases_of
from tests.support.api import Api, JsonObject, connect
from tests.support.grants import as_installed
from tests.support.kinds import CLAIM, DATABASE, SECRET, condition, database, in_trouble, is_ready
from tests.support.shared import dismiss
from tests.support.system import COMPOSER, System
from tests.support.tenants import Person, member
from tests.support.waiting import eventually

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.apiserver, pytest.mark.postgres]

_ACCOUNTS = {
    "composer": ("fairlead-system", "fairlead-composer"),
    "onprem": ("fairlead-onprem", "fairlead-provider-onprem"),
    "aws": ("fairlead-aws", "fairlead-provider-aws"),
}
ATTACKS = (*attacks_of_tenants.ATTACKS, *attacks_of_processes.PROVIDERS, *attacks_of_processes.COMPOSER)
_REVIEW = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"


@dataclass(frozen=True, slots=True)
class Town:
    """Who attacks, by whose token, and the names of what is attacked."""

    system: System
    tokens: dict[str, Api]
    names: dict[str, str]


async def _child_of(system: System, namespace: str, claim: str) -> str:
    (child,) = await databases_of(system, namespace, claim)
    return str(child["metadata"]["name"])


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def town(running: System, alice: Person, mallory: Person) -> AsyncIterator[Town]:
    """Yield two tenants with a claim each, a resource that is being deleted and paused, Secrets, and all tokens."""
    await running.install_cloud("aws")
    key = SECRET.path("fairlead-aws", "aws-key")
    is_made = await running.api.find(key) is None
    if is_made:
        await running.create(SECRET, SECRET.new("fairlead-aws", "aws-key", stringData={"key": "canary"}))
    await running.create(SECRET, SECRET.new("kube-system", "platform-key", stringData={"key": "canary"}))
    await alice.secret("notes", text="canary")
    await alice.secret("of-an-operator", type_="servicebinding.io/postgresql", password="canary")
    await alice.claim("app")
    await mallory.claim("own")
    await running.until(CLAIM, "alice", "app", is_ready)
    await running.until(CLAIM, "mallory", "own", is_ready)
    await _put_direct_resources(running)
    names = {
        "child": await _child_of(running, "mallory", "own"),
        "neighbour": await _child_of(running, "alice", "app"),
    }
    async with AsyncExitStack() as stack:
        chief = await stack.enter_async_context(member(running, "mallory", "chief", "cluster-admin"))
        maker = await stack.enter_async_context(member(running, "mallory", "maker", "edit", "fairlead-platform-onprem"))
        tokens = {"mallory": mallory.api, "chief": chief.api, "maker": maker.api}
        for name, account in _ACCOUNTS.items():
            kubeconfig = await running.plane.service_account_kubeconfig(*account)
            tokens[name] = await stack.enter_async_context(connect(kubeconfig))
        await stack.enter_async_context(as_installed(running))
        yield Town(running, tokens, names)
    if is_made:
        await running.api.delete(key)
    await running.delete(CLAIM, "alice", "app")
    await dismiss(running)


async def _put_direct_resources(system: System) -> None:
    """Make a Ready resource without a claim, and one that is being deleted and stays, since it is paused."""
    await system.create(DATABASE, database("mallory", "direct"))
    dying = database("mallory", "dying")
    dying["metadata"] |= {"finalizers": ["fairlead.dev/teardown"], "annotations": {"fairlead.dev/paused": "true"}}
    await system.create(DATABASE, dying)
    await system.api.delete(DATABASE.path("mallory", "dying"))
    await system.until(DATABASE, "mallory", "direct", is_ready)


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: f"{attack.number}-{attack.goal.replace(' ', '-')}")
async def test_a_request_is_refused_but_for_what_the_page_says(town: Town, attack: Attack) -> None:
    status = await attack.send(town.tokens[attack.who], town.names)

    assert status in (attack.answer or {0})


_POWERS = {
    first + index: (who, *power)
    for who, first in attacks_of_processes.FIRST_POWER.items()
    for index, power in enumerate(attacks_of_processes.POWERS)
}


@pytest.mark.parametrize("number", _POWERS)
async def test_a_token_gives_no_power_over_the_cluster(town: Town, number: int) -> None:
    who, verb, group, resource, subresource = _POWERS[number]
    attributes = {"verb": verb, "group": group, "resource": resource, "subresource": subresource}
    review = {"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview"}

    answer = await town.tokens[who].create(_REVIEW, {**review, "spec": {"resourceAttributes": attributes}})

    assert answer["status"]["allowed"] is False


async def test_a_provider_acts_in_nobody_elses_name(town: Town) -> None:
    api = town.tokens["onprem"]
    headers = {"Impersonate-User": COMPOSER}

    async with api.session.get(api.server + CLAIM.path("alice"), headers=headers) as answer:
        content: JsonObject = msgspec.json.decode(await answer.read())

    assert (answer.status, content["reason"]) == (403, "Forbidden")
    assert "impersonate" in content["message"]


# Objects that the composer's token may write: what stands behind the policies is the provider's own check.

_TAKEN = {
    "298-external-reference": {"external-name": True, "incarnation": True},
    "336-all-marks": {"external-name": True, "incarnation": True, "account": True},
    "337-all-marks-label-and-claim-name": {"external-name": True, "incarnation": True, "account": True, "label": True},
}


@pytest.mark.parametrize("form", _TAKEN)
async def test_a_database_is_taken_over_by_no_marks_of_the_composers(town: Town, form: str) -> None:
    system, taken, name = town.system, _TAKEN[form], f"thief-{form[:3]}"
    theirs = await system.api.get(DATABASE.path("alice", town.names["neighbour"]))
    values = {f"fairlead.dev/{mark}": theirs["metadata"]["annotations"][f"fairlead.dev/{mark}"]
              for mark in taken if mark != "label"}  # fmt: skip
    thief = database("mallory", name)
    thief["metadata"]["annotations"] = values
    if "label" in taken:
        thief["metadata"]["labels"] = {"fairlead.dev/claim": theirs["metadata"]["labels"]["fairlead.dev/claim"]}
        thief["metadata"]["annotations"] |= {"fairlead.dev/claim-name": "app", "fairlead.dev/resource": "database"}
    before = system.sql.mark()

    await town.tokens["composer"].create(DATABASE.path("mallory"), thief)

    def refused(obj: JsonObject) -> bool:
        return condition(obj, "Synced").get("status") == "False"

    stolen = await system.until(DATABASE, "mallory", name, refused)
    assert condition(stolen, "Ready").get("status") != "True"
    assert "connection" not in stolen["status"]
    assert system.sql.changes(before) == []
    assert await system.logs_in("alice", "app")


# What a tenant may write, and what becomes of it.


async def test_an_identity_that_a_tenant_puts_into_a_status_is_dropped(running: System, mallory: Person) -> None:
    forged = "0f8fad5b-d9cb-469f-a165-70867728950e@alice/app"
    claim = CLAIM.new("mallory", "forged-status", spec={"version": "16", "size": "small"}, status={"identity": forged})

    await mallory.create(CLAIM, claim)

    ready = await running.until(CLAIM, "mallory", "forged-status", is_ready)
    assert ready["status"]["identity"] == f"{ready['metadata']['uid']}@mallory/forged-status"


_COPIED = {
    87: "account",
    88: "brake-released",
    89: "claim-name",
    90: "external-name",
    91: "incarnation",
    92: "key",
    93: "resource",
    94: "teardown",
}


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def marked(town: Town) -> dict[str, str]:
    """Return the annotations of the child of a claim whose tenant wrote a forged value into every mark."""
    claim = CLAIM.new("mallory", "marked", spec={"version": "16", "size": "small"})
    claim["metadata"]["annotations"] = {f"fairlead.dev/{name}": "forged" for name in _COPIED.values()}
    await town.tokens["mallory"].create(CLAIM.path("mallory"), claim)
    await town.system.until(CLAIM, "mallory", "marked", is_ready)
    child = await town.system.api.get(DATABASE.path("mallory", await _child_of(town.system, "mallory", "marked")))
    annotations: dict[str, str] = child["metadata"]["annotations"]
    return annotations


@pytest.mark.parametrize("number", _COPIED, ids=lambda number: f"{number}-{_COPIED[number]}")
async def test_a_mark_of_a_claim_is_not_copied_to_its_child(marked: dict[str, str], number: int) -> None:
    assert marked["fairlead.dev/resource"] == "database"
    assert marked.get(f"fairlead.dev/{_COPIED[number]}") != "forged"


_HOSTILE: dict[int, JsonObject] = {
    96: {"extensions": ["dblink"]},
    97: {"extensions": ["file_fdw"]},
    98: {"parameters": {"role": "fairlead_admin"}},
    99: {"parameters": {"search_path": "public"}},
    100: {"parameters": {"session_preload_libraries": "/lib/evil"}},
    101: {"parameters": {"timezone": "UTC\\'; ALTER ROLE app_a CREATEDB; --"}},
    102: {"parameters": {"timezone": "a\x01\x1b[31mRED\x07\r\nnewline"}},
    103: {"parameters": {"work_mem": "4MB'; ALTER ROLE app_a CREATEDB; --"}},
}


# PostgreSQL takes nearly any text for a time zone; it stays a text of the tenant's own database.
_TIME_ZONES = (101, 102)


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def hostile(running: System, mallory: Person) -> dict[int, JsonObject]:
    """Return claims with hostile settings, each once it was answered."""
    for number, spec in _HOSTILE.items():
        await mallory.claim(f"hostile-{number}", **spec)

    def answered(obj: JsonObject) -> bool:
        return is_ready(obj) or in_trouble("InvalidValue")(obj)

    claims = [running.until(CLAIM, "mallory", f"hostile-{number}", answered) for number in _HOSTILE]
    return dict(zip(_HOSTILE, await asyncio.gather(*claims), strict=True))


@pytest.mark.parametrize("number", _HOSTILE)
async def test_a_hostile_setting_is_refused_in_words(hostile: dict[int, JsonObject], number: int) -> None:
    synced = condition(hostile[number], "Synced")

    (setting,) = _HOSTILE[number].values()
    is_named = synced["status"] == "False" and next(iter(setting)).lower() in synced["message"].lower()
    assert is_named or number in _TIME_ZONES
    assert all(sign.isprintable() for entry in hostile[number]["status"]["conditions"] for sign in entry["message"])


@pytest.mark.usefixtures("hostile")
async def test_a_statement_in_a_setting_gave_no_role_a_right(running: System) -> None:
    rows = await running.server.server.execute(
        "SELECT rolname FROM pg_catalog.pg_roles WHERE (rolsuper OR rolcreatedb OR rolcreaterole OR rolreplication)"
        " AND rolname NOT LIKE 'pg\\_%'"
    )

    assert {str(name) for (name,) in rows} == {"postgres", running.server.username}


async def test_a_database_in_the_administrators_name_is_another_one(town: Town) -> None:
    body = database("mallory", "named", forProvider={"databaseName": "fairlead", "username": "app"})

    await town.tokens["maker"].create(DATABASE.path("mallory"), body)

    made = await town.system.until(DATABASE, "mallory", "named", is_ready)
    assert town.system.server.database == "fairlead"
    assert made["status"]["externalName"].startswith("fairlead_")


async def test_a_resource_without_a_claim_is_served_and_marks_that_are_removed_come_back(town: Town) -> None:
    system, path = town.system, DATABASE.path("mallory", "direct")
    before = (await system.api.get(path))["metadata"]["annotations"]
    references = ("external-name", "incarnation", "account")
    removed = {f"fairlead.dev/{name}": None for name in references}

    await town.tokens["maker"].merge(path, {"metadata": {"annotations": removed}})

    async def back() -> bool:
        annotations = (await system.api.get(path))["metadata"].get("annotations", {})
        return all(annotations.get(name) == before[name] for name in removed)

    await eventually(back, "the marks are back, with their values")


_STORMS = {"79-size": "size", "80-token": "token"}


@pytest.mark.parametrize("form", _STORMS)
async def test_a_storm_of_edits_in_one_namespace_holds_up_nobody_else(town: Town, mallory: Person, form: str) -> None:
    system = town.system

    async def storm() -> None:
        number = 0
        while True:
            number += 1
            size = {"spec": {"size": ("small", "medium")[number % 2]}}
            token = {"metadata": {"annotations": {"fairlead.dev/reconcile-requested-at": str(number)}}}
            await mallory.edit(CLAIM, "own", size if _STORMS[form] == "size" else token)

    raging = asyncio.create_task(storm())
    try:
        await system.edit(CLAIM, "alice", "app", {"spec": {"parameters": {"work_mem": f"{form[:2]}MB"}}})
        await system.until(CLAIM, "alice", "app", is_ready, limit_s=30.0)
        assert not raging.done()
    finally:
        raging.cancel()
        await asyncio.gather(raging, return_exceptions=True)
