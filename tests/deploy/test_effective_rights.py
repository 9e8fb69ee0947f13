"""What the API server lets each process of an installed chart do, beside the reviewed list in `deploy/rights`.

`kubectl auth can-i --list` asks for the rules that hold in a namespace (SelfSubjectRulesReview): those of every role
that is bound there, whoever bound it, and of what the cluster grants to everybody.
"""

from __future__ import annotations

import asyncio
import contextlib
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
from tests.support.waiting import eventually

pytestmark = [pytest.mark.slow, pytest.mark.apiserver]

RIGHTS = ROOT / "deploy" / "rights"
CLOUDS = sorted(path.name for path in (ROOT / "deploy" / "kustomize" / "clouds").iterdir())
ACCOUNTS = {
    "fairlead-composer": "fairlead-system",
    **{f"fairlead-provider-{cloud}": f"fairlead-{cloud}" for cloud in CLOUDS},
}
WITH_CLAIMS = "shop"


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory, control_plane_programs: Programs) -> Iterator[Plane]:
    """Yield a control plane of its own, where nobody else bound anything, with the chart and all its clouds."""
    folder = tmp_path_factory.mktemp("rights")
    options = planes.Options(folder=folder / "plane", lifetime=Lifetime.WITH_PARENT, durable=False)
    values = folder / "values.json"
    providers = {cloud: {"enabled": True} for cloud in CLOUDS}
    values.write_bytes(msgspec.json.encode({"providers": providers, "claimNamespaces": [WITH_CLAIMS]}))
    objects = helm_program.template(helm_program.program(), "--values", values)
    yield asyncio.run(_start(options, control_plane_programs, objects))
    asyncio.run(planes.stop(options.folder, grace_s=2.0))


async def _start(options: planes.Options, programs: Programs, objects: str) -> Plane:
    plane = await planes.start(options, programs)
    await plane.kubectl.run("create", "namespace", WITH_CLAIMS)
    apply = ("apply", "--server-side", "--filename=-")
    await plane.kubectl.run(*apply, standard_input=objects, limit_s=300.0)
    return plane


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
