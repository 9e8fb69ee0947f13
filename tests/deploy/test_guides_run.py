"""The commands of the pages on kind and on EKS, run one after the other by a shell against a real API server.

kubectl, Helm, openssl and the shell are real. What has no machine here is recorded and answers in a word: kind, docker,
the AWS CLI, the images, and what waits for pods.
"""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from devcloud.controlplane import Programs
from devcloud.controlplane import plane as planes
from devcloud.controlplane.plane import Plane
from devcloud.daemons import Lifetime
from tests.support import helm as helm_program
from tests.support.helm import ROOT

pytestmark = [pytest.mark.slow, pytest.mark.apiserver]

_BLOCK = re.compile(r"^```(?P<language>\w*)\n(?P<text>.*?)^```", re.DOTALL | re.MULTILINE)
_RECORD = 'echo "$(basename "$0") $*" >>"$CALLS"\n'
_STUBS = {
    "aws": 'case "$*" in *get-caller-identity*) echo 123456789012;; *) cat >/dev/null </dev/null;; esac\n',
    "docker": 'case "$1" in inspect) echo python@sha256:0;; login) cat >/dev/null;; esac\n',
    "kind": "",
    "make": "",
    "curl": "echo certificates\n",
}
# Pods run on no machine here, and an agent of a cloud makes no account Ready.
_KUBECTL = (
    'case " $* " in *" rollout status "*|" wait "*|" run "*) exit 0;; esac\nexec {kubectl} --kubeconfig {config} "$@"\n'
)


@pytest.fixture(params=["kind", "eks"])
def page(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def empty(tmp_path: Path, control_plane_programs: Programs) -> Iterator[Plane]:
    """Yield a control plane in which nothing of ours is installed."""
    options = planes.Options(folder=tmp_path / "plane", lifetime=Lifetime.WITH_PARENT, durable=False)
    yield asyncio.run(planes.start(options, control_plane_programs))
    asyncio.run(planes.stop(options.folder, grace_s=2.0))


def _script(page: str) -> str:
    """Return the commands of a page; of the last part what needs no pod."""
    text = (ROOT / "docs" / f"{page}.md").read_text(encoding="utf-8")
    commands = ["set -euo pipefail"]
    for block in _BLOCK.finditer(text):
        if block["language"] == "yaml":
            name = block["text"].splitlines()[0].removeprefix("# ")
            commands.append(f"cat >{name} <<'FILE'\n{block['text']}FILE")
        else:
            # What is behind it reads what only a composer at work writes.
            commands.append(block["text"].partition("uri=")[0])
    return "\n".join(commands)


def _programs(folder: Path, plane: Plane) -> None:
    """Make the programs that a page calls and that are not on every machine."""
    folder.mkdir()
    kubectl = _KUBECTL.format(kubectl=plane.programs.kubectl, config=plane.kubeconfig)
    helm = f'exec {helm_program.program()} --kubeconfig {plane.kubeconfig} "$@"\n'
    for name, text in {**_STUBS, "kubectl": kubectl, "helm": helm}.items():
        (folder / name).write_text(f"#!/bin/sh\n{_RECORD}{text}")
        (folder / name).chmod(0o700)


async def test_every_command_of_the_page_is_carried_out(page: str, empty: Plane, tmp_path: Path) -> None:
    checkout, programs, calls = tmp_path / "checkout", tmp_path / "programs", tmp_path / "calls"
    checkout.mkdir()
    for name in ("deploy", "compositions", "examples"):
        (checkout / name).symlink_to(ROOT / name)
    await asyncio.to_thread(_programs, programs, empty)
    environment = {"PATH": f"{programs}:{os.environ['PATH']}", "HOME": str(tmp_path), "CALLS": str(calls)}

    ended = await asyncio.to_thread(
        subprocess.run,
        ["bash", "-c", _script(page)],
        cwd=checkout,
        env=environment,
        capture_output=True,
        text=True,
        timeout=400,
    )

    assert ended.returncode == 0, ended.stdout[-1500:] + ended.stderr[-3000:]
    called = {line.partition(" ")[0] for line in calls.read_text().splitlines()}
    assert called >= ({"kind", "docker", "make"} if page == "kind" else {"aws", "docker", "make", "curl"})
    assert await _names(empty, "postgresqlinstances", "--namespace=shop") == ["orders"]
    if page == "kind":
        assert await _names(empty, "providerconfigs.onprem.fairlead.dev") == ["default"]
        assert await _names(empty, "deployments", "--namespace=fairlead-onprem") == ["fairlead-provider-onprem"]
        assert {"pg1-admin", "pg1-ca"} <= set(await _names(empty, "secrets", "--namespace=fairlead-onprem"))
    else:
        assert await _names(empty, "providerconfigs.aws.fairlead.dev") == ["default"]
        assert await _names(empty, "deployments", "--namespace=fairlead-aws") == ["fairlead-provider-aws"]
        assert len([line for line in calls.read_text().splitlines() if "iam attach-role-policy" in line]) == 2


async def _names(plane: Plane, *query: str) -> list[str]:
    answer = msgspec.json.decode(await plane.kubectl.run("get", *query, "--output=json"))
    return sorted(item["metadata"]["name"] for item in answer["items"])
