"""The files that Crossplane's definitions and Compositions become, and a line for each thing that has no place."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from composer.render.schema import step
from fairlead.assets import assets
from fairlead.imports.crossplane.compositions import API, ClaimKind, converted
from fairlead.imports.crossplane.definitions import claim_kind_of, composite_of, rights_of
from fairlead.imports.written import Written
from fairlead.rendering import shipped_kinds
from fairlead.yaml_files import Document, dump, objects_in
from runtime.objects import Object, metadata

_REQUIRED: Final = re.compile(r"has\(self\.forProvider\.(\w+)\) \|\| \(has\(self\.managementPolicy\)")
_CLAIMS: Final = "database.fairlead.dev_postgresqlinstances.yaml"


@dataclass(frozen=True, slots=True)
class Files:
    """What was written, remarks with their places, and the documents that are neither definition nor Composition."""

    written: tuple[Written, ...]
    remarks: tuple[str, ...]
    others: tuple[Document, ...]


def files_of(documents: Sequence[Document]) -> Files:
    """Convert all definitions and Compositions among documents."""
    (shipped,) = objects_in(assets("crds"), _CLAIMS)
    written: list[Written] = []
    kinds: dict[tuple[str, str], ClaimKind] = {}
    for document in _of_kind(documents, "CompositeResourceDefinition"):
        crd, kind = claim_kind_of(document.content, shipped)
        kinds[composite_of(document.content)] = kind
        plural = crd["spec"]["names"]["plural"]
        written += [_file(f"crd-{plural}", crd), _file(f"rights-{plural}", *rights_of(crd))]
    remarks: list[str] = []
    required = _required()
    for document in _of_kind(documents, "Composition"):
        reference = document.content["spec"]["compositeTypeRef"]
        group, name = reference["apiVersion"].partition("/")[0], reference["kind"]
        if (group, name) not in kinds:
            place = document.place("spec.compositeTypeRef")
            remarks.append(
                f"{place}: the definition of {name}.{group} is not among the files; nothing is written of it"
            )
            continue
        conversion = converted(document.content, kinds[group, name], required)
        written.append(_file(f"composition-{metadata(document.content)['name']}", conversion.composition))
        remarks += [f"{document.place(remark.path)}: {remark.text}" for remark in conversion.remarks]
    return Files(tuple(written), tuple(remarks), tuple(document for document in documents if not _is_api(document)))


def _required() -> dict[str, tuple[str, ...]]:
    """Return the fields that each kind of a provider must have to be managed; rules of its CRD say so."""
    required = {}
    for facts in shipped_kinds("*.fairlead.dev_*.yaml").values():
        rules = (step(facts.schema or {}, "spec") or {}).get("x-kubernetes-validations") or ()
        matches = [_REQUIRED.match(str(rule.get("rule"))) for rule in rules]
        required[facts.resource.kind] = tuple(match[1] for match in matches if match)
    return required


def _of_kind(documents: Sequence[Document], kind: str) -> list[Document]:
    return [document for document in documents if _is_api(document) and document.content["kind"] == kind]


def _is_api(document: Document) -> bool:
    return str(document.content["apiVersion"]).partition("/")[0] == API


def _file(name: str, *objects: Object) -> Written:
    return Written(f"{name}.yaml", "---\n".join(map(dump, objects)))
