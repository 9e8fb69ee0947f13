"""Between the rooms of a package there are few arrows, and no circle: a room is read with those below it, and alone."""

from __future__ import annotations

import graphlib

import grimp
import pytest

from tests.architecture import tree

# Beside them a cloud knows the external side of the providers.
MOST_ARROWS = {"composer": 45, "providers": 12 + len(tree.clouds("providers"))}


def _room(module: str) -> str:
    """Return the folder of a module; a module beside the folders is a room of its own."""
    return ".".join(module.split(".")[:2])


def _arrows(package: str) -> set[tuple[str, str]]:
    graph = grimp.build_graph(package, exclude_type_checking_imports=True)
    return {
        (_room(importer), _room(imported))
        for importer in graph.modules
        for imported in graph.find_modules_directly_imported_by(importer)
        if "." in imported and _room(importer) != _room(imported)
    }


@pytest.mark.parametrize("package", MOST_ARROWS)
def test_rooms_have_few_arrows_between_them(package: str) -> None:
    assert 0 < len(_arrows(package)) <= MOST_ARROWS[package]


@pytest.mark.parametrize("package", ["composer", "providers", "devcloud"])
def test_rooms_form_no_circle(package: str) -> None:
    order = graphlib.TopologicalSorter[str]()
    for importer, imported in _arrows(package):
        order.add(importer, imported)

    # Raises CycleError, which names the circle.
    assert len(tuple(order.static_order())) > 5
