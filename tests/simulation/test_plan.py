"""What `fairlead plan` says of the cloud is what then happens: random edits, planned, applied, and compared."""

from __future__ import annotations

import asyncio
import os
import random
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

import msgspec
import pytest

from apis import names
from fairlead import plan as planning
from fairlead.assets import assets
from fairlead.plan_clouds import LEAVES_THE_QUEUE, CloudChange
from fairlead.plan_diff import Change
from fairlead.simulation import clouds, virtual_time
from fairlead.simulation.platform import CLAIMS, Platform
from fairlead.simulation.virtual_time import chance_of
from fairlead.yaml_files import objects_in
from runtime import clock
from runtime.conditions import find
from runtime.kube import Kube
from runtime.objects import CONFIG_MAPS, Key, Object, Resource, dumps, loads
from tests.simulation.cast import Cast
from tests.simulation.history import PERSON, TEAM

pytestmark = pytest.mark.slow

EDITS: Final = int(os.environ.get("EDITS", "25"))
"""How many edits of each cloud; `make faults` has more."""
_CLAIM: Final = Key(TEAM, "orders")
_ENVIRONMENT: Final = Key("fairlead-system", "tuning")
_ENOUGH_S: Final = 1800.0
_OF_THE_COMPOSITION: Final = 0.2
_OF_THE_ENVIRONMENT: Final = 0.3
_OF_THE_CONFIG: Final = 0.45
_OF_THE_PIN: Final = 0.5
_REFUSALS: Final = frozenset({"InvalidValue", "LimitReached", "NotAllowed", "UnsupportedVersion"})
_AT_ONCE: Final = frozenset({"in place", "restarts", "locks out", "loses data"})


@dataclass(frozen=True, slots=True)
class Edit:
    """One object as its file has it after an edit."""

    resource: Resource
    key: Key
    body: Object


@dataclass(frozen=True, slots=True)
class Compared:
    """One edit: what the plan holds of each child, which it changes and refuses as a whole, and what then was so."""

    edit: Object
    held: dict[str, set[str]]
    held_then: dict[str, set[str]]
    changed: set[str]
    changed_then: set[str]
    refused: set[str]
    refused_then: set[str]

    def is_so(self) -> bool:
        """Return whether what was said is what happened."""
        said, then = (self.held, self.changed, self.refused), (self.held_then, self.changed_then, self.refused_then)
        return said == then


@pytest.mark.parametrize("cloud", clouds.NAMES)
def test_what_plan_says_of_the_cloud_is_what_then_happens(
    cloud: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    compared = virtual_time.run(f"plan {cloud}", lambda: _edits(cloud, tmp_path, monkeypatch))

    assert [edit for edit in compared if not edit.is_so()] == []
    # A server that runs another major version than is wanted refuses the other fields, too.
    assert any(edit.changed for edit in compared)
    assert any(edit.held for edit in compared)


async def _edits(cloud: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> list[Compared]:
    platform = Platform(f"plan {cloud}", virtual_time.Trace(), clouds.described(cloud))
    platform.install((TEAM,), [_composition(cloud)])

    @asynccontextmanager
    async def connect(_: object) -> AsyncIterator[Kube]:
        yield platform.server

    monkeypatch.setattr(planning, "connected", connect)
    background, cast = platform.background(), Cast(platform, "plan")
    await platform.server.create(CONFIG_MAPS, _environment({"cpus": "2"}), manager=PERSON)
    for process in ("composer", platform.description.provider_process):
        await platform.start(process)
    spec: Object = {"version": "16", "size": "small", "deletionPolicy": "Delete"}
    await cast.make(CLAIMS, _CLAIM, dict(spec))
    await asyncio.sleep(_ENOUGH_S)
    compared = []
    for number in range(EDITS):
        edited = _edit(platform, chance_of(cloud, f"edit {number}"))
        await _pass_the_opening_of_a_window()
        compared.append(await _compare(platform, cast, edited, folder / "edit.json"))
    for process in tuple(platform.processes):
        await platform.kill(process)
    for task in background:
        task.cancel()
    return compared


def _composition(cloud: str) -> Object:
    """Return the shipped Composition, of which an environment says how large the largest size is."""
    (shipped,) = objects_in(assets("compositions"), f"postgres-{cloud}.yaml")
    spec = loads(dumps(shipped["spec"]))
    spec["environments"] = [*spec.get("environments", ()), _ENVIRONMENT.name]
    (field, *_), sizes = spec["variables"]["sizes"]["large"], spec["variables"]["sizes"]
    sizes["large"][field] = f"{{{{ env.tuning.cpus * {sizes['large'][field]} // 2 }}}}"
    return {**shipped, "spec": spec}


def _environment(data: Mapping[str, str]) -> Object:
    meta = {"name": _ENVIRONMENT.name, "namespace": _ENVIRONMENT.namespace}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": {"cpus.yaml": data["cpus"]}}


async def _pass_the_opening_of_a_window() -> None:
    """Let a window open before an edit and not after it: the clouds make then by themselves what waits for it."""
    now = clock.now()
    opening = now.replace(hour=3, minute=5, second=0)
    if timedelta() < opening - now <= timedelta(seconds=_ENOUGH_S) + timedelta(minutes=5):
        await asyncio.sleep((opening - now).total_seconds())


def _edit(platform: Platform, chance: random.Random) -> Edit:
    """Return an edit of the claim, five of ten, or of its Composition, its environment, its ProviderConfig, its pin."""
    draw = chance.random()
    if draw < _OF_THE_COMPOSITION:
        return _edit_of_the_composition(platform, chance)
    if draw < _OF_THE_ENVIRONMENT:
        return Edit(CONFIG_MAPS, _ENVIRONMENT, _environment({"cpus": chance.choice(("2", "3", "4"))}))
    if draw < _OF_THE_CONFIG:
        return _edit_of_the_config(platform, chance)
    claim = platform.server.all_of(CLAIMS)[_CLAIM]
    spec = {name: value for name, value in (claim["spec"] | _fields(chance)).items() if value is not None}
    if draw < _OF_THE_PIN and spec.pop("compositionRevisionRef", None) is None:
        spec["compositionRevisionRef"] = {"name": claim["status"]["composition"]["revision"]}
    return Edit(CLAIMS, _CLAIM, _claim(spec))


def _claim(spec: Object) -> Object:
    meta = {"name": _CLAIM.name, "namespace": TEAM}
    return {"apiVersion": CLAIMS.api_version, "kind": CLAIMS.kind, "metadata": meta, "spec": spec}


def _edit_of_the_composition(platform: Platform, chance: random.Random) -> Edit:
    """Return a Composition in which one number of a size is another."""
    ((key, composition),) = platform.server.all_of(names.COMPOSITIONS).items()
    spec = loads(dumps(composition["spec"]))
    size = spec["variables"]["sizes"][chance.choice(("small", "medium"))]
    field = chance.choice([name for name, value in size.items() if isinstance(value, int)])
    size[field] += chance.choice((1, 2, 4)) * (10 if field == "storageGiB" else 1)
    body = {"apiVersion": composition["apiVersion"], "kind": composition["kind"], "metadata": {"name": key.name}}
    return Edit(names.COMPOSITIONS, key, {**body, "spec": spec})


def _edit_of_the_config(platform: Platform, chance: random.Random) -> Edit:
    """Return a ProviderConfig with another limit, or one that the claim's namespace may use or may not."""
    resource, key = platform.description.provider.config_resource, Key("", "default")
    config = platform.server.all_of(resource)[key]
    spec, limits = dict(config["spec"]), dict(config["spec"].get("limits") or {})
    own = platform.description.name
    is_open = "selector" in spec["allowedNamespaces"]
    match chance.choice(("namespaces", "storage", "sizes")) if is_open else "namespaces":
        case "namespaces":
            spec["allowedNamespaces"] = {"names": ["elsewhere"]} if is_open else {"selector": {}}
        case "sizes" if own == "onprem":
            spec["extensions"] = chance.choice(([], ["pg_trgm"]))
        case "sizes":
            limits["tiers" if own == "gcp" else "classes"] = chance.choice((["db-none"], None))
        case _ if own != "onprem":
            limits["storageGiB"] = chance.choice((10, 70, None))
    spec["limits"] = {name: value for name, value in limits.items() if value is not None}
    body = {"apiVersion": config["apiVersion"], "kind": config["kind"], "metadata": {"name": key.name}}
    return Edit(resource, key, {**body, "spec": spec})


def _fields(chance: random.Random) -> Object:
    edits: tuple[Object, ...] = (
        {"size": chance.choice(("small", "medium", "large"))},
        {"version": chance.choice(("16", "16", "17"))},
        {"highAvailability": chance.random() < 1 / 4},
        {"backup": chance.choice(({"retentionDays": 9}, {"retentionDays": 14}, None, None))},
        {"deletionProtection": chance.random() < 1 / 2},
    )
    return {name: value for edit in chance.sample(edits, 2) for name, value in edit.items()}


async def _compare(platform: Platform, cast: Cast, edited: Edit, file: Path) -> Compared:
    file.write_bytes(msgspec.json.encode(edited.body))  # noqa: ASYNC240 - time is virtual: no task waits meanwhile
    outcome = await planning.plan(planning.Options((file,)))
    changes = [change for planned in outcome.claims for change in planned.changes]
    began, before, before_children = clock.monotonic(), _versions(platform), _children(platform)
    part = "data" if edited.resource == CONFIG_MAPS else "spec"
    await cast.edit(edited.resource, edited.key, f"/{part}", edited.body[part])
    await asyncio.sleep(_ENOUGH_S)
    assert began < clock.monotonic()
    after = _versions(platform)
    follows = {(change.name, field.path) for change in changes for field in change.cloud if field.effect == "waits"}
    held, held_then = _held(platform, changes), {name: _held_in(child) for name, child in _children(platform).items()}
    return Compared(
        edited.body,
        _without(held, follows),
        _without(held_then, follows),
        {change.name for change in changes if any(map(_shows, change.cloud))},
        {name for name, version in after.items() if before.get(name, version) != version},
        _refused(before_children, changes),
        {name for name, child in _children(platform).items() if _is_refused(child)},
    )


def _shows(change: CloudChange) -> bool:
    """Return whether the cloud shows another value at once."""
    return bool(change.path) and change.effect in _AT_ONCE and change.why != LEAVES_THE_QUEUE


def _children(platform: Platform) -> dict[str, Object]:
    return {
        key.name: child
        for resource in platform.description.resources
        for key, child in platform.server.all_of(resource).items()
    }


def _versions(platform: Platform) -> dict[str, Any]:
    """Return of each child what its cloud showed last of the fields of its spec.

    A version is shown as far as it is asked for: an edit of what is asked for changes nothing of it.
    """
    shown = {name: (child["status"].get("observed") or {}) for name, child in _children(platform).items()}
    return {name: _of_majors(observed.get("forProvider")) for name, observed in shown.items()}


def _of_majors(fields: Object | None) -> Object | None:
    version = (fields or {}).get("engineVersion")
    return {**fields, "engineVersion": version.partition(".")[0]} if fields and version else fields


def _held(platform: Platform, changes: list[Change]) -> dict[str, set[str]]:
    """Return what the plan holds of each child: of those that it changes, by it; of others as it stands."""
    present = {name: _held_in(child) for name, child in _children(platform).items()}
    present |= {
        change.name: {field.path for field in change.cloud if field.path and field.effect not in _AT_ONCE}
        for change in changes
        if change.cloud
    }
    return present


def _refused(children: Mapping[str, Object], changes: list[Change]) -> set[str]:
    """Return which children the plan refuses as a whole: of those that it changes, by it; of others as it stands."""
    refused = {name for name, child in children.items() if _is_refused(child)}
    for change in changes:
        if change.cloud or change.fields:
            whole = any(field.effect == "refused" and not field.path for field in change.cloud)
            refused = refused | {change.name} if whole else refused - {change.name}
    return refused


def _is_refused(child: Object) -> bool:
    synced = find(child, "Synced") or {}
    return synced.get("reason") in _REFUSALS and not _held_in(child)


def _without(held: Mapping[str, set[str]], follows: set[tuple[str, str]]) -> dict[str, set[str]]:
    """Return what is held, without what follows by itself after other changes."""
    left = {name: {path for path in paths if (name, path) not in follows} for name, paths in held.items()}
    return {name: paths for name, paths in left.items() if paths}


def _held_in(child: Object) -> set[str]:
    return {entry["path"] for entry in child["status"].get("drift") or () if entry["action"] == "Held"}
