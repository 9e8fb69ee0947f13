"""Whether a Composition may be used at all: compiled, and compared with the kinds it names. Pure.

Its problems are reported on the Composition; its claims stay on their last good revision.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

import msgspec
from msgspec import UnsetType

from apis import names
from composer.kinds.catalog import Catalog, KindFacts, may_come
from composer.kinds.claim_api import in_words
from composer.render import floors
from composer.render.child_metadata import group_kind_of
from composer.render.compiler import Compiled, CompiledResource, compile_composition
from composer.render.errors import UNSUPPORTED_VALUE, CompositionError, Problem, near
from composer.render.schema import Schema, step, template_mismatches, unknown_step
from composer.render.template import Expression, Leaf, Path, reads, written_out
from composer.validation import backups, object_names, offered_fields, renames, rollout
from composer.validation.connection import connection_faults
from composer.validation.groups import Trial, grouped, of_plainest
from composer.validation.trials import Trials

_SET_BY_US = ("name", "generateName")


class CheckRequest(msgspec.Struct, frozen=True):
    """A Composition's spec, and what is known of the kinds it may name and of the environments that are there."""

    composition: dict[str, Any]
    catalog: Catalog
    environments: dict[str, dict[str, str]] = {}


def check(request: CheckRequest) -> tuple[Problem, ...]:
    """Return what is wrong with a Composition; empty when it may be used."""
    try:
        compiled = compile_composition(request.composition)
    except CompositionError as error:
        return error.problems
    claim = claim_facts(compiled, request.catalog)
    if isinstance(claim, Problem):
        return (claim,)
    problems = [*_rollout_problems(compiled), *renames.faults(compiled.spec)]
    for resource in compiled.resources:
        problems += _resource_problems(resource, request.catalog)
    problems += _read_problems(compiled, claim, request.catalog)
    problems += connection_faults(compiled)
    problems += backups.faults(compiled, request.catalog)
    problems += object_names.faults(compiled)
    problems += _password_problems(compiled, claim)
    problems += offered_fields.faults(compiled.spec.offerings, step(claim.schema or {}, "spec") or {})
    problems += _status_problems(compiled, claim)
    return tuple(problems) or _sample_problems(request, compiled, claim)


def remarks(request: CheckRequest) -> tuple[Problem, ...]:
    """Return for which allowed claims an accepted Composition fails: these claims report it themselves.

    What a Composition refuses in its own sentence is no failure of it.
    """
    compiled = compile_composition(request.composition)
    claim = claim_facts(compiled, request.catalog)
    if isinstance(claim, Problem):
        return (claim,)
    problems = grouped(_trials(request, compiled, claim))
    return tuple(problem for problem in problems if problem.reason != UNSUPPORTED_VALUE)


def _sample_problems(request: CheckRequest, compiled: Compiled, claim: KindFacts) -> tuple[Problem, ...]:
    """Refuse what makes a child of the wrong shape for any claim, or fails for claims of required fields alone."""
    trials = _trials(request, compiled, claim)
    wrong = next((trial.wrong for trial in trials if trial.wrong), ())
    return wrong or of_plainest(trials)


def _trials(request: CheckRequest, compiled: Compiled, claim: KindFacts) -> tuple[Trial, ...]:
    return Trials(request.composition, compiled, claim, request.catalog, request.environments).run()


def _rollout_problems(compiled: Compiled) -> Iterator[Problem]:
    rules = compiled.spec.rollout
    if not isinstance(rules, UnsetType):
        for message in rollout.faults(rules):
            yield Problem("TemplateInvalid", message, "spec.rollout.waves")


def claim_facts(compiled: Compiled, catalog: Catalog) -> KindFacts | Problem:
    """Return the kind of claim that a Composition serves, or why it can serve none."""
    wanted = compiled.spec.composite_type_ref
    group = wanted.api_version.rpartition("/")[0]
    facts = catalog.get(f"{wanted.kind}.{group}")
    path = "spec.compositeTypeRef"
    if facts is None:
        return Problem("KindNotInstalled", f"kind {wanted.kind} of {wanted.api_version} is not installed", path)
    if fault := facts.version_fault(wanted.api_version, of_claims=True):
        return Problem("KindNotInstalled", fault, f"{path}.apiVersion")
    if facts.gaps:
        return Problem("ApiIncomplete", f"{wanted.kind} lacks {in_words(facts.gaps)}", path)
    return facts


def _resource_problems(resource: CompiledResource, catalog: Catalog) -> Iterator[Problem]:
    path, tree = f"{resource.path}.template", resource.template
    if not isinstance(tree, Mapping):
        yield Problem("TemplateInvalid", "must be a manifest", path, resource=resource.name)
        return
    api_version, kind = tree.get("apiVersion"), tree.get("kind")
    if not isinstance(api_version, str) or not isinstance(kind, str):
        yield Problem(
            "TemplateInvalid", "apiVersion and kind must be given as plain texts", path, resource=resource.name
        )
        return
    faults = tuple(_metadata_problems(resource, tree.get("metadata") or {}))
    if faults:
        yield from faults
        return
    facts = _child_facts(api_version, kind, catalog, path)
    if isinstance(facts, Problem):
        yield msgspec.structs.replace(facts, resource=resource.name)
        return
    if facts.stateful and resource.source.stateful is False:
        message = f"{kind} holds data: stateful cannot be false"
        yield Problem("TemplateInvalid", message, f"{resource.path}.stateful", resource=resource.name)
    schema = facts.schema_of(api_version)
    # A field that there is not is a mistake, and nothing to be allowed.
    mismatches = tuple(template_mismatches(tree, schema, path)) if schema else ()
    for problem in mismatches or facts.fence.refusals(tree, path, None):
        yield msgspec.structs.replace(problem, resource=resource.name)
    if schema:
        yield from floors.faults(resource.source, schema, resource.path)


def _child_facts(api_version: str, kind: str, catalog: Catalog, path: str) -> KindFacts | Problem:
    group = api_version.rpartition("/")[0]
    group_kind = f"{kind}.{group}" if group else kind
    facts = catalog.get(group_kind)
    if facts is None and may_come(group, group_kind):
        known = near(kind, (other.resource.kind for other in catalog.values()))
        return Problem("KindNotInstalled", f"kind {kind} of {api_version} is not installed{known}", path)
    if facts is None or not facts.allowed:
        return Problem("KindNotAllowed", f"compositions may not compose {group_kind}", path)
    if fault := facts.version_fault(api_version):
        return Problem("KindNotInstalled", fault, f"{path}.apiVersion")
    return facts


def _metadata_problems(resource: CompiledResource, meta: Any) -> Iterator[Problem]:
    path = f"{resource.path}.template.metadata"
    parts = {name: meta.get(name) for name in ("labels", "annotations")} if isinstance(meta, Mapping) else {"": meta}
    for name, part in parts.items():
        if part is not None and not isinstance(part, Mapping):
            message = "must be a map whose values may be expressions"
            yield Problem("TemplateInvalid", message, f"{path}.{name}".rstrip("."), resource=resource.name)
            return
    for name in _SET_BY_US:
        if name in meta:
            message = f"{name} follows from the claim and cannot be set"
            yield Problem("NameNotAllowed", message, f"{path}.{name}", resource=resource.name)
    if "namespace" in meta:
        message = "children live in the namespace of their claim"
        yield Problem("NamespaceNotAllowed", message, f"{path}.namespace", resource=resource.name)
    for part in ("labels", "annotations"):
        for name in meta.get(part) or {}:
            if names.is_reserved(str(name)):
                message = f"{name} is Fairlead's own and cannot be set"
                yield Problem("TemplateForbidden", message, f"{path}.{part}", resource=resource.name)


def _read_problems(compiled: Compiled, claim: KindFacts, catalog: Catalog) -> Iterator[Problem]:
    for leaf, expression, read in _reads_of(compiled):
        fault = _fault(read, compiled, claim, catalog)
        if fault:
            yield _undefined(leaf, expression, fault)


def unknown_claim_paths(composition: dict[str, Any], schema: Schema) -> tuple[Problem, ...]:
    """Return the paths of a claim that a Composition reads and the schema of the claim's kind does not have.

    Raises CompositionError when the Composition cannot be compiled.
    """
    every = _reads_of(compile_composition(composition))
    faults = (
        (leaf, expression, _claim_fault(read, schema)) for leaf, expression, read in every if read.root == "claim"
    )
    return tuple(_undefined(leaf, expression, fault) for leaf, expression, fault in faults if fault)


def claim_reads(compiled: Compiled) -> frozenset[tuple[str | None, ...]]:
    """Return the paths below a claim's spec that a Composition reads, None for a computed step."""
    every = (read for _, _, read in _reads_of(compiled) if read.root == "claim" and read.whole[:1] == ("spec",))
    return frozenset(read.whole[1:] for read in every)


def _reads_of(compiled: Compiled) -> Iterator[tuple[Leaf, Expression, Path]]:
    trees = [*compiled.variables.values(), compiled.connection, compiled.status]
    for resource in compiled.resources:
        trees += [resource.template, resource.when, resource.for_each, resource.ready_when]
    return reads(trees)


def _undefined(leaf: Leaf, expression: Expression, fault: str) -> Problem:
    return Problem("RenderFailed", fault, leaf.path, _column(expression.column, expression.source, fault))


def _column(column: int, source: str, fault: str) -> int:
    """Point at the name that a fault quotes first, where it stands in the expression."""
    quoted = fault.partition("'")[2].partition("'")[0]
    return column + max(source.find(quoted), 0)


def _fault(read: Path, compiled: Compiled, claim: KindFacts, catalog: Catalog) -> str | None:
    match read.root:
        case "claim":
            return _claim_fault(read, claim.schema or {})
        case "vars" | "env":
            known = compiled.variables if read.root == "vars" else dict.fromkeys(compiled.spec.environments)
            return _name_fault(read, known, "variable" if read.root == "vars" else "environment")
        case "resources":
            return _resource_fault(read, compiled, catalog)
        case "each":
            return (
                None
                if not read.steps or read.steps[0] in ("key", "value")
                else f"each has key and value, no {read.steps[0]!r}"
            )
        case "passwords":
            return _password_fault(read, {password.name for password in compiled.spec.passwords})
        case _:
            return None


def _claim_fault(read: Path, schema: Schema) -> str | None:
    if not read.steps or read.steps[0] != "spec":
        return None
    below = step(schema, "spec") or {}
    unknown = unknown_step(below, read.steps[1:])
    if unknown is None:
        return None
    return f"{read.steps[1 + unknown[0]]!r} is undefined{unknown[1]}"


def _password_fault(read: Path, known: Collection[str]) -> str | None:
    if not read.steps:
        return "a password is named in full, as passwords.<name>.name"
    if read.steps[0] not in known:
        return f"there is no password {read.steps[0]!r}{near(read.steps[0], known)}"
    if read.whole[1:] != ("name",):
        return f"of a password only the name of its Secret can be read, as passwords.{read.steps[0]}.name"
    return None


def _name_fault(read: Path, known: Mapping[str, Any], noun: str) -> str | None:
    if not read.steps or read.steps[0] in known:
        return None
    return f"there is no {noun} {read.steps[0]!r}{near(read.steps[0], known)}"


def _resource_fault(read: Path, compiled: Compiled, catalog: Catalog) -> str | None:
    by_name = {resource.name: resource for resource in compiled.resources}
    if not read.steps or read.steps[0] not in by_name:
        name = read.steps[0] if read.steps else ""
        return f"there is no resource {name!r}{near(name, by_name)}"
    resource = by_name[read.steps[0]]
    # Of a resource with forEach the next step is an element's key, which may be computed.
    below = read.whole[2:] if resource.source.for_each else read.whole[1:]
    path = written_out(below)
    if path[:1] not in (("status",), ("spec",)):
        return None
    template = resource.template
    facts = catalog.get(group_kind_of(template))
    if facts is None:
        return None
    # What an object reports is read as it is stored.
    schema = facts.schema if path[0] == "status" else facts.schema_of(str(template["apiVersion"]))
    if schema is None:
        return None
    unknown = unknown_step(schema, path)
    return (
        None if unknown is None else f"{path[unknown[0]]!r} is not in the {path[0]} of {template['kind']}{unknown[1]}"
    )


def _password_problems(compiled: Compiled, claim: KindFacts) -> Iterator[Problem]:
    """Yield two passwords of one name, and a kind of claim whose status cannot record that they were made."""
    seen = set[str]()
    for index, password in enumerate(compiled.spec.passwords):
        if password.name in seen:
            message = f"two passwords are called {password.name!r}"
            yield Problem("DuplicateResource", message, f"spec.passwords[{index}].name")
        seen.add(password.name)
    status = step(claim.schema or {}, "status") or {}
    if seen and step(status, "passwords") is None:
        message = f"{claim.resource.kind} lacks status.passwords, in which it is recorded that they were made"
        yield Problem("ApiIncomplete", message, "spec.passwords")


def _status_problems(compiled: Compiled, claim: KindFacts) -> Iterator[Problem]:
    schema = step(claim.schema or {}, "status") or {}
    for name in compiled.status:
        if step(schema, name) is None:
            known = near(name, schema.get("properties") or ())
            yield Problem("SchemaMismatch", f"unknown field {name!r}{known}", f"spec.status.{name}")
