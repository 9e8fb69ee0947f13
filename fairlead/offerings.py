"""`fairlead offers`: what claims may ask for by the Compositions of a namespace, or of files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import msgspec
from msgspec import UNSET

from apis import names
from composer.causes import Cause, cause
from composer.claim.selection import admitted, choose
from composer.composition.revision import candidates
from composer.kinds.catalog import Catalog
from composer.models import ClaimSpec, FieldOffering, OfferedField, Offerings
from composer.render.errors import UNSUPPORTED_VALUE, CompositionError
from composer.render.offerings import Refusal, in_words, refusals
from composer.validation.offerings import offerings
from composer.validation.validate import CheckRequest
from fairlead.cluster import connected, current_namespace, every_object, existing
from fairlead.exits import CommandError, Exit
from fairlead.kube_options import Server
from fairlead.layout import fitted
from fairlead.rendering import Context, compositions_in, located, shipped_for
from fairlead.yaml_files import Document, documents_in
from runtime.errors import Forbidden
from runtime.objects import NAMESPACES, Key, Object, labels_of, metadata, status_of

_RIGHTS: Final = (
    "`fairlead offers` reads Compositions: ask the platform team for the role fairlead-offers (deploy/README.md), or "
    "name their files by -c"
)
_FREE: Final = {"string": "any text", "array": "any", "object": "any", "boolean": "true or false"}
_INDENT: Final = "  "
_DEEPER: Final = "    "


class Offered(msgspec.Struct, frozen=True, omit_defaults=True):
    """What claims may ask for by one Composition; `default`: a claim that names none gets it."""

    composition: str
    kind: str
    default: bool = False
    fields: tuple[OfferedField, ...] = ()
    regions: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Outcome:
    """What may be asked for, and what is to be said beside it."""

    offered: tuple[Offered, ...]
    remarks: tuple[str, ...] = ()


async def in_namespace(server: Server, namespace: str | None, composition: str) -> Outcome:
    """Read what claims of a namespace may ask for. Raises CommandError or ApiError."""
    home = namespace or current_namespace(server)
    async with connected(server) as kube:
        try:
            objects = [obj async for obj in every_object(kube, names.COMPOSITIONS)]
        except Forbidden as error:
            raise CommandError(f"{error}; {_RIGHTS}") from error
        try:
            labels = labels_of(await existing(kube, NAMESPACES, Key("", home)))
            remarks: tuple[str, ...] = ()
        except Forbidden:
            labels = {}
            remarks = (f"you may not read namespace {home}: its labels are taken for none",)
    outcome = _served(objects, home, labels)
    remarks = (*remarks, *outcome.remarks)
    return Outcome(_named(outcome.offered, composition, home, remarks), remarks)


def _served(objects: Sequence[Object], home: str, labels: dict[str, str]) -> Outcome:
    served: list[Offered] = []
    remarks: list[str] = []
    kinds = {
        (str(kind["apiVersion"]), str(kind["kind"])) for obj in objects for kind in (obj["spec"]["compositeTypeRef"],)
    }
    by_name = {str(metadata(obj)["name"]): obj for obj in objects}
    for api_version, kind in sorted(kinds):
        allowed = admitted(candidates(objects, api_version, kind), "", home, labels)
        default = choose(ClaimSpec(), "", {}, labels, allowed)
        for candidate in allowed:
            known = _recorded(by_name[candidate.name])
            if known is None:
                remarks.append(f"Composition {candidate.name} says nothing of what it offers: it was not accepted yet")
                continue
            if not known.fields:
                remarks.append(f"what Composition {candidate.name} offers took longer to find than a check may")
                continue
            served.append(Offered(candidate.name, kind, candidate.name == default, known.fields, known.regions))
    return Outcome(tuple(served), tuple(remarks))


def _named(served: tuple[Offered, ...], name: str, home: str, remarks: tuple[str, ...] = ()) -> tuple[Offered, ...]:
    chosen = tuple(offered for offered in served if name in ("", offered.composition))
    if not chosen:
        there = ", ".join(offered.composition for offered in served) or "none"
        absent = f"no Composition {name} is" if name else "no Composition is"
        text = f"{absent} for claims of namespace {home}; there is: {there}"
        raise CommandError("\n".join((text, *remarks)), exit_code=Exit.INVALID_INPUT)
    return chosen


def _recorded(composition: Object) -> Offerings | None:
    """Return what the composer computed that a Composition offers; None where it did not yet."""
    try:
        return msgspec.convert(status_of(composition)["offers"], Offerings)
    except (KeyError, msgspec.ValidationError):
        return None


def offerings_of(composition: Object, request: CheckRequest) -> Offerings:
    """Return what a Composition offers: what the composer computed, else what is computed here."""
    known = _recorded(composition)
    try:
        return known or offerings(request)
    except CompositionError:
        return Offerings()


def in_files(path: Path, composition: str, catalog: Catalog) -> Outcome:
    """Find what the Compositions of a file or folder offer, without any API server. Raises CommandError."""
    served = tuple(_offered_in(document, path, catalog) for document in compositions_in(path))
    return Outcome(_named(served, composition, "any"))


def _offered_in(document: Document, path: Path, catalog: Catalog) -> Offered:
    known = offerings_in(document, Context.of(documents_in(path)), catalog)
    kind = str(document.content["spec"]["compositeTypeRef"]["kind"])
    return Offered(str(metadata(document.content)["name"]), kind, fields=known.fields, regions=known.regions)


def offerings_in(document: Document, context: Context, catalog: Catalog) -> Offerings:
    """Return what a Composition of a file offers; ConfigMaps beside it are its environments. Raises CommandError."""
    environments = dict(context.environments)
    try:
        return offerings(CheckRequest(document.content["spec"], {**shipped_for(document), **catalog}, environments))
    except CompositionError as error:
        raise located(document, error.problems) from error


def refused_by(known: Offerings, spec: Object) -> tuple[Refusal, ...]:
    """Return all that a claim's spec asks for and is not offered; a sentence that several fields have comes once."""
    limits = {
        field.path: FieldOffering(
            tuple(item.value for item in field.values), field.minimum, field.maximum, field.refused
        )
        for field in known.fields
    }
    by_sentence: dict[str, Refusal] = {}
    for refusal in refusals(limits, spec):
        by_sentence.setdefault(refusal.sentence, refusal)
    return tuple(by_sentence.values())


def also_refused(known: Offerings, claim: Object, causes: Iterable[Cause]) -> tuple[Cause, ...]:
    """Return what of a claim is not offered beside what these causes say of it."""
    said = " ".join(refused.message for refused in causes)
    others = (item for item in refused_by(known, claim.get("spec") or {}) if item.sentence not in said)
    return tuple(
        cause(UNSUPPORTED_VALUE, str(item))
        for item in others
        if not (item.path == "deletionPolicy" and item.path in said)
    )


def text_of(served: Iterable[Offered], columns: int, *, wide: bool = False) -> Iterator[str]:
    """Yield lines of at most so many columns: each Composition with its fields, then what claims may not have. Pure."""
    for number, offered in enumerate(served):
        if number:
            yield ""
        regions = f"; {', '.join(offered.regions)}" if offered.regions else ""
        default = ", which a claim gets that names none" if offered.default else ""
        yield from fitted(f"{offered.composition}: {offered.kind}{default}{regions}", columns, then=_DEEPER)
        rows = [_row(field, wide=wide) for field in offered.fields if not field.refused]
        heads = ("FIELD", "TYPE", "DEFAULT", "OFFERED") if wide else ("FIELD", "OFFERED")
        yield from _table([(heads[:-1], (heads[-1],)), *rows], columns)
        refused = [((field.path,), (field.refused,)) for field in offered.fields if field.refused]
        if refused:
            yield f"{_INDENT}refused:"
            yield from _table(refused, columns)


def _row(field: OfferedField, *, wide: bool) -> tuple[tuple[str, ...], tuple[str, ...]]:
    lines = [*_values(field), *([f"note: {field.note}"] if field.note else [])]
    if field.required:
        lines[0] = f"{lines[0]} (required)"
    return ((field.path, field.type, field.default) if wide else (field.path,)), tuple(lines)


def _values(field: OfferedField) -> list[str]:
    if any(item.means for item in field.values):
        return [f"{item.value}: {item.means}" for item in field.values]
    if field.values:
        return [", ".join(item.value for item in field.values)]
    least, most = (None if limit is UNSET else limit for limit in (field.minimum, field.maximum))
    return [in_words(least, most) or _FREE.get(field.type, "any")]


def _table(rows: Sequence[tuple[tuple[str, ...], tuple[str, ...]]], columns: int) -> Iterator[str]:
    """Yield rows of narrow cells and a last one of lines, which is as wide as is left."""
    widths = [max(len(cells[index]) for cells, _ in rows) for index in range(len(rows[0][0]))]
    left = len(_INDENT) + sum(width + 3 for width in widths)
    for cells, lines in rows:
        head = _INDENT + "".join(cell.ljust(width + 3) for cell, width in zip(cells, widths, strict=True))
        for line in lines:
            for part in fitted(line, columns - left, then=_DEEPER):
                yield f"{head}{part}".rstrip()
                head = " " * left


def documents_of(served: Iterable[Offered]) -> list[Mapping[str, object]]:
    """Return what is offered as data for programs."""
    return [msgspec.to_builtins(offered) for offered in served]
