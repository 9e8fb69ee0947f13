"""A claim through one other operator's resources, from its first login to its end; `make operators` has all of them."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from ruamel.yaml import YAML

from fairlead.cli import run
from tests.apiserver.operators.conftest import COMPOSITIONS, LIMIT_S, LOGIN, Stage, install
from tests.support import yaml_texts
from tests.support.audit import WRITES, Match
from tests.support.kinds import CLAIM, COMPOSITION, SECRET, claim, condition, in_trouble, is_ready
from tests.support.operators.played import ACK, CNPG, SCHEDULE, ZALANDO, Step, cnpg_login, value_at, zalando_login
from tests.support.system import COMPOSER, System, decoded
from tests.support.waiting import eventually

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.apiserver, pytest.mark.postgres]

_NAME = "orders"
_CONSENT = re.compile(r"fairlead\.dev/consent=(\S+?)`")
_FOLLOWS = {"password", "type", "uri", "jdbc-url"}
_NEXT_LOGIN = {CNPG.name: cnpg_login, ZALANDO.name: zalando_login}


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def ack(running: System) -> AsyncIterator[Stage]:
    """Yield ACK's controller, which wants to be given a password, beside the composer."""
    await install(running, ACK, {})
    await running.until(COMPOSITION, "", f"postgres-{ACK.name}", is_ready, limit_s=LIMIT_S)
    yield Stage(running, ACK)
    await running.api.delete(COMPOSITION.path("", f"postgres-{ACK.name}"))


async def test_a_composition_names_no_secret_of_another_namespace(ack: Stage) -> None:
    composition = yaml_texts.load(COMPOSITIONS / f"postgres-{ACK.name}.yaml")
    composition["metadata"]["name"] = "thief"
    composition["spec"]["resources"][0]["template"]["spec"]["masterUserPassword"]["namespace"] = "kube-system"
    await ack.system.create(COMPOSITION, composition)

    refused = await ack.system.until(COMPOSITION, "", "thief", in_trouble("InvalidValue"), limit_s=LIMIT_S)

    assert "masterUserPassword.namespace" in condition(refused, "Ready")["message"]
    await ack.system.api.delete(COMPOSITION.path("", "thief"))


async def test_a_claim_is_served_edited_rotated_held_lost_made_again_left_and_taken_over(ack: Stage) -> None:
    await have_its_life(ack)
    for obj in await ACK.children(ack.system.api, ack.namespace, _NAME):
        await ack.system.delete(CLAIM, ack.namespace, _NAME)
        await ack.system.api.delete(ACK.source.path(ack.namespace, obj["metadata"]["name"]))


async def have_its_life(stage: Stage) -> None:
    """Have a claim of an operator's Composition served, and all that may happen to it; at the end it lives."""
    await _is_served(stage)
    await _is_edited(stage)
    await _is_rotated(stage)
    await _is_held_lost_and_made_again(stage)
    await _is_left(stage)
    await _is_taken_over(stage)


async def _is_served(stage: Stage) -> None:
    """Have it Ready when its operator says so and not before; its Secret has just these keys."""
    operator, api, namespace = stage.operator, stage.system.api, stage.namespace
    await stage.system.create(CLAIM, claim(namespace, _NAME, **LOGIN))
    for step in operator.rise[:-1]:
        await operator.play(api, namespace, _NAME, step)
        seen = await api.get(CLAIM.path(namespace, _NAME))
        assert condition(seen, "Ready").get("status") != "True"
        assert "binding" not in seen.get("status", {})
    await operator.play(api, namespace, _NAME, operator.rise[-1])
    assert (await stage.until_ready(_NAME))["status"]["endpoint"]
    source, binding = await operator.child(api, namespace, _NAME), await stage.binding(_NAME)
    plain = {key: value for key, value in binding.items() if key not in _FOLLOWS}
    assert plain == operator.connection(source["metadata"]["name"], namespace)
    assert binding.keys() - plain.keys() == _FOLLOWS
    await _has_one_password(stage)


async def _has_one_password(stage: Stage) -> None:
    """Wait until the one password that the composer made, if it makes any, is the one that is published."""
    count = 1 if stage.operator.password_ref else 0

    async def only_one_is_left() -> bool:
        left = await stage.passwords(_NAME)
        return list(left.values()) == [(await stage.binding(_NAME))["password"]] * count

    await eventually(only_one_is_left, "the password before is deleted", limit_s=LIMIT_S)


async def _is_edited(stage: Stage) -> None:
    api, namespace, (path, expected) = stage.system.api, stage.namespace, stage.operator.storage
    await stage.system.edit(CLAIM, namespace, _NAME, {"spec": {"storageGiB": 40}})

    async def edited() -> bool:
        return bool(value_at(await stage.operator.child(api, namespace, _NAME), path) == expected)

    await eventually(edited, f"{'.'.join(path)} is {expected}", limit_s=LIMIT_S)
    await stage.operator.bring_up(api, namespace, _NAME)
    await stage.until_ready(_NAME)


async def _is_rotated(stage: Stage) -> None:
    """Have another password published, of the operator's or of the composer's making; one is left."""
    operator, before = stage.operator, await stage.binding(_NAME)
    if operator.password_ref:
        await stage.rotate(_NAME, "next")
    else:
        step = Step(None, secret=_NEXT_LOGIN[operator.name]("second"))
        await operator.play(stage.system.api, stage.namespace, _NAME, step)

    async def is_another() -> bool:
        return (await stage.binding(_NAME))["password"] != before["password"]

    await eventually(is_another, "the connection Secret has the new password", limit_s=LIMIT_S)
    await _has_one_password(stage)
    await stage.until_ready(_NAME)


async def _is_held_lost_and_made_again(stage: Stage) -> None:
    """Have the object with the data deleted, forced away, and made again by the consent that the claim names."""
    operator, system, api, namespace = stage.operator, stage.system, stage.system.api, stage.namespace
    source = await operator.child(api, namespace, _NAME)
    path, audit = operator.source.path(namespace, source["metadata"]["name"]), system.audit()
    await api.delete(path)
    held = await stage.until_in_trouble(_NAME, "HeldDeletion")
    assert condition(held, "Ready")["status"] == "False"
    await stage.passed(_NAME)
    assert (await api.get(path))["metadata"]["uid"] == source["metadata"]["uid"]
    await api.merge(path, {"metadata": {"finalizers": []}})
    lost = await stage.until_in_trouble(_NAME, "DatabaseLost")
    assert condition(await stage.passed(_NAME), "Ready")["status"] == "False"
    assert await operator.children(api, namespace, _NAME) == []
    written = audit.requests(Match(user=COMPOSER, verbs=WRITES, resource=operator.source.plural, namespace=namespace))
    assert [request.verb for request in written if request.verb == "create"] == []

    consent = _CONSENT.findall(condition(lost, "Stalled")["message"])[-1].strip("'")
    await system.edit(CLAIM, namespace, _NAME, {"metadata": {"annotations": {"fairlead.dev/consent": consent}}})
    await operator.bring_up(api, namespace, _NAME)
    await stage.until_ready(_NAME)
    assert (await operator.child(api, namespace, _NAME))["metadata"]["uid"] != source["metadata"]["uid"]


async def _is_left(stage: Stage) -> None:
    """Have the claim deleted under Orphan: objects, passwords and the Secret stay, and are nobody's."""
    operator, api, namespace, binding = stage.operator, stage.system.api, stage.namespace, await stage.binding(_NAME)
    await stage.system.delete(CLAIM, namespace, _NAME)
    for kind in operator.kinds:
        # What holds no data is collected with its claim.
        left = [obj["metadata"] for obj in await operator.children(api, namespace, _NAME, kind)]
        kept = [meta for meta in left if not {"deletionTimestamp", "ownerReferences"} & meta.keys()]
        assert len(kept) == (kind != SCHEDULE)
    (source,) = await operator.children(api, namespace, _NAME)
    assert "fairlead.dev/claim" not in (source["metadata"].get("labels") or {})
    assert "fairlead.dev/teardown" not in source["metadata"].get("finalizers", [])
    assert decoded(await api.get(SECRET.path(namespace, f"{_NAME}-connection"))) == binding
    assert len(await stage.passwords(_NAME)) == (1 if operator.password_ref else 0)


async def _is_taken_over(stage: Stage) -> None:
    """Have a claim of the same name report what its former self left, and take it over by consent."""
    operator, api, namespace = stage.operator, stage.system.api, stage.namespace
    (source,) = await operator.children(api, namespace, _NAME)
    # It is the former claim's, and would be nobody else's.
    await api.delete(SECRET.path(namespace, f"{_NAME}-connection"))
    await stage.system.create(CLAIM, claim(namespace, _NAME, **LOGIN))
    held = await stage.until_in_trouble(_NAME, "PredecessorFound")
    await stage.passed(_NAME)
    assert await operator.children(api, namespace, _NAME) == [source]
    uids = re.search(r"fairlead\.dev/adopt=([0-9a-f,-]+)`", condition(held, "Stalled")["message"])
    assert uids
    await api.merge(CLAIM.path(namespace, _NAME), {"metadata": {"annotations": {"fairlead.dev/adopt": uids[1]}}})

    async def is_up() -> bool:
        await operator.bring_up_what_is_there(api, namespace, _NAME)
        return is_ready(await stage.passed(_NAME))

    await eventually(is_up, "the claim is Ready", limit_s=LIMIT_S)
    (taken,) = await operator.children(api, namespace, _NAME)
    assert taken["metadata"]["uid"] == source["metadata"]["uid"]
    assert "fairlead.dev/claim" in taken["metadata"]["labels"]
    assert taken["metadata"]["finalizers"] == ["fairlead.dev/teardown"]


async def _import(ack: Stage, capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    command = ["import", *arguments, "-n", ack.namespace, "--kubeconfig", str(ack.system.plane.kubeconfig)]
    code = await asyncio.to_thread(run, command)
    captured = capsys.readouterr()
    assert code == 0, captured.err
    return captured.out


async def test_an_object_that_a_person_made_becomes_a_claims_child_by_consent(
    ack: Stage, capsys: pytest.CaptureFixture[str]
) -> None:
    system, api, namespace = ack.system, ack.system.api, ack.namespace
    await ack.ready_claim("donor")
    donor = await ACK.child(api, namespace, "donor")
    spec = {**donor["spec"], "dbInstanceIdentifier": "of-before", "allocatedStorage": 77, "dbName": "before"}
    made = await system.create(ACK.kinds[0], {**{name: donor[name] for name in ("apiVersion", "kind")}, "spec": spec,
                                              "metadata": {"name": "of-before", "namespace": namespace}})  # fmt: skip
    assert f"DBInstance {namespace}/of-before" in await _import(ack, capsys, "find", "--operators")
    text = await _import(
        ack, capsys, "write", "dbinstance/of-before", "--claim", "--composition", f"postgres-{ACK.name}"
    )
    heir = YAML(typ="safe", pure=True).load(text)
    await system.create(CLAIM, heir)

    await ack.until_in_trouble("of-before", "PredecessorFound")
    await ack.passed("of-before")
    assert await ACK.children(api, namespace, "of-before") == []
    shown = await _import(ack, capsys, "preview", "pgi/of-before")
    (agreed,) = re.findall(r"--agreed (\S+)", shown)
    assert "DBInstance of-before spec.masterUserPassword.name: donor-password-admin-" in shown
    assert (
        await _import(ack, capsys, "adopt", "pgi/of-before", "--agreed", agreed)
        == "postgresqlinstance/of-before: adopted\n"
    )

    (child,) = await ACK.children(api, namespace, "of-before")
    assert child["metadata"]["uid"] == made["metadata"]["uid"]
    assert (heir["spec"]["storageGiB"], heir["spec"]["databaseName"]) == (77, "before")
