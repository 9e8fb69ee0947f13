"""`fairlead install` on an API server in memory: what is made once, and what speaks against it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from ruamel.yaml import YAML

from fairlead.cli import run
from fairlead.exits import Exit
from runtime.kube import Kube
from runtime.objects import CONFIG_MAPS, NAMESPACES, Key, dumps, uid_of
from tests.support.memory_kube import MemoryKube

PLACE = Key("fairlead-system", "fairlead-installation")


class _Cluster(MemoryKube):
    """A cluster that says its version."""

    minor = "30+"

    async def raw(self, method: str, path: str, body: bytes | None = None) -> bytes:
        return (
            dumps({"major": "1", "minor": self.minor}) if path == "/version" else await super().raw(method, path, body)
        )


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> _Cluster:
    """Return a cluster on which nothing of ours was installed."""
    made = _Cluster()
    made.put(NAMESPACES, "kube-system", namespace="")

    @asynccontextmanager
    async def connect(_: object) -> AsyncIterator[Kube]:
        yield made

    monkeypatch.setattr("fairlead.installing.connected", connect)
    return made


def _recorded(cluster: _Cluster) -> dict[str, Any] | None:
    installation = cluster.objects.get((CONFIG_MAPS, PLACE))
    return installation["data"] if installation else None


def test_an_id_is_made_once_and_stays(cluster: _Cluster, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["install", "--clouds", "onprem", "aws", "--claim-namespaces", "shop"]) == Exit.DONE
    values = YAML(typ="safe").load(capsys.readouterr().out)
    assert (_recorded(cluster), values["claimNamespaces"]) == (None, ["shop"])
    assert values["providers"] == {"onprem": {"enabled": True}, "aws": {"enabled": True}}

    assert run(["install", "--apply"]) == Exit.DONE
    out, errors = capsys.readouterr()
    recorded = _recorded(cluster)
    assert recorded is not None
    assert recorded["clusterUid"] == uid_of(cluster.objects[NAMESPACES, Key("", "kube-system")])
    assert YAML(typ="safe").load(out) == {"installation": recorded}
    assert f"note its id down outside the cluster: {recorded['id']}" in errors

    assert run(["install", "--apply", "-o", "id"]) == Exit.DONE
    assert capsys.readouterr().out == f"{recorded['id']}\n"
    assert _recorded(cluster) == recorded


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "another id": ({"id": "former01"}, "is aaaaaaaa, and never becomes former01"),
    "another cluster": ({"recorded": {"id": "aaaaaaaa", "clusterUid": "b"}}, "`fairlead takeover`"),
    "a ConfigMap without its id": ({"recorded": {"clusterUid": "b"}}, "has no key id"),
    "an old API server": ({"minor": "29"}, "the API server is 1.29"),
    "a right that is missing": ({"denied": ("clusterroles", "escalate")}, "you may not escalate clusterroles"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_speaks_against_it_is_said_before_anything_is_written(
    case: str, cluster: _Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    about, says = REFUSED[case]
    cluster.put(NAMESPACES, "fairlead-system", namespace="")
    uid = uid_of(cluster.objects[NAMESPACES, Key("", "kube-system")])
    recorded = about.get("recorded") or {"id": "aaaaaaaa", "clusterUid": uid}
    cluster.put(CONFIG_MAPS, PLACE.name, namespace=PLACE.namespace, data=recorded)
    cluster.minor = str(about.get("minor", "34"))
    cluster.denied |= {about[name] for name in ("denied",) if name in about}

    assert run(["install", "--apply", "--id", about.get("id", "")]) == Exit.REFUSED
    assert says in capsys.readouterr().err
    assert _recorded(cluster) == recorded
