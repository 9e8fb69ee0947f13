"""The demo in the other simulated clouds, stopped and brought back with their data: run by `make faults`."""

from __future__ import annotations

import re
from typing import Any

import pytest
from google.oauth2 import service_account
from googleapiclient import discovery

from tests.fairlead.test_demo import Shell, in_clouds, shell

pytestmark = [pytest.mark.apiserver, pytest.mark.postgres]

__all__ = ["shell"]
_CHILDREN = {"gcp": "CloudSQLInstance/orders-instance", "azure": "FlexibleServer/orders-server"}


def test_the_story_goes_on_in_simulated_clouds_which_outlive_their_platform(shell: Shell) -> None:
    in_clouds(shell, _CHILDREN)
    variables = dict(re.findall(r"export (\w+)='?([^'\n]*)'?", shell.fairlead("env").stdout))
    (instance,) = _instances(variables)
    assert instance["state"] == "RUNNABLE"

    assert shell.fairlead("down", "--keep-data").returncode == 0
    again = shell.fairlead("up")
    assert again.returncode == 0, again.stderr
    said = ("simulated Cloud SQL at", f"simulated Azure at {variables['AZURE_ENDPOINT_URL']}")
    assert [text for text in said if text not in again.stderr] == []
    # The key of before counts again.
    assert _instances(variables)[0]["createTime"] == instance["createTime"]
    for cloud in _CHILDREN:
        question = ("psql", "orders", "-n", f"demo-{cloud}", "--kubeconfig", variables["KUBECONFIG"])
        answer = shell.fairlead(*question, "--", "-Atc", "SELECT count(*) FROM invoice")
        assert (answer.returncode, answer.stdout) == (0, "3\n"), answer.stderr


def _instances(variables: dict[str, str]) -> list[dict[str, str]]:
    """List the instances by Google's own client, with what `fairlead env` exports."""
    key, scope = variables["GOOGLE_APPLICATION_CREDENTIALS"], "https://www.googleapis.com/auth/cloud-platform"
    of_key: Any = service_account.Credentials
    build: Any = discovery.build
    client = build(
        "sqladmin",
        "v1",
        credentials=of_key.from_service_account_file(key, scopes=[scope]),
        client_options={"api_endpoint": variables["CLOUDSDK_API_ENDPOINT_OVERRIDES_SQL"]},
        static_discovery=True,
    )
    answer = client.instances().list(project=variables["GOOGLE_CLOUD_PROJECT"]).execute()
    client.close()
    listed: list[dict[str, str]] = answer["items"]
    return listed
