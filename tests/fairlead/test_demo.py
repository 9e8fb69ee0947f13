"""The whole way, as a person takes it: `fairlead demo` on its own platform, interrupted, run again, taken down."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import boto3
import pytest
from google.oauth2 import service_account
from googleapiclient import discovery

from devcloud.controlplane import Programs

pytestmark = [pytest.mark.apiserver, pytest.mark.postgres]

_LIMIT_S = 420
# What a shell starts in the background ignores Ctrl-C, and so does all that it starts: here somebody presses it.
_HEEDS_CTRL_C = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)"
_CHILDREN = {
    "aws": "RDSInstance/orders-instance",
    "gcp": "CloudSQLInstance/orders-instance",
    "azure": "FlexibleServer/orders-server",
}
_COMMAND = (sys.executable, "-c", f"{_HEEDS_CTRL_C}; from fairlead.cli import main; main()")


@dataclass(frozen=True)
class Shell:
    """A shell of a user whose cache holds nothing but the control plane's programs."""

    environment: dict[str, str]

    def fairlead(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*_COMMAND, *arguments],
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=_LIMIT_S,
        )

    def interrupted(self, *arguments: str, after: str) -> tuple[int, str]:
        """Press Ctrl-C when a line with that text is shown; return the exit code and the errors."""
        with subprocess.Popen(
            [*_COMMAND, *arguments],
            env=self.environment | {"PYTHONUNBUFFERED": "1"},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        ) as process:
            assert process.stdout is not None
            seen = any(after in line for line in process.stdout)
            process.send_signal(signal.SIGINT)
            _, errors = process.communicate(timeout=_LIMIT_S)
            assert seen, errors
            return process.returncode, errors


@pytest.fixture
def shell(tmp_path: Path, control_plane_programs: Programs) -> Iterator[Shell]:
    ours = {"XDG_CACHE_HOME": str(tmp_path), "KUBEBUILDER_ASSETS": str(control_plane_programs.kubectl.parent)}
    kept = {name: value for name, value in os.environ.items() if name not in {"KUBECONFIG", "FAIRLEAD_POSTGRES"}}
    made = Shell(kept | ours)
    yield made
    made.fairlead("down")


def test_the_story_is_interrupted_run_again_goes_on_in_simulated_clouds_and_outlives_its_platform(shell: Shell) -> None:
    _on_prem(shell)
    variables = _in_clouds(shell)
    _down_and_up(shell, variables)

    assert shell.fairlead("down").returncode == 0
    assert "not up" in shell.fairlead("env").stderr


def _on_prem(shell: Shell) -> None:
    code, errors = shell.interrupted("demo", after="Somebody drops the database")
    assert code == 130
    assert errors.splitlines()[-1].startswith("fairlead: interrupted; what was started stays")
    assert "Traceback" not in errors

    demo = shell.fairlead("demo")
    assert demo.returncode == 0, demo.stdout + demo.stderr
    assert "the platform is up already" in demo.stderr
    assert "Done: every step above was seen to happen" in demo.stdout
    assert "DatabaseLost" in demo.stdout
    assert "did you mean 'postgres-onprem'" in demo.stdout

    ready = shell.fairlead("env")
    assert "export KUBECONFIG=" in ready.stdout
    kubeconfig = ready.stdout.split("KUBECONFIG=")[1].splitlines()[0].strip("'")
    answer = shell.fairlead("psql", "orders", "-n", "demo", "--kubeconfig", kubeconfig, "--", "-Atc", "SELECT 6 * 7")
    assert (answer.returncode, answer.stdout) == (0, "42\n"), answer.stderr


def _in_clouds(shell: Shell) -> dict[str, str]:
    """Have the story played in each simulated cloud; return what `fairlead env` exports then."""
    demo = shell.fairlead("demo", "--clouds", ",".join(_CHILDREN))
    assert demo.returncode == 0, demo.stdout + demo.stderr
    assert "Done: every step above was seen to happen" in demo.stdout
    assert [child for child in _CHILDREN.values() if child not in demo.stdout] == []
    return dict(re.findall(r"export (\w+)='?([^'\n]*)'?", shell.fairlead("env").stdout))


def _down_and_up(shell: Shell, variables: dict[str, str]) -> None:
    rds, (instance,) = _rds_instance(variables), _instances(variables)
    assert (rds["DBInstanceStatus"], instance["state"]) == ("available", "RUNNABLE")

    assert shell.fairlead("down", "--keep-data").returncode == 0
    again = shell.fairlead("up")
    assert again.returncode == 0, again.stderr
    said = ("simulated RDS at", "simulated Cloud SQL at", f"simulated Azure at {variables['AZURE_ENDPOINT_URL']}")
    assert [text for text in said if text not in again.stderr] == []
    # The keys of before count again.
    assert _rds_instance(variables)["DbiResourceId"] == rds["DbiResourceId"]
    assert _instances(variables)[0]["createTime"] == instance["createTime"]
    for cloud in _CHILDREN:
        question = ("psql", "orders", "-n", f"demo-{cloud}", "--kubeconfig", variables["KUBECONFIG"])
        answer = shell.fairlead(*question, "--", "-Atc", "SELECT count(*) FROM invoice")
        assert (answer.returncode, answer.stdout) == (0, "3\n"), answer.stderr


def _rds_instance(variables: dict[str, str]) -> dict[str, Any]:
    """Return the one instance, by boto3 with what `fairlead env` exports."""
    client = boto3.client(
        "rds",
        endpoint_url=variables["AWS_ENDPOINT_URL"],
        region_name=variables["AWS_REGION"],
        aws_access_key_id=variables["AWS_ACCESS_KEY_ID"],
        aws_secret_access_key=variables["AWS_SECRET_ACCESS_KEY"],
    )
    (instance,) = client.describe_db_instances()["DBInstances"]
    client.close()
    return dict(instance)


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
