"""The Helm chart and the manifests as OCI artefacts: an image layout of each, the same bytes for the same files.

`python -m devcloud.oci FOLDER` (`make artifacts`) writes FOLDER/chart, which Helm installs from a registry, and
FOLDER/manifests, which Flux's OCIRepository fetches; `skopeo copy` and `oras cp` bring a layout into a registry.

Sources: OCI image-spec 1.1 ("Image Layout", "Image Manifest"); Helm, "Use OCI-based registries", for the media types of
a chart; Flux, "OCI artifact" of `flux push artifact`, for those of manifests.
"""

import argparse
import gzip
import hashlib
import io
import json
import sys
import tarfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from ruamel.yaml import YAML

from devcloud.manifests import CHART

MANIFEST_TYPE: Final = "application/vnd.oci.image.manifest.v1+json"
_INDEX_TYPE: Final = "application/vnd.oci.image.index.v1+json"
_RELEASE: Final = ("crds", "deploy/kustomize", "compositions")
"""What the artefact `manifests` holds: what a repository for Flux or Argo CD keeps of a release."""
_IGNORED: Final = frozenset({".helmignore"})


@dataclass(frozen=True, slots=True)
class Blob:
    """Content with its media type."""

    media_type: str
    content: bytes

    @property
    def digest(self) -> str:
        """The SHA-256 by which a registry names it."""
        return f"sha256:{hashlib.sha256(self.content).hexdigest()}"

    @property
    def descriptor(self) -> dict[str, Any]:
        """How a manifest refers to it."""
        return {"mediaType": self.media_type, "digest": self.digest, "size": len(self.content)}


@dataclass(frozen=True, slots=True)
class Artifact:
    """One artefact: its tag, what describes it, and its one layer, a compressed archive."""

    tag: str
    config: Blob
    layer: Blob
    annotations: Mapping[str, str]

    @property
    def manifest(self) -> Blob:
        """The manifest that names config and layer."""
        manifest = {
            "schemaVersion": 2,
            "mediaType": MANIFEST_TYPE,
            "config": self.config.descriptor,
            "layers": [self.layer.descriptor],
            "annotations": dict(self.annotations),
        }
        return Blob(MANIFEST_TYPE, _json(manifest))

    def write(self, folder: Path) -> None:
        """Write the artefact as an image layout; what another version left in the folder stays unused."""
        blobs = folder / "blobs" / "sha256"
        blobs.mkdir(parents=True, exist_ok=True)
        for blob in (self.config, self.layer, self.manifest):
            (blobs / blob.digest.partition(":")[2]).write_bytes(blob.content)
        named = {**self.manifest.descriptor, "annotations": {"org.opencontainers.image.ref.name": self.tag}}
        index = {"schemaVersion": 2, "mediaType": _INDEX_TYPE, "manifests": [named]}
        (folder / "index.json").write_bytes(_json(index))
        (folder / "oci-layout").write_bytes(_json({"imageLayoutVersion": "1.0.0"}))


def chart(root: Path) -> Artifact:
    """Return the Helm chart of a checkout, tagged with its version."""
    described = dict(YAML(typ="safe", pure=True).load((root / CHART / "Chart.yaml").read_text(encoding="utf-8")))
    files = {f"{described['name']}/{path.relative_to(root / CHART)}": path for path in _files(root / CHART)}
    return Artifact(
        tag=str(described["version"]),
        config=Blob("application/vnd.cncf.helm.config.v1+json", _json(described)),
        layer=Blob("application/vnd.cncf.helm.chart.content.v1.tar+gzip", _archive(files)),
        annotations=_annotations(described["name"], described["version"], described["description"]),
    )


def manifests(root: Path) -> Artifact:
    """Return CRDs, kustomizations and Compositions of a checkout, tagged with the chart's version."""
    version = chart(root).tag
    files = {str(path.relative_to(root)): path for name in _RELEASE for path in _files(root / name)}
    return Artifact(
        tag=version,
        config=Blob("application/vnd.cncf.flux.config.v1+json", _json({})),
        layer=Blob("application/vnd.cncf.flux.content.v1.tar+gzip", _archive(files)),
        annotations=_annotations("fairlead-manifests", version, "CRDs, kustomizations and Compositions of Fairlead"),
    )


def _annotations(title: str, version: str, description: str) -> dict[str, str]:
    prefix = "org.opencontainers.image"
    return {f"{prefix}.title": title, f"{prefix}.version": version, f"{prefix}.description": description}


def _files(folder: Path) -> Iterator[Path]:
    return (path for path in sorted(folder.rglob("*")) if path.is_file() and path.name not in _IGNORED)


def _archive(files: Mapping[str, Path]) -> bytes:
    """Return a compressed archive without times and owners."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for name, path in sorted(files.items()):
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = path.stat().st_size, 0o644
            with path.open("rb") as content:
                archive.addfile(entry, content)
    return gzip.compress(packed.getvalue(), mtime=0)


def _json(value: object) -> bytes:
    return json.dumps(value, separators=(",", ":"), sort_keys=True).encode()


def main() -> int:
    """Write both layouts, and print where they are."""
    parser = argparse.ArgumentParser(prog="python -m devcloud.oci", description=__doc__)
    parser.add_argument("folder", type=Path, help="gets an image layout of each artefact")
    folder: Path = parser.parse_args().folder
    root = Path(__file__).resolve().parents[1]
    for name, artifact in (("chart", chart(root)), ("manifests", manifests(root))):
        artifact.write(folder / name)
        print(f"artifacts: {folder / name}:{artifact.tag} {artifact.manifest.digest}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
