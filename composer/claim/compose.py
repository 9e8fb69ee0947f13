"""Composes a claim: chooses Composition and revision, reads the environments, renders the children."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Protocol

from msgspec import UnsetType

from apis import names
from apis.teardown import DeletionPolicy
from composer.causes import Cause, cause
from composer.claim.deletion import effective_policy
from composer.claim.prune_guard import foreign_stateful, held_on_rollback, replacing_data, stateful_places
from composer.claim.renames import element_origins, origins, renamed
from composer.claim.report import Findings
from composer.claim.selection import (
    ClaimState,
    admitted,
    choose,
    choose_revision,
    depends_on_namespace,
    is_rollback,
    not_allowed,
)
from composer.claim.snapshot import ObservedChild, Snapshot, without_yielded
from composer.claim.undecided import left_out, optional
from composer.composition.revision import Candidate, Revision, kinds_of, readable
from composer.composition.rollout_claims import NOT_YET, is_well, lacks_revision, unchanged_since
from composer.connection.passwords import recorded
from composer.inventory import load as load_inventory
from composer.kinds.catalog import is_silent
from composer.models import CompositionSpec
from composer.render.elements import elements_in, reads_environments, request_of
from composer.render.errors import CompositionError, Problem
from composer.render.floors import floors_of
from composer.render.render import Child, Rendered
from composer.render.request import Observed, Request
from composer.validation.fields import refusals as field_refusals
from runtime.objects import Object, annotations_of, dumps, labels_of, metadata

_MANAGERS = frozenset({"managedFields"})
_OF_EACH_WRITE = _MANAGERS | {"resourceVersion"}
# So soon a Composition is checked, as a rule.
_CHECKED_SOON = timedelta(seconds=1)


class Renderer(Protocol):
    """Renders in a confined process."""

    async def render(self, request: Request) -> Rendered:
        """Render one claim. Raises CompositionError, or Transient when the worker is lost."""


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

    `snapshot` names the resources as that revision does; `is_rollback`: the claim leaves a revision that failed;
    `is_new_intent`: claim or revision is another than before, so that conflicts over fields begin anew; `remarks`:
    causes about the choice itself.
    """

    composition: str
    revision: Revision
    spec: CompositionSpec
    rendered: Rendered
    snapshot: Snapshot
    is_rollback: bool = False
    is_new_intent: bool = False
    remarks: tuple[Cause, ...] = ()


@dataclass(frozen=True, slots=True)
class Chosen:
    """The revision that serves a claim; `outside`: the claim's namespace may not choose its Composition any more."""

    composition: str
    revision: Revision
    spec: CompositionSpec
    is_rollback: bool
    outside: Cause | None


@dataclass(frozen=True, slots=True)
class Choice:
    """What is known of a claim before it is rendered: the Composition and revision that serve it.

    `snapshot` names the resources as the chosen revision does; `refusals`: what the claim wants and cannot get;
    `unrendered`: the findings to which the causes of a failure are added.
    """

    chosen: Chosen
    snapshot: Snapshot
    unrendered: Findings
    refusals: tuple[Cause, ...] = ()
    is_new_intent: bool = False

    @property
    def is_first(self) -> bool:
        """Whether nothing is recorded on the claim yet, and it has composed nothing."""
        return not self.snapshot.has_finalizer and not self.snapshot.children

    @property
    def unlisted(self) -> tuple[str, ...]:
        """The kinds of the revision whose objects cannot be listed, sorted."""
        return tuple(sorted(frozenset(self.snapshot.unlisted) & kinds_of(self.chosen.revision.composition)))


@dataclass(frozen=True, slots=True)
class _Unchecked:
    """The Composition exists and is not checked yet."""

    cause: Cause


class Preparer:
    """Prepares claims; where one cannot be prepared, its findings have the cause and leave everything as it is."""

    def __init__(self, library: Library, renderer: Renderer) -> None:
        self._library = library
        self._renderer = renderer

    async def prepare(self, snapshot: Snapshot) -> Prepared | Findings:
        """Choose the revision of a claim and render it. Raises Transient when the worker is lost."""
        choice = self.choose(snapshot)
        return choice if isinstance(choice, Findings) else await self.render(choice)

    def is_chosen_by_namespace(self, snapshot: Snapshot) -> bool:
        """Return whether a claim has no Composition yet, and the labels of its namespace decide which it gets."""
        if snapshot.chosen:
            return False
        candidates = self._library.candidates(snapshot.resource.api_version, snapshot.resource.kind)
        return depends_on_namespace(snapshot.spec, candidates)

    def choose(self, snapshot: Snapshot) -> Choice | Findings:
        """Choose the Composition of a claim and its revision."""
        chosen = self._choose(snapshot)
        if isinstance(chosen, Cause):
            return untouched(snapshot, chosen)
        if isinstance(chosen, _Unchecked):
            return replace(untouched(snapshot, chosen.cause), early=_CHECKED_SOON)
        unrendered = replace(
            untouched(snapshot),
            composition=chosen.composition,
            deletion_policy=effective_policy(snapshot, chosen.spec.deletion_policies),
        )
        if chosen.composition == snapshot.chosen and not chosen.is_rollback:
            # A failure from here on is one of this revision.
            unrendered = replace(unrendered, revision=chosen.revision.name, has_rollout=chosen.revision.has_rollout)
        refusals = tuple(_refusals(snapshot, chosen))
        snapshot = renamed(snapshot, chosen.spec)
        is_new = snapshot.is_new_intent(chosen.revision.name)
        snapshot = without_yielded(snapshot) if is_new else snapshot
        return Choice(chosen, snapshot, unrendered, refusals, is_new)

    async def render(self, choice: Choice) -> Prepared | Findings:
        """Render a claim by the revision that was chosen. Raises Transient when the worker is lost."""
        chosen = choice.chosen
        rendered = await self._render(choice.snapshot, chosen)
        if choice.refusals or isinstance(rendered, tuple):
            failures = rendered if isinstance(rendered, tuple) else ()
            return replace(choice.unrendered, causes=(*choice.refusals, *failures))
        return Prepared(
            chosen.composition,
            chosen.revision,
            chosen.spec,
            rendered,
            choice.snapshot,
            is_rollback=chosen.is_rollback,
            is_new_intent=choice.is_new_intent,
            remarks=(chosen.outside,) if chosen.outside else (),
        )

    async def _render(self, snapshot: Snapshot, chosen: Chosen) -> Rendered | tuple[Cause, ...]:
        environments = self._environments(chosen)
        if isinstance(environments, Cause):
            return (environments,)
        request = _request(snapshot, chosen, environments)
        try:
            rendered = await self._renderer.render(request)
        except CompositionError as error:
            return _causes(error.problems)
        return _causes(field_refusals(request, rendered, snapshot.catalog)) or rendered

    async def taken_out(self, choice: Choice) -> tuple[ObservedChild, ...]:
        """Return what an edit took out of a claim that cannot be rendered, as far as that is known without the whole.

        Raises Transient when the worker is lost.
        """
        chosen, snapshot = choice.chosen, choice.snapshot
        environments = self._environments(chosen)
        is_missing = isinstance(environments, Cause)
        request = _request(snapshot, chosen, {} if isinstance(environments, Cause) else environments)
        known: dict[str, tuple[Child, ...]] = {}
        for name in () if chosen.is_rollback else optional(snapshot, chosen.spec.resources):
            if is_missing and reads_environments(request.composition, name):
                continue
            try:
                elements = elements_in(await self._renderer.render(request_of(request, name)), name)
            except CompositionError:
                continue
            if elements is not None:
                known[name] = elements
        return left_out(snapshot, known)

    def kinds(self, claim: Object) -> frozenset[str]:
        """Return the kinds of the Composition that a claim uses already, in which its children are found by label."""
        chosen = (claim.get("status") or {}).get("composition") or {}
        name = annotations_of(claim).get(names.COMPOSITION) or chosen.get("name", "")
        newest = max(self._library.revisions(name), key=lambda revision: revision.number, default=None)
        return kinds_of(newest.composition) if newest else frozenset()

    def supported_policies(self, snapshot: Snapshot) -> tuple[DeletionPolicy, ...] | None:
        """Return the deletion policies of the revision in use; None when it cannot be read any more.

        Where the claim's status was lost, the policy in force is unknown: nothing is destroyed without a backup, and
        one is taken where the claim has policy Snapshot, or its deletion is held.
        """
        if not (snapshot.status.get("composition") or {}).get("revision"):
            return ("Orphan", "Snapshot")
        spec = self.spec_in_use(snapshot)
        return spec.deletion_policies if spec else None

    def spec_in_use(self, snapshot: Snapshot) -> CompositionSpec | None:
        """Return the spec of the revision that the claim has; None where it cannot be read any more."""
        wanted = (snapshot.status.get("composition") or {}).get("revision")
        revisions = self._library.revisions(snapshot.chosen)
        revision = next((revision for revision in revisions if revision.name == wanted), None)
        return readable(revision.composition) if revision else None

    def _choose(self, snapshot: Snapshot) -> Chosen | _Unchecked | Cause:
        spec = snapshot.spec
        candidates = self._library.candidates(snapshot.resource.api_version, snapshot.resource.kind)
        candidates = admitted(candidates, snapshot.chosen, snapshot.key.namespace, snapshot.namespace_labels)
        chosen = choose(spec, snapshot.chosen, labels_of(snapshot.claim), snapshot.namespace_labels, candidates)
        if isinstance(chosen, Cause):
            return chosen
        pin = "" if isinstance(spec.composition_revision_ref, UnsetType) else spec.composition_revision_ref.name
        candidate = next(candidate for candidate in candidates if candidate.name == chosen)
        outside = not_allowed(candidate, snapshot.key.namespace, snapshot.namespace_labels)
        if outside and pin not in ("", (snapshot.status.get("composition") or {}).get("revision")):
            text = f"{outside.message}; spec.compositionRevisionRef may not name another revision of it"
            return cause("NotAllowed", text)
        revisions, state = self._library.revisions(chosen), _claim_state(snapshot)
        revision = choose_revision(chosen, pin, revisions, state=state, refusal=candidate.refusal)
        if isinstance(revision, Cause):
            return revision if candidate.is_checked else _Unchecked(revision)
        composition = readable(revision.composition)
        if composition is None:
            return cause("SchemaMismatch", f"revision {revision.name} cannot be read")
        return Chosen(chosen, revision, composition, is_rollback(revision, revisions, state), outside)

    def _environments(self, chosen: Chosen) -> dict[str, dict[str, str]] | Cause:
        """Return what the revision has of its environments; of what was not there then, what is there now."""
        recorded = chosen.revision.environments or {}
        environments = {
            name: recorded[name] if name in recorded else self._library.environment(name)
            for name in chosen.spec.environments
        }
        missing = sorted(name for name, data in environments.items() if data is None)
        if missing:
            text = f"ConfigMap {', '.join(missing)} of Fairlead's namespace is missing; ask the platform team"
            return cause("EnvironmentNotFound", text)
        return {name: data for name, data in environments.items() if data is not None}


def _claim_state(snapshot: Snapshot) -> ClaimState:
    """Return what the choice of a revision depends on, as the claim's status and children have it."""
    choice = snapshot.status.get("composition") or {}
    revision, previous = str(choice.get("revision") or ""), str(choice.get("previous") or "")
    return ClaimState(
        str(snapshot.identity),
        revision,
        previous,
        is_well(snapshot.claim),
        unchanged_since(snapshot.claim) if revision or lacks_revision(snapshot.claim) else NOT_YET,
        has_children=any(child.live is not None or child.entry.uid for child in snapshot.children),
    )


def _causes(problems: Iterable[Problem]) -> tuple[Cause, ...]:
    return tuple(cause(problem.reason, problem.for_the_claim, resource=problem.resource) for problem in problems)


def untouched(snapshot: Snapshot, *causes: Cause) -> Findings:
    """Return findings that leave everything as it was, with these causes."""
    return Findings(
        causes=causes,
        entries=load_inventory(snapshot.status),
        composition=snapshot.chosen,
        revision=(snapshot.status.get("composition") or {}).get("revision", ""),
        deletion_policy=effective_policy(snapshot, None),
        secret=(snapshot.status.get("binding") or {}).get("name", ""),
        connection_hash=str(snapshot.status.get("connectionHash") or ""),
    )


def held_back(prepared: Prepared) -> Findings | None:
    """Return the findings of a claim that stays as it is, since data would be lost; None where it goes on."""
    snapshot = prepared.snapshot
    if prepared.is_rollback:
        causes = held_on_rollback(snapshot, prepared.rendered, prepared.revision.name)
        return untouched(snapshot, *causes) if causes else None
    held = replacing_data(snapshot, prepared.rendered)
    if not held:
        return None
    findings = untouched(snapshot, *held)
    if prepared.composition != snapshot.chosen:
        return findings
    # That it would cost data is this revision's failure.
    return replace(findings, revision=prepared.revision.name, has_rollout=prepared.revision.has_rollout)


def _without(meta: Object, names_left_out: frozenset[str]) -> Object:
    return {name: item for name, item in meta.items() if name not in names_left_out}


def _request(snapshot: Snapshot, chosen: Chosen, environments: dict[str, dict[str, str]]) -> Request:
    claim = {name: value for name, value in snapshot.claim.items() if name != "status"}
    # Without what every write of ours changes, so that the same claim is the same request.
    claim["metadata"] = _without(metadata(claim), _OF_EACH_WRITE)
    observed = tuple(
        Observed(
            child.entry.resource,
            child.entry.key,
            {**child.live, "metadata": _without(metadata(child.live), _MANAGERS)},
            is_silent=is_silent(child.facts, child.live),
        )
        for child in snapshot.children
        if child.live is not None
    )
    return Request(
        composition_name=chosen.composition,
        composition=chosen.revision.composition,
        claim=claim,
        identity=str(snapshot.identity),
        environments=environments,
        observed=observed,
        stateful_foreign=foreign_stateful(snapshot),
        origins=origins(snapshot),
        element_origins=element_origins(snapshot),
        floors=floors_of(((child.entry, child.live) for child in snapshot.children), chosen.spec),
        stateful_places=stateful_places(snapshot),
        adopted=_adopted(snapshot),
        passwords={record.name: record.secret for record in recorded(snapshot.status)},
    )


def _adopted(snapshot: Snapshot) -> dict[str, dict[str, str]]:
    """Return the names of the objects that were taken over of an earlier claim, by resource and key."""
    adopted: dict[str, dict[str, str]] = {}
    for child in snapshot.children:
        if child.entry.adopted:
            adopted.setdefault(child.entry.resource, {})[child.entry.key] = child.entry.name
    return adopted


def _refusals(snapshot: Snapshot, chosen: Chosen) -> Iterator[Cause]:
    """Yield a cause for all that a claim wants and its Composition cannot give, before anything is created."""
    offered, wanted = chosen.spec.deletion_policies, snapshot.spec.deletion_policy
    if wanted not in offered:
        text = f"Composition {chosen.composition} does not support deletionPolicy {wanted}; it offers"
        yield cause("UnsupportedPolicy", f"{text} {', '.join(offered)}")
    asks_backup = bool((snapshot.claim.get("spec") or {}).get("restoreFrom"))
    if asks_backup and b"restoreFrom" not in dumps(chosen.revision.composition):
        text = f"spec.restoreFrom: Composition {chosen.composition} restores no backup and would start empty"
        yield cause("InvalidValue", f"{text}; leave it out, or name another Composition")
