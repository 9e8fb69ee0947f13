"""The URLs of a connection Secret open its database in an application that is set up as in examples/."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psycopg
import pytest
from ruamel.yaml import YAML

from devcloud.onprem import OnPremServer
from fairlead.psql import find_psql
from providers.onprem.client import OnPremCloud
from tests.postgres.conftest import Where
from tests.support.mounted import mount

_EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "application.yaml"


@pytest.fixture
async def mounted(
    cloud: OnPremCloud,
    onprem_server: OnPremServer,
    target: Callable[..., Where],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Path:
    """Return the files of the Secret of a new database, in a home that has no certificates of its own."""
    folder = await mount(cloud, onprem_server, target(), tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("PGSSLROOTCERT", raising=False)
    return folder


def _root_certificate(mounted: Path) -> str:
    """Return the example's PGSSLROOTCERT with the folder of this test for its mount."""
    pod: dict[str, Any] = YAML(typ="safe").load(_EXAMPLE.read_text())["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    variables = {variable["name"]: variable["value"] for variable in container["env"]}
    (mount,) = container["volumeMounts"]
    (volume,) = pod["volumes"]
    assert (volume["name"], volume["secret"]) == (mount["name"], {"secretName": "orders-connection"})
    assert mount["mountPath"].startswith(f"{variables['SERVICE_BINDING_ROOT']}/")
    return str(variables["PGSSLROOTCERT"]).replace(mount["mountPath"], str(mounted))


async def test_psycopg_opens_the_uri(mounted: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    uri = (mounted / "uri").read_text()
    with pytest.raises(psycopg.OperationalError, match="root certificate file"):
        await psycopg.AsyncConnection.connect(uri)

    monkeypatch.setenv("PGSSLROOTCERT", _root_certificate(mounted))
    async with await psycopg.AsyncConnection.connect(uri) as connection:
        cursor = await connection.execute("SELECT session_user::text")
        assert await cursor.fetchone() == ((mounted / "username").read_text(),)


def test_psql_opens_the_uri(mounted: Path) -> None:
    psql = find_psql()
    environment = {"PGSSLROOTCERT": _root_certificate(mounted), **psql.environment}
    command = [str(psql.program), (mounted / "uri").read_text(), "-Atc", "SELECT 6 * 7"]

    ended = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)

    assert (ended.returncode, ended.stdout) == (0, "42\n"), ended.stderr
