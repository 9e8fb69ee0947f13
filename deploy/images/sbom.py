"""Print what an image holds, as a software bill of materials: CycloneDX 1.6, JSON.

`python3 sbom.py FOLDER...` lists Debian's packages by dpkg's own record, and the Python distributions below the folders
by their metadata (`*.dist-info`). The same image gives the same bytes: no time and no random number is in it.
"""

import email.parser
import json
import re
import sys
from collections.abc import Iterable, Iterator
from email.message import Message
from pathlib import Path
from typing import Any
from urllib.parse import quote

_DPKG = Path("/var/lib/dpkg/status")
_RELEASE = Path("/etc/os-release")
_OURS = "fairlead"


def debian_packages(status: str, distribution: str) -> Iterator[dict[str, Any]]:
    """Yield the components of dpkg's record of installed packages (deb822, `dpkg-query(1)`)."""
    for paragraph in status.split("\n\n"):
        fields = email.parser.HeaderParser().parsestr(paragraph)
        if fields.get("Status", "").endswith(" installed"):
            name, version, architecture = (str(fields[key]) for key in ("Package", "Version", "Architecture"))
            purl = f"pkg:deb/debian/{quote(name)}@{quote(version)}?arch={architecture}&distro={distribution}"
            yield {"type": "library", "name": name, "version": version, "purl": purl, "bom-ref": purl}


def distributions(folders: Iterable[Path]) -> Iterator[dict[str, Any]]:
    """Yield the components of the Python distributions below folders (core metadata, PEP 643)."""
    for folder in folders:
        for path in folder.rglob("*.dist-info/METADATA"):
            yield _distribution(email.parser.HeaderParser().parsestr(path.read_text(encoding="utf-8")))


def _distribution(fields: Message) -> dict[str, Any]:
    name, version = str(fields["Name"]), str(fields["Version"])
    # PEP 503: how an index spells a name.
    purl = f"pkg:pypi/{re.sub(r'[-_.]+', '-', name).lower()}@{quote(version)}"
    kind = "application" if name == _OURS else "library"
    component: dict[str, Any] = {"type": kind, "name": name, "version": version, "purl": purl, "bom-ref": purl}
    if expression := fields.get("License-Expression"):
        component["licenses"] = [{"expression": expression}]
    return component


def document(components: Iterable[dict[str, Any]]) -> dict[str, Any]:
    """Return the bill of materials of components; those that are named twice stand once."""
    by_reference = {component["bom-ref"]: component for component in components}
    listed = [by_reference[reference] for reference in sorted(by_reference)]
    return {"bomFormat": "CycloneDX", "specVersion": "1.6", "version": 1, "components": listed}


def main(folders: Iterable[str]) -> None:
    """Print the bill of materials of this system and of Python environments below folders."""
    components = list(distributions(map(Path, folders)))
    if _DPKG.exists():
        release = dict(line.split("=", 1) for line in _RELEASE.read_text(encoding="utf-8").splitlines() if "=" in line)
        distribution = f"{release['ID']}-{release.get('VERSION_ID', 'sid')}".replace('"', "")
        components += debian_packages(_DPKG.read_text(encoding="utf-8"), distribution)
    json.dump(document(components), sys.stdout, indent=1, sort_keys=True)


if __name__ == "__main__":
    main(sys.argv[1:])
