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
from tests.support.kinds import CLAIM, COMPOSITION, claim, condition, in_trouble, is_ready
from tests.support.operators.played import ACK, value_at
from tests.support.system import COMPOSER, System
from tests.support.waiting import eventually

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.apiserver, pytest.mark.postgres]

_CONSENT = re.compile(r"fairlead\.dev/consent=(\S+?)`")


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


async def test_a_claim_is_served_edited_rotated_held_lost_made_again_and_left(ack: Stage) -> None:
    system, api, namespace, name = ack.system, ack.system.api, ack.namespace, "orders"
    await system.create(CLAIM, claim(namespace, name, **LOGIN))
    for step in ACK.rise[:-1]:
        await ACK.play(api, namespace, name, step)
        assert condition(await api.get(CLAIM.path(namespace, name)), "Ready").get("status") != "True"
    await ACK.play(api, namespace, name, ACK.rise[-1])
    await ack.until_ready(name)
    source, first = await ACK.child(api, namespace, name), await ack.binding(name)
    assert first.items() >= ACK.connection(source["metadata"]["name"], namespace).items()
    assert list((await ack.passwords(name)).values()) == [first["password"]]

    await _is_edited_and_rotated(ack, name)
    second = await ack.binding(name)
    assert second["password"] != first["password"]
    assert list((await ack.passwords(name)).values()) == [second["password"]]

    await _is_held_lost_and_made_again(ack, name)
    await system.delete(CLAIM, namespace, name)
    (left,) = await ACK.children(api, namespace, name)
    assert "deletionTimestamp" not in left["metadata"]
    assert "fairlead.dev/claim" not in (left["metadata"].get("labels") or {})
    assert "fairlead.dev/teardown" not in left["metadata"].get("finalizers", [])
    await api.delete(ACK.source.path(namespace, left["metadata"]["name"]))


async def _is_edited_and_rotated(stage: Stage, name: str) -> None:
    """Have the storage grown and another password published."""
    api, namespace, (path, expected) = stage.system.api, stage.namespace, ACK.storage
    await stage.system.edit(CLAIM, namespace, name, {"spec": {"storageGiB": 40}})

    async def edited() -> bool:
        return bool(value_at(await ACK.child(api, namespace, name, ACK.kinds[0]), path) == expected)

    await eventually(edited, f"{'.'.join(path)} is {expected}", limit_s=LIMIT_S)
    await ACK.bring_up(api, namespace, name)
    await stage.until_ready(name)
    await stage.rotate(name, "next")

    async def only_one_is_left() -> bool:
        left = await stage.passwords(name)
        return list(left.values()) == [(await stage.binding(name))["password"]]

    await eventually(only_one_is_left, "the password before is deleted", limit_s=LIMIT_S)
    await stage.until_ready(name)


async def _is_held_lost_and_made_again(stage: Stage, name: str) -> None:
    """Have the object with the data deleted, forced away, and made again by the consent that the claim names."""
    system, api, namespace = stage.system, stage.system.api, stage.namespace
    source = await ACK.child(api, namespace, name)
    path, audit = ACK.source.path(namespace, source["metadata"]["name"]), system.audit()
    await api.delete(path)
    held = await stage.until_in_trouble(name, "HeldDeletion")
    assert condition(held, "Ready")["status"] == "False"
    await stage.passed(name)
    assert (await api.get(path))["metadata"]["uid"] == source["metadata"]["uid"]
    await api.merge(path, {"metadata": {"finalizers": []}})
    lost = await stage.until_in_trouble(name, "DatabaseLost")
    await stage.passed(name)
    assert await ACK.children(api, namespace, name) == []
    written = audit.requests(Match(user=COMPOSER, verbs=WRITES, resource=ACK.source.plural, namespace=namespace))
    assert [request.verb for request in written if request.verb == "create"] == []

    consent = _CONSENT.findall(condition(lost, "Stalled")["message"])[-1].strip("'")
    await system.edit(CLAIM, namespace, name, {"metadata": {"annotations": {"fairlead.dev/consent": consent}}})
    await ACK.bring_up(api, namespace, name)
    await stage.until_ready(name)
    assert (await ACK.child(api, namespace, name))["metadata"]["uid"] != source["metadata"]["uid"]


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
