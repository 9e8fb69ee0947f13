"""No module over 400 lines, no function over 60, without a reason beside it; no folder over 20 modules."""

import ast
from collections import Counter

from tests.architecture import tree

LONGEST_MODULE = 400
LONGEST_FUNCTION = 60
MOST_MODULES = 20
ROOMS = ("composer", "providers", "devcloud")
REASON = "# long: "


def _has_reason(lines: list[str]) -> bool:
    return any(REASON in line and len(line.split(REASON, 1)[1].strip()) >= len("one sentence") for line in lines)


def oversized(source: str) -> list[str]:
    """Name the module (line 1) and functions of a source that are too long and give no reason."""
    lines = source.splitlines()
    too_long = []
    if len(lines) > LONGEST_MODULE and not _has_reason([line for line in lines if line.startswith(REASON)]):
        too_long.append(f"1: the module has {len(lines)} lines")
    for node in ast.walk(tree.parsed(source)):
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        length = (node.end_lineno or node.lineno) - node.lineno + 1
        if length > LONGEST_FUNCTION and not _has_reason(lines[max(0, node.lineno - 2) : node.body[0].lineno]):
            too_long.append(f"{node.lineno}: {node.name} has {length} lines")
    return too_long


def test_size() -> None:
    too_long = [
        f"{tree.name_of(path)}:{place}"
        for path in tree.modules(*tree.PACKAGES, "tests", "benchmarks")
        for place in oversized(path.read_text(encoding="utf-8"))
    ]

    assert too_long == []


def test_folder_has_few_modules() -> None:
    modules = (path for path in tree.modules(*ROOMS) if path.stem != "__init__")
    counts = Counter(str(path.parent.relative_to(tree.ROOT)) for path in modules)

    assert {folder: count for folder, count in counts.items() if count > MOST_MODULES} == {}


def test_long_function_is_found() -> None:
    body = "    x = 1\n" * LONGEST_FUNCTION
    source = f"def f() -> None:\n{body}"

    assert oversized(source) == ["1: f has 61 lines"]
    assert oversized(source.replace("None:", "None:  # long: one table, read from top to bottom")) == []
    assert oversized(source.replace("None:", "None:  # long:")) == ["1: f has 61 lines"]


def test_long_module_is_found() -> None:
    source = "x = 1\n" * (LONGEST_MODULE + 1)

    assert oversized(source) == ["1: the module has 401 lines"]
    assert oversized("# long: a table of the cloud's error codes\n" + source) == []
