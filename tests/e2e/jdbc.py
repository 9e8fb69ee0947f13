"""`jdbc-url` of a connection Secret, opened by PostgreSQL's own JDBC driver; run by `make e2e`.

Needs Debian's default-jre-headless and libpostgresql-jdbc-java. Java compiles and runs a single source file by itself
(JEP 330).
"""

from __future__ import annotations

import asyncio
import os
import subprocess
from pathlib import Path

import pytest

from devcloud.certificates import new_authority
from devcloud.onprem import OnPremServer
from providers.onprem.client import connect
from tests.postgres.conftest import config_of, new_target, secrets_of
from tests.support.mounted import mount

_PROGRAM = Path(__file__).with_name("Select.java")
_DRIVER = "/usr/share/java/postgresql.jar"


@pytest.fixture
def mounted(onprem_server: OnPremServer, tmp_path: Path) -> Path:
    """The files of the Secret of a new database."""

    async def made() -> Path:
        async with connect(config_of(onprem_server), secrets_of(onprem_server)) as cloud:
            return await mount(cloud, onprem_server, new_target(), tmp_path)

    return asyncio.run(made())


def _java(url: str, home: Path) -> subprocess.CompletedProcess[str]:
    """Open a URL as the application of a user whose home has no certificates."""
    command = ["java", f"-Duser.home={home}", "-cp", _DRIVER, str(_PROGRAM), url]
    environment = {"PATH": os.environ["PATH"], "HOME": str(home)}
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=120)


def test_the_driver_opens_the_url_with_the_certificates_beside_it(mounted: Path) -> None:
    url = (mounted / "jdbc-url").read_text()
    ended = _java(f"{url}&sslrootcert={mounted / 'certificates'}", mounted.parent)

    assert (ended.returncode, ended.stdout) == (0, f"{(mounted / 'username').read_text()}\n"), ended.stderr


def test_the_driver_refuses_the_url_without_certificates_in_words(mounted: Path) -> None:
    ended = _java((mounted / "jdbc-url").read_text(), mounted.parent)

    assert ended.returncode == 1
    assert "Could not open SSL root certificate file" in ended.stderr


def test_the_driver_refuses_a_server_of_another_authority(mounted: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.crt"
    other.write_bytes(new_authority("another authority").pem)
    ended = _java(f"{(mounted / 'jdbc-url').read_text()}&sslrootcert={other}", mounted.parent)

    assert ended.returncode == 1
    assert "unable to find valid certification path" in ended.stderr
