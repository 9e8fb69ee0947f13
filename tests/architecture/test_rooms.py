"""Between the rooms of a package there are few arrows, and no circle: a room is read with those below it, and alone.

A cloud's room is known to nobody.
"""

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


def _named_rooms() -> set[str]:
    """Return the rooms of devcloud that its contract names."""
    contracts = tree.pyproject()["tool"]["importlinter"]["contracts"]
    layers = next(contract["layers"] for contract in contracts if contract["id"] == "devcloud-rooms")
    return {room for layer in layers for room in layer.split(" | ")}


def _folders() -> set[str]:
    return {path.parent.name for path in (tree.ROOT / "devcloud").glob("*/__init__.py")}


def test_each_module_of_devcloud_has_its_place_in_the_contract() -> None:
    modules = {path.stem for path in (tree.ROOT / "devcloud").glob("*.py")} - {"__init__"}

    assert modules - _named_rooms() == set()


def test_a_simulated_cloud_is_known_to_nobody_and_knows_not_who_brings_it_up() -> None:
    clouds = {*tree.clouds("devcloud"), *(_folders() - _named_rooms())}
    graph = grimp.build_graph("devcloud", exclude_type_checking_imports=True)
    arrows = {
        (_room(importer), _room(imported))
        for importer in graph.modules
        for imported in graph.find_modules_directly_imported_by(importer)
    }
    own = {f"devcloud.{cloud}" for cloud in clouds}
    wrong = {
        (importer, imported)
        for importer, imported in arrows
        if importer != imported
        and (imported in own or (importer in own and imported in {"devcloud.up", "devcloud.install"}))
    }

    assert len(own) > 1
    assert wrong == set()
