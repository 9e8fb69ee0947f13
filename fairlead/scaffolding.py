"""What `fairlead crd new` and `fairlead composition new` write: files to begin with, which pass every check. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from apis import names
from composer.kinds.catalog import Catalog, KindFacts
from composer.models import ClaimSpec
from composer.render.errors import Problem
from composer.render.schema import Schema, step
from composer.render.values import Pending
from composer.validation.samples import samples, values_of
from composer.validation.validate import CheckRequest, check
from fairlead.exits import CommandError, Exit
from runtime.objects import Object

Files = dict[str, list[Object]]
"""The documents of each file, by its path in the folder."""

_SIZES: Final = {"small": {"replicas": 1}, "medium": {"replicas": 2}, "large": {"replicas": 3}}
_COLUMNS: Final = {"Ready": "Whether it can be used", "Size": "Size by name"}
_OF_DATABASES: Final = frozenset({"version", "storageGiB"})
_KIND = re.compile(r"[A-Z][A-Za-z0-9]{0,61}")
_GROUP = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)+")
_NAME = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
# What follows from the claim by itself, and where a managed resource has what its cloud gets.
_FOLLOWING, _OF_THE_CLOUD = frozenset({"deletionPolicy"}), "forProvider"
_PLACE = re.compile(r"spec\.resources\[0\]\.template\.spec\.(.+)")
_NAMES = re.compile(r"name|databaseName|dbName|\w*[uU]sername")
# A letter first, as most clouds want it.
_NAME_OF_CLAIM: Final = "'db_' ~ claim.metadata.name | dns_label(47) | replace('-', '_')"
_NAMED: Final = f"{{{{ {_NAME_OF_CLAIM} }}}}"
_VARIABLE = re.compile(r"[A-Za-z_]\w*")
_POLICIES: Final = (
    ("fairlead-claims", "", ("CREATE", "UPDATE")),
    ("fairlead-deletion-protection", "", ("DELETE",)),
    ("fairlead-status", "/status", ("UPDATE",)),
)


@dataclass(frozen=True, slots=True)
class NewKind:
    """A kind of claim that is to be."""

    kind: str
    group: str

    @property
    def plural(self) -> str:
        """The name in paths of the API."""
        return f"{self.kind.lower()}s"

    @property
    def singular(self) -> str:
        """The name of one."""
        return self.kind.lower()

    @property
    def api_version(self) -> str:
        """Group and version."""
        return f"{self.group}/v1alpha1"


def kind_files(new: NewKind, shipped: Object) -> Files:
    """Return CRD, rights, policy bindings, a Composition, its test and a claim; `shipped`: the CRD of our own kind.

    Raises CommandError (usage) for names that an API server, or the composer, would not take.
    """
    if not _KIND.fullmatch(new.kind):
        raise CommandError(f"{new.kind!r} is no kind: a capital first, as Queue", exit_code=Exit.USAGE)
    if not _GROUP.fullmatch(new.group) or names.is_own_group(new.group):
        text = f"--group {new.group!r}: a domain of yours, as queues.example.org; {names.GROUP} is Fairlead's"
        raise CommandError(text, exit_code=Exit.USAGE)
    claim = _object(new.api_version, new.kind, {"name": "orders", "namespace": "shop"}, spec={"size": "small"})
    child = {"data": {"name": "orders", "replicas": "1"}}
    expect = {"children": [{"resource": "settings", "object": child}], "waiting": []}
    return {
        f"crds/{new.group}_{new.plural}.yaml": [_crd(new, shipped)],
        "deploy/rights.yaml": [*_rights(new)],
        "deploy/policies.yaml": [*_bindings(new)],
        f"compositions/{new.singular}-plain.yaml": [_first_composition(new)],
        f"compositions/tests/{new.singular}-plain.yaml": [_test(f"{new.singular}-plain", claim, expect)],
        f"examples/{new.singular}.yaml": [claim],
    }


def _crd(new: NewKind, shipped: Object) -> Object:
    """Return a CRD with the status that the composer needs, and the fields of a spec that it reads."""
    crd: Object = msgspec.json.decode(msgspec.json.encode(shipped))
    spec = crd["spec"]
    spec["group"] = new.group
    spec["names"] = {
        "kind": new.kind,
        "listKind": f"{new.kind}List",
        "plural": new.plural,
        "singular": new.singular,
        "categories": ["fairlead"],
    }
    (version,) = spec["versions"]
    schema = version["schema"]["openAPIV3Schema"]
    schema["description"] = f"A claim for a {new.kind}. The platform team's Compositions decide what serves it."
    # Rules on what only a database has.
    schema.pop("x-kubernetes-validations", None)
    read = {item.encode_name for item in msgspec.structs.fields(ClaimSpec)}
    kept = {name: below for name, below in schema["properties"]["spec"]["properties"].items() if name in read}
    size = {
        "type": "string",
        "description": "How large it is, in steps that the Composition defines. May be changed. Example: small.",
        "maxLength": 6,
        "enum": [*_SIZES],
        "default": "small",
    }
    schema["properties"]["spec"] = {
        "type": "object",
        "description": "What the application needs.",
        "properties": {"size": size, **kept},
    }
    status = schema["properties"]["status"]["properties"]
    for name in _OF_DATABASES:
        status.pop(name, None)
    version["additionalPrinterColumns"] = [
        {**column, "description": _COLUMNS.get(column["name"], column["description"])}
        for column in version["additionalPrinterColumns"]
        if _is_there(column["jsonPath"], schema)
    ]
    return {**crd, "metadata": {"name": f"{new.plural}.{new.group}", "labels": crd["metadata"].get("labels") or {}}}


def _is_there(json_path: str, schema: Schema) -> bool:
    """Return whether the schema has the field of a column."""
    part, field = json_path.lstrip(".").split(".")[:2]
    return part == "metadata" or step(step(schema, part) or {}, field.partition("[")[0]) is not None


def _rights(new: NewKind) -> Iterator[Object]:
    """Yield the composer's rights to claims and to what it composes, and people's through the cluster's own roles."""
    everything = ("get", "list", "watch", "create", "update", "patch", "delete", "deletecollection")
    reads = everything[:3]
    aggregated = "rbac.authorization.k8s.io/aggregate-to-"
    composer = {names.AGGREGATE_LABEL: "true"}
    yield _role(
        f"composer-{new.plural}",
        composer,
        [
            (new.plural, ("get", "list", "watch", "patch")),
            (f"{new.plural}/status", ("patch",)),
            (f"{new.plural}/finalizers", ("update",)),
        ],
        new.group,
    )
    composed = ("get", "list", "watch", "create", "patch", "delete")
    yield _role(f"composer-{new.plural}-composed", composer, [("configmaps", composed)], "")
    writers = {f"{aggregated}{role}": "true" for role in ("edit", "admin")}
    yield _role(f"{new.plural}-edit", writers, [(new.plural, everything)], new.group)
    yield _role(f"{new.plural}-view", {f"{aggregated}view": "true", **writers}, [(new.plural, reads)], new.group)


def _role(name: str, labels: Mapping[str, str], rights: Sequence[tuple[str, Sequence[str]]], group: str) -> Object:
    rules = [{"apiGroups": [group], "resources": [resource], "verbs": [*verbs]} for resource, verbs in rights]
    meta = {"name": name, "labels": dict(labels)}
    return {**_object("rbac.authorization.k8s.io/v1", "ClusterRole", meta), "rules": rules}


def _bindings(new: NewKind) -> Iterator[Object]:
    """Yield what puts the kind under the admission policies of claims."""
    for policy, below, operations in _POLICIES:
        rule = {
            "apiGroups": [new.group],
            "apiVersions": ["*"],
            "resources": [f"{new.plural}{below}"],
            "operations": [*operations],
        }
        spec = {"policyName": policy, "validationActions": ["Deny"], "matchResources": {"resourceRules": [rule]}}
        meta = {"name": f"{policy}-{new.plural}"}
        yield _object("admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicyBinding", meta, spec=spec)


def _first_composition(new: NewKind) -> Object:
    """Return a Composition of a ConfigMap, which every cluster has: a place to begin."""
    data = {"name": "{{ claim.metadata.name }}", "replicas": "{{ vars.sizes[claim.spec.size].replicas | string }}"}
    return _composition(
        f"{new.singular}-plain",
        new.api_version,
        new.kind,
        variables={"sizes": _SIZES},
        resources=[{"name": "settings", "template": {"apiVersion": "v1", "kind": "ConfigMap", "data": data}}],
    )


def composition_files(name: str, claim: KindFacts, spec: Object) -> Files:
    """Return a Composition of this spec and its test with a golden file. Raises CommandError (usage) for the name."""
    if not _NAME.fullmatch(name):
        raise CommandError(f"{name!r} is no name: small letters, digits and -", exit_code=Exit.USAGE)
    drafts = samples(step(claim.schema or {}, "spec") or {})
    plain = next((draft for draft in drafts if draft.is_plain), drafts[0])
    written = {field: value for field, value in plain.spec.items() if not isinstance(value, Pending)}
    resource = claim.resource
    sample = _object(resource.api_version, resource.kind, {"name": "orders", "namespace": "shop"}, spec=written)
    composition = _composition(name, resource.api_version, resource.kind, **spec)
    return {
        f"{name}.yaml": [composition],
        f"tests/{name}.yaml": [_test(name, sample, {"golden": f"golden/{name}.yaml", "waiting": []})],
    }


def spec_of_kind(composed: KindFacts, claim: KindFacts, catalog: Catalog) -> Object:
    """Return a resource of a kind: what is required of it, and what a claim has fields for, by their names.

    What only a rule of the kind requires is known by the check of a Composition without it.
    """
    required: frozenset[str] = frozenset()
    while True:
        spec = _of_kind(composed, claim, required)
        typed = {"compositeTypeRef": {"apiVersion": claim.resource.api_version, "kind": claim.resource.kind}, **spec}
        problems = check(CheckRequest(typed, catalog))
        missing = {
            place[1] for problem in problems if (place := _PLACE.fullmatch(problem.path)) and _is_missing(problem)
        }
        if missing <= required:
            return spec
        required |= missing


def _is_missing(problem: Problem) -> bool:
    return f"{problem.path.rpartition('.')[2]} is required" in problem.message


def _of_kind(composed: KindFacts, claim: KindFacts, required: frozenset[str]) -> Object:
    resource = composed.resource
    below = _Fields(step(claim.schema or {}, "spec") or {}, required).filled(
        step(composed.schema or {}, "spec") or {}, ""
    )
    template = {"apiVersion": resource.api_version, "kind": resource.kind, "spec": below}
    return {"resources": [{"name": re.sub(r"[^a-z0-9]", "", resource.kind.lower()), "template": template}]}


@dataclass(frozen=True, slots=True)
class _Fields:
    """What fields of a composed kind are made of: the schema of the claim's spec, and paths that a rule requires."""

    claim: Schema
    required: frozenset[str]

    def filled(self, schema: Schema, path: str) -> Object:
        """Return what of a schema is required, and what the claim has fields for."""
        fields: Object = {}
        for name, below in (schema.get("properties") or {}).items():
            place = f"{path}.{name}".lstrip(".")
            is_required = name in (schema.get("required") or ()) or place in self.required
            if name in _FOLLOWING:
                continue
            if below.get("properties"):
                if is_required or name == _OF_THE_CLOUD:
                    fields[name] = self.filled(below, place)
                continue
            own = (self.claim.get("properties") or {}).get(name) or {}
            if own.get("type") == below.get("type"):
                fields[name] = self._of_claim(name, own, below, is_required=is_required)
            elif is_required:
                fields[name] = _NAMED if _is_name(name, below) else _made_up(below)
        return fields

    def _of_claim(self, name: str, own: Schema, below: Schema, *, is_required: bool) -> str:
        """Return the expression of a claim's field: left out where the claim leaves it out and may."""
        if name in (self.claim.get("required") or ()) or "default" in own:
            return f"{{{{ claim.spec.{name} }}}}"
        otherwise = _NAME_OF_CLAIM if _is_name(name, below) else _literal(_made_up(below))
        return f"{{{{ claim.spec.{name} | default({otherwise if is_required else 'none'}) }}}}"


def _is_name(name: str, schema: Schema) -> bool:
    """Return whether a field is a name in the cloud, of which no two claims have the same."""
    return schema.get("type") == "string" and _NAMES.fullmatch(name) is not None


def _made_up(schema: Schema) -> Any:
    """Return a value that the schema allows, for its author to replace."""
    values = values_of(schema)
    return values[0] if values else {"array": [], "object": {}}.get(str(schema.get("type")), "change-me")


def _literal(value: Any) -> str:
    match value:
        case bool():
            return str(value).lower()
        case str():
            return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"
        case _:
            return str(value)


def spec_of_values(values: Mapping[str, Any], claim: KindFacts) -> Object:
    """Return variables of Helm-like values, those that claims have fields for asked of them, in one ConfigMap.

    Raises CommandError (invalid input) for a key that no expression can name.
    """
    fields = (step(claim.schema or {}, "spec") or {}).get("properties") or {}
    variables: Object = {}
    data: dict[str, str] = {}
    for name, value in values.items():
        if not _VARIABLE.fullmatch(name):
            text = f"values: {name!r} is no name of a variable: letters, digits and _"
            raise CommandError(text, exit_code=Exit.INVALID_INPUT)
        is_scalar = isinstance(value, str | int | float)
        variables[name] = (
            f"{{{{ claim.spec.{name} | default({_literal(value)}) }}}}" if is_scalar and name in fields else value
        )
        data |= _flat(name, value)
    template = {"apiVersion": "v1", "kind": "ConfigMap", "data": data}
    return {"variables": variables, "resources": [{"name": "settings", "template": template}]}


def _flat(path: str, value: Any) -> dict[str, str]:
    """Return a text for each leaf of values, by its path."""
    match value:
        case Mapping():
            leaves = (_flat(f"{path}.{name}", below) for name, below in value.items() if _VARIABLE.fullmatch(str(name)))
            return {name: text for below in leaves for name, text in below.items()}
        case bool():
            return {path: f"{{{{ vars.{path} | string | lower }}}}"}
        case str() | int() | float():
            return {path: f"{{{{ vars.{path} | string }}}}"}
        case list() if all(isinstance(item, str) for item in value):
            return {path: f"{{{{ vars.{path} | join(',') }}}}"}
        case _:
            return {}


def _composition(name: str, api_version: str, kind: str, **parts: Any) -> Object:
    spec = {
        "compositeTypeRef": {"apiVersion": api_version, "kind": kind},
        "appliesTo": {"priority": 0},
        "deletionPolicies": ["Orphan", "Delete"],
        **parts,
    }
    return _object(names.COMPOSITIONS.api_version, names.COMPOSITIONS.kind, {"name": name}, spec=spec)


def _test(composition: str, claim: Object, expect: Object) -> Object:
    spec = {"composition": composition, "claim": claim, "expect": expect}
    return _object(names.COMPOSITIONS.api_version, "CompositionTest", {"name": "the-smallest-claim"}, spec=spec)


def _object(api_version: str, kind: str, meta: Object, *, spec: Object | None = None) -> Object:
    body: Object = {"apiVersion": api_version, "kind": kind, "metadata": meta}
    return body if spec is None else {**body, "spec": spec}
