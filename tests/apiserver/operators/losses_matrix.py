"""Each way to lose another operator's database: it is never replaced by an empty one before a consent.

What the composer made is read in the audit log: an object of another uid would be another, empty database.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from tests.apiserver.operators.conftest import LIMIT_S, LOGIN, Stage, ephemeral, passed
from tests.support.api import ApiError, JsonObject
from tests.support.audit import WRITES, AuditLog, Match
from tests.support.kinds import CLAIM, CONFIG_MAP, CRD, NAMESPACE, SECRET, Kind, claim, condition, in_trouble, is_ready
from tests.support.operators.played import SCHEDULE, crds
from tests.support.processes import running_program
from tests.support.system import COMPOSER, System
from tests.support.waiting import eventually

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.apiserver, pytest.mark.postgres]

_TYPED = re.compile(r"`kubectl annotate [^`]* (?P<name>fairlead\.dev/(?:consent|adopt))=(?P<value>[^`]+)`")
_OF_THE_CLUSTER = {"kube-root-ca.crt"}


def _kinds_with_data(stage: Stage) -> list[Kind]:
    return [kind for kind in stage.operator.kinds if kind != SCHEDULE]


@asynccontextmanager
async def _composer_away(system: System) -> AsyncIterator[None]:
    """Have no composer for the length of a block, and another process of it after that."""
    await running_program(system.started, "composer").kill9()
    yield
    await system.start_composer("--no-elect", "--resync", "3600")


async def _force_away(system: System, path: str) -> None:
    """Delete an object and whatever holds it."""
    await system.api.delete(path)
    try:
        await system.api.merge(path, {"metadata": {"finalizers": None}})
    except ApiError as error:
        if error.status != 404:
            raise
    await system.api.until_gone(path, limit_s=LIMIT_S)


def _bare(obj: JsonObject, kind: Kind) -> JsonObject:
    """Return an object as a backup tool creates it again: without status, owners and finalizers."""
    kept = {"name", "namespace", "labels", "annotations"}
    meta = {key: value for key, value in obj["metadata"].items() if key in kept}
    whole = {key: value for key, value in obj.items() if key != "status"}
    return {**whole, "apiVersion": kind.api_version, "kind": kind.kind, "metadata": meta}


def _made(audit: AuditLog, stage: Stage, namespace: str) -> list[str]:
    """Return the plurals of the objects with data that the composer has created since `audit` began."""
    plurals = {kind.plural for kind in _kinds_with_data(stage)}
    written = audit.requests(Match(user=COMPOSER, verbs=WRITES, namespace=namespace))
    return sorted(request.resource for request in written if request.code == 201 and request.resource in plurals)


async def _up(stage: Stage, namespace: str, name: str) -> None:
    """Have the operator bring up what is made of a claim's objects, one after the other, until the claim is Ready.

    To each of them that is lost a consent is given, as the claim names it.
    """
    operator, system = stage.operator, stage.system

    async def is_up() -> bool:
        if in_trouble("DatabaseLost")(await passed(system, namespace, name)):
            await _consent(stage, namespace, name)
            return False
        await operator.bring_up_what_is_there(system.api, namespace, name)
        return is_ready(await passed(system, namespace, name))

    await eventually(is_up, f"claim {name} is Ready", limit_s=LIMIT_S)


async def _ready(stage: Stage, namespace: str, *names: str) -> None:
    for name in names:
        await stage.system.create(CLAIM, claim(namespace, name, **LOGIN))
    for name in names:
        await stage.operator.bring_up(stage.system.api, namespace, name)
    for name in names:
        await stage.system.until(CLAIM, namespace, name, is_ready, limit_s=LIMIT_S)


async def _consent(stage: Stage, namespace: str, name: str) -> None:
    """Type the last command that the claim's condition names."""
    held = await stage.system.api.get(CLAIM.path(namespace, name))
    *_, typed = _TYPED.finditer(condition(held, "Stalled")["message"])
    annotation = {typed["name"]: typed["value"].strip("'")}
    await stage.system.edit(CLAIM, namespace, name, {"metadata": {"annotations": annotation}})


async def _until_lost(stage: Stage, namespace: str, name: str, kind: Kind) -> None:
    """Wait until a claim says that its object of a kind is lost."""

    def is_lost(obj: JsonObject) -> bool:
        return in_trouble("DatabaseLost")(obj) and f"{kind.kind} " in condition(obj, "Stalled").get("message", "")

    lost = await stage.system.until(CLAIM, namespace, name, is_lost, limit_s=LIMIT_S)
    assert condition(lost, "Ready")["status"] == "False"


async def test_what_is_deleted_by_hand_while_the_composer_is_away_is_made_again_by_consent_alone(stage: Stage) -> None:
    operator, system = stage.operator, stage.system
    lost = {f"lost-{kind.plural}": kind for kind in _kinds_with_data(stage)}
    async with ephemeral(stage) as namespace:
        await _ready(stage, namespace, *lost)
        audit = system.audit()
        async with _composer_away(system):
            for name, kind in lost.items():
                child = await operator.child(system.api, namespace, name, kind)
                await _force_away(system, kind.path(namespace, child["metadata"]["name"]))

        for name, kind in lost.items():
            await _until_lost(stage, namespace, name, kind)
            await passed(system, namespace, name)
        assert _made(audit, stage, namespace) == []

        for name in lost:
            await _up(stage, namespace, name)
        assert _made(audit, stage, namespace) == sorted(kind.plural for kind in lost.values())


async def test_a_restored_claim_takes_what_the_backup_has_and_gets_no_empty_database_for_what_it_lacks(
    stage: Stage,
) -> None:
    operator, system = stage.operator, stage.system
    source, names = operator.source, ("whole", "late", "lacking")
    async with ephemeral(stage) as namespace:
        await _ready(stage, namespace, *names)
        before = {name: await system.binding(namespace, name) for name in names}
        audit = system.audit()
        async with _composer_away(system):
            saved = await _saved(stage, namespace)
            for kind, obj in saved:
                await _force_away(system, kind.path(namespace, obj["metadata"]["name"]))
            await system.api.delete(NAMESPACE.path("", namespace))
            await system.api.until_gone(NAMESPACE.path("", namespace), limit_s=LIMIT_S)
            await system.namespaced(namespace, cloud=operator.name)
            sources = {_claim_of(obj): obj for kind, obj in saved if kind == source}
            for kind, obj in saved:
                if kind != source or _claim_of(obj) == "whole":
                    await _restore(system, kind, obj)

        for name in ("late", "lacking"):
            await _until_lost(stage, namespace, name, source)
        await _restore(system, source, sources["late"])
        for name in ("whole", "late"):
            await _up(stage, namespace, name)
            assert await system.binding(namespace, name) == before[name]
        await passed(system, namespace, "lacking")
        assert _made(audit, stage, namespace) == []

        await _up(stage, namespace, "lacking")
        assert _made(audit, stage, namespace) == [source.plural]

        # Restored objects with data go with an ephemeral namespace as any others do.
        path = NAMESPACE.path("", namespace)
        await system.api.merge(path, {"metadata": {"labels": {"fairlead.dev/ephemeral": "true"}}})
        await system.api.delete(path)
        await system.api.until_gone(path, limit_s=LIMIT_S)


async def _saved(stage: Stage, namespace: str) -> list[tuple[Kind, JsonObject]]:
    """Return what a backup has of a namespace, claims last."""
    kinds = (SECRET, CONFIG_MAP, *stage.operator.kinds, CLAIM)
    objects = [(kind, obj) for kind in kinds for obj in await stage.system.api.items(kind.path(namespace))]
    return [(kind, obj) for kind, obj in objects if obj["metadata"]["name"] not in _OF_THE_CLUSTER]


def _claim_of(obj: JsonObject) -> str:
    return str(obj["metadata"]["annotations"]["fairlead.dev/claim-name"])


async def _restore(system: System, kind: Kind, obj: JsonObject) -> None:
    path = kind.path(obj["metadata"]["namespace"])
    await system.api.create(path, _bare(obj, kind), fieldManager="velero-server")


async def test_an_uninstalled_operator_takes_no_database_along_and_its_return_brings_no_empty_one(
    stage: Stage,
) -> None:
    operator, system = stage.operator, stage.system
    async with ephemeral(stage) as namespace:
        await _ready(stage, namespace, "orders")
        source = await operator.child(system.api, namespace, "orders")
        paths = [CRD.path("", crd["metadata"]["name"]) for crd in crds(operator.name)]
        definitions = [_bare(await system.api.get(path), CRD) for path in paths]
        audit = system.audit()

        for path in paths:
            await system.api.delete(path)

        held = await system.until(CLAIM, namespace, "orders", in_trouble("HeldDeletion"), limit_s=LIMIT_S)
        assert condition(held, "Ready")["status"] == "False"
        await passed(system, namespace, "orders")
        left = await system.api.get(operator.source.path(namespace, source["metadata"]["name"]))
        assert left["metadata"]["uid"] == source["metadata"]["uid"]
        assert left["metadata"]["finalizers"] == ["fairlead.dev/teardown"]

        await _force_all_away(stage)
        for path in paths:
            await system.api.until_gone(path, limit_s=LIMIT_S)
        await system.until(CLAIM, namespace, "orders", in_trouble("KindNotInstalled"), limit_s=LIMIT_S)
        unserved = await passed(system, namespace, "orders")
        assert condition(unserved, "Ready")["status"] != "True"

        for definition in definitions:
            await system.create(CRD, definition)
        for kind in operator.kinds:
            await system.api.until_served(kind.path())
        await system.until(CLAIM, namespace, "orders", in_trouble("DatabaseLost"), limit_s=LIMIT_S)
        lost = await passed(system, namespace, "orders")
        assert condition(lost, "Ready")["status"] == "False"
        assert _made(audit, stage, namespace) == []

        await _up(stage, namespace, "orders")
        assert _made(audit, stage, namespace) == sorted(kind.plural for kind in _kinds_with_data(stage))


async def _force_all_away(stage: Stage) -> None:
    """Remove the finalizers of all objects of an operator, which are being deleted with its CRDs."""
    for kind in stage.operator.kinds:

        async def none_left(kind: Kind = kind) -> bool:
            try:
                items = await stage.system.api.items(kind.path())
                for obj in items:
                    meta = obj["metadata"]
                    await stage.system.api.merge(
                        kind.path(meta["namespace"], meta["name"]), {"metadata": {"finalizers": None}}
                    )
            except ApiError as error:
                if error.status != 404:
                    raise
                return True
            return not items

        await eventually(none_left, f"no {kind.kind} is left", limit_s=LIMIT_S)
