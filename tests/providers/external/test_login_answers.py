"""What a server's answer to a login says of the password, and a login that is cancelled without one."""

from __future__ import annotations

import asyncio
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from devcloud.certificates import Subject, new_authority
from devcloud.postgres.authenticator import Admit, Caller, Refuse
from providers.external.credential import Credential, Login, LoginAnswer
from providers.external.endpoint import VERIFIED, Endpoint
from providers.external.login import try_login
from tests.providers.external.test_verification import CREDENTIAL, Server


@dataclass
class Refusing(Server):
    """A server whose firewall has a rule for nobody, or which has no room left."""

    refusal: Refuse = field(kw_only=True)

    async def _admit(self, caller: Caller) -> Admit | Refuse:
        self.callers.append(caller)
        return self.refusal


@pytest.mark.parametrize(
    ("code", "sentence"),
    [
        pytest.param("28000", "no pg_hba.conf entry for host", id="a client whose address has no rule"),
        pytest.param("53300", "sorry, too many clients already", id="a server without room"),
    ],
)
async def test_a_refusal_before_the_password_was_asked_for_is_unknown(code: str, sentence: str, tmp_path: Path) -> None:
    authority = await asyncio.to_thread(new_authority, "the own authority")
    async with Refusing(tmp_path, authority, "127.0.0.1", refusal=Refuse(code, sentence)).serving() as server:
        endpoint = Endpoint("127.0.0.1", server.port, "orders", VERIFIED, authority.pem.decode())
        answer = await try_login(endpoint, CREDENTIAL)

    assert answer == LoginAnswer(Login.UNKNOWN, code)
    assert len(server.callers) == 1


async def test_a_refused_password_is_refused(tmp_path: Path) -> None:
    authority = await asyncio.to_thread(new_authority, "the own authority")
    async with Server(tmp_path, authority, "127.0.0.1").serving() as server:
        endpoint = Endpoint("127.0.0.1", server.port, "orders", VERIFIED, authority.pem.decode())
        answer = await try_login(endpoint, Credential("app", "another"))

    assert answer == LoginAnswer(Login.REFUSED, "28P01")


_SSL_REQUEST_BYTES = 8
_TURNS = 20


@dataclass
class _Hung:
    """A server that offers TLS, takes it up, and then neither reads nor writes; `port` is where it listens."""

    listener: socket.socket
    context: ssl.SSLContext
    is_met: threading.Event = field(default_factory=threading.Event)
    is_over: threading.Event = field(default_factory=threading.Event)

    @property
    def port(self) -> int:
        port: int = self.listener.getsockname()[1]
        return port

    def serve(self) -> None:
        line, _ = self.listener.accept()
        with line:
            line.recv(_SSL_REQUEST_BYTES, socket.MSG_WAITALL)
            line.sendall(b"S")
            with self.context.wrap_socket(line, server_side=True):
                self.is_met.set()
                self.is_over.wait(60)


@contextmanager
def _hung(folder: Path) -> Iterator[tuple[_Hung, str]]:
    authority = new_authority("an authority")
    certificate, key = authority.issue(Subject("server", hosts=("127.0.0.1",))).write(folder, "server")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        server = _Hung(listener, context)
        thread = threading.Thread(target=server.serve)
        thread.start()
        try:
            yield server, authority.pem.decode()
        finally:
            server.is_over.set()
            thread.join()


async def test_login_that_is_cancelled_waits_for_no_answer_of_a_server_that_hangs(tmp_path: Path) -> None:
    with _hung(tmp_path) as (server, pem):
        endpoint = Endpoint("127.0.0.1", server.port, "orders", VERIFIED, pem)
        login = asyncio.create_task(try_login(endpoint, Credential("app", "a secret")))
        await asyncio.to_thread(server.is_met.wait, 60)
        login.cancel()
        for _ in range(_TURNS):
            await asyncio.sleep(0)

        assert login.cancelled()
