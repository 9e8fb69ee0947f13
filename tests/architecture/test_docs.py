"""Pages can be read in an editor, their links lead somewhere, and the index in docs/README.md names them all."""

from __future__ import annotations

import functools
import re
from pathlib import Path

from tests.architecture import tree

_LONGEST = 140
_FOLDERS = (*tree.PACKAGES, "tests", "crds", "compositions", "deploy", "docs", "examples")
_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
_PATH = re.compile(rf"`((?:{'|'.join(_FOLDERS)})/[\w/.*-]*)`")
_PAGES = {
    tree.name_of(path): path for path in [*sorted(tree.ROOT.glob("*.md")), *sorted((tree.ROOT / "docs").rglob("*.md"))]
}


@functools.cache
def _prose(path: Path) -> str:
    """Return a page without its blocks of code, whose brackets are no links."""
    return re.sub(r"^ *```.*?^ *```", "", path.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)


@functools.cache
def _anchors(path: Path) -> set[str]:
    """Return the anchors that GitHub makes of a page's headings."""
    headings = re.findall(r"^#+ (.+)$", _prose(path), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_lines_fit_into_an_editor_but_for_rows_of_tables() -> None:
    too_long = [
        f"{name}:{number}"
        for name, path in _PAGES.items()
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1)
        if len(line) > _LONGEST and not line.lstrip().startswith("|")
    ]

    assert too_long == []


def _leads_nowhere(path: Path, link: str) -> bool:
    target, _, anchor = link.partition("#")
    file = (path.parent / target).resolve() if target else path
    return "://" not in link and (not file.exists() or bool(anchor and anchor not in _anchors(file)))


def test_links_lead_to_a_file_and_a_heading_that_exist() -> None:
    links = ((name, path, link) for name, path in _PAGES.items() for link in _LINK.findall(_prose(path)))

    assert [f"{name}: {link}" for name, path, link in links if _leads_nowhere(path, link)] == []


def test_paths_that_a_page_names_exist() -> None:
    # Records of decisions and of changes name what was there then.
    of_today = {name: path for name, path in _PAGES.items() if not name.startswith(("docs/adr/", "CHANGELOG.md"))}
    named = {path: name for name, page in of_today.items() for path in _PATH.findall(_prose(page))}

    assert {path: name for path, name in named.items() if not list(tree.ROOT.glob(path.rstrip("/")))} == {}


def test_the_index_links_every_page_but_those_that_a_cloud_brings() -> None:
    pages = {name.removeprefix("docs/") for name in _PAGES if name.startswith("docs/")}
    pages = {page for page in pages if not page.startswith(("adr/", "names-", "README"))}
    linked = {link.partition("#")[0] for link in _LINK.findall(_prose(tree.ROOT / "docs" / "README.md"))}

    assert pages - linked == set()
    assert "docs/README.md" in _LINK.findall(_prose(tree.ROOT / "README.md"))
