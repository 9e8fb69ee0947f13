"""Two at once: the second waits and says so, and a dead holder holds nothing."""

import asyncio
import sys
from pathlib import Path

import pytest

from devcloud import addresses, daemons
from devcloud.daemons import Command, Lifetime
from devcloud.errors import DevcloudError
from devcloud.locks import exclusive, take

HOLDER = """
import sys
from pathlib import Path
from devcloud.locks import take
assert take(Path(sys.argv[1])) is not None
print("held", flush=True)
sys.stdin.read()
"""


async def test_the_second_waits_with_one_line_and_goes_on_when_the_first_is_killed(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    lines: list[str] = []
    waited = asyncio.Event()

    def progress(line: str) -> None:
        lines.append(line)
        waited.set()

    async def second() -> None:
        async with exclusive(path, waiting="somebody else is at work", progress=progress):
            pass

    holder = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", HOLDER, str(path)), stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
    )
    assert holder.stdout is not None
    assert await holder.stdout.readline() == b"held\n"
    waiting = asyncio.create_task(second())
    await asyncio.wait_for(waited.wait(), 30)
    assert not waiting.done()

    holder.kill()
    await holder.wait()
    await asyncio.wait_for(waiting, 30)

    assert lines == ["somebody else is at work"]


async def test_a_lone_process_waits_for_nobody(tmp_path: Path) -> None:
    lines: list[str] = []

    async with exclusive(tmp_path / "deep" / "lock", waiting="waiting", progress=lines.append):
        assert take(tmp_path / "deep" / "lock") is None

    assert lines == []


def test_runs_lease_different_networks(tmp_path: Path) -> None:
    first, second = addresses.lease(locks=tmp_path), addresses.lease(locks=tmp_path)

    assert first.octet != second.octet
    assert first.address(1) == f"127.{first.octet}.0.1"
    assert first.address(300) == f"127.{first.octet}.1.44"
    with pytest.raises(DevcloudError, match=rf"127\.{first.octet}\.0\.0/16 is leased by another run"):
        addresses.lease_again(first.octet, locks=tmp_path)

    first.release()
    again = addresses.lease_again(first.octet, locks=tmp_path)

    assert again.octet == first.octet
    again.release()
    second.release()


def test_a_platform_that_stays_gets_its_own_addresses_and_no_passing_run_does(tmp_path: Path) -> None:
    passing = [addresses.lease(locks=tmp_path) for _ in range(127)]
    before = addresses.choose_lasting(tmp_path / "one", locks=tmp_path)
    before.release()
    after = addresses.choose_lasting(tmp_path / "one", locks=tmp_path)
    another = addresses.choose_lasting(tmp_path / "one", locks=tmp_path)

    assert before.octet == after.octet
    assert len({lease.octet for lease in (*passing, after, another)}) == 129
    for lease in (*passing, after, another):
        lease.release()


def test_all_leased_is_one_sentence(tmp_path: Path) -> None:
    leases = [addresses.lease(locks=tmp_path) for _ in range(127)]

    with pytest.raises(DevcloudError, match="every /16"):
        addresses.lease(locks=tmp_path)

    assert len({lease.octet for lease in leases}) == 127
    for lease in leases:
        lease.release()


async def test_a_lease_lives_on_in_the_program_that_inherited_it(tmp_path: Path) -> None:
    lease = addresses.lease(locks=tmp_path)
    command = Command(name="front", arguments=("sleep", "600"), log=tmp_path / "log", descriptors=(lease.descriptor,))
    heir = daemons.launch(command, Lifetime.WITH_PARENT)

    lease.release()

    with pytest.raises(DevcloudError, match="leased by another run"):
        addresses.lease_again(lease.octet, locks=tmp_path)
    await daemons.stop(heir.identity)
    addresses.lease_again(lease.octet, locks=tmp_path).release()
