"""Control planes are shared: a file with one of its own stands in the list, with its reason."""

from __future__ import annotations

import ast

from tests.architecture import tree
from tests.support.own_planes import OWN_PLANES

_SHARING = ("tests/apiserver", "tests/deploy", "tests/postgres", "tests/security", "tests/system")
_MOST = 8


def _starts_a_plane(path: str) -> bool:
    """Return whether a file calls `rig(...)` or `planes.start(...)`."""
    calls = (node for node in ast.walk(tree.parse(tree.ROOT / path)) if isinstance(node, ast.Call))
    return any(ast.unparse(call.func) in {"rig", "planes.start"} for call in calls)


def test_a_file_with_a_control_plane_of_its_own_is_in_the_list() -> None:
    files = [
        str(path.relative_to(tree.ROOT)) for folder in _SHARING for path in (tree.ROOT / folder).rglob("test_*.py")
    ]

    assert [file for file in files if _starts_a_plane(file) and file not in OWN_PLANES] == []
    assert [file for file, reason in OWN_PLANES.items() if not reason or file not in files] == []
    assert len(OWN_PLANES) <= _MOST
