"""A folder of Git applied as an ApplySet (KEP-3659), as kubectl and Config Sync do: nobody undoes what it sets."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.api import JsonObject
from tests.support.home import until_gone
from tests.support.kinds import CLAIM, DATABASE, SECRET, claim, is_ready
from tests.support.system import System

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.apiserver, pytest.mark.postgres]

_PART_OF = "applyset.kubernetes.io/part-of"
_PARENT = "team-shop"
_FORBIDDEN = 403


class Folder:
    """A root folder with one file a claim, which Kustomize renders."""

    def __init__(self, path: Path, system: System, namespace: str) -> None:
        self.path = path
        self._system = system
        self._namespace = namespace

    def write(self, *claims: JsonObject) -> None:
        """Have these claims and no other."""
        for old in self.path.glob("*.yaml"):
            old.unlink()
        for obj in claims:
            (self.path / f"{obj['metadata']['name']}.yaml").write_text(json.dumps(obj))
        files = [f"{obj['metadata']['name']}.yaml" for obj in claims]
        kustomization = {"apiVersion": "kustomize.config.k8s.io/v1beta1", "kind": "Kustomization", "resources": files}
        (self.path / "kustomization.yaml").write_text(json.dumps(kustomization))

    async def apply(self) -> str:
        """Render and apply it, and prune what is in the ApplySet's inventory and no longer here."""
        kubectl = self._system.kubectl
        rendered = await kubectl.run("kustomize", str(self.path))
        place = (f"--namespace={self._namespace}", f"--applyset=secret/{_PARENT}", "--prune", "--filename=-")
        return await kubectl.run("apply", "--server-side", *place, standard_input=rendered)


@pytest.fixture
def folder(tmp_path: Path, running: System, namespace: str, monkeypatch: pytest.MonkeyPatch) -> Folder:
    monkeypatch.setenv("KUBECTL_APPLYSET", "true")
    return Folder(tmp_path, running, namespace)


def _claims(namespace: str) -> dict[str, JsonObject]:
    policies = {"orders": "Orphan", "kept": "Orphan", "dropped": "Delete"}
    return {name: claim(namespace, name, deletionPolicy=policy) for name, policy in policies.items()}


async def test_a_claim_keeps_its_applyset_its_children_have_none_and_a_pruned_one_goes_by_its_policy(
    running: System, namespace: str, folder: Folder
) -> None:
    folder.write(*_claims(namespace).values())
    await folder.apply()
    await _claims_keep_their_applyset(running, namespace, folder)
    await _pruned_claims_go_by_their_policies(running, namespace, folder)


async def _claims_keep_their_applyset(running: System, namespace: str, folder: Folder) -> None:
    ready = [await running.until(CLAIM, namespace, name, is_ready) for name in _claims(namespace)]
    await running.at_rest()

    parent = await running.api.get(SECRET.path(namespace, _PARENT))
    kinds = parent["metadata"]["annotations"]["applyset.kubernetes.io/contains-group-kinds"]
    assert kinds == f"{CLAIM.kind}.{CLAIM.group}"
    number = parent["metadata"]["labels"]["applyset.kubernetes.io/id"]
    assert {obj["metadata"]["labels"][_PART_OF] for obj in ready} == {number}
    children = [child for name in _claims(namespace) for child in await running.children(namespace, name)]
    assert len(children) >= len(ready)
    for child in children:
        assert [label for label in child["metadata"].get("labels", {}) if "applyset" in label] == []

    # The same folder once more: the tool changes nothing, and nobody answers it.
    before = [await running.api.get(CLAIM.path(namespace, name)) for name in _claims(namespace)]
    requests = await running.writes_until_rest(folder.apply)
    # A list of a kind whose cloud is not installed here is refused, and tried again now and then.
    assert [request for request in requests if (request.verb, request.code) != ("list", _FORBIDDEN)] == []
    after = [await running.api.get(CLAIM.path(namespace, name)) for name in _claims(namespace)]
    assert [obj["metadata"]["generation"] for obj in after] == [obj["metadata"]["generation"] for obj in before]
    assert [obj["metadata"]["labels"][_PART_OF] for obj in after] == [number] * len(after)


async def _pruned_claims_go_by_their_policies(running: System, namespace: str, folder: Folder) -> None:
    claims = _claims(namespace)
    children = {name: await running.children(namespace, name) for name in claims}
    audit = running.audit()

    folder.write(claims["orders"])
    printed = await folder.apply()

    assert sorted(line for line in printed.splitlines() if "pruned" in line) == [
        f"{CLAIM.kind.lower()}.{CLAIM.group}/{name} pruned" for name in ("dropped", "kept")
    ]
    for name in ("dropped", "kept"):
        await until_gone(running, CLAIM.path(namespace, name))
    rows = await running.server.server.execute("SELECT datname FROM pg_catalog.pg_database")
    names = {str(row[0]) for row in rows}
    databases = {name: _database_of(children[name]) for name in claims}
    assert {name: database in names for name, database in databases.items()} == {
        "orders": True,
        "kept": True,
        "dropped": False,
    }
    now = await running.children(namespace, "orders")
    assert [child["metadata"]["uid"] for child in now] == [child["metadata"]["uid"] for child in children["orders"]]
    by_the_tool = [(request.verb, request.resource) for request in audit.writes("fairlead-admin", namespace=namespace)]
    assert {resource for _, resource in by_the_tool} <= {CLAIM.plural, "secrets"}
    assert by_the_tool.count(("delete", CLAIM.plural)) == 2


def _database_of(children: list[JsonObject]) -> str:
    (database,) = [child for child in children if child["kind"] == DATABASE.kind]
    return str(database["metadata"]["annotations"]["fairlead.dev/external-name"])
