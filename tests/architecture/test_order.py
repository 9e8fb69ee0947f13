"""The files that are begun first by `make test` are there."""

from __future__ import annotations

from tests.architecture import tree
from tests.support.longest_first import MEASURED

_SMALL, _LARGE, _RIG = "tests/runtime/test_store.py", "tests/runtime/test_queue.py", "tests/system/test_traces.py"


def test_a_file_that_was_measured_is_there() -> None:
    assert [file for file in MEASURED if not (tree.ROOT / file).is_file()] == []
