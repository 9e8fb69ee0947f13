"""From a claim to what it renders to: chooses composition and revision, gathers environments, renders."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Protocol

from msgspec import UnsetType

from apis import names
from apis.teardown import DeletionPolicy
from composer.causes import Cause, cause
from composer.claim.deletion import effective_policy
from composer.claim.prune_guard import foreign_stateful, stateful_places
from composer.claim.renames import element_origins, moved, origins
from composer.claim.report import Findings
from composer.claim.selection import Standing, admitted, choose, choose_revision, is_way_back, not_allowed
from composer.claim.snapshot import View, without_rests
from composer.composition.revision import Candidate, Revision, kinds_of, readable
from composer.composition.rollout_claims import NOT_YET, is_well, lacks_revision, stands_since
from composer.inventory import load as load_inventory
from composer.kinds.catalog import is_silent
from composer.models import CompositionSpec
from composer.render.errors import CompositionError
from composer.render.floors import floors_of
from composer.render.render import Observed, Rendered, Request
from runtime.objects import Object, annotations_of, dumps, labels_of, metadata

_OF_EACH_WRITE = frozenset({"managedFields", "resourceVersion"})


class Renderer(Protocol):
    """Renders in a place where a template can do no harm."""

    async def render(self, request: Request) -> Rendered:
        """Render one claim; raises CompositionError, or Transient when the worker is lost."""


class Library(Protocol):
    """What is known of Compositions, revisions and environments."""

    def candidates(self, api_version: str, kind: str) -> tuple[Candidate, ...]:
        """Return the Compositions that serve a kind."""

    def revisions(self, composition: str) -> tuple[Revision, ...]:
        """Return the accepted revisions of a Composition."""

    def environment(self, name: str) -> dict[str, str] | None:
        """Return the data of a ConfigMap of our own namespace, or None."""


@dataclass(frozen=True, slots=True)
class Prepared:
    """A claim that can be composed: its revision and what it renders to.

    `view` calls the resources as that revision does; `is_way_back`: the claim leaves a revision that failed;
    `is_new_intent`: claim or revision is another than before, so that fights over fields begin anew; `remarks`: what is
    to be said of the choice itself.
    """

    composition: str
    revision: Revision
    spec: CompositionSpec
    rendered: Rendered
    view: View
    is_way_back: bool = False
    is_new_intent: bool = False
    remarks: tuple[Cause, ...] = ()


@dataclass(frozen=True, slots=True)
class _Chosen:
    composition: str
    revision: Revision
    spec: CompositionSpec
    is_way_back: bool
    outside: Cause | None


@dataclass(frozen=True, slots=True)
class _Unchecked:
    """The Composition is there, and nobody has looked at it yet."""

    cause: Cause


class Preparer:
    """Prepares claims; what cannot be prepared is told, and everything is left as it is."""

    def __init__(self, library: Library, renderer: Renderer) -> None:
        self._library = library
        self._renderer = renderer

    async def prepare(self, view: View) -> Prepared | Findings:
        """Choose and render. Raises Transient when the worker is lost."""
        chosen = self._choose(view)
        if isinstance(chosen, Cause):
            return untouched(view, chosen)
        if isinstance(chosen, _Unchecked):
            return replace(untouched(view, chosen.cause), is_early=True)
        base = replace(
            untouched(view),
            composition=chosen.composition,
            deletion_policy=effective_policy(view, chosen.spec.deletion_policies),
        )
        if chosen.composition == view.chosen and not chosen.is_way_back:
            # What goes wrong from here on is this revision's doing.
            base = replace(base, revision=chosen.revision.name, has_rollout=chosen.revision.has_rollout)
        causes = list(_refusals(view, chosen))
        view = moved(view, chosen.spec)
        is_new = view.is_new_intent(chosen.revision.name)
        view = without_rests(view) if is_new else view
        rendered = await self._render(view, chosen)
        if isinstance(rendered, tuple):
            causes += rendered
        if causes or isinstance(rendered, tuple):
            return replace(base, causes=tuple(causes))
        return Prepared(
            chosen.composition,
            chosen.revision,
            chosen.spec,
            rendered,
            view,
            is_way_back=chosen.is_way_back,
            is_new_intent=is_new,
            remarks=(chosen.outside,) if chosen.outside else (),
        )

    async def _render(self, view: View, chosen: _Chosen) -> Rendered | tuple[Cause, ...]:
        environments = self._environments(chosen.spec)
        if isinstance(environments, Cause):
            return (environments,)
        try:
            return await self._renderer.render(_request(view, chosen, environments))
        except CompositionError as error:
            return tuple(cause(each.reason, str(each), resource=each.resource) for each in error.problems)

    def kinds(self, claim: Object) -> frozenset[str]:
        """Return the kinds of the composition that a claim uses already, so that children are found by label."""
        chosen = (claim.get("status") or {}).get("composition") or {}
        name = annotations_of(claim).get(names.COMPOSITION) or chosen.get("name", "")
        newest = max(self._library.revisions(name), key=lambda each: each.number, default=None)
        return kinds_of(newest.composition) if newest else frozenset()

    def supported_policies(self, view: View) -> tuple[DeletionPolicy, ...] | None:
        """Return the deletion policies of the revision in use; None when it cannot be read any more.

        Where the claim's status was lost, nobody remembers what was in force: nothing is destroyed without a backup,
        and a backup is taken where the claim asks for one, or its deletion is held.
        """
        wanted = (view.status.get("composition") or {}).get("revision")
        if not wanted:
            return ("Orphan", "Snapshot")
        for revision in self._library.revisions(view.chosen):
            if revision.name == wanted:
                spec = readable(revision.composition)
                return spec.deletion_policies if spec else None
        return None

    def _choose(self, view: View) -> _Chosen | _Unchecked | Cause:
        spec = view.spec
        known = self._library.candidates(view.resource.api_version, view.resource.kind)
        known = admitted(known, view.chosen, view.key.namespace, view.namespace_labels)
        chosen = choose(spec, view.chosen, labels_of(view.claim), view.namespace_labels, known)
        if isinstance(chosen, Cause):
            return chosen
        pin = "" if isinstance(spec.composition_revision_ref, UnsetType) else spec.composition_revision_ref.name
        candidate = next(each for each in known if each.name == chosen)
        outside = not_allowed(candidate, view.key.namespace, view.namespace_labels)
        if outside and pin not in ("", (view.status.get("composition") or {}).get("revision")):
            text = f"{outside.message}; spec.compositionRevisionRef may not name another revision of it"
            return cause("NotAllowed", text)
        revisions, standing = self._library.revisions(chosen), _standing(view)
        revision = choose_revision(chosen, pin, revisions, standing=standing, refusal=candidate.refusal)
        if isinstance(revision, Cause):
            return revision if candidate.is_checked else _Unchecked(revision)
        composition = readable(revision.composition)
        if composition is None:
            return cause("SchemaMismatch", f"revision {revision.name} cannot be read")
        return _Chosen(chosen, revision, composition, is_way_back(revision, revisions, standing), outside)

    def _environments(self, spec: CompositionSpec) -> dict[str, dict[str, str]] | Cause:
        found = {name: self._library.environment(name) for name in spec.environments}
        missing = sorted(name for name, data in found.items() if data is None)
        if missing:
            text = f"ConfigMap {', '.join(missing)} of Fairlead's namespace is missing; ask the platform team"
            return cause("EnvironmentNotFound", text)
        return {name: data for name, data in found.items() if data is not None}


def _standing(view: View) -> Standing:
    found = view.status.get("composition") or {}
    revision, previous = str(found.get("revision") or ""), str(found.get("previous") or "")
    return Standing(
        str(view.identity),
        revision,
        previous,
        is_well(view.claim),
        stands_since(view.claim) if revision or lacks_revision(view.claim) else NOT_YET,
        has_children=any(each.live is not None or each.entry.uid for each in view.known),
    )


def untouched(view: View, *causes: Cause) -> Findings:
    """Return findings that leave everything as it was."""
    return Findings(
        causes=causes,
        entries=load_inventory(view.status),
        composition=view.chosen,
        revision=(view.status.get("composition") or {}).get("revision", ""),
        deletion_policy=effective_policy(view, None),
        secret=(view.status.get("binding") or {}).get("name", ""),
        connection_hash=str(view.status.get("connectionHash") or ""),
    )


def _request(view: View, chosen: _Chosen, environments: dict[str, dict[str, str]]) -> Request:
    claim = {name: value for name, value in view.claim.items() if name != "status"}
    # Without what every write of ours changes: the same claim is the same request.
    claim["metadata"] = {name: item for name, item in metadata(claim).items() if name not in _OF_EACH_WRITE}
    observed = tuple(
        Observed(each.entry.resource, each.entry.key, each.live, is_silent=is_silent(each.facts, each.live))
        for each in view.known
        if each.live is not None
    )
    return Request(
        composition_name=chosen.composition,
        composition=chosen.revision.composition,
        claim=claim,
        identity=str(view.identity),
        environments=environments,
        observed=observed,
        stateful_foreign=foreign_stateful(view),
        origins=origins(view),
        element_origins=element_origins(view),
        floors=floors_of(((each.entry, each.live) for each in view.known), chosen.spec),
        stateful_places=stateful_places(view),
    )


def _refusals(view: View, chosen: _Chosen) -> Iterator[Cause]:
    """Say all that a claim asks for and its Composition cannot give, before anything is made."""
    offered, wanted = chosen.spec.deletion_policies, view.spec.deletion_policy
    if wanted not in offered:
        text = f"Composition {chosen.composition} does not support deletionPolicy {wanted}; it offers"
        yield cause("UnsupportedPolicy", f"{text} {', '.join(offered)}")
    asks_backup = bool((view.claim.get("spec") or {}).get("restoreFrom"))
    if asks_backup and b"restoreFrom" not in dumps(chosen.revision.composition):
        text = f"spec.restoreFrom: Composition {chosen.composition} restores no backup and would start empty"
        yield cause("InvalidValue", f"{text}; leave it out, or name another Composition")
