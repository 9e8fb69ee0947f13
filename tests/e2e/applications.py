"""The blocks of docs/applications.md connect, and read the files for each new connection; run by `make e2e`.

Each is run beside files with a wrong password; once its pool is there they become right. Drivers come from their own
registries: npm, the module proxy of Go, PyPI; JDBC's from Debian's libpostgresql-jdbc-java.
"""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

import pytest

from devcloud.onprem import OnPremServer
from providers.onprem.client import connect
from tests.postgres.conftest import config_of, new_target, secrets_of
from tests.support.mounted import mount

_PAGE: Final = Path(__file__).resolve().parents[2] / "docs" / "applications.md"
_BLOCK: Final = re.compile(r"^```(\w+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_JDBC: Final = "/usr/share/java/postgresql.jar"


@pytest.fixture
def mounted(onprem_server: OnPremServer, tmp_path: Path) -> Path:
    """The files of the Secret of a new database in `db`, and in `right`; those in `db` have a wrong password."""

    async def made() -> Path:
        async with connect(config_of(onprem_server), secrets_of(onprem_server)) as cloud:
            return await mount(cloud, onprem_server, new_target(), tmp_path)

    folder = asyncio.run(made())
    right = folder.with_name("right")
    shutil.copytree(folder, right)
    password = (folder / "password").read_text()
    for file in folder.iterdir():
        file.write_text(file.read_text().replace(password, "wrong"))
    return folder


def _block(language: str, holds: str, folder: Path) -> str:
    """Return the page's block of a language that holds a text, with the test's folder for the mount."""
    blocks: list[tuple[str, str]] = _BLOCK.findall(_PAGE.read_text())
    (block,) = [text for name, text in blocks if name == language and holds in text]
    return block.replace("/bindings/db", str(folder))


def _run(command: Sequence[str], folder: Path, **environment: str) -> str:
    variables = {name: os.environ[name] for name in ("PATH", "GOPROXY", "GOFLAGS", "GOSUMDB") if name in os.environ}
    variables |= {"HOME": str(folder), **environment}
    ended = subprocess.run(command, cwd=folder, env=variables, capture_output=True, text=True, check=False, timeout=600)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout.strip()


def _python(folder: Path, home: Path) -> str:
    (home / "main.py").write_text(
        f"{_block('python', 'psycopg.connect', folder)}\n"
        "import shutil\n"
        "try:\n    connect()\nexcept psycopg.OperationalError:\n"
        f"    shutil.copytree('{folder.with_name('right')}', BINDING, dirs_exist_ok=True)\n"
        "print(connect().execute('SELECT session_user').fetchone()[0])\n"
    )
    return _run([sys.executable, "main.py"], home)


def _django(folder: Path, home: Path) -> str:
    package = home / "shop" / "database"
    package.mkdir(parents=True)
    (package / "base.py").write_text(_block("python", "django", folder))
    (home / "main.py").write_text(
        "import shutil\nfrom django.conf import settings\n"
        "settings.configure(DATABASES={'default': {'ENGINE': 'shop.database'}})\n"
        "from django.db import OperationalError, connection\n"
        "try:\n    connection.ensure_connection()\nexcept OperationalError:\n"
        f"    shutil.copytree('{folder.with_name('right')}', '{folder}', dirs_exist_ok=True)\n"
        "cursor = connection.cursor()\ncursor.execute('SELECT session_user')\nprint(cursor.fetchone()[0])\n"
    )
    _run([sys.executable, "-m", "venv", "venv"], home)
    _run(["venv/bin/pip", "install", "--quiet", "django>=5", "psycopg[binary]"], home)
    return _run(["venv/bin/python", "main.py"], home)


def _node(folder: Path, home: Path) -> str:
    (home / "main.js").write_text(
        f"{_block('javascript', 'Pool', folder)}\n"
        "const user = () => pool.query('SELECT session_user').then((result) => result.rows[0].session_user);\n"
        "user().catch(() => {\n"
        f"  require('node:fs').cpSync('{folder.with_name('right')}', '{folder}', {{ recursive: true }});\n"
        "  return user();\n"
        "}).then(console.log).then(() => pool.end());\n"
    )
    _run(["npm", "install", "--silent", "--no-audit", "pg@8"], home)
    return _run(["node", "main.js"], home)


def _go(folder: Path, home: Path) -> str:
    (home / "database").mkdir()
    (home / "database" / "database.go").write_text(_block("go", "pgxpool", folder))
    (home / "main.go").write_text(
        'package main\n\nimport (\n\t"context"\n\t"fmt"\n\t"os/exec"\n\t"shop/database"\n)\n\n'
        "func main() {\n\tctx := context.Background()\n\tpool, err := database.Open(ctx)\n"
        "\tif err != nil {\n\t\tpanic(err)\n\t}\n\tif pool.Ping(ctx) == nil {\n"
        '\t\tpanic("logged in by a wrong password")\n\t}\n'
        f'\texec.Command("cp", "-r", "{folder.with_name("right")}/.", "{folder}").Run()\n'
        '\tvar user string\n\terr = pool.QueryRow(ctx, "SELECT session_user").Scan(&user)\n'
        "\tif err != nil {\n\t\tpanic(err)\n\t}\n\tfmt.Println(user)\n}\n"
    )
    _run(["go", "mod", "init", "shop"], home)
    _run(["go", "get", "github.com/jackc/pgx/v5@v5.7.6"], home)
    _run(["go", "mod", "tidy"], home)
    return _run(["go", "run", "."], home)


def _java(folder: Path, home: Path) -> str:
    (home / "BoundDataSource.java").write_text(_block("java", "BoundDataSource", folder))
    (home / "Main.java").write_text(
        "public final class Main {\n    public static void main(String[] none) throws Exception {\n"
        "        var source = new BoundDataSource();\n        try (var refused = source.getConnection()) {\n"
        '            throw new IllegalStateException("logged in by a wrong password");\n'
        "        } catch (java.sql.SQLException expected) {\n"
        f'            new ProcessBuilder("cp", "-r", "{folder.with_name("right")}/.", "{folder}").start().waitFor();\n'
        "        }\n        try (var connection = source.getConnection();\n"
        '                var row = connection.createStatement().executeQuery("SELECT session_user")) {\n'
        "            row.next();\n            System.out.println(row.getString(1));\n        }\n    }\n}\n"
    )
    _run(["javac", "-cp", _JDBC, "BoundDataSource.java", "Main.java"], home)
    return _run(["java", "-cp", f"{_JDBC}:.", "Main"], home)


_PROGRAMS: Final[dict[str, Callable[[Path, Path], str]]] = {
    "psycopg": _python,
    "Django": _django,
    "Node": _node,
    "pgx": _go,
    "JDBC": _java,
}


@pytest.mark.parametrize("driver", _PROGRAMS)
def test_a_block_of_the_page_reads_the_files_for_each_new_connection(
    driver: str, mounted: Path, tmp_path: Path
) -> None:
    home = tmp_path / "home"
    home.mkdir()

    assert _PROGRAMS[driver](mounted, home) == (mounted / "username").read_text()
