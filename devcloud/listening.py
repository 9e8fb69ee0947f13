"""Wait until a program that was started says that it listens."""

import asyncio

from devcloud import addresses, daemons
from devcloud.daemons import Daemon
from devcloud.errors import DevcloudError

_POLL_S = 0.05


async def until_listening(daemon: Daemon, address: tuple[str, int], *, name: str, words: str, limit_s: float) -> None:
    """Wait until a program's log holds the words that say so.

    Args:
        daemon: The program, with a log of this start alone.
        address: Host and port, to name who holds them when they are taken.
        name: What the program is, for errors.
        words: What it writes when it listens.
        limit_s: How long to wait.

    Raises:
        DevcloudError: It ended, its address is taken (the text says by what), or it takes too long.
    """
    loop = asyncio.get_running_loop()
    deadline = loop.time() + limit_s
    while not (daemon.log.exists() and words in daemon.log.read_text(errors="replace")):
        if not daemons.is_alive(daemon.identity):
            tail = daemons.log_tail(daemon.log)
            if "address already in use" in tail:
                host, port = address
                raise DevcloudError(f"{host}:{port} is taken by {addresses.holder_of(host, port)}: stop it, try again")
            raise DevcloudError(f"the {name} ended: {tail}; see {daemon.log}")
        if loop.time() > deadline:
            raise DevcloudError(f"the {name} is not ready after {limit_s:g} s: see {daemon.log}")
        await asyncio.sleep(_POLL_S)
