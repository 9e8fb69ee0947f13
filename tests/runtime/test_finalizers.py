from typing import Any

import pytest

from runtime.finalizers import removal
from runtime.objects import Object


def holding(*finalizers: str) -> Object:
    return {"metadata": {"name": "x", "uid": "u1", "resourceVersion": "7", "finalizers": list(finalizers)}}


@pytest.mark.parametrize("position", [0, 1, 2])
def test_the_patch_names_object_version_place_and_value(position: int) -> None:
    held = ["other.dev/a", "other.dev/b"]
    held.insert(position, "ours.dev/x")
    patch = removal(holding(*held), "ours.dev/x")
    path = f"/metadata/finalizers/{position}"
    expected: list[dict[str, Any]] = [
        {"op": "test", "path": "/metadata/uid", "value": "u1"},
        {"op": "test", "path": "/metadata/resourceVersion", "value": "7"},
        {"op": "test", "path": path, "value": "ours.dev/x"},
        {"op": "remove", "path": path},
    ]

    assert patch == expected


def test_a_field_that_nobody_holds_needs_no_patch() -> None:
    assert removal(holding("other.dev/a"), "ours.dev/x") == []
    assert removal({"metadata": {"name": "x"}}, "ours.dev/x") == []
