"""An image of one static program as an OCI archive, made without a registry and without an engine (pure).

The form is that of the OCI image specification 1.0: image-layout, index, manifest, configuration, layer.
"""

import hashlib
import io
import json
import tarfile
from typing import Any

_MANIFEST = "application/vnd.oci.image.manifest.v1+json"
_CONFIGURATION = "application/vnd.oci.image.config.v1+json"
_LAYER = "application/vnd.oci.image.layer.v1.tar"
_NOBODY = 65535  # as Kubernetes' own image of a sandbox


def oci_archive(program: bytes, path: str, architecture: str) -> bytes:
    """Return the archive of an image whose one file is a program, and which starts it.

    Args:
        program: The program, which needs no library.
        path: Where it is in the image, from its root on, without a slash before it.
        architecture: As Go calls it, such as `amd64`.
    """
    layer = _tar({path: program}, mode=0o755)
    configuration = {
        "architecture": architecture,
        "os": "linux",
        "config": {"Entrypoint": [f"/{path}"], "User": f"{_NOBODY}:{_NOBODY}"},
        "rootfs": {"type": "layers", "diff_ids": [_digest(layer)]},
    }
    described = _json(configuration)
    manifest = _json(
        {
            "schemaVersion": 2,
            "mediaType": _MANIFEST,
            "config": _descriptor(_CONFIGURATION, described),
            "layers": [_descriptor(_LAYER, layer)],
        }
    )
    index = {"schemaVersion": 2, "manifests": [_descriptor(_MANIFEST, manifest)]}
    blobs = {f"blobs/sha256/{_digest(blob).removeprefix('sha256:')}": blob for blob in (layer, described, manifest)}
    return _tar({"oci-layout": _json({"imageLayoutVersion": "1.0.0"}), "index.json": _json(index), **blobs}, mode=0o644)


def _descriptor(media_type: str, blob: bytes) -> dict[str, Any]:
    return {"mediaType": media_type, "digest": _digest(blob), "size": len(blob)}


def _digest(blob: bytes) -> str:
    return f"sha256:{hashlib.sha256(blob).hexdigest()}"


def _json(document: dict[str, Any]) -> bytes:
    return json.dumps(document, sort_keys=True).encode()


def _tar(files: dict[str, bytes], *, mode: int) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size, member.mode = len(content), mode
            archive.addfile(member, io.BytesIO(content))
    return buffer.getvalue()
