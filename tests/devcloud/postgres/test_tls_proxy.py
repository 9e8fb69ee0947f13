"""The TLS proxy's side of PostgreSQL's start of session, without a server behind it."""

import asyncio
import ssl
import struct
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from devcloud.certificates import Subject, authority_in
from devcloud.postgres.tls_proxy import Endpoint, TLSProxy, serving

SSL_REQUEST = struct.pack("!ii", 8, 80877103)
GSSENC_REQUEST = struct.pack("!ii", 8, 80877104)


def start_packet(*words: str) -> bytes:
    body = struct.pack("!i", 196608) + b"".join(word.encode() + b"\0" for word in words) + b"\0"
    return struct.pack("!i", len(body) + 4) + body


STARTUP = start_packet("user", "joe", "database", "joe")


@pytest.fixture
def endpoint(tmp_path: Path) -> Endpoint:
    authority = authority_in(tmp_path, "ca")
    certificate, key = authority.issue(Subject("front", hosts=("127.0.0.1",))).write(tmp_path, "front")
    return Endpoint(host="127.0.0.1", port=0, socket=tmp_path / "none", certificate=certificate, key=key)


@pytest.fixture
async def proxy(endpoint: Endpoint) -> AsyncIterator[TLSProxy]:
    async with serving(endpoint) as running:
        yield running


async def exchange(proxy: TLSProxy, sent: bytes, *, ends: bool = True) -> bytes:
    """Send bytes (and the end of them) and read until the TLS proxy closes."""
    reader, writer = await asyncio.open_connection("127.0.0.1", proxy.port)
    writer.write(sent)
    if ends:
        writer.write_eof()
    try:
        return await asyncio.wait_for(reader.read(), 30)
    except ConnectionResetError:
        return b""
    finally:
        writer.close()


@pytest.mark.parametrize(
    "sent",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(b"\0\0", id="half a length"),
        pytest.param(struct.pack("!ii", 0, 196608), id="a length of zero"),
        pytest.param(struct.pack("!ii", -1, 196608), id="a negative length"),
        pytest.param(struct.pack("!ii", 1 << 30, 196608), id="a giant length"),
        pytest.param(b"GET / HTTP/1.1\r\n\r\n", id="HTTP"),
        pytest.param(bytes.fromhex("16030100a5010000a10303"), id="TLS without asking"),
        pytest.param(STARTUP[:-4], id="a start that breaks off"),
        pytest.param(SSL_REQUEST + b"\x16\x03\x01", id="unencrypted bytes behind the request for TLS"),
        pytest.param(GSSENC_REQUEST + STARTUP, id="unencrypted bytes behind the request for GSSAPI"),
    ],
)
async def test_bytes_that_start_no_session_are_closed_without_an_answer(proxy: TLSProxy, sent: bytes) -> None:
    assert await exchange(proxy, sent) == b""

    assert b"C28000\0" in await exchange(proxy, STARTUP, ends=False)


async def test_a_server_that_is_away_is_a_fatal_answer_inside_tls(proxy: TLSProxy, endpoint: Endpoint) -> None:
    context = ssl.create_default_context(cafile=endpoint.certificate.with_name("ca.crt"))
    reader, writer = await asyncio.open_connection("127.0.0.1", proxy.port)
    writer.write(SSL_REQUEST)
    assert await reader.readexactly(1) == b"S"

    await writer.start_tls(context, server_hostname="127.0.0.1")
    writer.write(STARTUP)

    assert b"C57P03\0" in await asyncio.wait_for(reader.read(), 30)
    writer.close()
