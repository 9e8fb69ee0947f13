"""`fairlead validate`: whether claims and Compositions would be taken, without any API server.

A Composition is checked by the composer's own call, against our CRDs and those that are given.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

from apis import names
from composer.kinds.catalog import Catalog
from composer.models import Offerings
from composer.render.errors import UNSUPPORTED_VALUE
from composer.render.schema import step
from composer.render.schema_limits import excesses
from composer.validation.validate import CheckRequest, check, remarks
from fairlead.exits import CommandError, Exit
from fairlead.offerings import offerings_in, refused_by
from fairlead.rendering import (
    NO_UID,
    Context,
    checked_claim,
    checked_object,
    kinds_in,
    lines_of,
    refuse_unreadable,
    shipped_for,
)
from fairlead.selection import select
from fairlead.yaml_files import Document, documents_in, files_in
from runtime.objects import metadata

Environments: TypeAlias = dict[str, dict[str, str]]
"""The data of the ConfigMaps that lie beside a Composition, by name."""
# What may lie beside claims and Compositions; an API server knows these itself.
_PASSED_OVER = frozenset({"ConfigMap", "Namespace"})


@dataclass(frozen=True, slots=True)
class Validation:
    """What was found: a line for each document that is good, the faults, and what is worth knowing."""

    good: tuple[str, ...]
    faults: tuple[str, ...]
    remarks: tuple[str, ...]

    def exit_code(self, *, strict: bool) -> Exit:
        """Return invalid input for a fault, and for a remark where these count too."""
        return Exit.INVALID_INPUT if self.faults or (strict and self.remarks) else Exit.DONE

    def summary(self) -> str:
        """Count what was found."""
        counts = {"fault": len(self.faults), "remark": len(self.remarks)}
        more = (f"{count} {noun}{'s' if count > 1 else ''}" for noun, count in counts.items() if count)
        return ", ".join((f"{len(self.good)} valid", *more))


def validate(paths: Sequence[Path], crds: Path | None, compositions: Path | None = None) -> Validation:
    """Check every document of files and folders, whatever is wrong with the others.

    `compositions`: a file or folder with those that claims are held against; None for those that lie beside the claims.
    Raises CommandError when it or `crds` cannot be read.
    """
    catalog = kinds_in(crds) if crds else {}
    named = _Served(tuple(documents_in(compositions)), catalog, is_named=True) if compositions else None
    good: list[str] = []
    faults: list[str] = []
    remarks: list[str] = []
    for path in paths:
        documents, unreadable = _documents(path)
        faults += unreadable
        environments = dict(Context.of(documents).environments)
        served = named or _Served(documents, catalog, is_named=False)
        for document in documents:
            if document.content["kind"] in _PASSED_OVER:
                continue
            kinds = {**shipped_for(document), **catalog}
            if _is_foreign(document, kinds):
                remarks.append(
                    f"{document.place('kind')}: not checked: no schema of {_kind_of(document)} is known here"
                )
                continue
            wrong = list(_faults(document, kinds, environments))
            if not wrong and _is_claim(document, kinds):
                wrong = served.faults(document, Context.of(documents).namespaces)
            faults += wrong
            if not wrong:
                good.append(
                    f"{document.path}: {document.content['kind']} {metadata(document.content)['name']} is valid"
                )
                remarks += _remarks(document, kinds, environments)
    return Validation(tuple(good), tuple(faults), tuple(remarks))


@dataclass(frozen=True, slots=True)
class _Served:
    """The Compositions that claims are held against: those that were named, else those that lie beside the claims.

    The latter count where it is certain that one of them serves the claim.
    """

    documents: Sequence[Document]
    catalog: Catalog
    is_named: bool
    by_name: dict[str, Offerings] = field(default_factory=dict)

    def faults(self, claim: Document, homes: Mapping[str, Mapping[str, str]]) -> list[str]:
        """Return, each with its place, all that a claim asks for and its Composition does not serve."""
        compositions = [document for document in self.documents if document.content["kind"] == "Composition"]
        try:
            chosen = self._chosen(
                claim, compositions, homes.get(str(metadata(claim.content).get("namespace", "default")))
            )
            if chosen is None:
                return []
            name = str(metadata(chosen.content)["name"])
            if name not in self.by_name:
                self.by_name[name] = offerings_in(chosen, Context.of(self.documents), self.catalog)
        except CommandError as error:
            return str(error).splitlines() if self.is_named else []
        refused = refused_by(self.by_name[name], claim.content.get("spec") or {})
        return [f"{claim.place(f'spec.{item.path}')}: {item} [{UNSUPPORTED_VALUE}]" for item in refused]

    def _chosen(
        self, claim: Document, compositions: Sequence[Document], home: Mapping[str, str] | None
    ) -> Document | None:
        if self.is_named and len(compositions) == 1:
            return compositions[0]
        selection = select(claim, compositions, home)
        return selection.composition if self.is_named or not selection.remarks else None


def _is_claim(document: Document, kinds: Catalog) -> bool:
    facts = kinds.get(f"{document.content['kind']}.{str(document.content['apiVersion']).partition('/')[0]}")
    return facts is not None and facts.abstract


def _documents(path: Path) -> tuple[list[Document], list[str]]:
    """Return what can be read of a file or folder, and a fault for each file that cannot or that holds nothing."""
    accepted: list[Document] = []
    faults: list[str] = []
    try:
        files = list(files_in(path))
    except CommandError as error:
        return [], [str(error)]
    for file in files:
        try:
            documents = list(documents_in(file))
        except CommandError as error:
            faults.append(str(error))
            continue
        accepted += documents
        if not documents:
            faults.append(f"{file}: is empty, or holds comments alone")
    return accepted, faults


def _kind_of(document: Document) -> str:
    return f"{document.content['apiVersion']} {document.content['kind']}"


def _is_foreign(document: Document, kinds: Catalog) -> bool:
    """Return whether nothing can be said of a document: its group is neither ours nor one of those given."""
    group = str(document.content["apiVersion"]).partition("/")[0]
    return not names.is_own_group(group) and group not in {kind.resource.group for kind in kinds.values()}


def _faults(document: Document, kinds: Catalog, environments: Environments) -> Iterator[str]:
    try:
        if document.content["kind"] == "Composition":
            refuse_unreadable(document)
            yield from lines_of(document, check(_request(document, kinds, environments)))
            return
        kind = f"{document.content['kind']}.{str(document.content['apiVersion']).partition('/')[0]}"
        facts = kinds.get(kind)
        if facts is None or facts.abstract or facts.resource.api_version != document.content["apiVersion"]:
            obj = checked_claim(document, NO_UID, kinds)
        else:
            obj = checked_object(document, NO_UID, facts.schema or {})
    except CommandError as error:
        yield from str(error).splitlines()
        return
    below = step(kinds[kind].schema or {}, "spec") or {}
    yield from lines_of(document, excesses(obj.get("spec") or {}, below, "spec"))


def _remarks(document: Document, kinds: Catalog, environments: Environments) -> list[str]:
    if document.content["kind"] != "Composition":
        return []
    return lines_of(document, remarks(_request(document, kinds, environments)))


def _request(document: Document, kinds: Catalog, environments: Environments) -> CheckRequest:
    return CheckRequest(document.content.get("spec") or {}, kinds, environments)
