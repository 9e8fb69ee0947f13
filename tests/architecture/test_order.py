"""In what order several workers begin the files of `make test`."""

from __future__ import annotations

from tests.architecture import tree
from tests.support.longest_first import MEASURED, SPLIT, Group, in_order, scope_of

_SMALL, _LARGE, _RIG = "tests/runtime/test_store.py", "tests/runtime/test_queue.py", "tests/system/test_traces.py"


def test_order_of_a_fresh_checkout_begins_with_what_was_measured_and_goes_on_with_platforms() -> None:
    demo = "tests/fairlead/test_demo.py"

    assert in_order([*[_SMALL] * 2, *[_LARGE] * 50, _RIG, demo], {}) == [demo, _RIG, _LARGE, _SMALL]


def test_files_that_share_processes_come_together_behind_those_with_their_own() -> None:
    groups = {_SMALL: Group.AT_WORK, _LARGE: Group.NO_PROCESSES}

    assert in_order([_SMALL, *[_LARGE] * 90, _RIG], {}, groups) == [_RIG, _SMALL, _LARGE]


def test_a_file_that_was_measured_is_there() -> None:
    assert [file for file in MEASURED if not (tree.ROOT / file).is_file()] == []


def test_a_worker_takes_a_file_as_a_whole_unless_its_tests_share_nothing() -> None:
    (lives,) = SPLIT

    assert (tree.ROOT / lives).is_file()
    assert scope_of(f"{lives}::test_a[1]") == f"{lives}::test_a[1]"
    assert scope_of(f"{_SMALL}::test_a[1]") == _SMALL
