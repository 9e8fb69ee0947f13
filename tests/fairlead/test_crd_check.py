"""`fairlead crd check`: what a CRD lacks to be a kind of claim, with the place, and what it may go without."""

from __future__ import annotations

from pathlib import Path

import pytest
from ruamel.yaml import YAML

from fairlead.cli import run
from fairlead.exits import Exit
from tests.support.second_api import SecondApi

_ROOT = Path(__file__).resolve().parents[2]
_SHIPPED = _ROOT / "crds" / "database.fairlead.dev_postgresqlinstances.yaml"
API = SecondApi("cache.example.org")


def _file(folder: Path, *objects: dict[str, object]) -> Path:
    path = folder / "crd.yaml"
    yaml = YAML()
    # Aliases are refused, and one part may stand in two kinds.
    yaml.representer.ignore_aliases = lambda _: True
    with path.open("w") as file:
        yaml.dump_all(list(objects), file)
    return path


def test_the_shipped_kind_is_fit(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["crd", "check", str(_SHIPPED)]) == Exit.DONE

    out = capsys.readouterr()
    assert out.out == "PostgreSQLInstance.database.fairlead.dev v1alpha1 is fit to be a kind of claim\n"
    assert out.err == ""


def test_kinds_of_fairlead_that_are_no_claims_are_passed_over(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["crd", "check", str(_ROOT / "crds")]) == Exit.DONE

    out = capsys.readouterr()
    assert out.out == "PostgreSQLInstance.database.fairlead.dev v1alpha1 is fit to be a kind of claim\n"
    remarks = out.err.splitlines()
    assert "RDSInstance.aws.fairlead.dev is a managed resource or a setting, no kind of claim; passed over" in remarks
    assert len(remarks) == len(list((_ROOT / "crds").glob("*.yaml"))) - 1


def test_a_field_that_a_kind_lacks_is_a_remark(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["crd", "check", str(_file(tmp_path, API.cache_crd()))]) == Exit.DONE

    assert "goes without" in capsys.readouterr().err


def test_all_that_is_missing_is_named_with_its_place(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lacking = API.cache_crd()
    version = lacking["spec"]["versions"][0]
    lacking["metadata"]["name"] = "lacking.cache.example.org"
    del version["subresources"]
    del version["schema"]["openAPIV3Schema"]["properties"]["status"]["properties"]["inventory"]
    path = _file(tmp_path, API.cache_crd(), lacking)

    assert run(["crd", "check", str(path)]) == Exit.INVALID_INPUT

    lines = capsys.readouterr().err.removeprefix("fairlead: ").splitlines()
    assert [line.partition(" lacks ")[2] for line in lines] == ["subresources.status, status.inventory"]
    assert all(line.startswith(f"{path}:") and "Cache.cache.example.org v1" in line for line in lines)
    begins = path.read_text().splitlines().index("---") + 2
    assert all(int(line.removeprefix(f"{path}:").partition(":")[0]) > begins for line in lines)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param("apiVersion: v1\nkind: ConfigMap\n", "holds no CustomResourceDefinition", id="another kind"),
        pytest.param("a: [", "not YAML", id="no YAML"),
        pytest.param(
            "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nspec: {}\n",
            "needs group, names.kind and versions",
            id="half a CRD",
        ),
    ],
)
def test_bad_input_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, message: str) -> None:
    path = tmp_path / "x.yaml"
    path.write_text(text)

    assert run(["crd", "check", str(path)]) == Exit.INVALID_INPUT
    assert message in capsys.readouterr().err


def test_crd_check_without_a_file_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["crd", "check"]) == Exit.USAGE
    assert "name a file" in capsys.readouterr().err
