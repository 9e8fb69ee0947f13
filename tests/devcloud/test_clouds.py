"""Clouds that `fairlead up` can simulate: found by their folders, and each with what the cluster needs for it."""

from pathlib import Path
from types import ModuleType

import pytest

from devcloud import clouds
from devcloud.aws import server as aws
from devcloud.azure import server as azure
from devcloud.errors import DevcloudError
from devcloud.gcp import server as gcp
from tests.support.fixtures import ASSETS


def test_clouds_are_found_by_their_folders() -> None:
    assert {"aws", "gcp", "onprem"} <= set(clouds.names())


@pytest.mark.parametrize("name", clouds.names())
def test_a_cloud_has_its_accounts_and_its_composition(name: str) -> None:
    cloud = clouds.cloud_of(name)

    assert cloud.name == name
    assert cloud.program.namespace == f"fairlead-{name}"
    assert (ASSETS.deploy / "kustomize" / "clouds" / name / "kustomization.yaml").exists()
    assert (ASSETS.compositions / f"postgres-{name}.yaml").exists()


def test_an_unknown_cloud_is_refused_with_those_that_there_are() -> None:
    with pytest.raises(DevcloudError, match=r"no cloud 'asw' can be simulated here, only aws, "):
        clouds.cloud_of("asw")


@pytest.mark.parametrize(
    ("server", "sentence"),
    [
        pytest.param(aws, "delete it", id="RDS"),
        pytest.param(azure, "no state of a simulated Azure", id="Azure"),
        pytest.param(gcp, "no state of a simulated Cloud SQL", id="Cloud SQL"),
    ],
)
def test_a_file_that_is_no_state_is_named(tmp_path: Path, server: ModuleType, sentence: str) -> None:
    state = tmp_path / "state.json"
    state.write_text("{}", encoding="utf-8")

    with pytest.raises(DevcloudError, match=sentence), server.running(server.Options(state=state)):
        pass
