"""Random edits of a claim and of what it is made by: what `fairlead plan` says of them, beside what then happens."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import msgspec

from apis import names
from fairlead import plan as planning
from fairlead.assets import assets
from fairlead.cluster import every_object
from fairlead.kube_options import USUAL, Server
from fairlead.plan_clouds import LEAVES_THE_QUEUE, CloudChange
from fairlead.plan_diff import Change
from fairlead.simulation.clouds import CloudDescription
from fairlead.simulation.platform import CLAIMS
from fairlead.yaml_files import objects_in
from runtime.conditions import find
from runtime.kube import Kube
from runtime.objects import CONFIG_MAPS, Key, Object, Resource, dumps, key_of, loads
from tests.simulation.history import PERSON

_OF_THE_COMPOSITION: Final = 0.2
_OF_THE_ENVIRONMENT: Final = 0.3
_OF_THE_CONFIG: Final = 0.45
_OF_THE_PIN: Final = 0.5
_REFUSALS: Final = frozenset({"InvalidValue", "LimitReached", "NotAllowed", "UnsupportedVersion"})
_AT_ONCE: Final = frozenset({"in place", "restarts", "locks out", "loses data"})
Children = Mapping[str, Object]


@dataclass(frozen=True, slots=True)
class Place:
    """What is edited: a claim, its Composition and its environment, in one cloud."""

    cloud: CloudDescription
    claim: Key
    composition: Key
    environment: Key

    @property
    def config(self) -> tuple[Resource, Key]:
        """Its ProviderConfig."""
        return self.cloud.provider.config_resource, Key("", "default")

    def first(self) -> tuple[Object, Object]:
        """Return the shipped Composition, of which an environment says how large the largest size is, and that."""
        (shipped,) = objects_in(assets("compositions"), f"postgres-{self.cloud.name}.yaml")
        spec = loads(dumps(shipped["spec"]))
        spec["environments"] = [*spec.get("environments", ()), self.environment.name]
        (field, *_), sizes = spec["variables"]["sizes"]["large"], spec["variables"]["sizes"]
        sizes["large"][field] = f"{{{{ env.{self.environment.name}.cpus * {sizes['large'][field]} // 2 }}}}"
        body = {**shipped, "metadata": {**shipped["metadata"], "name": self.composition.name}, "spec": spec}
        return body, self.settings("2")

    def settings(self, cpus: str) -> Object:
        """Return the environment with this number of processors."""
        return _object(CONFIG_MAPS, self.environment, data={"cpus.yaml": cpus})

    async def children(self, kube: Kube) -> Children:
        """Return the resources of the claim, by name."""
        listed = [
            {"kind": resource.kind, **obj}
            for resource in self.cloud.resources
            async for obj in every_object(kube, resource, self.claim.namespace)
        ]
        return {key_of(obj).name: obj for obj in listed}


@dataclass(frozen=True, slots=True)
class Edit:
    """One object as its file has it after an edit."""

    resource: Resource
    key: Key
    body: Object

    async def apply(self, kube: Kube) -> None:
        """Make it, as a person does."""
        part = "data" if self.resource == CONFIG_MAPS else "spec"
        operations = [{"op": "add", "path": f"/{part}", "value": self.body[part]}]
        await kube.json_patch(self.resource, self.key, operations, manager=PERSON)


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


@dataclass(frozen=True, slots=True)
class Planned:
    """An edit, what the plan says of children, and these before it."""

    edit: Edit
    changes: tuple[Change, ...]
    before: Children

    def compare(self, after: Children) -> Compared:
        """Return what was said, beside what became of the children."""
        changes = self.changes
        open_effects = ("waits", "not known")
        follows = {(change.name, of.path) for change in changes for of in change.cloud if of.effect in open_effects}
        shown, shown_then = _versions(self.before), _versions(after)
        return Compared(
            self.edit.body,
            _without(_held(after, changes), follows),
            _without({name: _held_in(child) for name, child in after.items()}, follows),
            {change.name for change in changes if any(map(_shows, change.cloud))},
            # Of what nothing was shown before, as it was not made yet, no change is seen.
            {name for name, version in shown_then.items() if shown.get(name) not in (None, version)},
            _refused(self.before, changes),
            {name for name, child in after.items() if _is_refused(child)},
        )


async def planned(kube: Kube, place: Place, edit: Edit, file: Path, server: Server = USUAL) -> Planned:
    """Plan an edit by its file."""
    file.write_bytes(msgspec.json.encode(edit.body))  # noqa: ASYNC240 - a small file
    outcome = await planning.plan(planning.Options((file,), server=server))
    changes = tuple(change for of_claim in outcome.claims for change in of_claim.changes)
    return Planned(edit, changes, await place.children(kube))


async def draw(kube: Kube, place: Place, chance: random.Random) -> Edit:
    """Return an edit of the claim, five of ten, or of its Composition, its environment, its ProviderConfig, its pin."""
    number = chance.random()
    if number < _OF_THE_COMPOSITION:
        return _edit_of_the_composition(await kube.get(names.COMPOSITIONS, place.composition), place, chance)
    if number < _OF_THE_ENVIRONMENT:
        return Edit(CONFIG_MAPS, place.environment, place.settings(chance.choice(("2", "3", "4"))))
    if number < _OF_THE_CONFIG:
        return _edit_of_the_config(await kube.get(*place.config), place, chance)
    claim = await kube.get(CLAIMS, place.claim)
    spec = {name: value for name, value in (claim["spec"] | _fields(chance)).items() if value is not None}
    if number < _OF_THE_PIN and spec.pop("compositionRevisionRef", None) is None:
        spec["compositionRevisionRef"] = {"name": claim["status"]["composition"]["revision"]}
    return Edit(CLAIMS, place.claim, _object(CLAIMS, place.claim, spec=spec))


def _object(resource: Resource, key: Key, **body: Object) -> Object:
    meta = {"name": key.name, **({"namespace": key.namespace} if key.namespace else {})}
    return {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": meta, **body}


def _edit_of_the_composition(composition: Object, place: Place, chance: random.Random) -> Edit:
    """Return a Composition in which one number of a size is another."""
    spec = loads(dumps(composition["spec"]))
    size = spec["variables"]["sizes"][chance.choice(("small", "medium"))]
    field = chance.choice([name for name, value in size.items() if isinstance(value, int)])
    size[field] += chance.choice((1, 2, 4)) * (10 if field == "storageGiB" else 1)
    return Edit(names.COMPOSITIONS, place.composition, _object(names.COMPOSITIONS, place.composition, spec=spec))


def _edit_of_the_config(config: Object, place: Place, chance: random.Random) -> Edit:
    """Return a ProviderConfig with another limit, or one that the claim's namespace may use or may not."""
    spec, limits = dict(config["spec"]), dict(config["spec"].get("limits") or {})
    own, is_open = place.cloud.name, "selector" in spec["allowedNamespaces"]
    match chance.choice(("namespaces", "storage", "sizes")) if is_open else "namespaces":
        case "namespaces":
            spec["allowedNamespaces"] = {"names": ["elsewhere"]} if is_open else {"selector": {}}
        case "sizes" if own == "onprem":
            spec["extensions"] = chance.choice(([], ["pg_trgm"]))
        case "sizes":
            limits["tiers" if own == "gcp" else "classes"] = chance.choice((["db-none"], None))
        case _ if own != "onprem":
            limits["storageGiB"] = chance.choice((32 if own == "azure" else 10, 70, None))
    spec["limits"] = {name: value for name, value in limits.items() if value is not None}
    return Edit(*place.config, _object(*place.config, spec=spec))


def _fields(chance: random.Random) -> Object:
    edits: tuple[Object, ...] = (
        {"size": chance.choice(("small", "medium", "large"))},
        {"version": chance.choice(("16", "16", "17"))},
        {"highAvailability": chance.random() < 1 / 4},
        {"backup": chance.choice(({"retentionDays": 9}, {"retentionDays": 14}, None, None))},
        {"deletionProtection": chance.random() < 1 / 2},
    )
    return {name: value for edit in chance.sample(edits, 2) for name, value in edit.items()}


def _shows(change: CloudChange) -> bool:
    """Return whether the cloud shows another value at once."""
    return bool(change.path) and change.effect in _AT_ONCE and change.why != LEAVES_THE_QUEUE


def _versions(children: Children) -> dict[str, Any]:
    """Return of each child what its cloud showed last of the fields of its spec.

    A version is shown as far as it is asked for: an edit of what is asked for changes nothing of it.
    """
    shown = {name: ((child.get("status") or {}).get("observed") or {}) for name, child in children.items()}
    return {name: _of_majors(observed.get("forProvider")) for name, observed in shown.items()}


def _of_majors(fields: Object | None) -> Object | None:
    version = (fields or {}).get("engineVersion")
    return {**fields, "engineVersion": version.partition(".")[0]} if fields and version else fields


def _held(children: Children, changes: Iterable[Change]) -> dict[str, set[str]]:
    """Return what the plan holds of each child: of those that it changes, by it; of others as it stands."""
    present = {name: _held_in(child) for name, child in children.items()}
    present |= {
        change.name: {field.path for field in change.cloud if field.path and field.effect not in _AT_ONCE}
        for change in changes
        if change.cloud
    }
    return present


def _refused(children: Children, changes: Iterable[Change]) -> set[str]:
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
    return {entry["path"] for entry in (child.get("status") or {}).get("drift") or () if entry["action"] == "Held"}
