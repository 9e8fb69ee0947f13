"""A fifth cloud, made of new files alone: the on-prem one under another name, in a copy of the checkout."""

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
    for old, new in _WORDS:
        text = text.replace(old, new)
    return text


def _sources(root: Path) -> Iterator[Path]:
    for folder in (root / "providers" / "onprem", root / "deploy" / "kustomize" / "clouds" / "onprem"):
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
    page = root / "docs" / f"names-{CLOUD}.md"
    with page.open("x", encoding="utf-8") as file:
        file.write(_names_page((root / "docs" / "names.md").read_text(encoding="utf-8")))
    return [*written, page]


def _names_page(page: str) -> str:
    section = page.split("\n## 1. ", 1)[1].split("\n## ", 1)[0]
    rows = [translated(line) for line in section.splitlines() if line.startswith("| `onprem.")]
    names = {translated(name) for name in re.findall(r"`([^`\n]+)`", page) if "onprem" in name}
    return _NAMES_PAGE.format(rows="\n".join(rows), others="\n".join(f"- `{name}`" for name in sorted(names)))
