"""The chart and the manifests as OCI artefacts: what a registry holds is what the checkout has."""

from __future__ import annotations

import functools
import gzip
import hashlib
import io
import json
import tarfile
from pathlib import Path

import pytest

from devcloud import oci
from devcloud.oci import Artifact
from tests.support import helm
from tests.support.registry import serving

ROOT = Path(__file__).resolve().parents[2]


@functools.cache
def artifacts() -> dict[str, Artifact]:
    return {"chart": oci.chart(ROOT), "manifests": oci.manifests(ROOT)}


def contents_of(artifact: Artifact) -> dict[str, bytes]:
    """Return the files of an artefact's layer by name."""
    with tarfile.open(fileobj=io.BytesIO(gzip.decompress(artifact.layer.content))) as archive:
        members = {entry.name: archive.extractfile(entry) for entry in archive.getmembers()}
    return {name: file.read() for name, file in members.items() if file is not None}


@pytest.mark.parametrize("name", ["chart", "manifests"])
def test_layout_names_each_blob_by_what_it_holds(name: str, tmp_path: Path) -> None:
    artifacts()[name].write(tmp_path)

    (listed,) = json.loads((tmp_path / "index.json").read_text())["manifests"]
    blobs = {path.name: path.read_bytes() for path in (tmp_path / "blobs" / "sha256").iterdir()}
    manifest = json.loads(blobs[listed["digest"].removeprefix("sha256:")])
    for descriptor in (listed, manifest["config"], *manifest["layers"]):
        content = blobs[descriptor["digest"].removeprefix("sha256:")]
        assert descriptor["size"] == len(content)
        assert descriptor["digest"] == f"sha256:{hashlib.sha256(content).hexdigest()}"
    assert len(blobs) == 3
    assert json.loads((tmp_path / "oci-layout").read_text()) == {"imageLayoutVersion": "1.0.0"}


def test_same_files_are_the_same_bytes() -> None:
    assert (oci.chart(ROOT), oci.manifests(ROOT)) == (artifacts()["chart"], artifacts()["manifests"])


def test_manifests_are_what_a_repository_keeps_of_a_release() -> None:
    contents = contents_of(artifacts()["manifests"])

    assert {name.partition("/")[0] for name in contents} == {"crds", "deploy", "compositions"}
    for name in ("crds/database.fairlead.dev_postgresqlinstances.yaml", "deploy/kustomize/base/kustomization.yaml"):
        assert contents[name] == (ROOT / name).read_bytes()


@pytest.mark.slow
def test_helm_pulls_and_renders_the_chart_from_a_registry(tmp_path: Path) -> None:
    program = helm.program()
    artifacts()["chart"].write(tmp_path / "layout")
    with serving(tmp_path / "layout") as registry:
        place = (f"oci://{registry}/platform/fairlead", "--version", artifacts()["chart"].tag, "--plain-http")
        ended = helm.run(program, "pull", *place, "--untar", f"--untardir={tmp_path / 'pulled'}")
        assert ended.returncode == 0, ended.stderr
        rendered = helm.run(program, "template", "fairlead", *place, "--kube-version", "1.30")
        assert rendered.returncode == 0, rendered.stderr

    pulled = {str(path.relative_to(tmp_path / "pulled")): path for path in (tmp_path / "pulled").rglob("*")}
    assert {name for name, path in pulled.items() if path.is_file()} == contents_of(artifacts()["chart"]).keys()
    assert rendered.stdout == helm.template(program, namespace="default")
