"""A taken address: one line that says what holds it."""

import asyncio
import os
import socket
from pathlib import Path

import pytest

from devcloud import addresses, onprem
from devcloud.daemons import Lifetime
from devcloud.errors import DevcloudError


async def answer(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.close()


@pytest.mark.parametrize("host", ["127.0.0.1", None], ids=["the address", "all addresses"])
async def test_the_listener_is_named_by_pid_and_command(host: str | None) -> None:
    # Without a host it listens on all addresses of IPv4; IPv6 would take a port of its own.
    server = await asyncio.start_server(answer, host, 0, family=socket.AF_INET)
    port = server.sockets[0].getsockname()[1]

    holder = addresses.holder_of("127.0.0.1", port)
    server.close()
    await server.wait_closed()

    assert holder.startswith(f"pid {os.getpid()} (")
    assert addresses.holder_of("127.0.0.1", port) == "no process that this user can see"


@pytest.mark.postgres
async def test_a_taken_address_stops_the_start_with_one_line(tmp_path: Path) -> None:
    lease = addresses.lease()
    server = await asyncio.start_server(answer, lease.address(1), 5432)
    options = onprem.Options(folder=tmp_path, lifetime=Lifetime.WITH_PARENT, durable=False)

    try:
        with pytest.raises(DevcloudError) as refused:
            await onprem.start(options, lease)
    finally:
        server.close()
        await server.wait_closed()
        await onprem.stop(tmp_path, grace_s=5.0, is_temporary=True)
        lease.release()

    assert f"{lease.address(1)}:5432 is taken by pid {os.getpid()} (" in str(refused.value)
    assert "\n" not in str(refused.value)
