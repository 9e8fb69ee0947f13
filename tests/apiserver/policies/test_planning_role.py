"""A developer plans with the roles that the install has for it, bound as deploy/README.md says."""

from __future__ import annotations

import asyncio
import base64
import os
import shlex
import sys
from pathlib import Path
from typing import Any

import msgspec
from ruamel.yaml import YAML

from devcloud.controlplane.plane import Plane
from tests.support.api import Api, JsonObject
from tests.support.kinds import COMPOSITION, CONFIG_MAP, REVISION, claim, composition

_README = Path(__file__).resolve().parents[3] / "deploy" / "README.md"


async def _plan(kubeconfig: Path, *files: Path) -> tuple[int | None, str]:
    return await _fairlead("plan", *map(str, files), "--kubeconfig", str(kubeconfig))


def _pipeline(name: str) -> dict[str, Any]:
    text = (_README.parents[1] / "examples" / "ci" / f"{name}.yaml").read_text()
    return dict(YAML(typ="safe", pure=True).load(text))


async def _fairlead(*arguments: str) -> tuple[int | None, str]:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", "from fairlead.cli import main; main()"),
        *arguments,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    output, _ = await asyncio.wait_for(process.communicate(), 60)
    return process.returncode, output.decode()


def _documented() -> list[list[str]]:
    lines = (line.strip() for line in _README.read_text().splitlines())
    return [shlex.split(line)[1:] for line in lines if line.startswith("kubectl create") and "fairlead-" in line]


async def _library(api: Api, name: str) -> JsonObject:
    template = {"apiVersion": "v1", "kind": "ConfigMap", "data": {"team": "{{ env.planned.team }}"}}
    whole = composition(name, {"name": "settings", "template": template}, environments=["planned"])
    await api.create(COMPOSITION.path(), whole)
    spec = {"compositionName": name, "revision": 1, "hash": "0" * 64, "composition": whole["spec"]}
    await api.create(REVISION.path(), REVISION.new("", f"{name}-1", spec=spec))
    settings = CONFIG_MAP.new("fairlead-system", "planned", data={"team": "shop"})
    await api.create(CONFIG_MAP.path("fairlead-system"), settings)
    return whole


async def _in_pipeline(script: str, kubeconfig: str, folder: Path) -> tuple[int | None, str, str]:
    """Run a script of a pipeline in a folder; return its exit code, its output and the summary that it wrote."""
    summary = folder / "summary"
    process = await asyncio.create_subprocess_exec(
        *("bash", "-euo", "pipefail", "-c", script),
        cwd=folder,
        env={
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "RUNNER_TEMP": str(folder),
            "GITHUB_STEP_SUMMARY": str(summary),
            "KUBECONFIG_DATABASES": kubeconfig,
        },
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    output, _ = await asyncio.wait_for(process.communicate(), 60)
    return process.returncode, output.decode(), summary.read_text() if summary.exists() else ""


async def test_a_developer_plans_a_claim_with_the_roles_of_the_install(
    base: Plane, api: Api, namespace: str, tmp_path: Path
) -> None:
    whole = await _library(api, namespace)
    run = base.kubectl.run
    await run("create", "serviceaccount", "developer", f"--namespace={namespace}")
    account = f"--serviceaccount={namespace}:developer"
    await run("create", "rolebinding", "developer", "--clusterrole=edit", account, f"--namespace={namespace}")
    kubeconfig = await base.service_account_kubeconfig(namespace, "developer")
    file = tmp_path / "claim.json"
    file.write_bytes(msgspec.json.encode(claim(namespace, "orders", compositionRef={"name": namespace})))

    asked_for = ("offers", "-n", namespace, "--kubeconfig", str(kubeconfig))
    code, text = await _fairlead(*asked_for)
    assert (code, "ask the platform team for the role fairlead-offers" in text) == (1, True), text
    code, text = await _plan(kubeconfig, file)
    assert (code, "ask the platform team for the role fairlead-plan" in text) == (1, True), text

    role, *commands = _documented()
    await run(*(account if part == "--group=developers" else part for part in role))
    code, text = await _fairlead(*asked_for)
    # Where a composer runs on this control plane, too, it has said what is offered.
    assert (code in (0, 2), "ask the platform team" in text) == (True, False), text
    assert len(commands) == 2
    for command in commands:
        await run(*(account if part == "--group=developers" else part for part in command))
    code, text = await _plan(kubeconfig, file)
    assert (code, "+ create settings" in text) == (3, True), text

    (tmp_path / "databases").mkdir()
    file.rename(tmp_path / "databases" / "claim.json")
    (github,) = (step for step in _pipeline("github-actions")["jobs"]["plan"]["steps"] if step.get("name") == "Plan")
    encoded = base64.b64encode(kubeconfig.read_bytes()).decode()
    code, text, summary = await _in_pipeline(github["run"], encoded, tmp_path)
    assert (code, summary.splitlines()[0]) == (0, "### fairlead plan: 1 claim: 1 to create"), text
    code, text, _ = await _in_pipeline(_pipeline("gitlab-ci")["plan"]["script"][-1], str(kubeconfig), tmp_path)
    assert (code, text.splitlines()[0]) == (0, "### fairlead plan: 1 claim: 1 to create")
    arguments = ("apply", str(tmp_path / "plan.json"), "--kubeconfig", str(kubeconfig))
    assert await _fairlead(*arguments) == (0, f"PostgreSQLInstance {namespace}/orders applied\n")

    edited = tmp_path / "composition.json"
    edited.write_bytes(msgspec.json.encode(whole))
    code, text = await _plan(kubeconfig, edited)
    assert (code, "-n NAMESPACE" in text) == (1, True), text
