"""A fifth cloud, made of new files alone, in a copy of the checkout.

Its databases, their simulation and its demo are the on-prem ones under another name; its shelves (toy_shelves.py) are a
kind without logins.
"""

import re
import shutil
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CODE = ("fairlead", "devcloud", "composer", "providers", "apis", "runtime", "tests")
DATA = ("crds", "compositions", "deploy", "docs")
CLOUD = "toy"
_WORDS = (
    ("onprem", CLOUD),
    ("PostgresDatabase", "ToyDatabase"),
    ("postgresdatabase", "toydatabase"),
)
# What makes the CRD of a kind without logins one of shelves.
_SHELVES_CRD = "aws.fairlead.dev_dbsubnetgroups.yaml"
_SHELF_WORDS = (
    ("aws.fairlead.dev", "toy.fairlead.dev"),
    ("dbSubnetGroupDescription", "shelfDescription"),
    ("DBSubnetGroup", "Shelf"),
    ("dbsubnetgroups", "shelves"),
    ("dbsubnetgroup", "shelf"),
    ("subnetIds", "bookIds"),
)
# What no two clouds share: the namespace of the demo's story, and that one of them is the default.
_STORY_WORDS = (('_NAMESPACE = "demo"', f'_NAMESPACE = "demo-{CLOUD}"'),)
_PLATFORM_WORDS = (("    is_default=True,\n", ""),)
# How the new cloud's package, a file of its own, names its second kind.
_SECOND_KIND = (
    ("kinds=(DATABASES,)", "kinds=(DATABASES, SHELVES)"),
    ('("ProviderConfig", ProviderConfigSpec),', '("Shelf", ShelfSpec),\n    ("ProviderConfig", ProviderConfigSpec),'),
    (
        "from runtime.objects import",
        "from providers.toy.shelves import SHELVES, ShelfSpec\nfrom runtime.objects import",
    ),
)
_NAMES_PAGE = """\
# Names of the toy cloud

## 1. Groups and kinds

| group | kind | plural | short | scope | stateful |
|---|---|---|---|---|---|
{rows}

## 2. Names made by rule

{others}
"""


def translated(text: str) -> str:
    """Return a text of the on-prem cloud as one of the new cloud."""
    return _replaced(text, _WORDS)


def _replaced(text: str, words: tuple[tuple[str, str], ...]) -> str:
    for old, new in words:
        assert old in text or words is _WORDS, old
        text = text.replace(old, new)
    return text


def _sources(root: Path) -> Iterator[Path]:
    parts = (("providers",), ("devcloud",), ("deploy", "kustomize", "clouds"))
    for folder in (root.joinpath(*part, "onprem") for part in parts):
        yield from (path for path in folder.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    yield from (root / "crds").glob("onprem.*.yaml")
    yield from (root / "compositions").glob("*-onprem.yaml")


def copy_checkout(into: Path) -> Path:
    """Copy what the tests and the processes need of the checkout."""
    for folder in (*CODE, *DATA):
        shutil.copytree(ROOT / folder, into / folder, ignore=shutil.ignore_patterns("__pycache__"))
    for file in ("pyproject.toml", "uv.lock", "Makefile", "README.md"):
        shutil.copy(ROOT / file, into)
    return into


def add_cloud(root: Path) -> list[Path]:
    """Write the new cloud's files into a copy of the checkout; return them, each of which was not there before."""
    written = []
    for source in sorted(_sources(root)):
        target = root / translated(str(source.relative_to(root)))
        target.parent.mkdir(parents=True, exist_ok=True)
        with target.open("x", encoding="utf-8") as file:
            file.write(translated(source.read_text(encoding="utf-8")))
        written.append(target)
    _allow_shelves(root / "deploy" / "kustomize" / "clouds" / CLOUD)
    simulation = root / "devcloud" / CLOUD
    for module, words in ((simulation / "story.py", _STORY_WORDS), (simulation / "platform.py", _PLATFORM_WORDS)):
        module.write_text(_replaced(module.read_text(encoding="utf-8"), words), encoding="utf-8")
    package, shelves = root / "providers" / CLOUD, root / "providers" / CLOUD / "shelves.py"
    shelves.write_text((root / "tests" / "support" / "toy_shelves.py").read_text(encoding="utf-8"), encoding="utf-8")
    wiring = package / "__init__.py"
    wiring.write_text(_replaced(wiring.read_text(encoding="utf-8"), _SECOND_KIND), encoding="utf-8")
    crd = root / "crds" / f"{CLOUD}.fairlead.dev_shelves.yaml"
    text = (root / "crds" / _SHELVES_CRD).read_text(encoding="utf-8")
    with crd.open("x", encoding="utf-8") as file:
        file.write(_replaced(text, _SHELF_WORDS))
    written += [shelves, crd]
    page = root / "docs" / f"names-{CLOUD}.md"
    with page.open("x", encoding="utf-8") as file:
        file.write(_names_page((root / "docs" / "names.md").read_text(encoding="utf-8")))
    return [*written, page]


def _allow_shelves(deploy: Path) -> None:
    """Give the roles of the new cloud the second kind beside the first."""
    for file in deploy.glob("*.yaml"):
        text = file.read_text(encoding="utf-8")
        file.write_text(re.sub(r"\btoydatabases(/status)?\b", r"toydatabases\1, shelves\1", text), encoding="utf-8")


def _names_page(page: str) -> str:
    section = page.split("\n## 1. ", 1)[1].split("\n## ", 1)[0]
    rows = [translated(line) for line in section.splitlines() if line.startswith("| `onprem.")]
    rows.append(f"| `{CLOUD}.fairlead.dev` | `Shelf` | `shelves` | | N | |")
    names = {translated(name) for name in re.findall(r"`([^`\n]+)`", page) if "onprem" in name}
    return _NAMES_PAGE.format(rows="\n".join(rows), others="\n".join(f"- `{name}`" for name in sorted(names)))
