"""Compiles a Composition: every text once, the order of its resources, what waits for what. Pure."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from typing import Any

import msgspec

from composer.models import CompositionSpec, ResourceTemplate
from composer.render.errors import CompositionError, Problem, near
from composer.render.template import Leaf, Path, Tree, compile_text, compile_tree, reads

_SUBTREES = frozenset({"spec", "status"})


@dataclass(frozen=True, slots=True)
class CompiledResource:
    """One resource: its compiled texts, the resources whose fields it reads, and those it waits for until Ready."""

    source: ResourceTemplate
    path: str
    template: Tree
    when: str | Leaf
    for_each: str | Leaf
    ready_when: str | Leaf
    reads: frozenset[str]

    @property
    def name(self) -> str:
        """The resource's name in the composition."""
        return self.source.name

    @property
    def edges(self) -> tuple[str, ...]:
        """All resources that come before this one and go after it, sorted."""
        return tuple(sorted(self.reads | set(self.source.depends_on)))


@dataclass(frozen=True, slots=True)
class Compiled:
    """A Composition ready to be rendered; `resources` in dependency order, else in the order of the file."""

    spec: CompositionSpec
    variables: Mapping[str, Tree]
    resources: tuple[CompiledResource, ...]
    connection: Tree
    status: Tree


def convert(raw: Mapping[str, Any]) -> CompositionSpec:
    """Return the spec of a Composition as a struct. Raises CompositionError when it has not the schema's shape."""
    try:
        return msgspec.convert(raw, CompositionSpec)
    except msgspec.ValidationError as error:
        raise CompositionError(Problem("SchemaMismatch", str(error), "spec")) from error


def compile_composition(raw: Mapping[str, Any]) -> Compiled:
    """Compile the spec of a Composition. Raises CompositionError with all faults of the first kind found."""
    spec = convert(raw)
    _refuse_duplicates(spec)
    variables = {name: compile_tree(value, f"spec.variables.{name}") for name, value in spec.variables.items()}
    through = _resources_behind(variables)
    resources = tuple(_resource(source, index, through) for index, source in enumerate(spec.resources))
    connection = compile_tree(spec.connection, "spec.connection")
    status = compile_tree(spec.status, "spec.status")
    whole = (*variables.values(), connection, status)
    _refuse_unknown_references(resources, whole)
    _refuse_misplaced_names(resources, whole)
    return Compiled(spec=spec, variables=variables, resources=_ordered(resources), connection=connection, status=status)


def _refuse_duplicates(spec: CompositionSpec) -> None:
    seen: set[str] = set()
    for index, resource in enumerate(spec.resources):
        if resource.name in seen:
            message = f"two resources are called {resource.name!r}"
            raise CompositionError(Problem("DuplicateResource", message, f"spec.resources[{index}].name"))
        seen.add(resource.name)
    if not spec.resources:
        raise CompositionError(Problem("EmptyResult", "a composition without resources composes nothing", "spec"))


def _resource(source: ResourceTemplate, index: int, through: Mapping[str, frozenset[str]]) -> CompiledResource:
    path = f"spec.resources[{index}]"
    template = compile_tree(source.template, f"{path}.template")
    when = compile_text(source.when, f"{path}.when")
    for_each = compile_text(source.for_each, f"{path}.forEach")
    read_names = {
        name
        for _, _, read in reads((template, when, for_each))
        if not _is_own_name(read, source)
        for name in _resources_of(read, through)
    }
    return CompiledResource(
        source=source,
        path=path,
        template=template,
        when=when,
        for_each=for_each,
        ready_when=compile_text(source.ready_when, f"{path}.readyWhen"),
        reads=frozenset(read_names),
    )


def _is_own_name(read: Path, source: ResourceTemplate) -> bool:
    """Return whether a resource reads the name of its own object, which is known before anything else of it."""
    return not source.for_each and read.root == "resources" and read.steps == (source.name, "metadata", "name")


def _resources_of(read: Path, through: Mapping[str, frozenset[str]]) -> frozenset[str]:
    if read.root == "resources" and read.steps:
        return frozenset(read.steps[:1])
    if read.root == "vars" and read.steps:
        return through.get(read.steps[0], frozenset())
    return frozenset()


def _resources_behind(variables: Mapping[str, Tree]) -> dict[str, frozenset[str]]:
    used = {
        name: {read.steps[0] for _, _, read in reads((tree,)) if read.root == "vars" and read.steps}
        for name, tree in variables.items()
    }
    behind: dict[str, frozenset[str]] = {}
    for name in _sorted(used, "spec.variables"):
        own = {read.steps[0] for _, _, read in reads((variables.get(name),)) if read.root == "resources" and read.steps}
        behind[name] = frozenset(own).union(*(behind.get(other, frozenset()) for other in used.get(name, ())))
    return behind


def _sorted(graph: Mapping[str, Iterable[str]], path: str) -> tuple[str, ...]:
    try:
        return tuple(TopologicalSorter(graph).static_order())
    except CycleError as error:
        cycle = "→".join(reversed(error.args[1]))
        raise CompositionError(Problem("DependencyCycle", cycle, path)) from error


def _ordered(resources: Sequence[CompiledResource]) -> tuple[CompiledResource, ...]:
    by_name = {resource.name: resource for resource in resources}
    _sorted({name: resource.edges for name, resource in by_name.items()}, "spec.resources")
    placed: dict[str, CompiledResource] = {}

    def add(resource: CompiledResource) -> None:
        for name in resource.edges:
            if name not in placed:
                add(by_name[name])
        placed.setdefault(resource.name, resource)

    for resource in resources:
        add(resource)
    return tuple(placed.values())


def _refuse_unknown_references(resources: Sequence[CompiledResource], whole: Iterable[Tree]) -> None:
    known = {resource.name: resource for resource in resources}
    for resource in resources:
        for index, name in enumerate(resource.source.depends_on):
            if name not in known:
                message = f"there is no resource {name!r}{near(name, known)}"
                raise CompositionError(Problem("TemplateInvalid", message, f"{resource.path}.dependsOn[{index}]"))
        _refuse_in((resource.when, resource.for_each), known, itself=resource.name)
        _refuse_in((resource.template,), known, itself=resource.name, own_name_of=resource.source)
        # The expression that says whether a resource is ready may read the resource itself, a forEach element included.
        _refuse_in((resource.ready_when,), {**known, resource.name: _plain(resource)}, itself="")
        if resource.name in resource.edges:
            cycle = f"{resource.name}→{resource.name}"
            raise CompositionError(Problem("DependencyCycle", cycle, resource.path))
    _refuse_in(whole, known, itself="")


def _refuse_misplaced_names(resources: Sequence[CompiledResource], whole: Iterable[Tree]) -> None:
    """Refuse a computed variable, whose edges nobody could know, and `each` where nothing is repeated."""
    single: list[Tree] = list(whole)
    repeated: list[Tree] = []
    for resource in resources:
        single += (resource.when, resource.for_each)
        (repeated if resource.source.for_each else single).extend((resource.template, resource.ready_when))
    for trees, has_each in ((single, False), (repeated, True)):
        for leaf, expression, read in reads(trees):
            fault = None
            if read.root == "vars" and not read.steps:
                fault = "a variable is named in full, as vars.<name>; computed names are not allowed"
            elif read.root == "each" and not has_each:
                fault = "each is known in the template and readyWhen of a resource with forEach alone"
            if fault:
                raise CompositionError(Problem("TemplateInvalid", fault, leaf.path, expression.column))


def _plain(resource: CompiledResource) -> CompiledResource:
    return dataclasses.replace(resource, source=msgspec.structs.replace(resource.source, for_each=""))


def _refuse_in(
    trees: Iterable[Tree],
    known: Mapping[str, CompiledResource],
    *,
    itself: str,
    own_name_of: ResourceTemplate | None = None,
) -> None:
    """Refuse reads of resources that are not there, cannot be read, or are `itself`, but for its own name."""
    for leaf, expression, read in reads(trees):
        if read.root != "resources" or (own_name_of and _is_own_name(read, own_name_of)):
            continue
        fault = _fault(read, known, itself)
        if fault:
            raise CompositionError(Problem(fault[0], fault[1], leaf.path, expression.column))


def _fault(read: Path, known: Mapping[str, CompiledResource], itself: str) -> tuple[str, str] | None:
    if not read.steps:
        return "TemplateInvalid", "a resource is named in full, as resources.<name>; computed names are not allowed"
    name = read.steps[0]
    if name not in known:
        return "TemplateInvalid", f"there is no resource {name!r}{near(name, known)}"
    if name == itself:
        return "DependencyCycle", f"{name}→{name}"
    if known[name].source.for_each:
        below, of = read.whole[2:], f"an element of resource {name!r} (forEach), named as resources.{name}['key'],"
    else:
        below, of = read.whole[1:], f"resource {name!r}"
    if not below or (below[0] not in _SUBTREES and below[:2] != ("metadata", "name")):
        return "TemplateInvalid", f"of {of} only spec, status and metadata.name can be read"
    return None
