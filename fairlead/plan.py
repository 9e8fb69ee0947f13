"""`fairlead plan`: what an edited claim or Composition would do, by the composer's own decisions on what lives now.

Reads the API server and writes nothing. What a provider would do in its cloud is the provider's to say.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from composer import inventory
from composer.check import CheckRequest, check
from composer.choose import Candidate, Revision, candidates, revisions
from composer.decide import decide
from composer.kinds import Catalog, catalog
from composer.models import RolloutStatus
from composer.moves import reused_names
from composer.prepare import Prepared, Preparer
from composer.render import Rendered, Request, render
from composer.view import Known, View
from fairlead.cluster import Discovery, connected, current_namespace
from fairlead.exits import CommandError, Exit
from fairlead.planning import ClaimPlan, Renders, blocked, changes_of
from fairlead.rendering import NO_UID, checked_claim, located, refuse_unreadable
from fairlead.server import USUAL, Server
from fairlead.yaml_files import Document, documents_in, invalid
from runtime.errors import NotFound
from runtime.kube import Kube, Selection
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
    loads,
    metadata,
)

_COMPOSITIONS = Resource("fairlead.dev", "v1alpha1", "Composition", "compositions", namespaced=False)
_REVISIONS = Resource("fairlead.dev", "v1alpha1", "CompositionRevision", "compositionrevisions", namespaced=False)
_EDITED = "edited"


@dataclass(frozen=True, slots=True)
class Options:
    """What is edited, and where it lives. `settings` is the namespace of the composer and of its environments."""

    paths: tuple[Path, ...]
    namespace: str | None = None
    server: Server = USUAL
    settings: str = "fairlead-system"


@dataclass(frozen=True, slots=True)
class _Library:
    """Compositions, revisions and settings as they are, or as they would be."""

    compositions: tuple[Object, ...]
    known: tuple[Revision, ...]
    settings: dict[str, dict[str, str]]

    def candidates(self, api_version: str, kind: str) -> tuple[Candidate, ...]:
        return candidates(self.compositions, api_version, kind)

    def revisions(self, composition: str) -> tuple[Revision, ...]:
        return tuple(each for each in self.known if each.composition_name == composition)

    def environment(self, name: str) -> dict[str, str] | None:
        return self.settings.get(name)

    def edited(self, documents: Sequence[Document]) -> _Library:
        """Return the library with these Compositions in the place of those that there are."""
        new = {str(metadata(each.content)["name"]): each.content for each in documents}
        kept = (each for each in self.compositions if metadata(each)["name"] not in new)
        number = 1 + max((each.number for each in self.known), default=0)
        reached = RolloutStatus(revision=number, phase="Finished")
        made = (Revision(_EDITED, number, name, obj["spec"], reached) for name, obj in new.items())
        return _Library((*kept, *new.values()), (*self.known, *made), self.settings)


class _Here:
    """Renders in this process: what is planned is the person's own."""

    async def render(self, request: Request) -> Rendered:
        return render(request)


async def plan(options: Options) -> tuple[ClaimPlan, ...]:
    """Plan every claim of the files, and every claim that uses a Composition of them.

    Raises CommandError for bad files, ApiError when the server cannot be asked.
    """
    documents = [each for path in options.paths for each in documents_in(path) if each.content["kind"] != "ConfigMap"]
    compositions = [each for each in documents if each.content["kind"] == "Composition"]
    for each in compositions:
        refuse_unreadable(each)
    claims = [each for each in documents if each.content["kind"] != "Composition"]
    if not documents:
        raise CommandError("the files hold neither a claim nor a Composition", exit_code=Exit.INVALID_INPUT)
    async with connected(options.server) as kube:
        found = await _Cluster.read(kube, options)
        for each in compositions:
            spec, name = each.content["spec"], str(metadata(each.content)["name"])
            problems = check(CheckRequest(spec, found.kinds, found.library.settings))
            problems = problems or reused_names(spec, found.library.revisions(name))
            if problems:
                raise located(each, problems)
        edited = found.library.edited(compositions)
        plans = [await found.of_file(each, edited) for each in claims]
        seen = {each.claim for each in plans}
        for each in compositions:
            plans += [await found.of_live(claim, edited) for claim in await found.users(each, seen)]
    return tuple(plans)


@dataclass(frozen=True, slots=True)
class _Cluster:
    """What is read once for all claims."""

    kube: Kube
    discovery: Discovery
    options: Options
    kinds: Catalog
    library: _Library

    @classmethod
    async def read(cls, kube: Kube, options: Options) -> _Cluster:
        crds, compositions, known, settings = await asyncio.gather(
            _all(kube, CRDS),
            _all(kube, _COMPOSITIONS),
            _all(kube, _REVISIONS),
            _all(kube, CONFIG_MAPS, options.settings),
        )
        data = {key_of(each).name: dict(each.get("data") or {}) for each in settings}
        library = _Library(tuple(compositions), revisions(known), data)
        return cls(kube, Discovery(kube), options, catalog(crds), library)

    async def of_file(self, document: Document, edited: _Library) -> ClaimPlan:
        """Plan a claim as a file has it: as an edit of the one that lives, or as a new one."""
        written = checked_claim(document, NO_UID, self.kinds)
        resource = await self._resource(document)
        namespace = str(metadata(document.content).get("namespace") or self._namespace())
        try:
            live: Object | None = await self.kube.get(resource, Key(namespace, metadata(written)["name"]))
        except NotFound:
            live = None
        return await self._plan(resource, _merged(written, live, namespace), live, edited)

    async def of_live(self, live: Object, edited: _Library) -> ClaimPlan:
        """Plan what an edited Composition does to a claim that lives."""
        resource = await self.discovery.resource_of(live["apiVersion"], live["kind"])
        assert resource is not None, "its kind was listed"  # noqa: S101 - for the type
        return await self._plan(resource, live, live, edited)

    async def users(self, composition: Document, planned: set[str]) -> list[Object]:
        """Return the claims that use a Composition and are not planned yet."""
        named = composition.content["spec"]["compositeTypeRef"]
        resource = await self.discovery.resource_of(named["apiVersion"], named["kind"])
        if resource is None:
            raise invalid(composition.place("spec.compositeTypeRef"), f"the API server serves no kind {named['kind']}")
        name = metadata(composition.content)["name"]
        listed = await _all(self.kube, resource, self.options.namespace or "")
        claims = ({"apiVersion": resource.api_version, "kind": resource.kind, **each} for each in listed)
        return [each for each in claims if _uses(each, name) and str(key_of(each)) not in planned]

    async def _plan(self, resource: Resource, claim: Object, live: Object | None, edited: _Library) -> ClaimPlan:
        view = await self._view(resource, claim)
        prepared = await Preparer(edited, _Here()).prepare(view)
        told = str(key_of(claim))
        if not isinstance(prepared, Prepared):
            return ClaimPlan(told, prepared.composition, blocked(prepared.causes))
        before = None
        if live is not None:
            earlier = await Preparer(self.library, _Here()).prepare(await self._view(resource, live))
            before = earlier.rendered if isinstance(earlier, Prepared) else None
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        decided = decide(prepared.view, prepared.rendered, now=now)
        return ClaimPlan(told, prepared.composition, changes_of(decided, Renders(prepared.rendered, before)))

    async def _view(self, resource: Resource, claim: Object) -> View:
        entries = inventory.load(claim.get("status") or {})
        namespace = key_of(claim).namespace
        known = await asyncio.gather(*(self._known(each, namespace) for each in entries))
        try:
            home: Object | None = await self.kube.get(NAMESPACES, Key("", namespace))
        except NotFound:
            home = None
        return View(claim, resource, home, kind_deleting=False, catalog=self.kinds, known=tuple(known))

    async def _known(self, entry: inventory.Entry, namespace: str) -> Known:
        facts = self.kinds.get(entry.group_kind)
        if facts is None:
            return Known(entry, None, None, unseen=bool(entry.uid))
        try:
            return Known(entry, await self.kube.get(facts.resource, Key(namespace, entry.name)), facts)
        except NotFound:
            return Known(entry, None, facts)

    async def _resource(self, document: Document) -> Resource:
        content = document.content
        found = await self.discovery.resource_of(content["apiVersion"], content["kind"])
        if found is None:
            raise invalid(document.place("kind"), f"the API server serves no kind {content['kind']}")
        return found

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


async def _all(kube: Kube, resource: Resource, namespace: str = "") -> list[Object]:
    found: list[Object] = []
    page = await kube.list_page(resource, Selection(namespace=namespace))
    found += map(loads, page.items)
    while page.next_page:
        page = await kube.list_page(resource, Selection(namespace=namespace), next_page=page.next_page)
        found += map(loads, page.items)
    return found
