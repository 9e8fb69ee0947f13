"""What is rendered beforehand is what the composer then sends; and a render that fails sends nothing."""

from __future__ import annotations

import asyncio
import re
import secrets
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest
import pytest_asyncio

from composer.kinds.catalog import catalog
from composer.render.values import Pending
from composer.validation.samples import samples
from tests.support.api import JsonObject
from tests.support.kinds import (
    CLAIM,
    COMPOSITION,
    CONFIG_MAP,
    CRD,
    claim,
    composition,
    condition,
    in_trouble,
    is_ready,
)
from tests.support.kube_proxy import kube_proxy
from tests.support.shared import USUAL, dismiss
from tests.support.system import System
from tests.support.waiting import eventually

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.apiserver, pytest.mark.postgres]
_SHIPPED = Path(__file__).resolve().parents[3] / "compositions" / "postgres-onprem.yaml"
_CHILDREN = re.compile(r"/namespaces/(?P<namespace>[^/]+)/(configmaps|postgresdatabases)(/[^/]+)?$")


class Sent(NamedTuple):
    """One request that changes a child; `method` is APPLY for a server-side apply."""

    method: str
    namespace: str
    body: bytes


@pytest.fixture(scope="module")
def sent() -> list[Sent]:
    """Return what the composer sent for children, in order."""
    return []


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def composing(alone: System, sent: list[Sent]) -> AsyncIterator[System]:
    """Yield a composer whose every request passes a proxy that notes it."""

    def note(method: str, path: str, body: bytes) -> None:
        child = _CHILDREN.search(path)
        if child:
            # A list of operations is no apply: it makes fields ours that a creation left to nobody.
            is_apply = method == "PATCH" and body.startswith(b"{")
            sent.append(Sent("APPLY" if is_apply else method, child["namespace"], body))

    direct = await alone.plane.service_account_kubeconfig("fairlead-system", "fairlead-composer")
    async with kube_proxy(alone.plane.folder, direct, note) as through:
        await alone.start_composer("--kubeconfig", str(through), *USUAL["composer"])
        yield alone
        await dismiss(alone)


CLAIMS: dict[str, dict[str, Any]] = {
    "small": {},
    "by-cpu": {"size": None, "version": "17", "cpu": 6, "memoryGiB": 24},
    "everything": {
        "size": "large",
        "storageGiB": 100,
        "highAvailability": True,
        "backup": {"startTime": "02:30", "retentionDays": 14},
        "maintenanceWindow": {"hour": 5, "day": "Sunday"},
        "network": {"allowedCIDRs": ["10.0.0.0/8"]},
        "databaseName": "orders",
        "extensions": ["pgcrypto", "citext"],
        "parameters": {"work_mem": "64MB", "lock_timeout": "1s"},
        "deletionPolicy": "Snapshot",
        "connectionSecretName": "orders-db",
    },
}


def _in_steps(name: str) -> JsonObject:
    """Return a Composition with all that a resource can have: variables, settings, repetition, conditions, order."""
    settings = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "labels": {"team": "{{ env.defaults.team }}", "app": "{{ claim.metadata.labels.app | default('none') }}"}
        },
        "data": {
            "size": "{{ vars.size }}",
            "all": "{{ claim.spec.parameters | default({}) | list | join(',') }}",
            "odd": 'é "\\\n',
        },
    }
    template = {"apiVersion": "v1", "kind": "ConfigMap", "data": {"extension": "{{ each.key }}"}}
    absent = {"apiVersion": "v1", "kind": "ConfigMap"}
    after = {"apiVersion": "v1", "kind": "ConfigMap", "data": {"of": "{{ resources.settings.metadata.name }}"}}
    return composition(
        name,
        {"name": "after", "dependsOn": ["settings", "each"], "template": after},
        {"name": "settings", "template": settings, "readyWhen": "{{ resources.settings.metadata.name != '' }}"},
        {"name": "each", "forEach": "{{ claim.spec.extensions | default([]) }}", "template": template},
        {"name": "absent", "when": "{{ claim.spec.highAvailability }}", "template": absent},
        environments=["defaults"],
        variables={"size": "{{ claim.spec.size | default('own') | upper }}"},
    )


async def _render(folder: Path, rendered_claim: JsonObject, file: Path, system: System) -> list[bytes]:
    """Run `fairlead render` on a claim as it was written, with the children that there are; return its lines."""
    meta = rendered_claim["metadata"]
    live = await system.api.get(CLAIM.path(meta["namespace"], meta["name"]))
    observed = folder / f"observed-{meta['name']}-{secrets.token_hex(2)}"
    observed.mkdir()
    for child in await system.children(meta["namespace"], meta["name"]):
        (observed / f"{child['metadata']['name']}.json").write_bytes(msgspec.json.encode(child))
    claim_file = folder / f"{meta['name']}.json"
    claim_file.write_bytes(msgspec.json.encode(rendered_claim))
    arguments = ("render", str(claim_file), "-c", str(file), "--identity", live["metadata"]["uid"], "-o", "json")
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", "from fairlead.cli import main; main()", *arguments, "--observed", str(observed)),
        stdout=asyncio.subprocess.PIPE,
    )
    output, _ = await asyncio.wait_for(process.communicate(), 60)
    assert process.returncode == 0
    return output.splitlines()


async def test_fairlead_render_gives_the_very_bytes_that_the_composer_sends(
    composing: System, namespace: str, sent: list[Sent], tmp_path: Path
) -> None:
    steps = _in_steps(f"{namespace}-steps")
    defaults = CONFIG_MAP.new("fairlead-system", "defaults", data={"team": "shop"})
    files = {"steps": tmp_path / "compositions", "shipped": _SHIPPED}
    files["steps"].mkdir()
    for number, document in enumerate((steps, defaults)):
        (files["steps"] / f"{number}.json").write_bytes(msgspec.json.encode(document))
    await composing.create(CONFIG_MAP, defaults)
    await composing.create(COMPOSITION, steps)
    claims = {name: (claim(namespace, name, **spec), files["shipped"]) for name, spec in CLAIMS.items()}
    extensions = {"extensions": ["vector", "citext"], "parameters": {"work_mem": "4MB", "lock_timeout": "1s"}}
    named = claim(namespace, "steps", compositionRef={"name": steps["metadata"]["name"]}, **extensions)
    named["metadata"]["labels"] = {"app": "shop"}
    claims["steps"] = (named, files["steps"])

    for obj, _ in claims.values():
        await composing.create(CLAIM, obj)
    await eventually(lambda: _count(sent, namespace, "POST", len(CLAIMS) + 4), "all children are sent", limit_s=120)
    for name in claims:
        count = 4 if name == "steps" else 1
        await composing.until(CLAIM, namespace, name, _has_children(count), limit_s=120)
    rendered = [line for obj, file in claims.values() for line in await _render(tmp_path, obj, file, composing)]
    posted = [request.body for request in sent if request.method == "POST" and request.namespace == namespace]

    assert sorted(rendered) == sorted(posted)

    await composing.edit(CLAIM, namespace, "by-cpu", {"spec": {"parameters": {"work_mem": "1GB", "jit": "off"}}})
    await eventually(lambda: _count(sent, namespace, "APPLY", 1), "the edit is sent", limit_s=120)
    changed, file = claims["by-cpu"]
    changed["spec"]["parameters"] = {"work_mem": "1GB", "jit": "off"}
    (applied,) = [request.body for request in sent if request.method == "APPLY" and request.namespace == namespace]
    body = msgspec.json.decode(applied)
    # An apply that must not make the object anew names the one it means, at the version that was seen.
    uid = body["metadata"].pop("uid")
    assert body["metadata"].pop("resourceVersion")

    assert [msgspec.json.encode(body)] == await _render(tmp_path, changed, file, composing)
    assert {child["metadata"]["uid"] for child in await composing.children(namespace, "by-cpu")} == {uid}


async def _count(sent: list[Sent], namespace: str, method: str, count: int) -> bool:
    return len([request for request in sent if (request.namespace, request.method) == (namespace, method)]) >= count


async def test_a_render_that_fails_or_lacks_a_value_applies_nothing_and_takes_nothing_away(
    composing: System, namespace: str, sent: list[Sent]
) -> None:
    settings = {"apiVersion": "v1", "kind": "ConfigMap", "data": {"team": "{{ {'small': 'shop'}[claim.spec.size] }}"}}
    other = {"apiVersion": "v1", "kind": "ConfigMap", "data": {"size": "{{ claim.spec.size }}"}}
    whole = composition(
        f"{namespace}-whole", {"name": "settings", "template": settings}, {"name": "other", "template": other}
    )
    async with composing.composition(whole) as name:
        await composing.create(CLAIM, claim(namespace, "orders", compositionRef={"name": name}))
        await composing.until(CLAIM, namespace, "orders", _has_children(2))
        created = await composing.children(namespace, "orders")
        del sent[:]

        await composing.edit(CLAIM, namespace, "orders", {"spec": {"size": "large"}})
        failed = await composing.until(CLAIM, namespace, "orders", in_trouble("RenderFailed"), limit_s=120)

        assert "'large' is undefined" in condition(failed, "Synced")["message"]
        assert await composing.children(namespace, "orders") == created
        assert [request for request in sent if request.namespace == namespace] == []

        # Now it lacks a value: what waits is left as it is, the other goes on.
        settings["data"] = {"team": "{{ resources.other.status.team }}"}
        await composing.api.merge(COMPOSITION.path("", name), {"spec": {"resources": [*whole["spec"]["resources"]]}})
        await eventually(lambda: _count(sent, namespace, "APPLY", 1), "the other follows", limit_s=120)
        await composing.until(CLAIM, namespace, "orders", lambda obj: not condition(obj, "Stalled"), limit_s=120)
        left = {child["metadata"]["name"]: child.get("data") for child in await composing.children(namespace, "orders")}

        await composing.until(COMPOSITION, "", name, is_ready, limit_s=120)
        assert sorted(map(str, left.values())) == ["{'size': 'large'}", "{'team': 'shop'}"]
        assert not {"POST", "DELETE"} & {request.method for request in sent if request.namespace == namespace}


def _has_children(count: int) -> Any:
    return lambda obj: len(obj.get("status", {}).get("inventory", [])) == count


async def test_the_api_server_would_take_every_claim_that_compositions_are_tried_with(
    composing: System, namespace: str
) -> None:
    crd = await composing.api.get(CRD.path("", "postgresqlinstances.database.fairlead.dev"))
    schema = catalog([crd])["PostgreSQLInstance.database.fairlead.dev"].schema or {}
    specs = samples(schema["properties"]["spec"])

    for number, sample in enumerate(specs):
        known = {name: value for name, value in sample.spec.items() if not isinstance(value, Pending)}
        body = CLAIM.new(namespace, f"sample-{number}", spec=known)
        await composing.api.request("POST", CLAIM.path(namespace), body, query={"dryRun": "All"})

    assert len(specs) > 20
