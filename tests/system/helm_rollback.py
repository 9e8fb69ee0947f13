"""`helm upgrade` and `helm rollback` by Helm itself, while RDS carries out what the other version asked for."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path

import pytest

from tests.support import helm
from tests.support.api import JsonObject
from tests.support.aws import AWS_CONFIG, RDS_INSTANCE, Aws
from tests.support.kinds import CLAIM, CRD, Kind, claim, is_ready
from tests.support.simulated_cloud import DURATIONS
from tests.support.waiting import eventually

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.apiserver, pytest.mark.rds]

_RDS_CRD = CRD.path("", f"{RDS_INSTANCE.plural}.{RDS_INSTANCE.group}")
_DEPLOYMENT = Kind("apps", "v1", "Deployment", "deployments")
_PROVIDER = _DEPLOYMENT.path("fairlead-aws", "fairlead-provider-aws")
_LIMIT_S = 240.0
_SLOW = 1.0  # As long as in RDS: minutes.


async def test_a_rollback_while_the_cloud_is_at_work_doubles_and_loses_nothing(aws: Aws) -> None:
    system = aws.system
    await _helm(aws, "install", helm.CHART, "--create-namespace", "--take-ownership")
    await system.start_composer(name="composer-1")
    former = await aws.start_provider(name="provider-1")
    await system.until(AWS_CONFIG, "", "default", is_ready)
    async with aws.namespace() as namespace:
        await system.create(CLAIM, claim(namespace, "living"))
        await system.until(CLAIM, namespace, "living", is_ready, limit_s=_LIMIT_S)
        living = await _identifier(aws, namespace, "living")
        before = await aws.instance(living)

        await _helm(aws, "upgrade", await asyncio.to_thread(_next_chart, system.folder / "next"))
        assert "tier" in _fields(await system.api.get(_RDS_CRD))
        assert await former.terminate() == 0
        newer = await aws.start_provider(name="provider-2")
        since = await aws.mark()
        await aws.clock(durations=_SLOW)
        await system.create(CLAIM, claim(namespace, "coming", deletionPolicy="Delete"))
        coming = await _until_creating(aws, namespace)
        await system.edit(CLAIM, namespace, "living", {"spec": {"storageGiB": 100}})
        await aws.until(living, lambda instance: instance["DBInstanceStatus"] != "available")

        await _helm(aws, "rollback")
        assert "tier" not in _fields(await system.api.get(_RDS_CRD))
        (container,) = (await system.api.get(_PROVIDER))["spec"]["template"]["spec"]["containers"]
        assert container["image"].endswith(":0.1.0")
        await newer.kill9()
        await aws.start_provider(name="provider-3")
        await aws.clock(durations=DURATIONS, advance_s=3600)

        for name in ("living", "coming"):
            await system.until(CLAIM, namespace, name, is_ready, limit_s=_LIMIT_S)
            assert await system.logs_in(namespace, name)
        after = await aws.instance(living)
        assert before is not None
        assert after is not None
        assert after["DbiResourceId"] == before["DbiResourceId"]
        assert after["AllocatedStorage"] == 100
        calls = await aws.changes(since)
        created = [call["params"] for call in calls if call["action"] == "CreateDBInstance"]
        assert [parameters["DBInstanceIdentifier"] for parameters in created] == [coming]
        # Until RDS shows that it works on it, the same size is asked for again; nothing else ever is.
        modified = [call["params"] for call in calls if call["action"] == "ModifyDBInstance"]
        assert {(of["DBInstanceIdentifier"], of["AllocatedStorage"]) for of in modified} == {(living, 100)}
        assert sorted(instance["DBInstanceIdentifier"] for instance in await aws.instances()) == sorted(
            [living, coming]
        )


async def _helm(aws: Aws, command: str, *arguments: str | Path) -> None:
    """Run a command of Helm about the release against the rig's API server, AWS and on-prem switched on."""
    values = () if command == "rollback" else ("--set=providers.aws.enabled=true,providers.onprem.enabled=true",)
    plane = ("--kubeconfig", aws.system.plane.kubeconfig, f"--namespace={helm.RELEASE}")
    program = await asyncio.to_thread(helm.program)
    ended = await asyncio.to_thread(helm.run, program, command, "fairlead", *arguments, *plane, *values)
    assert ended.returncode == 0, ended.stderr


def _next_chart(folder: Path) -> Path:
    """Copy the chart as a next version: another image, and one more field of an RDSInstance."""
    shutil.copytree(helm.CHART, folder)
    chart = folder / "Chart.yaml"
    chart.write_text(chart.read_text().replace("0.1.0", "0.2.0"))
    crd = folder / "files" / "crds" / "aws.fairlead.dev_rdsinstances.yaml"
    text = crd.read_text(encoding="utf-8")
    head, place, rest = text.partition("              forProvider:\n")
    assert place
    crd.write_text(f"{head}              tier:\n                type: string\n{place}{rest}")
    return folder


def _fields(crd: JsonObject) -> set[str]:
    return set(crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"])


async def _identifier(aws: Aws, namespace: str, name: str) -> str:
    return str((await aws.instance_of(namespace, name))["status"]["externalName"])


async def _until_creating(aws: Aws, namespace: str) -> str:
    """Wait until RDS creates the instance of the claim `coming`; return its identifier."""

    async def is_creating() -> str:
        children = [
            child for child in await aws.system.children(namespace, "coming") if child["kind"] == RDS_INSTANCE.kind
        ]
        name = children[0].get("status", {}).get("externalName", "") if children else ""
        instance = await aws.instance(name) if name else None
        return name if instance is not None and instance["DBInstanceStatus"] == "creating" else ""

    return await eventually(is_creating, "RDS creates the instance", limit_s=_LIMIT_S)
