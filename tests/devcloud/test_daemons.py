"""Programs beside us: they die when they should, and nobody else is ever signalled."""

import asyncio
import os
import select
import shutil
import signal
import sys
from pathlib import Path

import msgspec
import pytest

from devcloud import daemons
from devcloud.daemons import Command, Identity, Lifetime
from devcloud.errors import DevcloudError
from tests.support.waiting import eventually

SLEEP = ("sleep", "600")
STUBBORN = (
    sys.executable,
    "-c",
    "import signal, time; signal.signal(15, signal.SIG_IGN); print('up', flush=True); time.sleep(600)",
)
PARENT = """
import sys
from pathlib import Path
from devcloud import daemons
from devcloud.daemons import Command, Lifetime
folder = Path(sys.argv[1])
daemon = daemons.launch(Command(name="child", arguments=("sleep", "600"), log=folder / "log"), Lifetime[sys.argv[2]])
daemons.save(folder / "pid.json", daemon)
print("saved", flush=True)
sys.stdin.read()
"""


def launched(folder: Path, arguments: tuple[str, ...] = SLEEP) -> Identity:
    command = Command(name="sleeper", arguments=arguments, log=folder / "log")
    return daemons.launch(command, Lifetime.WITH_PARENT).identity


def program_of(identity: Identity) -> str:
    return Path(f"/proc/{identity.pid}/cmdline").read_text().split("\0")[0]


async def until_it_is(identity: Identity, name: str) -> None:
    """Wait until what starts the program has become the program."""

    async def become() -> bool:
        return program_of(identity).endswith(name)

    await eventually(become, f"{identity} is {name}")


async def until_ended(identity: Identity) -> None:
    async def ended() -> bool:
        return not daemons.is_alive(identity)

    await eventually(ended, f"{identity} has ended")


@pytest.mark.parametrize("lifetime", [Lifetime.WITH_PARENT, Lifetime.DETACHED], ids=lambda lifetime: lifetime.name)
async def test_a_killed_parent_takes_along_what_was_started_with_it_and_nothing_else(
    tmp_path: Path, lifetime: Lifetime
) -> None:
    parent = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", PARENT, str(tmp_path), lifetime.name),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    assert parent.stdout is not None
    assert await parent.stdout.readline() == b"saved\n"
    child = daemons.load(tmp_path / "pid.json")
    assert child is not None
    assert daemons.is_alive(child)

    parent.kill()
    await parent.wait()

    if lifetime is Lifetime.WITH_PARENT:
        await until_ended(child)
    else:
        assert daemons.is_alive(child)
        await daemons.stop(child)
        assert not daemons.is_alive(child)


async def test_a_parent_that_dies_before_the_death_signal_is_set_takes_along_its_child(tmp_path: Path) -> None:
    real, slow, parent_is_dead = shutil.which("setpriv"), tmp_path / "setpriv", tmp_path / "dead"
    slow.write_text(f'#!/bin/sh\nuntil [ -e {parent_is_dead} ]; do sleep 0.01; done\nexec {real} "$@"\n')
    slow.chmod(0o700)
    parent = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", PARENT, str(tmp_path), Lifetime.WITH_PARENT.name),
        env={**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"},
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    assert parent.stdout is not None
    assert await parent.stdout.readline() == b"saved\n"
    child = daemons.load(tmp_path / "pid.json")
    assert child is not None

    parent.kill()
    await parent.wait()
    parent_is_dead.touch()

    await until_ended(child)


@pytest.mark.parametrize(
    "change",
    [pytest.param({"start_ticks": 1}, id="another start time"), pytest.param({"boot": "earlier"}, id="another boot")],
)
async def test_a_pid_that_another_process_got_is_left_alone(tmp_path: Path, change: dict[str, object]) -> None:
    stranger = launched(tmp_path)
    remembered = msgspec.structs.replace(stranger, **change)

    await daemons.stop(remembered)

    assert not daemons.send(remembered, signal.SIGKILL)
    assert daemons.is_alive(stranger)
    await daemons.stop(stranger)


async def test_a_program_that_ignores_the_request_to_end_is_killed(tmp_path: Path) -> None:
    stubborn = launched(tmp_path, STUBBORN)

    async def ready() -> bool:
        return "up" in (tmp_path / "log").read_text()

    await eventually(ready, "it ignores SIGTERM")
    await daemons.stop(stubborn, grace_s=0.2)

    assert not daemons.is_alive(stubborn)


async def test_a_program_that_an_interrupted_start_did_not_record_is_found_and_ended(tmp_path: Path) -> None:
    marker, endless = f"--mark={tmp_path}", f"read < {tmp_path}/nobody-writes"
    os.mkfifo(tmp_path / "nobody-writes")
    # Bash itself waits: what it started would outlive it.
    stray = launched(tmp_path, ("bash", "-c", endless, marker))
    other = launched(tmp_path, ("bash", "-c", endless, f"--mark={tmp_path}-other"))

    await until_it_is(stray, "bash")
    await daemons.stop_strays("bash", marker)

    await until_ended(stray)
    assert daemons.is_alive(other)
    await daemons.stop(other)


@pytest.mark.parametrize("content", [b"", b"{", b'{"pid": "x"}', b"4711"])
def test_a_damaged_pid_file_proves_nothing(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "pid.json"
    path.write_bytes(content)

    assert daemons.load(path) is None


def test_a_program_that_is_missing_is_named(tmp_path: Path) -> None:
    command = Command(name="etcd", arguments=(str(tmp_path / "etcd"),), log=tmp_path / "log")

    with pytest.raises(DevcloudError, match=r"cannot start etcd: .*/etcd: No such file"):
        daemons.launch(command, Lifetime.DETACHED)


async def test_a_file_left_open_by_a_shell_is_not_handed_on(tmp_path: Path) -> None:
    reading, writing = os.pipe()
    os.set_inheritable(writing, True)  # noqa: FBT003 - the signature of the standard library
    try:
        identity = launched(tmp_path)
    finally:
        os.close(writing)
    try:
        ended, _, _ = select.select([reading], [], [], 60)
        assert ended, "the program keeps the pipe open"
        assert os.read(reading, 1) == b""
        assert daemons.is_alive(identity)
    finally:
        os.close(reading)
        await daemons.stop(identity)


async def test_our_own_identity_is_alive() -> None:
    own = daemons.identity_of_self()

    assert own.pid == os.getpid()
    assert daemons.is_alive(own)
    assert await asyncio.to_thread(daemons.is_alive, own)
