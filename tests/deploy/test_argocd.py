"""Argo CD's health checks, run by Lua 5.1 as it runs them, over the cases beside them in its own layout."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import lupa.lua51
import pytest
from ruamel.yaml import YAML

from runtime.kstatus import kstatus
from tests.support import yaml_texts

ROOT = Path(__file__).resolve().parents[2]
ARGOCD = ROOT / "deploy" / "argocd"
CHECKS = sorted((ARGOCD / "resource_customizations").glob("*/_/health.lua"))
# What kstatus, which Flux goes by, calls the same state. A pause is at rest for both.
SAME = {
    "Healthy": {"Current"},
    "Suspended": {"Current"},
    "Progressing": {"InProgress", "Terminating"},
    "Degraded": {"Failed"},
}


def _read(path: Path) -> Any:
    return yaml_texts.load(path)


def _cases() -> list[Any]:
    return [
        pytest.param(check, case, id=f"{check.parent.parent.name}: {Path(case['inputPath']).stem}")
        for check in CHECKS
        for case in _read(check.with_name("health_test.yaml"))["tests"]
    ]


def _table(lua: Any, value: Any) -> Any:
    """Return a value as Lua has it: lists and maps as tables."""
    if isinstance(value, dict):
        return lua.table_from({key: _table(lua, part) for key, part in value.items()})
    if isinstance(value, list):
        return lua.table_from([_table(lua, part) for part in value])
    return value


def _health(script: str, obj: Any) -> dict[str, str]:
    lua = lupa.lua51.LuaRuntime(unpack_returned_tuples=True)
    lua.globals().obj = _table(lua, obj)
    # Argo CD opens base, table, string and math alone (util/lua/lua.go).
    for name in ("io", "os", "require", "python", "package", "debug"):
        lua.globals()[name] = None
    return dict(lua.execute(script).items())


@pytest.mark.parametrize(("check", "case"), _cases())
def test_an_object_has_the_health_that_its_case_says(check: Path, case: Any) -> None:
    obj = _read(check.parent / case["inputPath"])

    assert _health(check.read_text(encoding="utf-8"), obj) == case["healthStatus"]


@pytest.mark.parametrize(("check", "case"), _cases())
def test_argo_cd_and_flux_agree(check: Path, case: Any) -> None:
    obj = _read(check.parent / case["inputPath"])
    status = case["healthStatus"]["status"]
    if "deletionTimestamp" in obj["metadata"]:
        assert (status, kstatus(obj)) in {("Progressing", "Terminating"), ("Degraded", "Terminating")}
    elif (
        "conditions" in obj.get("status", {})
        and case["healthStatus"]["message"] != "No controller has looked at it yet"
    ):
        assert kstatus(obj) in SAME[status]
    else:
        # Without any condition kstatus takes an object for done; Argo CD waits for the controller's first look.
        assert status == "Progressing"


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.parent.parent.name)
def test_every_case_lies_in_its_folder_and_every_file_is_a_case(check: Path) -> None:
    named = [case["inputPath"] for case in _read(check.with_name("health_test.yaml"))["tests"]]

    assert sorted(named) == sorted(str(path.relative_to(check.parent)) for path in check.parent.glob("testdata/*.yaml"))


def test_each_group_has_the_one_check() -> None:
    groups = {_read(path)["spec"]["group"] for path in (ROOT / "crds").glob("*.yaml")}
    folders = {check.parent.parent.name for check in CHECKS}

    assert folders == {"fairlead.dev", "_.fairlead.dev"}
    assert {group for group in groups if group != "fairlead.dev" and not group.endswith(".fairlead.dev")} == set()
    assert len({check.read_text(encoding="utf-8") for check in CHECKS}) == 1


def test_the_config_map_holds_each_check() -> None:
    customizations = YAML(typ="safe", pure=True).load(
        _read(ARGOCD / "argocd-cm.yaml")["data"]["resource.customizations"]
    )

    script = CHECKS[0].read_text(encoding="utf-8")
    assert customizations == {"*.fairlead.dev/*": {"health.lua": script}, "fairlead.dev/*": {"health.lua": script}}
