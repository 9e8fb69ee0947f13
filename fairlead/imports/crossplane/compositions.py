"""Crossplane's Compositions of patches as Compositions of ours; what has no place here is said with its line. Pure.

Source: docs.crossplane.io, "Compositions" and "Function Patch and Transform"; mode `Resources` of Crossplane 1 and the
function of that name in mode `Pipeline` say the same.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from fairlead.imports.crossplane.expressions import NoPlaceError, joined, steps_of
from fairlead.imports.crossplane.kinds import RULES, KindRule
from fairlead.imports.crossplane.resources import Expression, Reader, Template, flattened, patched
from runtime.objects import Object, metadata

API: Final = "apiextensions.crossplane.io"
_FUNCTION: Final = "pt.fn.crossplane.io"
_FROM_COMPOSITE: Final = ("FromCompositeFieldPath", "CombineFromComposite")
_RESERVED: Final = frozenset({
    "username", "password", "host", "endpoint", "port", "uri", "jdbc-url", "sslmode", "sslrootcert", "certificates",
    "address", "database", "privateIP", "publicIP", "connectionName", "serverCACertificateCert",
})  # fmt: skip
# Whose connection names a database: its kind, and our field that refers to it, empty where its name is set.
_DATABASES: Final = {
    "CloudSQLUser": ("CloudSQLDatabase", "databaseRef"),
    "FlexibleServer": ("FlexibleServerDatabase", ""),
}
_CLAIMS_OWN: Final = {
    "passwordRotation": "claim.spec.passwordRotation | default(none)",
    "passwordSecretRef": "{'name': claim.spec.passwordSecretRef.name, 'key': 'password'}"
    " if claim.spec.passwordSecretRef is defined else none",
}


@dataclass(frozen=True, slots=True)
class Remark:
    """Something that has no place here: where it stands in the file, and why."""

    path: str
    text: str


@dataclass
class Converted:
    """A Composition of ours, and what of Crossplane's has no place in it."""

    composition: Object
    remarks: list[Remark] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class ClaimKind:
    """The kind of claim that takes the place of a composite resource, and the schema of its spec and its status."""

    api_version: str
    kind: str
    spec: Mapping[str, Any]
    status: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class _Source:
    """One entry of `resources` with its path in the file, the rule of its kind and its name here."""

    path: str
    entry: Mapping[str, Any]
    rule: KindRule
    name: str


def converted(composition: Object, claim_kind: ClaimKind, required: Mapping[str, Sequence[str]]) -> Converted:
    """Convert one Composition whose XRD became a kind of claim; `required` are fields of `spec.forProvider` by kind."""
    remarks: list[Remark] = []
    sources, sets = _sources(composition["spec"], remarks)
    counts = [source.rule.kind for source in sources]
    siblings = {source.rule.kind: source.name for source in sources if counts.count(source.rule.kind) == 1}
    statuses = _statuses(sources, sets, remarks)
    reader = Reader(claim_kind.spec, statuses)
    templates = [_template(source, sets, siblings, reader, remarks) for source in sources]
    _link(templates)
    for source, template in zip(sources, templates, strict=True):
        absent = [name for name in required[source.rule.kind] if not template.sets(name)]
        if absent:
            text = f"{source.rule.kind} needs {', '.join(absent)}: set it by hand"
            remarks.append(Remark(f"{source.path}.base", text))
    resources = [
        {"name": source.name, "template": template.tree(), **_readiness(source, remarks)}
        for source, template in zip(sources, templates, strict=True)
    ]
    has_snapshots = not any(source.rule.cloud == "azure" for source in sources)
    spec: Object = {
        "compositeTypeRef": {"apiVersion": claim_kind.api_version, "kind": claim_kind.kind},
        "deletionPolicies": ["Orphan", *(["Snapshot"] if has_snapshots else []), "Delete"],
        "resources": resources,
    }
    connection = _connection(sources, remarks)
    if connection:
        spec["connection"] = connection
    served = {steps: text for steps, text in statuses.items() if steps[0] in claim_kind.status.get("properties", {})}
    if served:
        spec["status"] = _tree(served)
    labels = metadata(composition).get("labels") or {}
    meta = {"name": str(metadata(composition)["name"]), **({"labels": labels} if labels else {})}
    return Converted(
        {"apiVersion": "fairlead.dev/v1alpha1", "kind": "Composition", "metadata": meta, "spec": spec}, remarks
    )


def _tree(leaves: Mapping[tuple[str, ...], str]) -> Object:
    tree: Object = {}
    for steps, text in leaves.items():
        below = tree
        for step in steps[:-1]:
            below = below.setdefault(step, {})
        below[steps[-1]] = f"{{{{ {text} }}}}"
    return tree


def _sources(spec: Object, remarks: list[Remark]) -> tuple[list[_Source], Mapping[str, Sequence[Mapping[str, Any]]]]:
    """Return the resources that have a kind here, and the sets of patches by name."""
    sources: list[_Source] = []
    sets: dict[str, Sequence[Mapping[str, Any]]] = {}
    for path, holder in _holders(spec, remarks):
        sets |= {str(item["name"]): item.get("patches") or () for item in holder.get("patchSets") or ()}
        for index, entry in enumerate(holder.get("resources") or ()):
            base = entry.get("base") or {}
            rule = rule_of(base)
            here = f"{path}resources[{index}]"
            if rule is None:
                kind = f"{base.get('kind')} of {base.get('apiVersion')}"
                remarks.append(
                    Remark(f"{here}.base", f"{kind} has no kind here: leave it to Crossplane, or compose it by hand")
                )
                continue
            sources.append(_Source(here, entry, rule, _name(entry, rule, sources)))
    return sources, sets


def rule_of(base: Object) -> KindRule | None:
    """Return the rule of a managed resource of Crossplane's."""
    group = str(base.get("apiVersion", "")).partition("/")[0]
    plain = group.removesuffix(".upbound.io").removesuffix(".crossplane.io").removesuffix(".m")
    return RULES.get((plain, str(base.get("kind"))))


def _name(entry: Mapping[str, Any], rule: KindRule, sources: Sequence[_Source]) -> str:
    """Return a name of small letters and digits that no resource before it has."""
    plain = re.sub(r"[^a-z0-9]", "", str(entry.get("name") or rule.kind).lower()) or "resource"
    plain = plain if plain[0].isalpha() else f"r{plain}"
    taken = {source.name for source in sources}
    return next(name for name in (plain, *(f"{plain}{number}" for number in range(2, 100))) if name not in taken)


def _holders(spec: Object, remarks: list[Remark]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield what holds resources and patch sets: the spec itself, or the input of a function."""
    if spec.get("environment"):
        text = "the environment has no place: environments are ConfigMaps of fairlead-system"
        remarks.append(Remark("spec.environment", text))
    if spec.get("mode", "Resources") == "Resources":
        yield "spec.", spec
    for index, step in enumerate(spec.get("pipeline") or ()):
        function_input = step.get("input") or {}
        if str(function_input.get("apiVersion", "")).partition("/")[0] == _FUNCTION:
            yield f"spec.pipeline[{index}].input.", function_input
        elif "auto-ready" not in str((step.get("functionRef") or {}).get("name", "")):
            function = (step.get("functionRef") or {}).get("name", "")
            remarks.append(
                Remark(f"spec.pipeline[{index}]", f"function {function} is a program: write what it makes by hand")
            )


def _patches(
    source: _Source, sets: Mapping[str, Sequence[Mapping[str, Any]]]
) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the patches of a resource with their paths, those of sets in the place of their names."""
    for index, patch in enumerate(source.entry.get("patches") or ()):
        path = f"{source.path}.patches[{index}]"
        if patch.get("type") == "PatchSet":
            yield from ((path, inner) for inner in sets.get(str(patch.get("patchSetName")), ()))
        else:
            yield path, patch


def _template(
    source: _Source,
    sets: Mapping[str, Sequence[Mapping[str, Any]]],
    siblings: Mapping[str, str],
    reader: Reader,
    remarks: list[Remark],
) -> Template:
    template = Template(source.rule, siblings)
    for name, text in source.rule.defaults.items():
        template.leaves["spec", "forProvider", name] = Expression(text)
    for steps, value in flattened(source.entry["base"], source.rule):
        try:
            template.set(steps, value)
        except (NoPlaceError, KeyError, TypeError, ValueError) as error:
            remarks.append(Remark(f"{source.path}.base.{joined('', steps).lstrip('.')}", str(error)))
    for path, patch in _patches(source, sets):
        kind = str(patch.get("type", "FromCompositeFieldPath"))
        if kind in {"ToCompositeFieldPath", "CombineToComposite"}:
            continue
        if kind not in _FROM_COMPOSITE:
            remarks.append(Remark(path, f"patch of type {kind}: environments are ConfigMaps of fairlead-system here"))
            continue
        try:
            patched(template, patch, reader)
        except (NoPlaceError, KeyError) as error:
            remarks.append(Remark(path, str(error)))
    if source.rule.has_login:
        for name, text in _CLAIMS_OWN.items():
            template.leaves["spec", name] = Expression(text)
    return template


def _link(templates: Sequence[Template]) -> None:
    """Have whoever publishes a connection name the database, where a Composition makes one."""
    for template in templates:
        kind, reference = _DATABASES.get(template.rule.kind, ("", ""))
        databases = [other for other in templates if other.rule.kind == kind]
        if len(databases) != 1:
            continue
        if reference:
            name = Expression(f"resources.{template.siblings[kind]}.metadata.name")
            template.leaves["spec", "forProvider", reference, "name"] = name
        else:
            template.leaves["spec", "forProvider", "databaseName"] = databases[0].leaves["spec", "forProvider", "name"]


def _readiness(source: _Source, remarks: list[Remark]) -> Object:
    """Return `readyWhen` where a resource is to be ready at once; its provider says it of all others."""
    ready: Object = {}
    for index, check in enumerate(source.entry.get("readinessChecks") or ()):
        if check.get("type") == "None":
            ready = {"readyWhen": "{{ true }}"}
        elif check.get("type") != "MatchCondition" or (check.get("matchCondition") or {}).get("type") != "Ready":
            text = f"check of type {check.get('type')} is left out: {source.rule.kind} says by itself when it is ready"
            remarks.append(Remark(f"{source.path}.readinessChecks[{index}]", text))
    return ready


def _statuses(
    sources: Sequence[_Source], sets: Mapping[str, Sequence[Mapping[str, Any]]], remarks: list[Remark]
) -> dict[tuple[str, ...], str]:
    """Return the expressions of what patches write to the composite resource's status, by the steps below it."""
    statuses: dict[tuple[str, ...], str] = {}
    for source in sources:
        for path, patch in _patches(source, sets):
            kind = patch.get("type")
            if kind == "CombineToComposite":
                remarks.append(Remark(path, "several fields of an object make no field of a status here"))
            if kind != "ToCompositeFieldPath":
                continue
            own, target = str(patch["fromFieldPath"]), steps_of(str(patch.get("toFieldPath") or patch["fromFieldPath"]))
            field_of_ours = _status_field(source.rule, own)
            if target[0] != "status" or field_of_ours is None or patch.get("transforms"):
                remarks.append(Remark(path, f"{own} is nothing that {source.rule.kind} reports for a claim's status"))
                continue
            statuses[target[1:]] = joined(f"resources.{source.name}", field_of_ours.split("."))
    return statuses


def _status_field(rule: KindRule, path: str) -> str | None:
    steps = steps_of(path)
    if steps[-1] == "crossplane.io/external-name":
        return "status.externalName"
    own = ".".join(step for step in steps if not step.isdigit()).removeprefix("status.atProvider.")
    return rule.status.get(own)


def _connection(sources: Sequence[_Source], remarks: list[Remark]) -> Object:
    """Return where the connection Secret comes from: the resource with the login, and keys with values beside it."""
    login = next((source for source in sources if source.rule.has_login), None)
    if login is None:
        return {}
    connection: Object = {"from": login.name}
    for source in sources:
        for index, detail in enumerate(source.entry.get("connectionDetails") or ()):
            path = f"{source.path}.connectionDetails[{index}]"
            key = str(detail.get("name") or detail.get("fromConnectionSecretKey", ""))
            if key in _RESERVED or "fromConnectionSecretKey" in detail:
                if key not in _RESERVED:
                    remarks.append(
                        Remark(path, f"key {key}: the Secret has host, port, database, username, password, uri")
                    )
            elif "value" in detail:
                connection[key] = str(detail["value"])
            elif (own := _status_field(source.rule, str(detail.get("fromFieldPath", "")))) is not None:
                connection[key] = f"{{{{ {joined(f'resources.{source.name}', own.split('.'))} }}}}"
            else:
                remarks.append(Remark(path, f"key {key} comes from a field that {source.rule.kind} does not report"))
    return connection
