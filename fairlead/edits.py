"""The edited files that `fairlead plan` reads: claims, Compositions, environments, ProviderConfigs and namespaces."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from fairlead.exits import CommandError, Exit
from fairlead.rendering import refuse_unreadable
from fairlead.yaml_files import Document, documents_in
from runtime.objects import Object, labels_of, metadata

_NO_EDITS = frozenset({"CompositionTest", "CustomResourceDefinition"})


@dataclass(frozen=True, slots=True)
class Edits:
    """Documents by what they are; environments and namespaces by name. `remarks`: documents that count for nothing."""

    claims: tuple[Document, ...]
    compositions: tuple[Document, ...]
    environments: Mapping[str, Document]
    namespaces: Mapping[str, Object]
    remarks: tuple[str, ...]
    configs: tuple[Document, ...] = ()

    def settings(self) -> dict[str, dict[str, str]]:
        """Return the data of the edited environments, by name."""
        return {name: dict(document.content.get("data") or {}) for name, document in self.environments.items()}

    def home(self, name: str, live: Object | None) -> Object | None:
        """Return a namespace with the labels that it would have; None where it neither lives nor is in the files."""
        written = self.namespaces.get(name)
        if written is None:
            return live
        labels = {**labels_of(live or {"metadata": {}}), **labels_of(written)}
        return {**written, "metadata": {**metadata(live or written), "labels": labels}}


def edits_in(paths: Iterable[Path], settings: str) -> Edits:
    """Read files and folders; `settings` is the namespace whose ConfigMaps are environments.

    Raises CommandError (invalid input) for a file that cannot be read, and where nothing can be planned.
    """
    documents = [document for path in paths for document in documents_in(path)]
    by_kind: dict[str, list[Document]] = {}
    for document in documents:
        by_kind.setdefault(str(document.content["kind"]), []).append(document)
    compositions = by_kind.pop("Composition", [])
    for composition in compositions:
        refuse_unreadable(composition)
    namespaces = {_name(namespace): namespace.content for namespace in by_kind.pop("Namespace", [])}
    configs = tuple(by_kind.pop("ProviderConfig", []))
    config_maps = by_kind.pop("ConfigMap", [])
    environments = {
        _name(config_map): config_map for config_map in config_maps if _namespace(config_map) in ("", settings)
    }
    remarks = tuple(
        f"{config_map.place('metadata')}: ConfigMap {_namespace(config_map)}/{_name(config_map)} is no environment: "
        f"those are in namespace {settings}"
        for config_map in config_maps
        if _namespace(config_map) not in ("", settings)
    )
    claims = tuple(document for kind, group in by_kind.items() if kind not in _NO_EDITS for document in group)
    if not (claims or compositions or environments or configs):
        text = "the files hold neither a claim nor a Composition, an environment or a ProviderConfig"
        raise CommandError("\n".join((text, *remarks)), exit_code=Exit.INVALID_INPUT)
    return Edits(claims, tuple(compositions), environments, namespaces, remarks, configs)


def _name(document: Document) -> str:
    return str(metadata(document.content).get("name"))


def _namespace(document: Document) -> str:
    return str(metadata(document.content).get("namespace") or "")
