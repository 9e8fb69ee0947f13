"""The archive of a one-program image, read again by the form that the OCI image specification gives it."""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
from typing import Any

from devcloud.node.archive import oci_archive

PROGRAM = b"\x7fELF and so on"


def _files(archive: bytes) -> dict[str, tarfile.TarInfo]:
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        return {member.name: member for member in tar.getmembers()}


def _content(archive: bytes, name: str) -> bytes:
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        file = tar.extractfile(name)
        assert file is not None
        return file.read()


def _blob(archive: bytes, descriptor: dict[str, Any]) -> bytes:
    digest = descriptor["digest"].removeprefix("sha256:")
    blob = _content(archive, f"blobs/sha256/{digest}")
    assert (hashlib.sha256(blob).hexdigest(), len(blob)) == (digest, descriptor["size"])
    return blob


def test_a_program_becomes_an_image_that_starts_it_as_nobody() -> None:
    archive = oci_archive(PROGRAM, "pause", "amd64")

    assert json.loads(_content(archive, "oci-layout")) == {"imageLayoutVersion": "1.0.0"}
    (described,) = json.loads(_content(archive, "index.json"))["manifests"]
    manifest = json.loads(_blob(archive, described))
    configuration = json.loads(_blob(archive, manifest["config"]))
    (layer,) = manifest["layers"]
    files = _blob(archive, layer)
    assert configuration["config"] == {"Entrypoint": ["/pause"], "User": "65535:65535"}
    assert (configuration["os"], configuration["architecture"]) == ("linux", "amd64")
    assert configuration["rootfs"]["diff_ids"] == [layer["digest"]]
    assert {name: member.mode for name, member in _files(files).items()} == {"pause": 0o755}
    assert _content(files, "pause") == PROGRAM


def test_the_same_program_is_the_same_image() -> None:
    assert oci_archive(PROGRAM, "pause", "amd64") == oci_archive(PROGRAM, "pause", "amd64")
    assert oci_archive(PROGRAM, "pause", "amd64") != oci_archive(PROGRAM + b".", "pause", "amd64")
