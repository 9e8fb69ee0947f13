"""Pages can be read in an editor, their links lead somewhere, and the index in README.md names them all."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.architecture import tree

_LONGEST = 140
_FOLDERS = (*tree.PACKAGES, "tests", "crds", "compositions", "deploy", "docs", "examples")
_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
_PATH = re.compile(rf"`((?:{'|'.join(_FOLDERS)})/[\w/.*-]*)`")
_PAGES = [*sorted(tree.ROOT.glob("*.md")), *sorted((tree.ROOT / "docs").rglob("*.md"))]
_NAME = {str(path.relative_to(tree.ROOT)): path for path in _PAGES}


def _prose(path: Path) -> str:
    """Return a page without its blocks of code, whose brackets are no links."""
    return re.sub(r"^ *```.*?^ *```", "", path.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)


def _anchors(path: Path) -> set[str]:
    """Return the anchors that GitHub makes of a page's headings."""
    headings = re.findall(r"^#+ (.+)$", _prose(path), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("name", _NAME)
def test_lines_fit_into_an_editor_but_for_rows_of_tables(name: str) -> None:
    lines = enumerate(_NAME[name].read_text(encoding="utf-8").splitlines(), start=1)

    assert [number for number, line in lines if len(line) > _LONGEST and not line.lstrip().startswith("|")] == []


@pytest.mark.parametrize("name", _NAME)
def test_links_lead_to_a_file_and_a_heading_that_exist(name: str) -> None:
    path = _NAME[name]
    dead = []
    for link in _LINK.findall(_prose(path)):
        target, _, anchor = link.partition("#")
        file = (path.parent / target).resolve() if target else path
        if "://" not in link and (not file.exists() or (anchor and anchor not in _anchors(file))):
            dead.append(link)

    assert dead == []


@pytest.mark.parametrize("name", _NAME)
def test_paths_that_a_page_names_exist(name: str) -> None:
    # Records of decisions and of changes name what was there then.
    if name.startswith("docs/adr/") or name == "CHANGELOG.md":
        return
    named = set(_PATH.findall(_prose(_NAME[name])))

    assert {path for path in named if not list(tree.ROOT.glob(path.rstrip("/")))} == set()


def test_the_readme_links_every_page_but_those_that_a_cloud_brings() -> None:
    pages = {name for name in _NAME if name.startswith("docs/") and not name.startswith(("docs/adr/", "docs/names-"))}
    linked = {link.partition("#")[0] for link in _LINK.findall(_prose(tree.ROOT / "README.md"))}

    assert pages - linked == set()
