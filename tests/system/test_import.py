"""A database that a DBA made is taken over by a person's commands, on a real server, while its application works."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

import psycopg
import pytest

from fairlead.cli import run
from tests.support.kinds import DATABASE, PROVIDER_CONFIG, is_ready
from tests.support.system import System

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.apiserver, pytest.mark.postgres]

PASSWORD = "Of-the-application-1"


async def _import(system: System, capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    code = await asyncio.to_thread(run, ["import", *arguments, "--kubeconfig", str(system.plane.kubeconfig)])
    captured = capsys.readouterr()
    assert code == 0, captured.err
    return captured.out


async def _work(system: System, name: str) -> None:
    """Log in and write, again and again, as an application does; a refusal ends the test."""
    server = system.server
    while True:
        async with await psycopg.AsyncConnection.connect(
            host=server.host, port=server.port, dbname=name, user=f"{name}_app", password=PASSWORD, autocommit=True
        ) as session:
            await session.execute("INSERT INTO app.orders VALUES (1)")
        await asyncio.sleep(0.1)


async def test_a_dbas_database_is_found_written_previewed_and_adopted(
    running: System, namespace: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    system, name = running, f"legacy_{namespace.replace('-', '_')}"
    run_sql = system.server.server.execute
    await run_sql(f"CREATE ROLE {name}_app LOGIN PASSWORD '{PASSWORD}'", f"CREATE DATABASE {name} OWNER {name}_app")
    await run_sql(f"GRANT {name}_app TO {system.server.username}")
    await run_sql(f"CREATE SCHEMA app AUTHORIZATION {name}_app", database=name)
    await run_sql(f"SET ROLE {name}_app", "CREATE TABLE app.orders (n int)", database=name)
    await system.api.merge(PROVIDER_CONFIG.path("", "default"), {"spec": {"allowAdoption": True}})
    application = asyncio.create_task(_work(system, name))
    mark = system.sql.mark()

    assert name in await _import(system, capsys, "find", "onprempc/default", "--name", "legacy_*")
    assert f"databaseName: {name}" in await _import(system, capsys, "show", "onprempc/default", name, "-n", namespace)
    (file,) = (
        await _import(system, capsys, "write", "onprempc/default", name, "-n", namespace, "-o", str(tmp_path))
    ).split()
    await system.kubectl.run("apply", "-f", file)
    text = await _import(system, capsys, "preview", "-n", namespace)
    before = [statement for statement in system.sql.changes(mark) if "app.orders" not in statement]
    (agreed,) = re.findall(r"fairlead import (adopt .*)", text)
    await _import(system, capsys, *agreed.split())
    adopted = Path(file).stem
    await system.until(DATABASE, namespace, adopted, is_ready)
    is_at_work = not application.done()
    application.cancel()

    assert before == []
    assert is_at_work, application.exception()
    owners = await run_sql("SELECT tableowner FROM pg_catalog.pg_tables WHERE schemaname = 'app'", database=name)
    assert [str(owner) for (owner,) in owners] == [f"{name}_app"]
    await system.delete(DATABASE, namespace, adopted)
    assert await run_sql("SELECT n FROM app.orders LIMIT 1", database=name)
