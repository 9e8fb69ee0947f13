"""What the environment says of the way to Google: a proxy, and a file of authorities, of the Deployment's own."""

from __future__ import annotations

from asyncio import StreamReader, StreamWriter
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import msgspec
import pytest
import pytest_asyncio
from google.oauth2 import service_account

from devcloud.gcp.server import Options, running
from providers.gcp.channel import RestChannel
from providers.gcp.credentials import SCOPES, Tokens
from providers.gcp.methods import METHODS
from runtime.errors import Transient
from tests.support.connections import listening


@pytest_asyncio.fixture
async def first_lines(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[list[bytes]]:
    """Yield the first lines that a proxy of the environment was sent; it answers none."""
    lines: list[bytes] = []

    async def note(reader: StreamReader, _writer: StreamWriter) -> None:
        lines.append(await reader.readline())

    async with listening(note) as port:
        monkeypatch.setenv("HTTPS_PROXY", f"http://127.0.0.1:{port}")
        monkeypatch.setenv("NO_PROXY", "near.example")
        monkeypatch.delenv("no_proxy", raising=False)
        monkeypatch.delenv("https_proxy", raising=False)
        yield lines


async def _token() -> str:
    return "token"


async def test_a_call_goes_by_the_proxy_of_the_environment(first_lines: list[bytes]) -> None:
    async with RestChannel("https://sql.example", _token) as channel:
        with pytest.raises(Transient):
            await channel.send(next(iter(METHODS.values())), "v1/projects/p/instances", [], None)

    assert first_lines == [b"CONNECT sql.example:443 HTTP/1.1\r\n"]


async def test_a_call_to_a_host_that_is_excepted_goes_by_no_proxy(first_lines: list[bytes]) -> None:
    async with RestChannel("https://near.example", _token) as channel:
        with pytest.raises(Transient):
            await channel.send(next(iter(METHODS.values())), "v1/projects/p/instances", [], None)

    assert first_lines == []


def _key(folder: Path, tls: Path | None, **changes: str) -> dict[str, Any]:
    """Return a key of a service account of a simulated Google, as its file holds it."""
    file = folder / "key.json"
    with running(Options(tls=tls, key_file=file)):
        key: dict[str, Any] = msgspec.json.decode(file.read_bytes())
    return key | changes


def _credentials(key: dict[str, Any]) -> Any:
    accounts: Any = service_account.Credentials
    return accounts.from_service_account_info(key, scopes=SCOPES)


async def test_a_token_is_asked_for_by_the_proxy_of_the_environment(first_lines: list[bytes], tmp_path: Path) -> None:
    key = _key(tmp_path, None, token_uri="https://token.example/token")
    with ThreadPoolExecutor(1) as pool, pytest.raises(Transient):
        await Tokens(_credentials(key), pool).token()

    assert first_lines[0].startswith(b"CONNECT token.example:443 ")


async def test_a_token_comes_from_whom_an_authority_of_the_environment_vouches_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "key.json"
    with running(Options(tls=tmp_path, key_file=file)), ThreadPoolExecutor(1) as pool:
        credentials = _credentials(msgspec.json.decode(file.read_bytes()))
        with pytest.raises(Transient, match="CERTIFICATE_VERIFY_FAILED"):
            await Tokens(credentials, pool).token()
        monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "api-ca.crt"))

        assert await Tokens(credentials, pool).token()
