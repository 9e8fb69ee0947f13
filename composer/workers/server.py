"""Forks the template server out of a process that has loaded next to nothing, and gives it its orders.

What is loaded here before the fork is in the memory of every worker, so this module imports what it needs and no more.
The server's other side is `composer.workers.worker`.
"""

from __future__ import annotations

import os
import signal
import socket

SPAWN, KILL, SLOW = b"spawn", b"kill", b"slow"


class TemplateServer:
    """The process that forks workers. Make it before there is any connection, credential or thread: it forks."""

    def __init__(self, *, is_confined: bool = True) -> None:
        self._control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.pid = os.fork()
        if self.pid == 0:
            try:
                self._control.close()
                # In the server alone: what renders is loaded while the other process loads what it needs.
                from composer.workers import worker  # noqa: PLC0415 - see above

                worker.serve(theirs, is_confined=is_confined)
            finally:
                # Whatever happens there must not run the code of the process that it was forked from.
                os._exit(1)
        theirs.close()

    def spawn(self) -> tuple[int, socket.socket]:
        """Have a worker forked; return its pid and our end of its pipe. Waits. Raises OSError."""
        self._control.send(SPAWN)
        pid, descriptors, _, _ = socket.recv_fds(self._control, 64, 1)
        if not descriptors:
            # It cannot be forked again: credentials exist by now. A new process can.
            signal.raise_signal(signal.SIGTERM)
            raise ConnectionError("the template server has ended")
        return int(pid), socket.socket(fileno=descriptors[0])

    def kill(self, pid: int) -> None:
        """Have a worker killed. Raises OSError when the server is gone."""
        self._control.send(KILL + f" {pid}".encode())

    def slow(self, pid: int) -> None:
        """Have a worker go on at a lower priority. Raises OSError when the server is gone."""
        self._control.send(SLOW + f" {pid}".encode())

    def close(self) -> None:
        """End the server, and wait for its end."""
        self._control.close()
        os.waitpid(self.pid, 0)
