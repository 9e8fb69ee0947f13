"""What is generated from deploy/kustomize and crds/ is current, and the chart refuses values that it does not know."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from devcloud import manifests
from devcloud.errors import DevcloudError
from tests.architecture import tree

CHART = tree.ROOT / manifests.CHART


def test_the_generated_files_are_current() -> None:
    assert manifests.stale(tree.ROOT) == [], "run `make manifests`"


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """Return a copy of what is generated from, and of what is generated."""
    for folder in ("crds", "deploy"):
        shutil.copytree(tree.ROOT / folder, tmp_path / folder)
    return tmp_path


def test_an_edit_of_the_source_is_stale_until_it_is_written(checkout: Path) -> None:
    edited = checkout / "deploy" / "kustomize" / "clouds" / "onprem" / "people.yaml"
    edited.write_text(edited.read_text().replace("fairlead-view-onprem", "fairlead-view-others"))
    left_over = checkout / manifests.CHART / "files" / "crds" / "gone.yaml"
    left_over.write_text("")

    changed = {manifests.CHART / "files" / "clouds" / "onprem.yaml", manifests.INSTALL, left_over.relative_to(checkout)}
    assert set(manifests.stale(checkout)) == changed
    assert set(manifests.write(checkout)) == changed
    assert manifests.stale(checkout) == []
    assert not left_over.exists()


def test_a_kustomization_that_patches_is_refused(checkout: Path) -> None:
    path = checkout / "deploy" / "kustomize" / "core" / "kustomization.yaml"
    path.write_text(f"{path.read_text()}namePrefix: other-\n")

    with pytest.raises(DevcloudError, match=r"core/kustomization\.yaml has namePrefix"):
        manifests.generate(checkout)


def test_a_crd_with_annotations_of_its_own_is_refused(checkout: Path) -> None:
    path = checkout / "crds" / "fairlead.dev_compositions.yaml"
    path.write_text(path.read_text().replace("metadata:\n", "metadata:\n  annotations: {}\n", 1))

    with pytest.raises(DevcloudError, match=r"fairlead\.dev_compositions\.yaml: its metadata"):
        manifests.generate(checkout)


def test_the_one_file_holds_every_object_once_and_no_crd() -> None:
    objects = list(YAML(typ="safe", pure=True).load_all((tree.ROOT / manifests.INSTALL).read_text(encoding="utf-8")))
    keys = [(obj["kind"], obj["metadata"].get("namespace"), obj["metadata"]["name"]) for obj in objects]

    assert len(set(keys)) == len(keys)
    assert {kind for kind, *_ in keys} & {"CustomResourceDefinition", "Secret", "ConfigMap"} == set()
    assert [key for key in keys if key[0] == "Deployment"] == [
        ("Deployment", "fairlead-system", "fairlead-composer"),
        ("Deployment", "fairlead-onprem", "fairlead-provider-onprem"),
    ]


def _objects(schema: Any, path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield each schema of an object, with where it stands."""
    if isinstance(schema, dict):
        if schema.get("type") == "object":
            yield path, schema
        for name, part in schema.items():
            yield from _objects(part, f"{path}.{name}")


def test_the_schema_knows_every_default_and_refuses_what_it_does_not_know() -> None:
    schema = json.loads((CHART / "values.schema.json").read_text(encoding="utf-8"))
    values = YAML(typ="safe", pure=True).load((CHART / "values.yaml").read_text(encoding="utf-8"))
    open_ones = {
        path for path, part in _objects(schema) if "properties" in part and part["additionalProperties"] is not False
    }

    assert open_ones == set()
    assert schema["properties"].keys() - values.keys() == {"global"}
    _known(values, schema, schema["definitions"])


def _known(values: dict[str, Any], schema: dict[str, Any], definitions: dict[str, Any]) -> None:
    for name, value in values.items():
        part = schema["properties"][name]
        part = definitions[part["$ref"].rpartition("/")[2]] if "$ref" in part else part
        if isinstance(value, dict) and "properties" in part:
            _known(value, part, definitions)
