"""What an image holds, as its bill of materials says: Debian's packages, Python's distributions, ours."""

from __future__ import annotations

import json
import runpy
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SBOM = ROOT / "deploy" / "images" / "sbom.py"


def _distribution(folder: Path, name: str, version: str, more: str = "") -> None:
    info = folder / f"{name}-{version}.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(
        f"Metadata-Version: 2.4\nName: {name}\nVersion: {version}\n{more}\nA text: no field.\n"
    )


def _printed(*folders: Path) -> str:
    command = [sys.executable, str(SBOM), *map(str, folders)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def test_python_distributions_are_listed_by_name_version_and_licence(tmp_path: Path) -> None:
    venv, app = tmp_path / "venv", tmp_path / "app"
    _distribution(
        venv / "lib" / "site-packages", "Some_Package.x", "1.2+local", "License-Expression: MIT OR Apache-2.0\n"
    )
    _distribution(app, "fairlead", "0.1.0")

    components = {part["name"]: part for part in json.loads(_printed(venv, app))["components"]}

    assert components["Some_Package.x"]["purl"] == "pkg:pypi/some-package-x@1.2%2Blocal"
    assert components["Some_Package.x"]["licenses"] == [{"expression": "MIT OR Apache-2.0"}]
    assert components["Some_Package.x"]["type"] == "library"
    assert (components["fairlead"]["type"], components["fairlead"]["version"]) == ("application", "0.1.0")


_STATUS = """\
Package: libssl3
Status: install ok installed
Architecture: amd64
Version: 3.0.17-1~deb12u2
Description: Secure Sockets Layer toolkit
 Version: 1, which is text

Package: gone
Status: deinstall ok config-files
Architecture: all
Version: 1:2-3
"""


def test_debian_packages_are_those_that_dpkg_has_installed() -> None:
    listed = list(runpy.run_path(str(SBOM))["debian_packages"](_STATUS, "debian-12"))

    assert [(part["name"], part["version"], part["purl"]) for part in listed] == [
        ("libssl3", "3.0.17-1~deb12u2", "pkg:deb/debian/libssl3@3.0.17-1~deb12u2?arch=amd64&distro=debian-12")
    ]


def test_the_same_image_gives_the_same_bytes_and_nothing_twice(tmp_path: Path) -> None:
    _distribution(tmp_path, "fairlead", "0.1.0")

    first = _printed(tmp_path, tmp_path)

    assert first == _printed(tmp_path)
    references = [part["bom-ref"] for part in json.loads(first)["components"]]
    assert references == sorted(set(references))
    assert (json.loads(first)["bomFormat"], json.loads(first)["specVersion"]) == ("CycloneDX", "1.6")
