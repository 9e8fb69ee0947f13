"""A kind that is deleted and applied again: no claim, whatever it waits for, keeps it from the others."""

from __future__ import annotations

import asyncio
from typing import Final

import pytest

from fairlead.assets import assets
from fairlead.simulation import clouds, virtual_time
from fairlead.simulation.platform import CLAIMS, Platform
from fairlead.yaml_files import objects_in
from runtime.conditions import find
from runtime.objects import CRDS, Key, Object, dumps, loads
from tests.simulation.cast import Cast
from tests.simulation.history import OTHER, TEAM
from tests.simulation.people import rename_resource

pytestmark = pytest.mark.slow

_HELD, _UNRENDERED, _HEALTHY = Key(TEAM, "held"), Key(TEAM, "unrendered"), Key(OTHER, "healthy")
_SPEC: Final = {"version": "16", "size": "small", "deletionPolicy": "Orphan"}


@pytest.mark.parametrize("cloud", ["gcp", "onprem"])
def test_a_claim_that_is_held_or_cannot_be_rendered_keeps_no_kind_from_others(cloud: str) -> None:
    texts, lost = virtual_time.run("deleted kinds", lambda: _deleted_and_applied(clouds.described(cloud)))

    assert texts[_HEALTHY].startswith("True Available")
    assert texts[_HELD].startswith("False HeldDeletion")
    assert "stays in the cloud" in texts[_HELD]
    assert texts[_UNRENDERED].startswith("False CompositionNotFound")
    assert lost == set()


async def _deleted_and_applied(about: clouds.CloudDescription) -> tuple[dict[Key, str], set[str]]:
    """Return Synced of each claim, and what is not in the cloud any more."""
    platform = Platform("deleted kinds", virtual_time.Trace(), about)
    platform.install((TEAM, OTHER), [_composition(about.name, name) for name in ("first", "second")])
    background, cast = platform.background(), Cast(platform, "deleted kinds")
    for process in ("composer", about.provider_process):
        await platform.start(process)
    for key in (_HELD, _UNRENDERED, _HEALTHY):
        await cast.make(CLAIMS, key, {**_SPEC, "compositionRef": {"name": "first" if key == _HELD else "second"}})
    await asyncio.sleep(1800)
    before = set(platform.cloud.left())
    await rename_resource(cast, "first")
    await cast.edit(CLAIMS, _UNRENDERED, "/spec/compositionRef", {"name": "nowhere"})
    await asyncio.sleep(600)
    for resource in about.resources:
        await cast.remove(CRDS, Key("", f"{resource.plural}.{resource.group}"))
    await asyncio.sleep(900)
    platform.apply_kinds()
    await asyncio.sleep(1800)
    crds = platform.server.all_of(CRDS).values()
    assert [crd["metadata"]["name"] for crd in crds if "deletionTimestamp" in crd["metadata"]] == []
    texts = {key: _synced(claim) for key, claim in platform.server.all_of(CLAIMS).items()}
    for process in tuple(platform.processes):
        await platform.kill(process)
    for task in background:
        task.cancel()
    return texts, before - set(platform.cloud.left())


def _composition(cloud: str, name: str) -> Object:
    (shipped,) = objects_in(assets("compositions"), f"postgres-{cloud}.yaml")
    composition = loads(dumps(shipped))
    return {**composition, "metadata": {**composition["metadata"], "name": name}}


def _synced(claim: Object) -> str:
    ready, synced = find(claim, "Ready") or {}, find(claim, "Synced") or {}
    shown = ready if synced.get("status") == "True" else synced
    return f"{shown.get('status')} {shown.get('reason')}: {shown.get('message')}"
