"""What is observed needs no field, and what is managed needs each that its cloud asks for: the rules of all kinds."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from fairlead.yaml_files import objects_in
from tests.support.api import Api
from tests.support.kinds import Kind
from tests.support.rules import refusal

pytestmark = pytest.mark.usefixtures("alone")

_CRDS = Path(__file__).resolve().parents[3] / "crds"
_NEEDED = re.compile(r"  message: \"?(\w+) is required, but for an object with managementPolicy: Observe; set it")
KINDS = {
    path.name: _NEEDED.findall(path.read_text(encoding="utf-8"))
    for path in sorted(_CRDS.glob("*.yaml"))
    if "              managementPolicy:" in path.read_text(encoding="utf-8")
}


@pytest.mark.parametrize(("file", "needed"), KINDS.items(), ids=KINDS)
async def test_an_object_is_observed_without_a_field_and_managed_with_all_of_them(
    api: Api, namespace: str, file: str, needed: list[str]
) -> None:
    names = objects_in(_CRDS, file)[0]["spec"]
    kind = Kind(names["group"], "v1alpha1", names["names"]["kind"], names["names"]["plural"])
    fields = {"managementPolicy": "Observe", "forProvider": {}}
    observed = await api.create(kind.path(namespace), kind.new(namespace, "observed", spec=fields))

    managed = await refusal(
        api,
        "PUT",
        kind.path(namespace, "observed"),
        observed | {"spec": observed["spec"] | {"managementPolicy": "Manage"}},
    )
    assert all(f"{name} is required" in managed for name in needed)
    assert managed
    made = await refusal(api, "POST", kind.path(namespace), kind.new(namespace, "made", spec={"forProvider": {}}))
    assert all(f"{name} is required" in made for name in needed)
