"""In what order several workers begin the files of `make test`."""

from __future__ import annotations

from tests.support.longest_first import in_order

_SMALL, _LARGE, _WALK = "tests/runtime/test_store.py", "tests/runtime/test_queue.py", "tests/system/test_walks.py"


def test_order_is_by_what_files_took() -> None:
    took = {_SMALL: 9.0, _LARGE: 2.0, _WALK: 5.0}

    assert in_order([_LARGE, _LARGE, _WALK, _SMALL], took) == [_SMALL, _WALK, _LARGE]


def test_order_of_a_fresh_checkout_begins_with_files_that_have_a_control_plane_of_their_own() -> None:
    assert in_order([*[_SMALL] * 2, *[_LARGE] * 50, _WALK], {}) == [_WALK, _LARGE, _SMALL]


def test_order_has_each_file_once_and_is_the_same_in_each_worker() -> None:
    files = [_SMALL, _WALK, _SMALL, _LARGE]

    assert in_order(files, {}) == in_order(list(reversed(files)), {})
    assert sorted(in_order(files, {})) == sorted(set(files))
