"""`fairlead plan`: what an edited claim or Composition would do, by the composer's own decisions on what lives now.

Reads the API server and writes nothing. What a provider would do in its cloud is the provider's to say.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from apis import names
from composer import inventory
from composer.causes import Cause
from composer.claim.compose import Prepared, Preparer
from composer.claim.decide import decide
from composer.claim.snapshot import ObservedChild, Snapshot
from composer.composition.revision import Candidate, Revision, candidates, reused_names, revisions
from composer.kinds.catalog import Catalog, catalog
from composer.models import RolloutStatus
from composer.render.render import Rendered, render
from composer.render.request import Request
from composer.validation.validate import CheckRequest, check
from fairlead.cluster import connected, current_namespace, every_object
from fairlead.discovery import Discovery
from fairlead.edits import Edits, edits_in
from fairlead.exits import CommandError, Exit
from fairlead.kube_options import USUAL, Server
from fairlead.offerings import also_refused, offerings_of
from fairlead.plan_clouds import Clouds, config_place, provider_of
from fairlead.plan_configs import ConfigEdits
from fairlead.plan_diff import ClaimPlan, Renders, blocked, changes_of, homeless, moved_connection
from fairlead.rendering import NO_UID, checked_claim, located
from fairlead.yaml_files import Document, invalid
from runtime import clock
from runtime.conditions import timestamp
from runtime.errors import Forbidden, NotFound
from runtime.kube import Kube
from runtime.objects import (
    CONFIG_MAPS,
    CRDS,
    NAMESPACES,
    Key,
    Object,
    Resource,
    annotations_of,
    generation_of,
    key_of,
    labels_of,
    metadata,
    status_of,
)

_EDITED = "edited"
_RIGHTS = (
    "`fairlead plan` reads Compositions, their revisions, CRDs and environments: ask the platform team for the role "
    "fairlead-plan (deploy/README.md)"
)


@dataclass(frozen=True, slots=True)
class Options:
    """What is edited, and where it lives. `settings` is the namespace of the composer and of its environments."""

    paths: tuple[Path, ...]
    namespace: str | None = None
    server: Server = USUAL
    settings: str = "fairlead-system"


@dataclass(frozen=True, slots=True)
class Outcome:
    """The plans of all claims, and what is to be said of the files."""

    claims: tuple[ClaimPlan, ...]
    remarks: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Library:
    """Compositions, revisions and settings as they are, or as they would be."""

    compositions: tuple[Object, ...]
    known: tuple[Revision, ...]
    settings: dict[str, dict[str, str]]

    def candidates(self, api_version: str, kind: str) -> tuple[Candidate, ...]:
        return candidates(self.compositions, api_version, kind)

    def revisions(self, composition: str) -> tuple[Revision, ...]:
        return tuple(revision for revision in self.known if revision.composition_name == composition)

    def environment(self, name: str) -> dict[str, str] | None:
        return self.settings.get(name)

    def edited(self, edits: Edits) -> _Library:
        """Return the library with these Compositions and environments in the place of those that there are.

        Every earlier revision stays: a claim may be pinned to it.
        """
        new = {str(metadata(composition.content)["name"]): composition.content for composition in edits.compositions}
        kept = [composition for composition in self.compositions if metadata(composition)["name"] not in new]
        reading = {
            str(metadata(composition)["name"]): composition
            for composition in kept
            if _reads(composition["spec"], edits.environments)
        }
        number = 1 + max((revision.number for revision in self.known), default=0)
        reached = RolloutStatus(revision=number, phase="Finished")
        made = (Revision(_EDITED, number, name, obj["spec"], reached) for name, obj in (reading | new).items())
        return _Library((*kept, *new.values()), (*self.known, *made), {**self.settings, **edits.settings()})

    def reading(self, environments: Collection[str]) -> dict[str, Mapping[str, str]]:
        """Return the kind of claim of each Composition that reads one of these environments in some revision."""
        specs = [(str(metadata(composition)["name"]), composition["spec"]) for composition in self.compositions]
        specs += [(revision.composition_name, revision.composition) for revision in self.known]
        return {name: spec["compositeTypeRef"] for name, spec in specs if _reads(spec, environments)}


class _Here:
    """Renders in this process: what is planned is the person's own."""

    async def render(self, request: Request) -> Rendered:
        return render(request)


async def plan(options: Options) -> Outcome:
    """Plan every claim of the files, and every claim that uses a Composition or an environment of them.

    Raises CommandError for bad files and for what the person may not read, ApiError when the server cannot be asked.
    """
    edits = edits_in(options.paths, options.settings)
    async with connected(options.server) as kube:
        try:
            cluster = await _Cluster.read(kube, options, edits)
            config_edits = await ConfigEdits.read(kube, edits)
            cluster.configs.update(config_edits.configs())
            cluster.check()
            plans = [await cluster.of_file(file) for file in edits.claims]
            seen = {plan.claim for plan in plans}
            for name, claim_type in cluster.concerned().items():
                plans += [await cluster.of_live(claim) for claim in await cluster.users(name, claim_type, seen)]
            clouds = Clouds(clock.now(), cluster.configs)
            plans = await config_edits.added_to(plans, options.namespace or "", clouds)
        except Forbidden as error:
            raise CommandError(f"{error}; {_RIGHTS}") from error
    return Outcome(tuple(plans), (*edits.remarks, *_elsewhere(edits, options.namespace), *sorted(cluster.remarks)))


def _elsewhere(edits: Edits, namespace: str | None) -> Iterator[str]:
    """Say of claims that they name another namespace than the one that was asked for."""
    for claim in edits.claims:
        home = str(metadata(claim.content).get("namespace") or "")
        if namespace and home not in ("", namespace):
            yield (
                f"{claim.place('metadata.namespace')}: planned in namespace {home}, which the file names;"
                f" -n {namespace} is for claims that name none"
            )


@dataclass(frozen=True, slots=True)
class _Cluster:
    """What is read once for all claims."""

    kube: Kube
    discovery: Discovery
    options: Options
    kinds: Catalog
    edits: Edits
    library: _Library
    edited: _Library
    configs: dict[tuple[str, str], Object] = field(default_factory=dict)
    remarks: set[str] = field(default_factory=set)

    @classmethod
    async def read(cls, kube: Kube, options: Options, edits: Edits) -> _Cluster:
        crds, compositions, known = await asyncio.gather(
            _all(kube, CRDS), _all(kube, names.COMPOSITIONS), _all(kube, names.REVISIONS)
        )
        written = (*compositions, *(composition.content for composition in edits.compositions))
        specs = [composition.get("spec") or {} for composition in written]
        specs += [revision["spec"].get("composition") or {} for revision in known]
        named = sorted({str(name) for spec in specs for name in spec.get("environments") or ()})
        data = await asyncio.gather(*(_environment(kube, Key(options.settings, name)) for name in named))
        settings = {name: content for name, content in zip(named, data, strict=True) if content is not None}
        library = _Library(tuple(compositions), revisions(known), settings)
        return cls(kube, Discovery(kube), options, catalog(crds), edits, library, library.edited(edits))

    def check(self) -> None:
        """Check the edited Compositions, and those that read an edited environment, as the composer does.

        Raises CommandError with the place of each fault that the edit brings.
        """
        edited = {str(metadata(document.content)["name"]): document for document in self.edits.compositions}
        for name, file in edited.items():
            spec = file.content["spec"]
            problems = check(CheckRequest(spec, self.kinds, self.edited.settings))
            problems = problems or reused_names(spec, self.library.revisions(name))
            if problems:
                raise located(file, problems)
        for composition in self.library.compositions:
            name, spec = str(metadata(composition)["name"]), composition["spec"]
            if name not in edited and _reads(spec, self.edits.environments):
                self._check_environments(name, spec)

    def _check_environments(self, composition: str, spec: dict[str, Any]) -> None:
        before = check(CheckRequest(spec, self.kinds, self.library.settings))
        problems = [
            problem for problem in check(CheckRequest(spec, self.kinds, self.edited.settings)) if problem not in before
        ]
        if problems:
            files = ", ".join(
                str(self.edits.environments[name].path) for name in _read_by(spec, self.edits.environments)
            )
            lines = (
                f"{files}: with it Composition {composition} fails: {problem} [{problem.reason}]"
                for problem in problems
            )
            raise CommandError("\n".join(lines), exit_code=Exit.INVALID_INPUT)

    def concerned(self) -> dict[str, Mapping[str, str]]:
        """Return the kind of claim of every Composition whose claims the edit may change, by its name."""
        edited = {
            str(metadata(composition.content)["name"]): composition.content["spec"]
            for composition in self.edits.compositions
        }
        named = {name: spec["compositeTypeRef"] for name, spec in edited.items()}
        return {**named, **self.edited.reading(self.edits.environments)}

    async def of_file(self, document: Document) -> ClaimPlan:
        """Plan a claim as a file has it: as an edit of the one that lives, or as a new one."""
        written = checked_claim(document, NO_UID, self.kinds)
        resource = await self._resource(document)
        namespace = str(metadata(document.content).get("namespace") or self._namespace())
        try:
            live: Object | None = await self.kube.get(resource, Key(namespace, metadata(written)["name"]))
        except NotFound:
            live = None
            await self._remark_source(resource, written, namespace)
        return await self._plan(resource, _merged(written, live, namespace), live)

    async def _remark_source(self, resource: Resource, written: Object, namespace: str) -> None:
        """Say of a claim to be made that the claim from which it is to be restored does not live here."""
        source = str(((written.get("spec") or {}).get("restoreFrom") or {}).get("claim") or "")
        if not source:
            return
        try:
            await self.kube.get(resource, Key(namespace, source))
        except NotFound:
            self.remarks.add(
                f"{namespace}/{metadata(written)['name']}: spec.restoreFrom.claim: there is no claim {source} in"
                f" namespace {namespace}; only a backup that it left can be restored, and its provider alone sees those"
            )

    async def of_live(self, live: Object) -> ClaimPlan:
        """Plan what an edited Composition does to a claim that lives."""
        resource = await self.discovery.resource_of(live["apiVersion"], live["kind"])
        assert resource is not None, "its kind was listed"  # noqa: S101 - for the type
        return await self._plan(resource, live, live)

    async def users(self, composition: str, claim_type: Mapping[str, str], planned: set[str]) -> list[Object]:
        """Return the claims that use a Composition and are not planned yet."""
        resource = await self.discovery.resource_of(claim_type["apiVersion"], claim_type["kind"])
        if resource is None:
            raise CommandError(
                f"Composition {composition}: the API server serves no kind {claim_type['kind']} of "
                f"{claim_type['apiVersion']}",
                exit_code=Exit.INVALID_INPUT,
            )
        try:
            listed = await _all(self.kube, resource, self.options.namespace or "")
        except Forbidden as error:
            if self.options.namespace:
                raise
            raise CommandError(f"{error}; name the namespace that you may read: -n NAMESPACE") from error
        claims = ({"apiVersion": resource.api_version, "kind": resource.kind, **item} for item in listed)
        return [claim for claim in claims if _uses(claim, composition) and str(key_of(claim)) not in planned]

    async def _plan(self, resource: Resource, claim: Object, live: Object | None) -> ClaimPlan:
        known, home = await self._around(claim)
        edited_home = self.edits.home(key_of(claim).namespace, home)
        snapshot = Snapshot(claim, resource, edited_home, kind_deleting=False, catalog=self.kinds, children=known)
        prepared = await Preparer(self.edited, _Here()).prepare(snapshot)
        label = str(key_of(claim))
        if not isinstance(prepared, Prepared):
            more = self._also_refused(prepared.composition, claim, prepared.causes)
            return ClaimPlan(label, prepared.composition, blocked((*prepared.causes, *more)))
        before = None
        if live is not None:
            snapshot = Snapshot(live, resource, home, kind_deleting=False, catalog=self.kinds, children=known)
            earlier = await Preparer(self.library, _Here()).prepare(snapshot)
            before = earlier.rendered if isinstance(earlier, Prepared) else None
        clouds = await self._clouds((child.object for child in prepared.rendered.children), known, edited_home)
        decided = decide(prepared.snapshot, prepared.rendered, now=timestamp(clouds.now))
        changes = changes_of(decided, Renders(prepared.rendered, before), clouds, is_new=live is None)
        changes = (*changes, *moved_connection(live, claim))
        return ClaimPlan(label, prepared.composition, changes if edited_home else (*changes, homeless(claim)))

    def _also_refused(self, name: str, claim: Object, causes: tuple[Cause, ...]) -> tuple[Cause, ...]:
        """Return what else a refused claim asks for that its Composition does not serve: a render ends at the first."""
        served = (obj for obj in self.edited.compositions if metadata(obj)["name"] == name)
        composition = next(served, None)
        if composition is None or not any(refused.reason.startswith("Unsupported") for refused in causes):
            return ()
        request = CheckRequest(composition["spec"], self.kinds, self.edited.settings)
        return also_refused(offerings_of(composition, request), claim, causes)

    async def _clouds(self, children: Iterable[Object], known: Iterable[ObservedChild], home: Object | None) -> Clouds:
        """Read the ProviderConfigs that serve children; `known` are those that there are."""
        groups = ((str(child["apiVersion"]).partition("/")[0], child) for child in children)
        places = {config_place(group, child) for group, child in groups if provider_of(group) is not None}
        for group, name in sorted(places - set(self.configs)):
            provider = provider_of(group)
            assert provider is not None, "it was asked for above"  # noqa: S101 - for the type
            try:
                self.configs[group, name] = await self.kube.get(provider.config_resource, Key("", name))
            except NotFound:
                continue
            except Forbidden:
                self.remarks.add(f"the limits of ProviderConfigs of {group} are not considered: you may not read them")
        live = [child.live for child in known if child.live is not None]
        called = {(str(obj["kind"]), key_of(obj).name): str(status_of(obj).get("externalName", "")) for obj in live}
        return Clouds(clock.now(), self.configs, called, home)

    async def _around(self, claim: Object) -> tuple[tuple[ObservedChild, ...], Object | None]:
        """Read the children of a claim and its namespace, None where there is none."""
        entries = inventory.load(claim.get("status") or {})
        namespace = key_of(claim).namespace
        known = await asyncio.gather(*(self._known(entry, namespace) for entry in entries))
        try:
            home: Object | None = await self.kube.get(NAMESPACES, Key("", namespace))
        except NotFound:
            home = None
        return tuple(known), home

    async def _known(self, entry: inventory.Entry, namespace: str) -> ObservedChild:
        facts = self.kinds.get(entry.group_kind)
        if facts is None:
            return ObservedChild(entry, None, None, unseen=bool(entry.uid))
        try:
            return ObservedChild(entry, await self.kube.get(facts.resource, Key(namespace, entry.name)), facts)
        except NotFound:
            return ObservedChild(entry, None, facts)

    async def _resource(self, document: Document) -> Resource:
        content = document.content
        resource = await self.discovery.resource_of(content["apiVersion"], content["kind"])
        if resource is None:
            raise invalid(document.place("kind"), f"the API server serves no kind {content['kind']}")
        return resource

    def _namespace(self) -> str:
        return self.options.namespace or current_namespace(self.options.server)


def _merged(written: Object, live: Object | None, namespace: str) -> Object:
    """Return the claim as it would be once the file was applied."""
    if live is None:
        return {**written, "metadata": {**metadata(written), "namespace": namespace, "generation": 1}}
    meta = {
        **metadata(live),
        "labels": {**labels_of(live), **labels_of(written)},
        "annotations": {**annotations_of(live), **annotations_of(written)},
        "generation": generation_of(live) + (written.get("spec") != live.get("spec")),
    }
    return {
        **live,
        "apiVersion": written["apiVersion"],
        "kind": written["kind"],
        "metadata": meta,
        "spec": written["spec"],
    }


def _uses(claim: Object, composition: str) -> bool:
    return str(((claim.get("status") or {}).get("composition") or {}).get("name") or "") == composition


def _reads(spec: Mapping[str, Any], environments: Collection[str]) -> bool:
    return bool(_read_by(spec, environments))


def _read_by(spec: Mapping[str, Any], environments: Collection[str]) -> list[str]:
    return [str(name) for name in spec.get("environments") or () if name in environments]


async def _environment(kube: Kube, key: Key) -> dict[str, str] | None:
    try:
        return dict((await kube.get(CONFIG_MAPS, key)).get("data") or {})
    except NotFound:
        return None


async def _all(kube: Kube, resource: Resource, namespace: str = "") -> list[Object]:
    return [obj async for obj in every_object(kube, resource, namespace)]
