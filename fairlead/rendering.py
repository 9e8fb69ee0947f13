"""`fairlead render`: what a claim becomes, without any API server, by the composer's own call."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal

from apis import names
from apis.identity import Identity
from composer.kinds.catalog import HOLDS_DATA, Catalog, KindFacts, catalog, catalog_of, facts_of, is_silent
from composer.render import schema
from composer.render.cel import broken
from composer.render.compiler import convert
from composer.render.errors import CompositionError, Problem, near
from composer.render.passwords import secret_names
from composer.render.render import Child, Rendered, render
from composer.render.request import Observed, Request
from composer.render.schema_limits import absences
from composer.validation.fields import refusals
from composer.validation.samples import all_ready
from composer.validation.trials import breaches
from composer.validation.validate import unknown_claim_paths
from fairlead.assets import assets
from fairlead.exits import CommandError, Exit
from fairlead.selection import Selection, select
from fairlead.yaml_files import Document, documents_in, dump, invalid, objects_in
from runtime.objects import Object, annotations_of, dumps, labels_of, metadata

NO_UID = "00000000-0000-0000-0000-000000000000"
_COMPOSITION = "Composition"
_NO_CLAIMS = frozenset({_COMPOSITION, "CompositionTest", "CustomResourceDefinition"})
_BESIDE = frozenset({"Namespace", "ConfigMap"})
_UID = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9]{0,61}[A-Za-z0-9])?")
_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_LABEL_CHARACTERS = 63
_NAME = re.compile(rf"{_LABEL.pattern}(\.{_LABEL.pattern})*")
_NAME_CHARACTERS = 253
_ESTABLISHED = {"conditions": [{"type": "Established", "status": "True"}]}
NONE_GIVEN: Catalog = {}


@dataclass(frozen=True, slots=True)
class Options:
    """What to render: files, whose identity, and what to believe of the children.

    `claim` is a file or folder; `compositions` too, None for the shipped ones; `observed` a folder of live objects;
    `ready` takes all children for ready, or none; `output` is YAML for people, or the JSON documents that the composer
    would send; `crds` a file or folder with kinds beside ours; `namespace_labels` those of each namespace that is in no
    file, None where they are not known.
    """

    claim: Path
    compositions: Path | None = None
    identity: str = NO_UID
    observed: Path | None = None
    ready: Literal["all", "none"] = "none"
    output: Literal["yaml", "json"] = "yaml"
    crds: Path | None = None
    namespace_labels: Mapping[str, str] | None = None


@dataclass(frozen=True, slots=True)
class Context:
    """What may lie beside claims in their file: the labels of their Namespaces, and ConfigMaps as environments."""

    namespaces: Mapping[str, Mapping[str, str]]
    environments: Mapping[str, dict[str, str]]

    @classmethod
    def of(cls, documents: Iterable[Document]) -> Context:
        """Find them among the documents of files."""
        objects = [
            (document.content["kind"], str(metadata(document.content).get("name")), document.content)
            for document in documents
        ]
        return cls(
            {name: labels_of(obj) for kind, name, obj in objects if kind == "Namespace"},
            {name: dict(obj.get("data") or {}) for kind, name, obj in objects if kind == "ConfigMap"},
        )


@dataclass(frozen=True, slots=True)
class Outcome:
    """Objects for standard output, remarks for the person."""

    text: str
    remarks: tuple[str, ...]


def render_files(options: Options) -> Outcome:
    """Render the claims of a file, or of a folder. Equal files give equal bytes.

    Raises CommandError (invalid input) with file, line, column and the nearest name, of every claim that has a fault.
    """
    if not _UID.fullmatch(options.identity):
        raise CommandError(
            f"--identity {options.identity!r} is no uid; `kubectl get -o jsonpath={{.metadata.uid}}` tells a claim's",
            exit_code=Exit.USAGE,
        )
    catalog = kinds_in(options.crds) if options.crds else {}
    documents = [document for document in documents_in(options.claim) if document.content["kind"] not in _NO_CLAIMS]
    context = Context.of(documents)
    claims = [document for document in documents if document.content["kind"] not in _BESIDE]
    if not claims:
        raise invalid(options.claim, "holds no claim")
    outcomes: list[Outcome] = []
    faults: list[str] = []
    for claim in claims:
        try:
            outcome = _render(claim, context, options, catalog)
            is_plain = len(claims) == 1 or options.output == "json"
            outcomes.append(outcome if is_plain else _headed(claim, outcome))
        except CommandError as error:
            faults.append(str(error))
    if faults:
        raise CommandError("\n".join(faults), exit_code=Exit.INVALID_INPUT)
    return Outcome(
        "".join(outcome.text for outcome in outcomes), tuple(said for outcome in outcomes for said in outcome.remarks)
    )


def _render(claim_file: Document, context: Context, options: Options, catalog: Catalog) -> Outcome:
    claim = checked_claim(claim_file, options.identity, catalog)
    selection = _choose(claim_file, context, options)
    composition_file = selection.composition
    identity = Identity(options.identity, metadata(claim)["namespace"], metadata(claim)["name"])
    request = Request(
        composition_name=str(metadata(composition_file.content)["name"]),
        composition=composition_file.content["spec"],
        claim=claim,
        identity=str(identity),
        environments=_environments(composition_file, context, options),
        observed=tuple(_observed(options.observed, catalog)) if options.observed else (),
        stateful_foreign=foreign_stateful(catalog),
        passwords=secret_names(composition_file.content["spec"], identity, claim),
    )
    try:
        rendered = all_ready(request) if options.ready == "all" else render(request)
        check_claim_paths(composition_file, claim, catalog)
        check_children(composition_file, rendered, catalog)
        refuse_fields(request, rendered, catalog)
    except CompositionError as error:
        raise located(composition_file, error.problems) from error
    text = (
        _lines(rendered.children) if options.output == "json" else yaml_of(request.composition_name, rendered.children)
    )
    return Outcome(text, (*selection.remarks, *(str(remark) for remark in rendered.waiting)))


def _headed(claim: Document, outcome: Outcome) -> Outcome:
    """Say before one of several renders whose it is."""
    name = f"{metadata(claim.content).get('namespace', 'default')}/{metadata(claim.content)['name']}"
    return Outcome(f"# claim: {name}\n{outcome.text}", tuple(f"{name}: {remark}" for remark in outcome.remarks))


def _facts(group_kind: str, catalog: Catalog) -> KindFacts | None:
    """Look a kind up in the CRDs of its group, as an API server with them would serve it."""
    return catalog.get(group_kind) or shipped_kinds(f"{group_kind.partition('.')[2]}_*.yaml").get(group_kind)


@cache
def shipped_kinds(files: str) -> Mapping[str, KindFacts]:
    """Return the kinds of our CRDs in the files of that pattern, as an API server with them would serve them."""
    return catalog_of(facts for file in sorted(assets("crds").glob(files)) for facts in _shipped_in(file))


@cache
def _shipped_in(file: Path) -> tuple[KindFacts, ...]:
    """Return the kinds of one of our files, which is read once in a process: patterns overlap."""
    established = ({**crd, "status": _ESTABLISHED} for crd in objects_in(file.parent, file.name))
    return tuple(facts for crd in established if (facts := facts_of(crd)) is not None)


def shipped_for(document: Document) -> Catalog:
    """Return our kinds in the groups that a document names: to read all CRDs would take most of the time."""
    spec = document.content.get("spec") or {}
    named: list[Any] = [document.content]
    if document.content["kind"] == "Composition":
        named = [spec.get("compositeTypeRef"), *(resource.get("template") for resource in spec.get("resources") or ())]
    groups = {str((document or {}).get("apiVersion", "")).partition("/")[0] for document in named}
    kinds = dict(shipped_kinds("no such file"))
    for group in sorted(group for group in groups if group.endswith(names.GROUP_SUFFIX)):
        kinds |= shipped_kinds(f"{group}_*.yaml")
    return kinds


def kinds_in(path: Path) -> Catalog:
    """Return the kinds of the CRDs in a file, or in the files of a folder. Raises CommandError."""
    crds = (
        document.content for document in documents_in(path) if document.content["kind"] == "CustomResourceDefinition"
    )
    return catalog({**crd, "status": _ESTABLISHED} for crd in crds)


def foreign_stateful(catalog: Catalog) -> tuple[str, ...]:
    """Return the kinds that hold data and are no provider's of ours: their objects carry our finalizer and no owner."""
    return tuple(sorted(HOLDS_DATA | {kind for kind, facts in catalog.items() if facts.stateful and not facts.managed}))


def _group_kind(obj: Object) -> str:
    group = str(obj["apiVersion"]).rpartition("/")[0]
    return f"{obj['kind']}.{group}" if group else str(obj["kind"])


def checked_claim(file: Document, uid: str, catalog: Catalog = NONE_GIVEN) -> Object:
    """Check a claim against its CRD's schema and fill in what the API server would. Raises CommandError.

    `given`: kinds that go before ours.
    """
    claim = file.content
    facts = _facts(_group_kind(claim), catalog)
    if facts is None or not facts.abstract or facts.resource.api_version != claim["apiVersion"]:
        path, text = _no_claim(claim, {**shipped_kinds("*.yaml"), **catalog}.values())
        raise invalid(file.place(path), text)
    return checked_object(file, uid, facts.schema or {})


def _no_claim(obj: Object, known: Iterable[KindFacts]) -> tuple[str, str]:
    """Say why an object is no claim: the path of what is wrong, and the sentence."""
    kinds = list(known)
    claimable = {facts.resource.kind: facts.resource.api_version for facts in kinds if facts.abstract}
    kind, api_version = str(obj["kind"]), str(obj["apiVersion"])
    if kind in claimable:
        return "apiVersion", f"{kind} is served as {claimable[kind]}, not as {api_version}"
    listed, full_kind = ", ".join(sorted(claimable)), f"{api_version} {kind}"
    if any((facts.resource.kind, facts.resource.api_version) == (kind, api_version) for facts in kinds):
        is_composed = names.is_managed(api_version.rpartition("/")[0])
        is_what = "what claims become" if is_composed and kind != "ProviderConfig" else "a setting"
        return "kind", f"{full_kind} is {is_what}, no claim; claims are {listed}"
    close = near(kind, claimable).removeprefix(", ")
    return "kind", f"{full_kind} is no kind of claim; {close or f'there is {listed}'}"


def checked_object(file: Document, uid: str, kind_schema: schema.Schema) -> Object:
    """Check an object's names and spec against its kind's schema and fill in its defaults. Raises CommandError."""
    written = file.content
    problems = [*_misnamed(written), *_mismatches(written, kind_schema)]
    filled: Object = schema.defaulted(written, kind_schema)
    if not problems:
        problems = list(broken(filled.get("spec") or {}, schema.step(kind_schema, "spec") or {}, "spec"))
    if problems:
        raise located(file, problems)
    filled["metadata"] = {"namespace": "default", **metadata(written), "uid": uid}
    filled.pop("status", None)
    return filled


def _misnamed(obj: Object) -> Iterable[Problem]:
    """Yield what the API server would say of an object's name and namespace (RFC 1123)."""
    name, namespace = metadata(obj).get("name"), metadata(obj).get("namespace", "default")
    if not name:
        yield Problem("SchemaMismatch", "metadata.name is missing", "metadata")
    elif len(str(name)) > _NAME_CHARACTERS or not _NAME.fullmatch(str(name)):
        message = f"{name!r} is no name: lower-case letters, digits, - and ., at most {_NAME_CHARACTERS} of them"
        yield Problem("SchemaMismatch", message, "metadata.name")
    if len(str(namespace)) > _LABEL_CHARACTERS or not _LABEL.fullmatch(str(namespace)):
        message = (
            f"{namespace!r} is no namespace: lower-case letters, digits and -, at most {_LABEL_CHARACTERS} of them"
        )
        yield Problem("SchemaMismatch", message, "metadata.namespace")


def _mismatches(written: Object, kind_schema: schema.Schema) -> Iterable[Problem]:
    below = schema.step(kind_schema, "spec") or {}
    spec = written.get("spec") or {}
    yield from absences(spec, below, "spec")
    yield from schema.mismatches(spec, below, "spec")


def _choose(claim_file: Document, context: Context, options: Options) -> Selection:
    """Choose by the composer's own rules. A file's only Composition is meant."""
    compositions = compositions_in(options.compositions) if options.compositions else _of_our_providers()
    if len(compositions) == 1 and options.compositions is not None:
        return Selection(compositions[0])
    namespace = str(metadata(claim_file.content).get("namespace", "default"))
    return select(claim_file, compositions, context.namespaces.get(namespace, options.namespace_labels))


def _of_our_providers() -> list[Document]:
    """Return the shipped Compositions that need no operator's CRDs, which lie in folders below them."""
    return [shipped for path in sorted(assets("compositions").glob("*.yaml")) for shipped in compositions_in(path)]


def compositions_in(path: Path) -> list[Document]:
    """Read the Compositions of a file or folder. Raises CommandError when there is none, or one cannot be read."""
    compositions = [composition for composition in documents_in(path) if composition.content["kind"] == _COMPOSITION]
    if not compositions:
        raise invalid(path, "holds no Composition")
    for composition in compositions:
        refuse_unreadable(composition)
    return compositions


def refuse_unreadable(composition: Document) -> None:
    """Refuse a Composition without a name or of another shape. Raises CommandError with the place."""
    if not metadata(composition.content).get("name"):
        raise invalid(composition.place("metadata"), "metadata.name is missing")
    try:
        convert(composition.content.get("spec") or {})
    except CompositionError as error:
        raise located(composition, error.problems) from error


def _environments(composition: Document, context: Context, options: Options) -> dict[str, dict[str, str]]:
    """Take the ConfigMaps beside the Compositions and the claim for Fairlead's environments. Raises CommandError."""
    there = Context.of(list(documents_in(options.compositions))) if options.compositions else context
    environments = {**there.environments, **context.environments}
    for index, name in enumerate(composition.content["spec"].get("environments") or ()):
        if name not in environments:
            raise invalid(
                composition.place(f"spec.environments[{index}]"),
                f"there is no environment {name!r}: put its ConfigMap into the claim's file or beside the Compositions "
                "[EnvironmentNotFound]",
            )
    return environments


def _observed(folder: Path, catalog: Catalog) -> Iterable[Observed]:
    for document in documents_in(folder):
        annotations = annotations_of(document.content)
        resource = annotations.get(names.RESOURCE)
        if resource:
            without_status = is_silent(_facts(_group_kind(document.content), catalog), document.content)
            yield Observed(
                resource, annotations.get(names.FOR_EACH_KEY, ""), document.content, is_silent=without_status
            )


def check_claim_paths(file: Document, claim: Object, catalog: Catalog = NONE_GIVEN) -> None:
    """Refuse paths that the claim's schema does not have, which a default would hide. Raises CommandError."""
    facts = _facts(_group_kind(claim), catalog)
    problems = unknown_claim_paths(file.content["spec"], facts.schema or {}) if facts else ()
    if problems:
        raise located(file, problems)


def refuse_fields(request: Request, rendered: Rendered, catalog: Catalog = NONE_GIVEN) -> None:
    """Refuse what may not be set of the kinds that were rendered. Raises CompositionError."""
    kinds = {child.group_kind: _facts(child.group_kind, catalog) for child in rendered.children}
    problems = tuple(refusals(request, rendered, {name: facts for name, facts in kinds.items() if facts is not None}))
    if problems:
        raise CompositionError(*problems)


def check_children(file: Document, rendered: Rendered, catalog: Catalog = NONE_GIVEN) -> None:
    """Compare what was rendered with the schemas of its kinds. Raises CommandError with the places."""
    problems: list[Problem] = []
    order = [str(resource.get("name")) for resource in file.content["spec"]["resources"]]
    for child in rendered.children:
        facts = _facts(child.group_kind, catalog)
        kind_schema = facts.schema_of(child.object["apiVersion"]) if facts else None
        if kind_schema is None:
            continue
        path = f"spec.resources[{order.index(child.resource)}].template"
        below = schema.step(kind_schema, "spec") or {}
        spec = child.object.get("spec") or {}
        mistyped = list(schema.mismatches(spec, below, f"{path}.spec"))
        problems += mistyped or breaches(spec, below, f"{path}.spec")
    if problems:
        raise located(file, problems)


def located(file: Document, problems: Sequence[Problem]) -> CommandError:
    """Return the error that says each problem where it stands in its file."""
    return CommandError("\n".join(lines_of(file, problems)), exit_code=Exit.INVALID_INPUT)


def lines_of(file: Document, problems: Iterable[Problem]) -> list[str]:
    """Say each problem where it stands in its file."""
    return [
        f"{file.place(problem.path, problem.column)}: {_sentence(problem)} [{problem.reason}]" for problem in problems
    ]


def _sentence(problem: Problem) -> str:
    return f"{problem.path}: {problem.message}" if problem.path else problem.message


def yaml_of(composition: str, children: Sequence[Child]) -> str:
    """Write what was rendered for people, each object under its resource's name."""
    parts = [f"# composition: {composition}\n"]
    for child in children:
        key = f", key: {child.key}" if child.key else ""
        parts.append(f"---\n# resource: {child.resource}{key}\n{dump(child.object)}")
    return "".join(parts)


def _lines(children: Sequence[Child]) -> str:
    return "".join(f"{dumps(child.object).decode()}\n" for child in children)
