"""Renders one claim through one Composition: the same call, and the same bytes, in the cluster, CLI and tests. Pure.

Imports no Kubernetes client. In the cluster it runs in a worker process without network or files.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from typing import Any

import msgspec

from apis.identity import Identity
from apis.names import EXTERNAL_NAMES, is_managed
from composer.quantities import Amount
from composer.render import environments
from composer.render.child_metadata import external_names, group_kind_of
from composer.render.compiler import Compiled, CompiledResource, compile_composition
from composer.render.errors import UNSUPPORTED_VALUE, CompositionError, PendingError, Problem, raise_all
from composer.render.floors import Floor, Kept, raised, reached, refuse_unmeasured
from composer.render.offerings import refusals
from composer.render.operators.table import is_current
from composer.render.passwords import Passwords
from composer.render.request import ChildBuilder, Request
from composer.render.schema import is_json
from composer.render.scope import Absent, Composed, Elements, Variables, claim_view
from composer.render.template import Leaf, fill, fill_leaf
from composer.render.values import VALUES_LIMIT, has_too_many_values, ordered
from runtime.objects import Object, deleting, dumps

OUTPUT_LIMIT_BYTES = 1 << 20
CHILDREN_LIMIT = 128
_FAULTY_RESOURCES = 8


class Child(msgspec.Struct, frozen=True):
    """One composed object as it is to be, those before it in the order, and whether the live one is ready.

    `floors` are its fields that never become smaller, by path; `kept` those that would be smaller by the template.
    """

    resource: str
    key: str
    object: Object
    depends_on: tuple[str, ...]
    stateful: bool | None
    ready: bool
    floors: Mapping[str, Amount] = {}
    kept: tuple[Kept, ...] = ()

    @property
    def slot(self) -> tuple[str, str]:
        """The place in the composition: resource name and forEach key."""
        return self.resource, self.key

    @property
    def name(self) -> str:
        """Name of the object."""
        return str(self.object["metadata"]["name"])

    @property
    def group_kind(self) -> str:
        """`Kind.group` of the object."""
        return group_kind_of(self.object)

    @property
    def place(self) -> tuple[str, str, str]:
        """Slot and kind: after a switch of kinds two objects have one slot for a while."""
        return self.resource, self.key, self.group_kind


class Waiting(msgspec.Struct, frozen=True):
    """A resource that cannot be made yet. `for_ready`: it waits for Ready, else for the value at `path`."""

    resource: str
    waits_for: str
    path: str
    for_ready: bool = False

    def __str__(self) -> str:
        awaited = f"resource {self.waits_for!r} to be ready" if self.for_ready else f"{self.path}"
        return f"resource {self.resource!r} waits for {awaited}"


class Rendered(msgspec.Struct, frozen=True):
    """The whole result, children in dependency order. `status` and `connection` hold what could be computed yet."""

    children: tuple[Child, ...]
    waiting: tuple[Waiting, ...]
    status: dict[str, Any]
    connection: dict[str, Any]


def render(request: Request, *, presume: Callable[[Object], Object] | None = None) -> Rendered:
    """Render one claim; the order of fields in what goes in does not show in what comes out.

    `presume` makes the live object of a child that was not observed, for trials; without it there is none.
    Raises CompositionError with what is wrong; then nothing may be applied or pruned.
    """
    compiled = _compiled(msgspec.json.encode(request.composition, order="sorted"))
    return _Rendering(request, compiled, presume).run()


@lru_cache(maxsize=256)
def _compiled(composition: bytes) -> Compiled:
    return compile_composition(msgspec.json.decode(composition))


class _Rendering:
    """One render under way: what is known of each resource so far."""

    def __init__(self, request: Request, compiled: Compiled, presume: Callable[[Object], Object] | None) -> None:
        self._request = request
        self._presume = presume
        self._compiled = compiled
        identity = Identity.parse(request.identity)
        if identity is None:
            raise CompositionError(
                Problem("RenderFailed", f"identity {request.identity!r} is not <uid>@<namespace>/<name>")
            )
        self._builder = ChildBuilder(request, identity, compiled.spec.deletion_policies)
        self._live = {(observed.resource, observed.key): observed.object for observed in request.observed}
        self._silent = {(observed.resource, observed.key) for observed in request.observed if observed.is_silent}
        # The expression that says whether one is ready may read another that comes after it.
        self._known: dict[str, Mapping[str, Any]] = {source.name: self._unmade(source) for source in compiled.resources}
        self._ready: dict[str, bool] = {}
        self._scope: dict[str, Any] = {
            "claim": claim_view(request.claim),
            "env": ordered(environments.read(request.environments)),
            "resources": self._known,
            "passwords": Passwords(request.composition, request.passwords),
        }
        self._scope["vars"] = Variables(compiled.variables, self._scope)

    def run(self) -> Rendered:
        refused = tuple(refusals(self._compiled.spec.offerings, self._request.claim.get("spec") or {}))
        if refused:
            raise CompositionError(*(refusal.problem for refusal in refused))
        children: list[Child] = []
        waiting: list[Waiting] = []
        errors: dict[str, CompositionError] = {}
        unknown: set[str] = set()
        for resource in self._compiled.resources:
            if not unknown.isdisjoint(resource.edges):
                # What it reads or waits for has a fault of its own.
                unknown.add(resource.name)
                continue
            try:
                made, held = self._resource(resource)
            except CompositionError as error:
                errors[resource.name] = error
                unknown.add(resource.name)
                if len(errors) == _FAULTY_RESOURCES or "RenderLimit" in {problem.reason for problem in error.problems}:
                    break
                continue
            children += made
            waiting += held
        raise_all(tuple(errors.values()))
        self._refuse_names(children, waiting)
        rendered = Rendered(
            tuple(children),
            tuple(waiting),
            self._known_fields(self._compiled.status),
            self._known_fields(self._compiled.connection),
        )
        _refuse_shared_objects(rendered)
        _refuse_excess(rendered)
        return rendered

    def _refuse_names(self, children: list[Child], waiting: list[Waiting]) -> None:
        """Refuse, before anything is made, names in the cloud for what is not composed: an empty one would be made."""
        if self._request.observed:
            return
        foreign = frozenset(self._request.stateful_foreign)
        nameable = {
            child.slot
            for child in children
            if is_managed(child.group_kind.partition(".")[2]) or child.group_kind in foreign
        }
        held = {waits.resource for waits in waiting}
        for (resource, key), name in external_names(self._request.claim).items():
            if not name or (resource not in held and (resource, key) not in nameable):
                slot = f"{resource}/{key}" if key else resource
                message = (
                    f"annotation {EXTERNAL_NAMES} says what {slot!r} is, and no object of a provider and no operator's"
                    " database is composed by that name: write <resource>=<name>, of a forEach <resource>/<key>=<name>"
                )
                raise CompositionError(Problem(UNSUPPORTED_VALUE, message, resource=resource))

    def _resource(self, resource: CompiledResource) -> tuple[list[Child], list[Waiting]]:
        """Render the children of one resource; a resource that waits is known by what is live of it."""
        self._known[resource.name] = self._unmade(resource)
        self._ready[resource.name] = False
        held = next((name for name in resource.source.depends_on if not self._ready[name]), None)
        if held is not None:
            return [], [Waiting(resource.name, held, f"resources.{held}", for_ready=True)]
        try:
            if not self._wanted(resource):
                is_repeated = bool(resource.for_each)
                self._known[resource.name] = (
                    Elements(resource.name, {}, self._live) if is_repeated else Absent(resource.name)
                )
                # Nothing is left to wait for.
                self._ready[resource.name] = True
                return [], []
            children = [self._child(resource, key, scope) for key, scope in self._elements(resource)]
        except PendingError as error:
            return [], [Waiting(resource.name, error.waits_for, error.path)]
        self._ready[resource.name] = all(child.ready for child in children)
        if resource.for_each:
            made = {child.key: child.object for child in children}
            self._known[resource.name] = Elements(resource.name, made, self._live)
        else:
            seen = self._live.get((resource.name, ""))
            self._known[resource.name] = Composed(resource.name, children[0].object, seen)
        return children, []

    def _unmade(self, resource: CompiledResource) -> Mapping[str, Any]:
        """Return what is known of a resource before it is rendered: what is live of it."""
        if resource.for_each:
            return Elements(resource.name, None, self._live)
        return Composed(resource.name, None, self._live.get((resource.name, "")))

    def _wanted(self, resource: CompiledResource) -> bool:
        if not resource.when:
            return True
        wanted = fill_leaf(resource.when, self._scope) if isinstance(resource.when, Leaf) else resource.when
        if isinstance(wanted, bool):
            return wanted
        message = f"must be true or false, is {str(wanted)[:64]!r}"
        raise CompositionError(Problem("RenderFailed", message, f"{resource.path}.when", resource=resource.name))

    def _elements(self, resource: CompiledResource) -> Iterator[tuple[str, dict[str, Any]]]:
        if not resource.for_each:
            yield "", self._scope
            return
        elements = fill_leaf(resource.for_each, self._scope) if isinstance(resource.for_each, Leaf) else None
        match elements:
            case list() if all(isinstance(element, str) for element in elements):
                pairs: dict[str, Any] = {element: element for element in elements}
                if len(pairs) != len(elements):
                    message = f"resource {resource.name!r} would be composed twice for the same element"
                    raise CompositionError(
                        Problem("DuplicateResource", message, f"{resource.path}.forEach", resource=resource.name)
                    )
            case dict():
                pairs = elements
            case _:
                message = "must be a list of texts or a map"
                raise CompositionError(
                    Problem("RenderFailed", message, f"{resource.path}.forEach", resource=resource.name)
                )
        for key, value in pairs.items():
            if not key:
                message = "has an empty element, which cannot name a resource"
                raise CompositionError(
                    Problem("RenderFailed", message, f"{resource.path}.forEach", resource=resource.name)
                )
            yield key, {**self._scope, "each": {"key": key, "value": value}}

    def _child(self, resource: CompiledResource, key: str, scope: Mapping[str, Any]) -> Child:
        manifest = fill(resource.template, scope if key else self._with_own_name(resource, scope))
        if not is_json(manifest):
            raise CompositionError(Problem("NotJson", "holds a number that JSON lacks", resource.path))
        stateful = resource.source.stateful
        refuse_unmeasured(manifest, resource.source, resource.path)
        manifest, kept = raised(manifest, self._floors(resource, key, manifest))
        obj = self._child_object(resource, key, manifest)
        live = self._live.get((resource.name, key))
        if live is None and self._presume is not None:
            live = self._live[resource.name, key] = self._presume(obj)
        return Child(
            resource=resource.name,
            key=key,
            object=obj,
            depends_on=resource.edges,
            stateful=None if isinstance(stateful, msgspec.UnsetType) else stateful,
            ready=live is not None and self._is_ready(resource, key, scope, obj),
            floors=reached(obj, resource.source.floors),
            kept=kept,
        )

    def _floors(self, resource: CompiledResource, key: str, manifest: Object) -> tuple[Floor, ...]:
        place = (resource.name, key, group_kind_of(manifest))
        return tuple(floor for floor in self._request.floors if (floor.resource, floor.key, floor.group_kind) == place)

    def _with_own_name(self, resource: CompiledResource, scope: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the scope of a template, which can read the name of its own object."""
        made = {"metadata": {"name": self._builder.name_of((resource.name, ""))}}
        return {**scope, "resources": {**self._known, resource.name: Composed(resource.name, made, None)}}

    def _child_object(self, resource: CompiledResource, key: str, manifest: Object) -> Object:
        """Return the object of a manifest: with its name, its place, its owner and our label and annotations."""
        source = resource.source
        return self._builder.build(
            (resource.name, key), resource.edges, manifest, stateful=source.stateful is True, path=resource.path
        )

    def _is_ready(self, resource: CompiledResource, key: str, scope: Mapping[str, Any], obj: Object) -> bool:
        live = self._live[resource.name, key]
        if deleting(live):
            return False
        if not isinstance(resource.ready_when, Leaf):
            return is_current(live, is_silent=(resource.name, key) in self._silent)
        itself = {**self._known, resource.name: Composed(resource.name, obj, live)}
        try:
            return fill_leaf(resource.ready_when, {**scope, "resources": itself}) is True
        except PendingError:
            return False

    def _known_fields(self, tree: Mapping[str, Any]) -> dict[str, Any]:
        """Fill the fields whose values are there; those that wait are left out."""
        fields: dict[str, Any] = {}
        for name, item in tree.items():
            try:
                value = fill(item, self._scope)
            except PendingError:
                continue
            if value is not None:
                fields[name] = value
        return fields


def _refuse_shared_objects(rendered: Rendered) -> None:
    """Refuse two children that are one object: each would undo the other, and deleting one would delete both."""
    seen: dict[tuple[str, str], str] = {}
    for child in rendered.children:
        other = seen.setdefault((child.group_kind, child.name), child.resource)
        if other != child.resource:
            message = (
                f"resources {other!r} and {child.resource!r} are both {child.object['kind']} {child.name}: one was"
                " moved from the name of the other, and its object still has it; give the other one another name"
            )
            raise CompositionError(Problem("DuplicateResource", message, "spec.resources", resource=child.resource))


def _refuse_excess(rendered: Rendered) -> None:
    if len(rendered.children) > CHILDREN_LIMIT:
        message = f"{len(rendered.children)} children, at most {CHILDREN_LIMIT} are allowed"
        raise CompositionError(Problem("RenderLimit", message, "spec.resources"))
    output = dumps(rendered)
    if len(output) > OUTPUT_LIMIT_BYTES:
        raise CompositionError(Problem("RenderLimit", "the output is larger than 1 MiB", "spec.resources"))
    if has_too_many_values(output):
        message = f"the output has more than {VALUES_LIMIT:,} values"
        raise CompositionError(Problem("RenderLimit", message, "spec.resources"))
    if not rendered.children and not rendered.waiting:
        message = "nothing is composed for this claim: every `when` is false; what exists is kept"
        raise CompositionError(Problem("EmptyResult", message, "spec.resources"))
