"""What a Composition may not say: each bad one gets its reason on the claim, in words, and makes nothing."""

import contextlib
import re
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest
import pytest_asyncio

from tests.support.api import JsonObject
from tests.support.audit import WRITES, Match
from tests.support.grants import allow_composer
from tests.support.kinds import (
    CLAIM,
    COMPOSITION,
    DATABASE,
    EVENT,
    claim,
    composition,
    condition,
    in_trouble,
    is_ready,
    trouble,
)
from tests.support.namespaces import end_namespace
from tests.support.system import System
from tests.support.waiting import eventually

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.apiserver, pytest.mark.postgres]

_MESSAGE_MAX_CHARS = 400
_EVENTS_MAX = 2


@dataclass(frozen=True)
class Answer:
    """A composition and a claim of it, the reason that the claim must show, and words of its message.

    `made` is how many children there are: one where only its provider can know what is wrong.
    """

    reason: str
    says: tuple[str, ...] = ()
    resources: tuple[JsonObject, ...] = ()
    variables: Mapping[str, str] = field(default_factory=dict)
    spec: Mapping[str, Any] = field(default_factory=dict)
    also: frozenset[str] = frozenset()
    made: int = 0


def _resource(name: str, template: JsonObject, **fields: Any) -> JsonObject:
    return {"name": name, "template": template, **fields}


def _database(**fields: Any) -> JsonObject:
    return {
        "apiVersion": "onprem.fairlead.dev/v1alpha1",
        "kind": "PostgresDatabase",
        "spec": {"forProvider": {"databaseName": "app", "username": "app", **fields}},
    }


_CLUSTER_ROLE: JsonObject = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "rules": []}
_LIST: JsonObject = {"apiVersion": "v1", "kind": "List", "items": [_database()]}

_ANSWERED: dict[str, Answer] = {
    "a misspelt field of the claim": Answer(
        "RenderFailed",
        ("sise", "size"),
        (_resource("database", _database(databaseName="{{ claim.spec.sise }}")),),
    ),
    "nothing composed": Answer(
        "EmptyResult", (), (_resource("database", _database(), when="{{ claim.spec.size == 'never' }}"),)
    ),
    "a ClusterRole": Answer("KindNotAllowed", ("ClusterRole",), (_resource("role", _CLUSTER_ROLE),)),
    "a text that doubles thirty times": Answer(
        "RenderLimit",
        (),
        (_resource("database", _database(databaseName="{{ vars.v30 }}")),),
        {"v0": "x" * 1000, **{f"v{n}": f"{{{{ vars.v{n - 1} ~ vars.v{n - 1} }}}}" for n in range(1, 31)}},
    ),
    "a field that the child does not have": Answer(
        "SchemaMismatch", ("conectionLimit",), (_resource("database", _database(conectionLimit=5)),)
    ),
    "a kind that is not installed": Answer(
        "KindNotInstalled",
        ("Gadget",),
        (_resource("gadget", {"apiVersion": "onprem.fairlead.dev/v1alpha1", "kind": "Gadget", "spec": {}}),),
        also=frozenset({"KindNotAllowed"}),
    ),
    "a version that the server does not run": Answer(
        "UnsupportedVersion",
        ("18", "16"),
        (_resource("database", _database(version="{{ claim.spec.version }}")),),
        spec={"version": "18"},
        made=1,
    ),
    "a standby that the server does not have": Answer(
        "InvalidValue",
        ("highAvailability", "offers.highAvailability"),
        (_resource("database", _database(requirements={"highAvailability": "{{ claim.spec.highAvailability }}"})),),
        spec={"highAvailability": True},
        made=1,
    ),
    "a backup that the composition does not restore": Answer(
        "InvalidValue",
        ("restoreFrom", "empty"),
        (_resource("database", _database()),),
        spec={"restoreFrom": {"claim": "another"}},
    ),
    "a deletion policy that the composition lacks": Answer(
        "UnsupportedPolicy",
        ("Snapshot", "Orphan"),
        (_resource("database", _database()),),
        spec={"deletionPolicy": "Snapshot"},
    ),
}


@dataclass(frozen=True)
class Answered:
    """What became of all cases, asked at once: claims by name, events, children, the SQL that changed something."""

    claims: Mapping[str, JsonObject]
    events: list[JsonObject]
    children: list[JsonObject]
    sql: list[str]


def _name(case: str) -> str:
    return re.sub("[^a-z]+", "-", case.lower())


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def answered(running: System) -> AsyncIterator[Answered]:
    """Yield every case's Composition and a claim of it with what is wrong in its status, at rest."""
    namespace, mark = "answered", running.sql.mark()
    await running.namespaced(namespace)
    for name, case in _ANSWERED.items():
        await running.create(COMPOSITION, composition(_name(name), *case.resources, variables=case.variables))
        reference = {"name": _name(name)}
        await running.create(CLAIM, claim(namespace, _name(name), **case.spec, compositionRef=reference))
    claims: dict[str, JsonObject] = {}

    async def answered_all() -> bool:
        objects = await running.api.items(CLAIM.path(namespace))
        claims.update({obj["metadata"]["name"]: obj for obj in objects})
        return all(in_trouble(case.reason, *case.also)(claims[_name(name)]) for name, case in _ANSWERED.items())

    with contextlib.suppress(AssertionError):
        # A missing answer fails in its own test.
        await eventually(answered_all, "every case has its answer", limit_s=60.0)
    await running.at_rest(for_s=3.0)
    yield Answered(
        claims=claims,
        events=await running.api.items(EVENT.path(namespace)),
        children=await running.api.items(DATABASE.path(namespace)),
        sql=running.sql.changes(mark),
    )
    await end_namespace(running.api, namespace)
    for name in _ANSWERED:
        await running.api.delete(COMPOSITION.path("", _name(name)))


@pytest.mark.parametrize("name", _ANSWERED)
async def test_a_bad_composition_is_answered(answered: Answered, name: str) -> None:
    case, obj = _ANSWERED[name], answered.claims[_name(name)]
    assert trouble(obj) in {case.reason, *case.also}, obj["status"]["conditions"]
    message = condition(obj, "Synced")["message"]
    assert condition(obj, "Ready")["status"] == "False"
    assert len(message) <= _MESSAGE_MAX_CHARS
    for words in case.says:
        assert words in message
    events = [event for event in answered.events if event["regarding"]["name"] == _name(name)]
    assert len(events) <= _EVENTS_MAX, [event["reason"] for event in events]
    made = [
        child
        for child in answered.children
        if child["metadata"]["annotations"]["fairlead.dev/claim-name"] == _name(name)
    ]
    assert len(made) == case.made


async def test_a_bad_composition_changes_nothing_on_the_server(answered: Answered) -> None:
    assert answered.sql == []


async def test_a_bad_edit_leaves_the_claims_on_the_last_good_revision(running: System, namespace: str) -> None:
    await allow_composer(running, "", "configmaps")
    name = f"{namespace}-edited"
    async with running.composition(composition(name, _settings("{{ claim.spec.size }}"))):
        await running.create(CLAIM, claim(namespace, "kept", compositionRef={"name": name}))
        await running.until(CLAIM, namespace, "kept", is_ready)
        await running.apply(COMPOSITION, composition(name, _settings("{{ claim.spec. }}")))

        def refused(obj: JsonObject) -> bool:
            return condition(obj, "Ready").get("reason") == "TemplateInvalid"

        await running.until(COMPOSITION, "", name, refused)
        await running.edit(CLAIM, namespace, "kept", {"spec": {"size": "large"}})
        await running.until(CLAIM, namespace, "kept", is_ready)
        (child,) = await running.children(namespace, "kept")
        assert child["data"] == {"size": "large"}
        await running.delete(CLAIM, namespace, "kept")


async def test_a_composition_that_yields_nothing_keeps_the_children(running: System, namespace: str) -> None:
    await allow_composer(running, "", "configmaps")
    settings = {**_settings("{{ claim.spec.size }}"), "when": "{{ claim.spec.size == 'small' }}"}
    async with running.composition(composition(f"{namespace}-emptied", settings)) as name:
        await running.create(CLAIM, claim(namespace, "kept", compositionRef={"name": name}))
        await running.until(CLAIM, namespace, "kept", is_ready)
        before = await running.children(namespace, "kept")
        audit = running.audit()
        await running.edit(CLAIM, namespace, "kept", {"spec": {"size": "large"}})
        await running.until(CLAIM, namespace, "kept", in_trouble("EmptyResult", "HeldDeletion"))
        assert await running.children(namespace, "kept") == before
        assert audit.count(Match(verbs=WRITES, resource="configmaps", namespace=namespace)) == 0


def _settings(size: str) -> JsonObject:
    return _resource("settings", {"apiVersion": "v1", "kind": "ConfigMap", "data": {"size": size}})
