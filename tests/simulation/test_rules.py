"""Networks that are taken out of a claim are closed at once, whatever another part of the claim waits for."""

from __future__ import annotations

import asyncio
from typing import Final

import pytest

from apis.identity import child_name, identity_of
from fairlead.assets import assets
from fairlead.simulation import clouds, virtual_time
from fairlead.simulation.arm import Azure
from fairlead.simulation.platform import CLAIMS, Platform
from fairlead.yaml_files import objects_in
from runtime.conditions import find
from runtime.objects import CONFIG_MAPS, Key, Object, dumps, loads
from tests.simulation.cast import Cast
from tests.simulation.history import TEAM
from tests.simulation.people import rename_resource

pytestmark = pytest.mark.slow

_CLAIM: Final = Key(TEAM, "a")
_NETWORKS: Final = [f"203.0.113.{number}/32" for number in range(20)]
_EDITS: Final[dict[str, Object]] = {
    "is too large": {"storageGiB": 40_000},
    "may not be so": {"deletionPolicy": "Snapshot"},
}
# A resource that comes when a claim is protected: a note of what the server says while it works, or a plain one.
_NOTES: Final = {"waits": "{{ resources.server.status.operation.id }}"}


@pytest.mark.parametrize("other", ["waits", "is a stranger's", "is held", "is too large", "may not be so"])
def test_rules_go_in_the_same_pass(other: str) -> None:
    assert virtual_time.run(other, lambda: _rules_left(other)) == (20, 1, 1, "True")


async def _rules_left(other: str) -> tuple[int, int, int, str]:
    """Return how many rules a server has, stay once all but one are taken out, and has then; and the claim's Ready."""
    about = clouds.described("azure")
    platform = Platform(other, virtual_time.Trace(), about)
    (shipped,) = objects_in(assets("compositions"), "postgres-azure.yaml")
    composition = loads(dumps(shipped))
    template = {"apiVersion": "v1", "kind": "ConfigMap", "data": {"note": _NOTES.get(other, "text")}}
    note = {"name": "note", "when": "{{ claim.spec.deletionProtection }}", "template": template}
    composition["spec"]["resources"].append(note)
    platform.install((TEAM,), [composition])
    background, cast = platform.background(), Cast(platform, other)
    for process in ("composer", about.provider_process):
        await platform.start(process)
    network: Object = {"public": True, "allowedCIDRs": _NETWORKS}
    await cast.make(CLAIMS, _CLAIM, {"version": "16", "size": "small", "network": network})
    await asyncio.sleep(1800)
    before = _rules(platform)
    if other == "is held":
        await rename_resource(cast, "postgres-azure")
    elif other == "is a stranger's":
        claim = platform.server.all_of(CLAIMS)[_CLAIM]
        meta = {"name": child_name(identity_of(claim), "note"), "namespace": TEAM}
        platform.server.put(CONFIG_MAPS, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta})
    await asyncio.sleep(300)
    edits = {**_EDITS.get(other, {"deletionProtection": True}), "network/allowedCIDRs": _NETWORKS[:1]}
    for path, value in edits.items():
        await cast.edit(CLAIMS, _CLAIM, f"/spec/{path}", value)
    await asyncio.sleep(5)
    rules = platform.server.all_of(about.inner[1]).values()
    staying = sum("deletionTimestamp" not in rule["metadata"] for rule in rules)
    await asyncio.sleep(1800)
    after = _rules(platform)
    ready = find(platform.server.all_of(CLAIMS)[_CLAIM], "Ready") or {}
    for process in tuple(platform.processes):
        await platform.kill(process)
    for task in background:
        task.cancel()
    return before, staying, after, ready.get("status", "")


def _rules(platform: Platform) -> int:
    assert isinstance(platform.cloud, Azure)
    return sum(len(server.rules) for server in platform.cloud.resources.servers.values())
