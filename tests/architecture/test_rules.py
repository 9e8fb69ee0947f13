"""Rules that no linter knows: what may not stand in which files."""

from __future__ import annotations

import functools
import re

import msgspec
import pytest

from tests.architecture import tree

TEXT = frozenset({"", ".cfg", ".go", ".json", ".md", ".mod", ".py", ".sh", ".sql", ".toml", ".txt", ".yaml", ".yml"})
FOLDERS = (*tree.PACKAGES, "crds", "compositions", "deploy", "tests", "benchmarks", "docs", ".ci")
HERE = "tests/architecture/test_rules.py"


@functools.cache
def _files() -> dict[str, str]:
    """Return the texts that the rules are for, by name."""
    candidates = [path for folder in FOLDERS for path in (tree.ROOT / folder).rglob("*")]
    candidates += [path for path in tree.ROOT.iterdir() if not path.name.startswith(".coverage")]
    files = (path for path in candidates if path.suffix in TEXT and "__pycache__" not in path.parts and path.is_file())
    named = {tree.name_of(path): path for path in sorted(files)}
    return {name: path.read_text(encoding="utf-8") for name, path in named.items() if name != HERE}


class Rule(msgspec.Struct, frozen=True):
    says: str
    pattern: str
    within: str = ""


RULES = (
    Rule(
        "what is left to do is not written in the code",
        r"\b(TODO|FIXME|XXX)\b",
    ),
    Rule(
        "no path of one machine",
        r"(?<![\w.])/(home|root)/[a-z]",
    ),
    Rule("registry hosts stand in lock files alone", r"pypi\.org|pythonhosted\.org|proxy\.golang\.org"),
    Rule(
        "a test waits for a state, never for a time",
        r"^\s*time\.sleep\(",
        within="tests/",
    ),
    Rule(
        "no test is left out or expected to fail",
        r"\b(mark\.(skip|skipif|xfail)|pytest\.(skip|xfail|importorskip))\b",
        within="tests/",
    ),
    Rule(
        "fakes behave, nothing is mocked",
        r"\bunittest\.mock\b|\bmock\.patch\b",
        within="tests/",
    ),
    Rule(
        "a silenced check gives its code and its reason",
        r"#\s*noqa(?!: [A-Z]+[0-9]+(, ?[A-Z]+[0-9]+)*( - |  # )\S)",
    ),
    Rule(
        "a silenced type error gives its code and its reason",
        r"#\s*type: ignore(?!\[[a-z, -]+\]( - |  # )\S)",
    ),
)

# pyproject.toml names a file of the registry, as uv.lock does of all (tool.uv.sources).
EXEMPT = {"registry hosts stand in lock files alone": re.compile(r"(uv\.lock|go\.sum|bootstrap\.txt|pyproject\.toml)$")}


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.says)
def test_rule(rule: Rule) -> None:
    exempt, pattern = EXEMPT.get(rule.says), re.compile(rule.pattern, re.MULTILINE)
    breaches = [
        f"{name}:{text.count(chr(10), 0, match.start()) + 1}: {match[0].strip()}"
        for name, text in _files().items()
        if name.startswith(rule.within) and not (exempt and exempt.search(name))
        for match in pattern.finditer(text)
    ]

    assert breaches == []


def test_the_needs_line_is_what_ci_installs() -> None:
    readme = (tree.ROOT / "README.md").read_text(encoding="utf-8")
    script = (tree.ROOT / ".ci" / "run").read_text(encoding="utf-8")
    (packages,) = re.findall(r'^needs="([^"]+)"$', script, re.MULTILINE)

    assert f"apt-get install {packages}" in readme


def test_decisions_are_listed() -> None:
    folder = tree.ROOT / "docs" / "adr"
    index = (folder / "README.md").read_text(encoding="utf-8")
    records = sorted(folder.glob("[0-9]*.md"))

    assert [path.name for path in records if f"({path.name})" not in index] == []
    assert [path.name for path in records if "**Rejected.**" not in path.read_text(encoding="utf-8")] == []
