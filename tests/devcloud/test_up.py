"""One platform per user: interrupted, started twice, partly dead, and stopped.

Composer and providers are left out here; with them the platform is what the demonstration and the system tests run.
Beside the on-prem server it has one simulated cloud; `make faults` has the others, and the data that outlive a stop.
"""

import asyncio
import contextlib
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from devcloud import accounts, daemons, up
from devcloud.controlplane import plane
from devcloud.daemons import Identity
from devcloud.errors import DevcloudError
from devcloud.onprem import OnPremServer, server_in
from devcloud.up import Environment, Options
from tests.support.fixtures import ASSETS
from tests.support.waiting import eventually

pytestmark = [pytest.mark.apiserver, pytest.mark.postgres, pytest.mark.usefixtures("control_plane_programs")]

CLOUDS = ("onprem", "aws")
UP = f"""
import asyncio, sys
from pathlib import Path
from devcloud import up
from devcloud.install import Assets
assets = Assets(*(Path({str(ASSETS.crds.parent)!r}) / name for name in ("crds", "compositions", "deploy")))
options = up.Options(assets, Path(sys.argv[1]), clouds={CLOUDS!r}, is_bare=True)
asyncio.run(up.up(options, lambda line: print(line, flush=True)))
"""

WHOLE = ["etcd", "kube-apiserver", "kube-controller-manager", "postgres", "python", "python"]


@pytest.fixture
async def home(tmp_path: Path) -> AsyncIterator[Path]:
    """Yield the folder of a platform without processes of ours; whatever runs of it is ended afterwards."""
    folder = tmp_path / "platform"
    yield folder
    await up.down(print, folder=folder)


async def begin(home: Path) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", UP, str(home)), stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
    )


async def finish(process: asyncio.subprocess.Process) -> str:
    output, _ = await asyncio.wait_for(process.communicate(), 180)
    text = output.decode()
    assert process.returncode == 0, text

    return text


async def bring_up(home: Path) -> Environment:
    return await up.up(Options(ASSETS, home, clouds=CLOUDS, is_bare=True), lambda _line: None)


def running_of(home: Path) -> list[str]:
    """Return the programs whose command line names the platform's folder, by name."""
    programs: list[str] = []
    data = f"-D{accounts.home_for(home / 'onprem' / 'server' / 'home', accounts.choose()) / 'data'}"
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            words = (entry / "cmdline").read_bytes().decode(errors="replace").split("\0")
            if any(f"={home}/" in word or word == data for word in words):
                programs.append(Path(words[0]).name)
    return sorted(programs)


def server_of(environment: Environment) -> OnPremServer:
    server = server_in(*environment.place_of("onprem"))
    assert server is not None
    return server


def mode_of(path: Path) -> int:
    return path.stat().st_mode & 0o777


def names_of(home: Path) -> list[str]:
    return ["python" if name.startswith("python") else name for name in running_of(home)]


async def test_a_platform_is_interrupted_started_twice_partly_dead_and_stopped(home: Path) -> None:
    await _killed_and_continued_by_the_next_two_at_once(home)
    await _a_program_that_died_comes_back_and_the_rest_stays(home)
    await _down_leaves_nothing(home)


async def _killed_and_continued_by_the_next_two_at_once(home: Path) -> None:
    killed = await begin(home)

    async def started() -> bool:
        return plane.members(home / "plane")["kube-apiserver"] is not None

    await eventually(started, "the API server was started", limit_s=120)
    killed.kill()
    await killed.communicate()

    outputs = await asyncio.gather(*(finish(process) for process in (await begin(home), await begin(home))))

    assert names_of(home) == WHOLE
    assert sum("another `fairlead up` or `down` is at work" in text for text in outputs) == 1
    assert sum("the platform is up already" in text for text in outputs) == 1


async def _a_program_that_died_comes_back_and_the_rest_stays(home: Path) -> None:
    before = await bring_up(home)
    for folder in (home, home / "plane", home / "plane" / "pki", home / "onprem"):
        assert mode_of(folder) == 0o700
    assert server_of(before).password not in repr(before)
    server, etcd = server_of(before).server.identity, plane.members(home / "plane")["etcd"]
    simulator = daemons.load(home / "aws" / "simulator.pid.json")
    assert isinstance(simulator, Identity)
    daemons.kill_now(simulator)
    with pytest.raises(DevcloudError, match="not up, or not all of it"):
        await up.environment(folder=home)

    after = await bring_up(home)

    assert not after.was_running
    assert names_of(home) == WHOLE
    assert (server_of(after).server.identity, plane.members(home / "plane")["etcd"]) == (server, etcd)
    assert server_of(after).host == server_of(before).host


async def _down_leaves_nothing(home: Path) -> None:
    assert (await bring_up(home)).was_running
    assert await up.down(print, folder=home)
    assert running_of(home) == []
    assert not await up.down(print, folder=home)


def test_a_damaged_state_file_is_named_with_the_way_out(tmp_path: Path) -> None:
    (tmp_path / "platform.json").write_bytes(b"{")

    with pytest.raises(DevcloudError, match=r"platform\.json is damaged: run `fairlead down`"):
        asyncio.run(up.environment(folder=tmp_path))
