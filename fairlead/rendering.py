"""`fairlead render`: what a claim becomes, without any API server, by the composer's own call."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal

import msgspec

from composer import names, schema
from composer.choose import candidates, choose
from composer.compilation import convert
from composer.kinds import HOLDS_DATA, Catalog, KindFacts, catalog
from composer.models import ClaimSpec
from composer.problems import CompositionError, Problem, near
from composer.render import Child, Observed, Rendered, Request, render
from composer.sampling import all_ready
from fairlead.assets import assets
from fairlead.exits import CommandError, Exit
from fairlead.yaml_files import Document, documents_in, dump, invalid, objects_in
from runtime.objects import Object, annotations_of, dumps, labels_of, metadata

NO_UID = "00000000-0000-0000-0000-000000000000"
_COMPOSITION = "Composition"
_ESTABLISHED = {"conditions": [{"type": "Established", "status": "True"}]}
NONE_GIVEN: Catalog = {}


@dataclass(frozen=True, slots=True)
class Options:
    """What to render: files, whose identity, and what to believe of the children.

    `compositions` is a file or folder, None for the shipped ones; `observed` a folder of live objects; `ready` takes
    all children for ready, or none; `output` is YAML for people, or the JSON documents that the composer would send;
    `crds` a file or folder with kinds beside ours.
    """

    claim: Path
    compositions: Path | None = None
    identity: str = NO_UID
    observed: Path | None = None
    ready: Literal["all", "none"] = "none"
    output: Literal["yaml", "json"] = "yaml"
    crds: Path | None = None


@dataclass(frozen=True, slots=True)
class Outcome:
    """Objects for standard output, remarks for the person."""

    text: str
    remarks: tuple[str, ...]


def render_files(options: Options) -> Outcome:
    """Render a claim's file. Equal files give equal bytes.

    Raises CommandError (invalid input) with file, line, column and the nearest name.
    """
    claim_file = _one_claim(options.claim)
    given = kinds_in(options.crds) if options.crds else {}
    claim = checked_claim(claim_file, options.identity, given)
    composition_file = _choose(claim_file, options)
    request = Request(
        composition_name=str(metadata(composition_file.content)["name"]),
        composition=composition_file.content["spec"],
        claim=claim,
        identity=str(names.Identity(options.identity, metadata(claim)["namespace"], metadata(claim)["name"])),
        environments=_environments(options.compositions) if options.compositions else {},
        observed=tuple(_observed(options.observed)) if options.observed else (),
        stateful_foreign=_foreign_stateful(given),
    )
    try:
        rendered = all_ready(request) if options.ready == "all" else render(request)
    except CompositionError as error:
        raise located(composition_file, error.problems) from error
    check_children(composition_file, rendered, given)
    made = rendered.children
    text = yaml_of(request.composition_name, made) if options.output == "yaml" else _lines(made)
    return Outcome(text, tuple(str(each) for each in rendered.waiting))


def _facts(group_kind: str, given: Catalog) -> KindFacts | None:
    """Look a kind up in the CRDs of its group, as an API server with them would serve it."""
    return given.get(group_kind) or shipped_kinds(f"{group_kind.partition('.')[2]}_*.yaml").get(group_kind)


@cache
def shipped_kinds(files: str) -> Mapping[str, KindFacts]:
    """Return the kinds of our CRDs in the files of that pattern, as an API server with them would serve them."""
    return catalog({**crd, "status": _ESTABLISHED} for crd in objects_in(assets("crds"), files))


def kinds_in(path: Path) -> Catalog:
    """Return the kinds of the CRDs in a file, or in the files of a folder. Raises CommandError."""
    crds = (each.content for each in documents_in(path) if each.content["kind"] == "CustomResourceDefinition")
    return catalog({**crd, "status": _ESTABLISHED} for crd in crds)


def _foreign_stateful(given: Catalog) -> tuple[str, ...]:
    return tuple(sorted(HOLDS_DATA | {kind for kind, each in given.items() if each.stateful and not each.managed}))


def _group_kind(obj: Object) -> str:
    group = str(obj["apiVersion"]).rpartition("/")[0]
    return f"{obj['kind']}.{group}" if group else str(obj["kind"])


def _one_claim(path: Path) -> Document:
    found = [each for each in documents_in(path) if each.content["kind"] != _COMPOSITION]
    if len(found) != 1:
        raise invalid(path, f"holds {len(found)} claims; give exactly one")
    return found[0]


def checked_claim(file: Document, uid: str, given: Catalog = NONE_GIVEN) -> Object:
    """Check a claim against its CRD's schema and fill in what the API server would. Raises CommandError.

    `given`: kinds that go before ours.
    """
    claim = file.content
    facts = _facts(_group_kind(claim), given)
    if facts is None or not facts.abstract or facts.resource.api_version != claim["apiVersion"]:
        known = {**shipped_kinds("*.yaml"), **given}.values()
        claimable = sorted(each.resource.kind for each in known if each.abstract)
        what = f"{claim['apiVersion']} {claim['kind']} is no kind of claim; there is {', '.join(claimable)}"
        raise invalid(file.place("kind"), f"{what}{near(str(claim['kind']), claimable)}")
    if not metadata(claim).get("name"):
        raise invalid(file.place("metadata"), "metadata.name is missing")
    problems = list(claim_mismatches(claim, facts.schema or {}))
    if problems:
        raise located(file, problems)
    filled: Object = schema.defaulted(claim, facts.schema or {})
    filled["metadata"] = {"namespace": "default", **metadata(claim), "uid": uid}
    filled.pop("status", None)
    return filled


def claim_mismatches(claim: Object, claim_schema: schema.Schema) -> Iterable[Problem]:
    """Yield what the schema of a claim's kind says against its spec."""
    below = schema.step(claim_schema, "spec") or {}
    yield from _missing(claim.get("spec") or {}, below, "spec")
    yield from schema.mismatches(claim.get("spec") or {}, below, "spec")


def _missing(tree: Mapping[str, object], below: schema.Schema, path: str) -> Iterable[Problem]:
    for name in below.get("required") or ():
        if name not in tree:
            yield Problem("SchemaMismatch", f"{name} is missing", path)


def _choose(claim_file: Document, options: Options) -> Document:
    """Choose by the composer's own rules; no namespace's labels are known here. A file's only Composition is meant."""
    path = options.compositions or assets("compositions")
    found = compositions_in(path)
    if len(found) == 1 and options.compositions is not None:
        return found[0]
    claim = claim_file.content
    known = candidates((each.content for each in found), claim["apiVersion"], claim["kind"])
    spec = msgspec.convert(claim.get("spec") or {}, ClaimSpec)
    chosen = choose(spec, "", labels_of(claim), {}, known)
    if isinstance(chosen, str):
        return next(each for each in found if metadata(each.content)["name"] == chosen)
    raise invalid(claim_file.place("spec.compositionRef.name"), f"{chosen.message} [{chosen.reason}]")


def compositions_in(path: Path) -> list[Document]:
    """Read the Compositions of a file or folder. Raises CommandError when there is none, or one cannot be read."""
    found = [each for each in documents_in(path) if each.content["kind"] == _COMPOSITION]
    if not found:
        raise invalid(path, "holds no Composition")
    for each in found:
        refuse_unreadable(each)
    return found


def refuse_unreadable(composition: Document) -> None:
    """Refuse a Composition without a name or of another shape. Raises CommandError with the place."""
    if not metadata(composition.content).get("name"):
        raise invalid(composition.place("metadata"), "metadata.name is missing")
    try:
        convert(composition.content.get("spec") or {})
    except CompositionError as error:
        raise located(composition, error.problems) from error


def _environments(path: Path) -> dict[str, dict[str, str]]:
    """Take the ConfigMaps beside the Compositions for Fairlead's environments."""
    found = (each.content for each in documents_in(path))
    return {str(metadata(obj)["name"]): dict(obj.get("data") or {}) for obj in found if obj["kind"] == "ConfigMap"}


def _observed(folder: Path) -> Iterable[Observed]:
    for each in documents_in(folder):
        annotations = annotations_of(each.content)
        resource = annotations.get(names.RESOURCE)
        if resource:
            yield Observed(resource, annotations.get(names.KEY, ""), each.content)


def check_children(file: Document, rendered: Rendered, given: Catalog = NONE_GIVEN) -> None:
    """Compare what was rendered with the schemas of its kinds. Raises CommandError with the places."""
    problems: list[Problem] = []
    order = [str(each.get("name")) for each in file.content["spec"]["resources"]]
    for child in rendered.children:
        facts = _facts(_group_kind(child.object), given)
        if facts is None or facts.schema is None:
            continue
        path = f"spec.resources[{order.index(child.resource)}].template"
        below = schema.step(facts.schema, "spec") or {}
        problems += schema.mismatches(child.object.get("spec") or {}, below, f"{path}.spec")
    if problems:
        raise located(file, problems)


def located(file: Document, problems: Sequence[Problem]) -> CommandError:
    """Return the error that says each problem where it stands in its file."""
    return CommandError("\n".join(lines_of(file, problems)), exit_code=Exit.INVALID_INPUT)


def lines_of(file: Document, problems: Iterable[Problem]) -> list[str]:
    """Say each problem where it stands in its file."""
    return [f"{file.place(each.path, each.column)}: {_sentence(each)} [{each.reason}]" for each in problems]


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
