"""What a tab offers: names of an API server, words of our own, and what bash makes of them."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from apis import names
from fairlead import completing
from fairlead.cli import run
from fairlead.exits import Exit
from runtime.kube import Kube
from runtime.objects import NAMESPACES
from tests.architecture import tree
from tests.composer.factories import CLAIMS
from tests.support.memory_kube import MemoryKube

KUBECONFIG = "contexts: [{name: near, context: {namespace: shop}}, {name: '$(reboot)'}]\ncurrent-context: near\n"
OFFERED = {
    "claims of the context's namespace": ("trace ", ["carts", "orders"]),
    "claims of another one": ("psql -n other ", ["bills"]),
    "those that begin so": ("import preview o", ["orders"]),
    "namespaces": ("trace orders -n o", ["other"]),
    "Compositions": ("offers ", ["team"]),
    "of a group's command": ("rollout --context near undo ", ["team"]),
    "of an option": ("import write --composition ", ["team"]),
    "ProviderConfigs": ("orphans ", []),
    "contexts that a shell takes for names": ("trace --context ", ["near"]),
    "reasons": ("explain DatabaseLo", ["DatabaseLost"]),
    "clouds behind a comma": ("up --clouds aws,on", ["aws,onprem"]),
    "commands": ("of", ["offers"]),
    "commands of a group": ("crd ", ["check", "new"]),
    "options": ("down --k", ["--keep-data"]),
    "nothing where files are meant": ("render ", []),
}


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> MemoryKube:
    """Return a cluster with claims in two namespaces, and name its kubeconfig."""
    made = MemoryKube()
    for namespace, name in (("shop", "orders"), ("shop", "carts"), ("other", "bills")):
        made.put(NAMESPACES, namespace, namespace="")
        made.put(CLAIMS, name, namespace=namespace, spec={"version": "16"})
    made.put(names.COMPOSITIONS, "team", namespace="", spec={})
    (tmp_path / "config").write_text(KUBECONFIG)
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "config"))

    @asynccontextmanager
    async def connect(_: object) -> AsyncIterator[Kube]:
        yield made

    monkeypatch.setattr("fairlead.cluster.connected", connect)
    return made


@pytest.mark.usefixtures("cluster")
@pytest.mark.parametrize("case", OFFERED)
def test_a_tab_offers_what_there_is(case: str) -> None:
    typed, offered = OFFERED[case]

    assert completing.candidates(typed.split(" ")) == offered


def test_kubectl_is_answered_in_its_protocol(
    cluster: MemoryKube, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for typed, answer in (("trace or", "orders\n:4\n"), ("render ", ":0\n"), ("trace zz", ":4\n")):
        monkeypatch.setattr("sys.argv", ["kubectl_complete-fairlead", *typed.split(" ")])
        completing.main()
        assert capsys.readouterr().out == answer
    cluster.forbidden.add(f"list {CLAIMS.plural}")
    assert completing.candidates(["trace", ""]) == []


@pytest.mark.slow
@pytest.mark.parametrize(("words", "reply"), [("explain DatabaseLo", "DatabaseLost"), ("expl", "explain")])
def test_bash_offers_names_beside_commands(words: str, reply: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["completion", "bash"]) == Exit.DONE
    lines = (
        capsys.readouterr().out,
        f'fairlead() {{ {sys.executable} -m fairlead "$@"; }}',
        f"COMP_WORDS=(fairlead {words}); COMP_CWORD={len(words.split())}",
        '_fairlead_with_names; echo "${COMPREPLY[*]}"',
    )
    shown = subprocess.run(["bash", "-c", "\n".join(lines)], cwd=tree.ROOT, capture_output=True, text=True, check=True)

    assert (shown.stdout, shown.stderr) == (f"{reply}\n", "")
