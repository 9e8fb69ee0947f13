"""Whom the provider trusts: most configurations are refused; proxies and authorities are the environment's."""

from __future__ import annotations

import json
from asyncio import StreamReader, StreamWriter
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Literal

import google.auth.exceptions
import msgspec
import pytest
import pytest_asyncio
from google.oauth2 import service_account

from devcloud.gcp.server import Options, running
from providers.external.config import SecretReference
from providers.gcp.channel import RestChannel
from providers.gcp.config import Credentials
from providers.gcp.credentials import KEY, SCOPES, Tokens, Trusted, configuration
from providers.gcp.methods import METHODS
from runtime.errors import Blocked, Failure, Terminal, Transient
from tests.support.connections import listening

GOOGLE = Trusted()
ERRORS: Any = google.auth.exceptions
Source = Literal["MetadataServer", "Federation", "ServiceAccountKey"]


def _checked(source: Source, content: Any, trusted: Trusted = GOOGLE) -> dict[str, Any]:
    text = content if isinstance(content, str) else json.dumps(content)
    secrets = {"google": {KEY: text}}
    return configuration(Credentials(source=source, secret_ref=SecretReference("google")), secrets, trusted)


KEY_FILE = {
    "type": "service_account",
    "client_email": "fairlead@shop.iam.gserviceaccount.com",
    "private_key": "s3cret-key",
    "token_uri": "https://oauth2.googleapis.com/token",
}
FEDERATION = {
    "type": "external_account",
    "audience": "//iam.googleapis.com/projects/1/locations/global/workloadIdentityPools/p/providers/k",
    "subject_token_type": "urn:ietf:params:oauth:token-type:jwt",
    "token_url": "https://sts.googleapis.com/v1/token",
    "service_account_impersonation_url": "https://iamcredentials.googleapis.com/v1/projects/-/serviceAccounts/"
    "fairlead@shop.iam.gserviceaccount.com:generateAccessToken",
    "credential_source": {"file": "/var/run/secrets/tokens/google"},
}


@pytest.mark.parametrize(("source", "content"), [("ServiceAccountKey", KEY_FILE), ("Federation", FEDERATION)])
def test_googles_own_configurations_are_taken(source: Source, content: dict[str, Any]) -> None:
    assert _checked(source, content) == content


def test_the_metadata_server_needs_no_secret() -> None:
    assert configuration(Credentials(source="MetadataServer"), {}, GOOGLE) == {}


REFUSED: list[tuple[Source, dict[str, Any], str]] = [
    ("ServiceAccountKey", {"token_uri": "https://evil.example/token"}, "token_uri"),
    ("ServiceAccountKey", {"token_uri": "http://oauth2.googleapis.com/token"}, "token_uri"),
    ("ServiceAccountKey", {"token_uri": "https://oauth2.googleapis.com:8443/token"}, "token_uri"),
    ("ServiceAccountKey", {"token_uri": "https://oauth2.googleapis.com.evil.example/token"}, "token_uri"),
    ("ServiceAccountKey", {"token_uri": "https://oauth2.googleapis.com@evil.example/token"}, "token_uri"),
    ("ServiceAccountKey", {"token_uri": "https://me:pw@oauth2.googleapis.com/token"}, "token_uri"),
    ("ServiceAccountKey", {"token_uri": "http://169.254.169.254/token"}, "token_uri"),
    ("ServiceAccountKey", {"token_uri": ""}, "token_uri"),
    ("Federation", {"token_url": "https://evil.example/v1/token"}, "token_url"),
    (
        "Federation",
        {"service_account_impersonation_url": "https://evil.example/x"},
        "service_account_impersonation_url",
    ),
    ("Federation", {"token_info_url": "https://evil.example/x"}, "token_info_url"),
    ("Federation", {"credential_source": {"file": "/etc/passwd"}}, "credential_source"),
    ("Federation", {"credential_source": {"file": "/var/run/secrets/../../etc/passwd"}}, "credential_source"),
    ("Federation", {"credential_source": {"file": "var/run/secrets/token"}}, "credential_source"),
    ("Federation", {"credential_source": {"url": "http://169.254.169.254/"}}, "credential_source"),
    ("Federation", {"credential_source": {"executable": {"command": "/bin/sh"}}}, "credential_source"),
    ("Federation", {"credential_source": {"file": "/var/run/secrets/t", "url": "http://evil"}}, "credential_source"),
    ("Federation", {"credential_source": {"environment_id": "aws1"}}, "credential_source"),
    ("Federation", {"credential_source": "file"}, "credential_source"),
    ("Federation", {"credential_source": None}, "credential_source"),
]


@pytest.mark.parametrize(("source", "change", "says"), REFUSED, ids=[f"{row[1]}" for row in REFUSED])
def test_configuration_that_leads_elsewhere_is_refused_before_anything_is_sent(
    source: Source, change: dict[str, Any], says: str
) -> None:
    with pytest.raises(Terminal) as refused:
        _checked(source, {**(KEY_FILE if source == "ServiceAccountKey" else FEDERATION), **change})
    assert refused.value.reason == "CredentialsForbidden"
    assert says in refused.value.message
    assert "s3cret-key" not in refused.value.message


INVALID: list[tuple[Source, Any]] = [
    ("ServiceAccountKey", "no json s3cret-key"),
    ("ServiceAccountKey", "[]"),
    ("ServiceAccountKey", FEDERATION),
    ("Federation", KEY_FILE),
    ("Federation", {**FEDERATION, "type": "impersonated_service_account"}),
    ("ServiceAccountKey", {**KEY_FILE, "type": "authorized_user"}),
]


@pytest.mark.parametrize(("source", "content"), INVALID)
def test_content_of_another_type_is_named_by_its_key_and_not_by_its_value(source: Source, content: Any) -> None:
    with pytest.raises(Terminal) as refused:
        _checked(source, content)
    assert refused.value.reason == "CredentialsInvalid"
    assert KEY in refused.value.message
    assert "s3cret-key" not in refused.value.message


def test_missing_key_is_waited_for() -> None:
    with pytest.raises(Blocked) as missing:
        configuration(Credentials(source="Federation", secret_ref=SecretReference("google")), {"google": {}}, GOOGLE)
    assert missing.value.reason == "CredentialsMissing"


def test_a_host_that_stands_for_google_is_trusted_with_its_port_alone() -> None:
    trusted = Trusted("127.0.0.1:8443")
    assert trusted.allows("http://127.0.0.1:8443/token")
    assert not trusted.allows("http://127.0.0.1:8444/token")
    assert not trusted.allows("http://127.0.0.1/token")
    assert trusted.allows("https://sts.googleapis.com/v1/token")


class Renewing:
    """Credentials that count how often they were renewed."""

    def __init__(self, failure: Exception | None = None, lasts: timedelta = timedelta(hours=1)) -> None:
        self.token: str | None = None
        self.expiry: datetime | None = None
        self.renewals = 0
        self.failure = failure
        self.lasts = lasts

    @property
    def expired(self) -> bool:
        return self.expiry is None or self.expiry <= datetime.now(UTC).replace(tzinfo=None)

    def refresh(self, _request: object) -> None:
        self.renewals += 1
        if self.failure is not None:
            raise self.failure
        self.token, self.expiry = f"token-{self.renewals}", datetime.now(UTC).replace(tzinfo=None) + self.lasts


async def _tokens(credentials: Renewing, count: int) -> list[str]:
    with ThreadPoolExecutor(1) as pool:
        tokens = Tokens(credentials, pool)
        return [await tokens.token() for _ in range(count)]


async def test_a_token_is_used_until_it_is_about_to_end() -> None:
    credentials = Renewing()
    assert await _tokens(credentials, 3) == ["token-1"] * 3
    assert credentials.renewals == 1


async def test_a_token_that_is_about_to_end_is_renewed() -> None:
    assert await _tokens(Renewing(lasts=timedelta(minutes=4)), 2) == ["token-1", "token-2"]


async def test_a_token_that_still_works_outlives_a_renewal_that_failed() -> None:
    credentials = Renewing(lasts=timedelta(minutes=4))
    with ThreadPoolExecutor(1) as pool:
        tokens = Tokens(credentials, pool)
        assert await tokens.token() == "token-1"
        credentials.failure = ERRORS.TransportError("gone")
        assert await tokens.token() == "token-1"


FAILURES: list[tuple[Exception, type[Failure], str]] = [
    (ERRORS.RefreshError("invalid_grant"), Terminal, "CredentialsInvalid"),
    (ERRORS.TransportError("no route"), Transient, ""),
    (FileNotFoundError("/var/run/secrets/t"), Blocked, "CredentialsMissing"),
]


@pytest.mark.parametrize(("error", "kind", "reason"), FAILURES)
async def test_why_there_is_no_token_is_a_failure_of_its_class(
    error: Exception, kind: type[Failure], reason: str
) -> None:
    with pytest.raises(kind) as failed:
        await _tokens(Renewing(error), 1)
    assert getattr(failed.value, "reason", "") == reason


@pytest_asyncio.fixture
async def first_lines(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[list[bytes]]:
    """Yield the first lines that a proxy of the environment was sent; it answers none."""
    lines: list[bytes] = []

    async def note(reader: StreamReader, _writer: StreamWriter) -> None:
        lines.append(await reader.readline())

    async with listening(note) as port:
        monkeypatch.setenv("HTTPS_PROXY", f"http://user:canary@127.0.0.1:{port}")
        monkeypatch.setenv("NO_PROXY", "near.example")
        monkeypatch.delenv("no_proxy", raising=False)
        monkeypatch.delenv("https_proxy", raising=False)
        yield lines


async def _token() -> str:
    return "token"


async def test_a_call_goes_by_the_proxy_of_the_environment(first_lines: list[bytes]) -> None:
    async with RestChannel("https://sql.example", _token) as channel:
        with pytest.raises(Transient) as failed:
            await channel.send(next(iter(METHODS.values())), "v1/projects/p/instances", [], None)

    assert first_lines == [b"CONNECT sql.example:443 HTTP/1.1\r\n"]
    assert "canary" not in str(failed.value)


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


def _credentials_of(key: dict[str, Any]) -> Any:
    accounts: Any = service_account.Credentials
    return accounts.from_service_account_info(key, scopes=SCOPES)


async def test_a_token_is_asked_for_by_the_proxy_of_the_environment(first_lines: list[bytes], tmp_path: Path) -> None:
    key = _key(tmp_path, None, token_uri="https://token.example/token")
    with ThreadPoolExecutor(1) as pool, pytest.raises(Transient) as failed:
        await Tokens(_credentials_of(key), pool).token()

    assert "canary" not in str(failed.value)
    assert first_lines[0].startswith(b"CONNECT token.example:443 ")


async def test_a_token_comes_from_whom_an_authority_of_the_environment_vouches_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "key.json"
    with running(Options(tls=tmp_path, key_file=file)), ThreadPoolExecutor(1) as pool:
        credentials = _credentials_of(msgspec.json.decode(file.read_bytes()))
        with pytest.raises(Transient, match="CERTIFICATE_VERIFY_FAILED"):
            await Tokens(credentials, pool).token()
        monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "api-ca.crt"))

        assert await Tokens(credentials, pool).token()
