"""`fairlead crd check`: whether CRDs have all that a kind of claim needs, by the composer's own rule."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from apis.names import GROUP, is_managed
from composer.kinds import claim_api
from fairlead.exits import CommandError, Exit
from fairlead.yaml_files import Document, documents_in, invalid

_KIND = "CustomResourceDefinition"


@dataclass(frozen=True, slots=True)
class Checked:
    """What was found: a sentence for each version that is fit, and remarks on what it does without."""

    sentences: tuple[str, ...]
    remarks: tuple[str, ...]


def check_files(paths: Sequence[Path]) -> Checked:
    """Check every served version of every CRD in files and folders.

    Raises CommandError (invalid input): file, line and column of each version that lacks something, with all it lacks.
    """
    crds = [crd for path in paths for crd in _crds_in(path)]
    others = [crd for crd in crds if _is_no_claims(crd)]
    crds = [crd for crd in crds if crd not in others]
    faults = [fault for document in crds for fault in _faults(document)]
    if faults:
        raise CommandError("\n".join(faults), exit_code=Exit.INVALID_INPUT)
    return Checked(
        tuple(f"{name} is fit to be a kind of claim" for name, _ in _all_versions(crds)),
        (
            *(_passed_over(other) for other in others),
            *(remark for name, version in _all_versions(crds) for remark in _remarks(name, version)),
        ),
    )


def _is_no_claims(document: Document) -> bool:
    """Whether a CRD is one of Fairlead's own that no claim is made of."""
    group = str((document.content.get("spec") or {}).get("group"))
    return group == GROUP or is_managed(group)


def _passed_over(document: Document) -> str:
    spec = document.content["spec"]
    kind = f"{(spec.get('names') or {}).get('kind')}.{spec['group']}"
    return f"{kind} is a managed resource or a setting, no kind of claim; passed over"


def _crds_in(path: Path) -> list[Document]:
    documents = [document for document in documents_in(path) if document.content["kind"] == _KIND]
    if not documents:
        raise invalid(path, f"holds no {_KIND}")
    return documents


def _faults(document: Document) -> Iterator[str]:
    spec = document.content.get("spec") or {}
    names = spec.get("names") or {}
    if not (names.get("kind") and spec.get("group") and isinstance(spec.get("versions"), list)):
        yield f"{document.place('spec')}: spec needs group, names.kind and versions"
        return
    for index, version in enumerate(spec["versions"]):
        if not version.get("served"):
            continue
        gaps = claim_api.gaps(str(spec.get("scope")), version)
        if gaps:
            yield f"{document.place(f'spec.versions[{index}]')}: {_name(document, version)} lacks {', '.join(gaps)}"


def _all_versions(documents: Iterable[Document]) -> Iterator[tuple[str, dict[str, Any]]]:
    for document in documents:
        for version in document.content["spec"]["versions"]:
            if version.get("served"):
                yield _name(document, version), version


def _name(document: Document, version: dict[str, Any]) -> str:
    spec = document.content["spec"]
    return f"{spec['names']['kind']}.{spec['group']} {version.get('name')}"


def _remarks(name: str, version: dict[str, Any]) -> Iterator[str]:
    absent = claim_api.absent_options(version)
    if absent:
        yield f"{name} goes without {', '.join(absent)}"
