"""The chart on a real API server: the commands of the pages on kind and on EKS, and what each process may do then.

kubectl, Helm, openssl and the shell are real. What has no machine here is recorded and answers in a word: kind, docker,
the AWS CLI, the images, and what waits for pods. Rights are the reviewed lists of `deploy/rights`: `kubectl auth can-i
--list` asks for the rules that hold in a namespace (SelfSubjectRulesReview): those of every role that is bound there,
whoever bound it, and of what the cluster grants to everybody.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from devcloud.controlplane import Programs
from devcloud.controlplane import plane as planes
from devcloud.controlplane.plane import Plane
from devcloud.daemons import Lifetime
from tests.support import helm as helm_program
from tests.support.helm import RELEASE, ROOT
from tests.support.waiting import eventually

pytestmark = [pytest.mark.slow, pytest.mark.apiserver]

RIGHTS = ROOT / "deploy" / "rights"
CLOUDS = sorted(path.name for path in (ROOT / "deploy" / "kustomize" / "clouds").iterdir())
ACCOUNTS = {
    "fairlead-composer": "fairlead-system",
    **{f"fairlead-provider-{cloud}": f"fairlead-{cloud}" for cloud in CLOUDS},
}
WITH_CLAIMS = "shop"


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


@pytest.fixture(scope="module")
def empty(tmp_path_factory: pytest.TempPathFactory, control_plane_programs: Programs) -> Iterator[Plane]:
    """Yield a control plane of its own, on which nothing of ours was installed and nobody bound anything."""
    folder = tmp_path_factory.mktemp("installed") / "plane"
    options = planes.Options(folder=folder, lifetime=Lifetime.WITH_PARENT, durable=False)
    yield asyncio.run(planes.start(options, control_plane_programs))
    asyncio.run(planes.stop(folder, grace_s=2.0))


@pytest.fixture(params=["eks", "kind"])
def page(request: pytest.FixtureRequest, empty: Plane) -> Iterator[str]:
    """Yield the pages in turn; what one has made goes before the next one."""
    yield str(request.param)
    helm = [str(helm_program.program()), "--kubeconfig", str(empty.kubeconfig)]
    subprocess.run([*helm, "uninstall", "fairlead", "--namespace", RELEASE], check=True, capture_output=True)
    asyncio.run(_forget(empty))


async def _forget(plane: Plane) -> None:
    await plane.kubectl.run("delete", "postgresqlinstances", "--all", "--namespace", WITH_CLAIMS)
    await plane.kubectl.run("delete", "namespace", "--ignore-not-found", WITH_CLAIMS, "postgres")
    installation = ("configmap", "fairlead-installation", "--namespace=fairlead-system")
    await plane.kubectl.run("delete", "--ignore-not-found", *installation)


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
    ours = f'KUBECONFIG={plane.kubeconfig} PYTHONPATH={ROOT} exec {sys.executable} -m fairlead "$@"\n'
    for name, text in {**_STUBS, "kubectl": kubectl, "helm": helm, "fairlead": ours}.items():
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


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory, empty: Plane) -> Plane:
    """Return the plane with the chart and all its clouds."""
    values = tmp_path_factory.mktemp("rights") / "values.json"
    providers = {cloud: {"enabled": True, "databases": [{"cidr": "10.0.0.0/8"}]} for cloud in CLOUDS}
    whole = {"providers": providers, "claimNamespaces": [WITH_CLAIMS], "metrics": {"dashboards": {"enabled": True}}}
    values.write_bytes(msgspec.json.encode(whole))
    objects = helm_program.template(helm_program.program(), "--values", values)
    asyncio.run(_install(empty, objects))
    return empty


async def _install(plane: Plane, objects: str) -> None:
    await plane.kubectl.run("create", "namespace", WITH_CLAIMS)
    apply = ("apply", "--server-side", "--force-conflicts", "--filename=-")
    await plane.kubectl.run(*apply, standard_input=objects, limit_s=300.0)


def _places(account: str) -> dict[str, str]:
    """Return where its rights are listed: a namespace by what it is to the account."""
    own = ACCOUNTS[account]
    other = "fairlead-system" if own != "fairlead-system" else f"fairlead-{CLOUDS[0]}"
    return {"its own": own, "with claims": WITH_CLAIMS, "of another process": other, "any other": "kube-system"}


async def _listed(plane: Plane, account: str) -> str:
    """Return the text of an account's file: a heading for each place, then the rows of `kubectl auth can-i --list`."""
    user = f"--as=system:serviceaccount:{ACCOUNTS[account]}:{account}"
    parts: list[str] = []
    for place, namespace in _places(account).items():
        answer = await plane.kubectl.run("auth", "can-i", "--list", f"--namespace={namespace}", user)
        rows = sorted(" ".join(line.split()) for line in answer.splitlines()[1:])
        parts.append("\n".join((f"# Namespace: {place}, such as {namespace}", *rows)))
    return "\n\n".join(parts) + "\n"


def _reviewed(account: str) -> Path:
    return RIGHTS / f"{account}.txt"


@pytest.mark.parametrize("account", ACCOUNTS)
async def test_an_account_may_do_what_its_file_lists_and_no_more(installed: Plane, account: str) -> None:
    path = _reviewed(account)
    reviewed = path.read_text(encoding="utf-8") if path.exists() else ""
    listed = ""

    async def is_reviewed() -> bool:
        # The authorizer learns of a new binding a moment after it is stored.
        nonlocal listed
        listed = await _listed(installed, account)
        return listed == reviewed

    with contextlib.suppress(AssertionError):
        await eventually(is_reviewed, f"the rights of {account}", limit_s=15.0, every_s=1.0)
    assert listed == reviewed, f"{path} should be:\n{listed}"


def test_every_process_has_its_file() -> None:
    assert sorted(path.stem for path in RIGHTS.glob("*.txt")) == sorted(ACCOUNTS)


async def test_a_right_that_somebody_binds_beside_the_chart_is_seen(installed: Plane) -> None:
    account = "fairlead-composer"
    subject = f"--serviceaccount={ACCOUNTS[account]}:{account}"
    await installed.kubectl.run("create", "rolebinding", "wider", "-n", WITH_CLAIMS, "--clusterrole=edit", subject)
    assert "pods/exec" not in _reviewed(account).read_text(encoding="utf-8")

    async def is_seen() -> bool:
        return "pods/exec" in await _listed(installed, account)

    try:
        await eventually(is_seen, "the wider right is listed", every_s=1.0)
    finally:
        await installed.kubectl.run("delete", "rolebinding", "wider", "-n", WITH_CLAIMS)
