"""Major upgrades of a stopped server: pg_upgrade brings its data to a newer version, with roles, databases and rows."""

import asyncio
import os
import shutil
import subprocess
from pathlib import Path

from devcloud import accounts
from devcloud.errors import DevcloudError
from devcloud.paths import remove_tree
from devcloud.postgres import server as postgres
from devcloud.postgres.programs import reachable_programs

_RULES = "pg_hba.conf"
_LONGEST_ERROR = 500


async def upgrade(before: postgres.Options, after: postgres.Options) -> None:
    """Bring the data in a folder from one version to another; whole or not at all, its server stopped.

    Args:
        before: How the server ran.
        after: How it will run, in the same folder.

    Raises:
        DevcloudError: pg_upgrade refused, as where the newer version lacks an extension; the data stay as they are.
    """
    data = postgres.data_of(before.folder)
    former, target = data.with_name("former"), data.with_name("upgraded")
    account = accounts.choose()
    old, new = (reachable_programs(account, options.major, options.extensions) for options in (before, after))
    if old == new:
        # FAIRLEAD_POSTGRES names the programs of every version.
        return
    # pg_upgrade refuses data of a backup, or of a server that was killed: the old server recovers and closes them.
    await postgres.start(before)
    await postgres.stop(before.folder)
    remove_tree(target)
    await postgres.make_data(after, target)
    sockets = postgres.socket_folder(before.folder)
    command = (
        *account.prefix,
        str(new / "pg_upgrade"),
        f"--old-datadir={data}",
        f"--new-datadir={target}",
        f"--old-bindir={old}",
        f"--new-bindir={new}",
        f"--username={before.superuser}",
        f"--socketdir={sockets}",
        "--no-sync",
    )
    await asyncio.to_thread(_run, command, data.parent, postgres.password_of(before.folder))
    shutil.copyfile(data / _RULES, target / _RULES)
    remove_tree(former)
    data.rename(former)
    target.rename(data)
    remove_tree(former)


def _run(command: tuple[str, ...], folder: Path, password: str) -> None:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PG")}
    environment = kept | {"LC_ALL": "C", "TZ": "UTC", "PGPASSWORD": password}
    done = subprocess.run(command, check=False, capture_output=True, text=True, env=environment, cwd=folder)
    if done.returncode != 0:
        words = f"{done.stdout}\n{done.stderr}".strip()[-_LONGEST_ERROR:]
        raise DevcloudError(f"pg_upgrade failed in {folder}: {words}")
