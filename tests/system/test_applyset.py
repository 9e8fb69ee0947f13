"""Claims applied as an ApplySet (KEP-3659), as kubectl and Config Sync do: nobody undoes what it sets."""

from __future__ import annotations

import json

import pytest

from tests.support.home import until_gone
from tests.support.kinds import CLAIM, SECRET, claim, is_ready
from tests.support.system import COMPOSER, System

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.apiserver, pytest.mark.postgres]

_PART_OF = "applyset.kubernetes.io/part-of"
_POLICIES = {"orders": "Orphan", "kept": "Orphan", "dropped": "Delete"}


async def _apply(system: System, namespace: str, *names: str) -> str:
    """Apply these claims, and prune what is in the ApplySet's inventory and not among them."""
    claims = [claim(namespace, name, deletionPolicy=_POLICIES[name]) for name in names]
    place = (f"--namespace={namespace}", "--applyset=secret/team-shop", "--prune", "--filename=-")
    text = "\n---\n".join(map(json.dumps, claims))
    return await system.kubectl.run("apply", "--server-side", *place, standard_input=text)


async def test_a_claim_keeps_its_applyset_its_children_have_none_and_a_pruned_one_goes_by_its_policy(
    running: System, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBECTL_APPLYSET", "true")
    await _apply(running, namespace, *_POLICIES)
    before = [await running.until(CLAIM, namespace, name, is_ready) for name in _POLICIES]
    children = {name: (await running.children(namespace, name))[0] for name in _POLICIES}
    parent = await running.api.get(SECRET.path(namespace, "team-shop"))
    number = parent["metadata"]["labels"]["applyset.kubernetes.io/id"]
    assert {obj["metadata"]["labels"][_PART_OF] for obj in before} == {number}
    assert [label for child in children.values() for label in child["metadata"]["labels"] if "applyset" in label] == []

    # The same claims once more: the tool changes nothing, and nobody answers it.
    await running.at_rest()
    audit = running.audit()
    await _apply(running, namespace, *_POLICIES)
    await running.at_rest()
    after = [await running.api.get(CLAIM.path(namespace, name)) for name in _POLICIES]
    assert [obj["metadata"]["generation"] for obj in after] == [obj["metadata"]["generation"] for obj in before]
    assert {obj["metadata"]["labels"][_PART_OF] for obj in after} == {number}
    assert audit.writes(COMPOSER, namespace=namespace) == []

    printed = await _apply(running, namespace, "orders")
    pruned = [line.partition("/")[2] for line in printed.splitlines() if "pruned" in line]
    assert sorted(pruned) == ["dropped pruned", "kept pruned"]
    for name in ("dropped", "kept"):
        await until_gone(running, CLAIM.path(namespace, name))
    rows = await running.server.server.execute("SELECT datname FROM pg_catalog.pg_database")
    there = [name for name, child in children.items() if (child["status"]["externalName"],) in rows]
    assert there == ["orders", "kept"]
    (orders,) = await running.children(namespace, "orders")
    assert orders["metadata"]["uid"] == children["orders"]["metadata"]["uid"]
