"""In what order several workers begin the files of `make test`."""

from __future__ import annotations

from tests.architecture import tree
from tests.support.longest_first import MEASURED, in_order

_SMALL, _LARGE, _WALK = "tests/runtime/test_store.py", "tests/runtime/test_queue.py", "tests/system/test_walks.py"


def test_order_is_by_what_files_took() -> None:
    took = {_SMALL: 9.0, _LARGE: 2.0, _WALK: 5.0}

    assert in_order([_LARGE, _LARGE, _WALK, _SMALL], took) == [_SMALL, _WALK, _LARGE]


def test_order_of_a_fresh_checkout_begins_with_what_was_measured_and_goes_on_with_platforms() -> None:
    demo = "tests/fairlead/test_demo.py"

    assert in_order([*[_SMALL] * 2, *[_LARGE] * 50, _WALK, demo], {}) == [demo, _WALK, _LARGE, _SMALL]


def test_a_file_that_was_measured_is_there() -> None:
    assert [file for file in MEASURED if not (tree.ROOT / file).is_file()] == []


def test_order_has_each_file_once_and_is_the_same_in_each_worker() -> None:
    files = [_SMALL, _WALK, _SMALL, _LARGE]

    assert in_order(files, {}) == in_order(list(reversed(files)), {})
    assert sorted(in_order(files, {})) == sorted(set(files))
