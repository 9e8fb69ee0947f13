"""An edited environment is a new revision: it goes by waves, a bad one is refused, and claims outlive it."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Final

import pytest

from apis import names
from fairlead.assets import assets
from fairlead.simulation import clouds, virtual_time
from fairlead.simulation.platform import CLAIMS, Platform
from fairlead.yaml_files import objects_in
from runtime.conditions import find
from runtime.objects import CONFIG_MAPS, Key, Object, dumps, loads, status_of
from tests.simulation.cast import Cast
from tests.simulation.history import PERSON, TEAM

pytestmark = pytest.mark.slow

_COUNT: Final = 10
_ENVIRONMENT = Key("fairlead-system", "limits")
_COMPOSITION = Key("", "postgres-onprem")
_SPEC: Final = {"version": "16", "size": "small"}


def test_an_edited_environment_goes_by_waves_and_a_lost_one_changes_nothing() -> None:
    limits = virtual_time.run("environments", _limits)

    assert limits == {
        "at first": {20: 10},
        "in the first wave": {20: 9, 33: 1},
        "at the end of the waves": {33: 10},
        "of a size that the kind refuses": {33: 10},
        "and the Composition": {"SchemaMismatch": 1},
        "too large": {"RenderLimit": 1},
        "after it was put back": {33: 10},
        "without the environment": {33: 10},
        "and the Composition then": {"EnvironmentNotFound": 1},
        "fields offered, by content": {23: 2},
    }


async def _limits() -> dict[str, Counter[int] | Counter[str]]:
    """Return how many children have which limit of connections, after each edit of the environment."""
    platform = Platform("environments", virtual_time.Trace(), clouds.described("onprem"))
    platform.install((TEAM,), [_composition()])
    background, cast = platform.background(), Cast(platform, "environments")
    meta = {"name": _ENVIRONMENT.name, "namespace": _ENVIRONMENT.namespace}
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": {"connections.yaml": "20"}}
    await platform.server.create(CONFIG_MAPS, body, manager=PERSON)
    for process in ("composer", "onprem"):
        await platform.start(process)
    for number in range(_COUNT):
        await cast.make(CLAIMS, Key(TEAM, f"claim-{number}"), dict(_SPEC))
    seen: dict[str, Counter[int] | Counter[str]] = {}
    await asyncio.sleep(900)
    seen["at first"] = _sizes(platform)
    offered = _offered(platform)
    for value, seconds, moment in (
        ("33", 60, "in the first wave"),
        ("33", 1800, "at the end of the waves"),
        ("100000", 900, "of a size that the kind refuses"),
    ):
        await cast.edit(CONFIG_MAPS, _ENVIRONMENT, "/data/connections.yaml", value)
        await asyncio.sleep(seconds)
        seen[moment] = _sizes(platform)
    seen["and the Composition"] = _synced(platform)
    await cast.edit(CONFIG_MAPS, _ENVIRONMENT, "/data/more", "x" * 600_000)
    await asyncio.sleep(900)
    seen["too large"] = _synced(platform)
    await cast.edit(CONFIG_MAPS, _ENVIRONMENT, "/data", {"connections.yaml": "33"})
    await asyncio.sleep(1800)
    seen["after it was put back"] = _sizes(platform)
    await cast.remove(CONFIG_MAPS, _ENVIRONMENT)
    await asyncio.sleep(1800)
    seen["without the environment"] = _sizes(platform)
    seen["and the Composition then"] = _synced(platform)
    seen["fields offered, by content"] = Counter(len(fields) for fields in {**offered, **_offered(platform)}.values())
    for process in tuple(platform.processes):
        await platform.kill(process)
    for task in background:
        task.cancel()
    return seen


def _composition() -> Object:
    (shipped,) = objects_in(assets("compositions"), "postgres-onprem.yaml")
    spec = loads(dumps(shipped["spec"])) | {"environments": ["limits"]}
    spec["resources"][0]["template"]["spec"]["forProvider"]["connectionLimit"] = "{{ env.limits.connections }}"
    spec["rollout"] = {"waves": ["1", "100%"], "soakSeconds": 300, "progressDeadlineSeconds": 120}
    return {**shipped, "spec": spec}


def _sizes(platform: Platform) -> Counter[int]:
    (resource,) = platform.description.resources
    children = platform.server.all_of(resource).values()
    return Counter(child["spec"]["forProvider"]["connectionLimit"] for child in children)


def _offered(platform: Platform) -> dict[str, list[Object]]:
    """Return the fields that claims may have, by the hash of the content that they were computed of."""
    status = status_of(platform.server.all_of(names.COMPOSITIONS)[_COMPOSITION])
    return {status["offers"]["hash"]: status["offers"]["fields"]}


def _synced(platform: Platform) -> Counter[str]:
    return Counter([(find(platform.server.all_of(names.COMPOSITIONS)[_COMPOSITION], "Synced") or {})["reason"]])
