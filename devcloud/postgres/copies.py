"""Copies of a server's data: of a stopped one by files, of a running one by pg_basebackup, sessions going on.

A copy lies in a folder of its own, in the same layout as a server's: `devcloud.postgres.server.start` runs it.
"""

import asyncio
import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from devcloud import accounts
from devcloud.daemons import program
from devcloud.errors import DevcloudError
from devcloud.paths import private_folder, remove_tree
from devcloud.postgres import server as postgres
from devcloud.postgres.server import Server

_PASSWORD = "superuser-password"  # noqa: S105 - a file's name


async def copy(source: Path, target: Path) -> None:
    """Copy a stopped server's folder, or a copy's, to another folder; whole or not at all.

    Raises:
        DevcloudError: The files cannot be copied.
    """
    draft = _draft(target)
    # Not shutil: reflinks where the file system has them, owners kept where the server runs as another user.
    command = (program("cp"), "--archive", "--reflink=auto", "--", str(postgres.data_of(source)), str(draft))
    await _run(command)
    _finish(source, target, draft)


async def back_up(server: Server, source: Path, target: Path) -> None:
    """Copy a running server's data into another folder; whole or not at all.

    Raises:
        DevcloudError: pg_basebackup failed; the end of its words is in the text.
    """
    draft = _draft(target)
    account = accounts.choose()
    command = (
        *account.prefix,
        str(server.programs / "pg_basebackup"),
        f"--pgdata={draft}",
        f"--host={server.socket.parent}",
        f"--port={postgres.PORT}",
        f"--username={server.superuser}",
        *("--checkpoint=fast", "--wal-method=stream", "--no-sync", "--no-manifest", "--no-password"),
    )
    await _run(command, PGPASSWORD=server.superuser_password)
    _finish(source, target, draft)


def erase_data(folder: Path) -> None:
    """Delete a stopped server's data for good; what else is in its folder stays."""
    remove_tree(postgres.data_of(folder))


def _draft(target: Path) -> Path:
    private_folder(target)
    draft = postgres.data_of(target).with_name("draft")
    remove_tree(draft)
    return draft


def _finish(source: Path, target: Path, draft: Path) -> None:
    # Before the data: with them, and without the password, the copy would be locked.
    shutil.copy2(source / _PASSWORD, target / _PASSWORD)
    for left in ("postmaster.pid", "postmaster.opts"):
        (draft / left).unlink(missing_ok=True)
    # An interruption may have come between a former copy and whoever was to remember it.
    erase_data(target)
    draft.rename(postgres.data_of(target))


async def _run(command: Sequence[str], **environment: str) -> None:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PG")}

    def run() -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command, check=False, capture_output=True, text=True, env=kept | {"LC_ALL": "C"} | environment
        )

    done = await asyncio.to_thread(run)
    if done.returncode != 0:
        raise DevcloudError(f"a copy of PostgreSQL's data failed: {done.stderr.strip()[-500:]}")


async def blueprint(options: postgres.Options, statements: Sequence[str]) -> Path:
    """Make a stopped server's folder to copy servers from, once; its copies trust every local connection but its own.

    Args:
        options: Of the server; its superuser keeps a password, so that nobody else becomes it.
        statements: What the superuser runs in it.

    Raises:
        DevcloudError: initdb or the server failed.
    """
    folder = options.folder
    done = folder / "whole"
    if done.exists():
        return folder
    await postgres.stop(folder)
    postgres.erase(folder)
    server = await postgres.start(options)
    await server.execute(*statements)
    await postgres.stop(folder)
    _trust_all_but(options.superuser, postgres.data_of(folder) / "pg_hba.conf")
    await asyncio.to_thread(done.touch)
    return folder


def _trust_all_but(superuser: str, rules: Path) -> None:
    # The TLS proxy asks for passwords, and nobody but us enters the folder of the socket.
    rules.write_text(
        f"local all {superuser} scram-sha-256\nlocal replication {superuser} scram-sha-256\nlocal all all trust\n"
    )
