"""One subscription over the wire: throttles, pages, hosts, what a token may be sent to, and who answers."""

from __future__ import annotations

from asyncio import StreamReader, StreamWriter
from collections.abc import Iterator, Mapping
from datetime import timedelta
from pathlib import Path
from traceback import format_exception
from typing import Any

import msgspec
import pytest
from azure.core.exceptions import ClientAuthenticationError

from devcloud.azure.server import Options, Served, running
from devcloud.certificates import authority_in
from providers.accounts.rate_limit import CALLS, AccountMeter, Budget
from providers.azure.arm import API_VERSION, _type_of, client_of, connect
from providers.azure.config import CLOUDS, ProviderConfigSpec, ca_of, secrets_of
from providers.azure.names import ServerName
from providers.external.provider import Rate
from runtime.errors import Blocked, Failure, Terminal, Throttled, Transient
from tests.providers.azure.arm_stub import SUBSCRIPTION, ArmStub
from tests.providers.azure.azure_world import StubToken, connected
from tests.providers.gates import OPEN
from tests.support.connections import listening
from tests.support.stepped_clock import SteppedClock

SERVER = ServerName("rg", "s")


async def test_answer_about_another_subscription_is_no_answer(stub: ArmStub) -> None:
    stub.answered_as = SUBSCRIPTION.replace("1", "9")
    async with connected(stub) as account:
        with pytest.raises(Terminal) as refused:
            await account.whoami()

    assert refused.value.reason == "AccountChanged"


async def test_password_of_a_proxy_is_in_no_error(stub: ArmStub, monkeypatch: pytest.MonkeyPatch) -> None:
    lines: list[bytes] = []

    async def note(reader: StreamReader, _writer: StreamWriter) -> None:
        lines.append(await reader.readline())

    async with listening(note) as port:
        monkeypatch.setenv("HTTPS_PROXY", f"http://user:canary@127.0.0.1:{port}")
        async with connected(stub, endpoint="https://arm.example") as account:
            with pytest.raises(Transient) as failed:
                await account.whoami()

    assert set(lines) == {b"CONNECT arm.example:443 HTTP/1.1\r\n"}
    assert "canary" not in "".join(format_exception(failed.value))


@pytest.mark.parametrize(
    ("method", "requests"),
    [("GET", 3), ("DELETE", 1)],
)
async def test_reads_are_sent_again_and_changes_never(stub: ArmStub, method: str, requests: int) -> None:
    stub.faults = [("flexibleServers", 503, "ServiceUnavailable")] * 3
    async with connected(stub) as account:
        with pytest.raises(Transient):
            await account.send(method, account.server(SERVER), "try it", fence=OPEN if method == "DELETE" else None)

    assert len(stub.log) == requests


async def test_throttle_of_a_change_is_left_to_the_queue(stub: ArmStub) -> None:
    stub.faults = [("DELETE", 429, "SubscriptionRequestsThrottled")]
    async with connected(stub) as account:
        with pytest.raises(Throttled) as throttled:
            await account.send("DELETE", account.server(SERVER), "delete it", fence=OPEN)

    assert throttled.value.after == timedelta(seconds=5)
    assert len(stub.log) == 1


async def test_list_is_read_to_its_end_at_our_version(stub: ArmStub) -> None:
    stub.servers = {f"rg/s{number}": {"name": f"s{number}"} for number in range(5)}
    async with connected(stub) as account:
        members = [member["name"] async for member in account.pages(account.servers, "list")]

    assert members == ["s0", "s1", "s2", "s3", "s4"]
    assert len(stub.log) == 3
    assert stub.versions == {API_VERSION}


async def test_link_to_another_host_gets_no_token(stub: ArmStub) -> None:
    stub.servers = {f"rg/s{number}": {"name": f"s{number}"} for number in range(3)}
    async with connected(stub) as account:
        stub.url = "https://evil.example"
        with pytest.raises(Terminal) as refused:
            [member async for member in account.pages(account.servers, "list")]

    assert refused.value.reason == "EndpointNotAllowed"
    assert len(stub.log) == 1


async def test_few_reads_left_leave_one_list_out(stub: ArmStub) -> None:
    stub.remaining = 3
    async with connected(stub) as account:
        await account.whoami()
        with pytest.raises(Transient, match="only 3 more reads"):
            account.spare_reads("list the servers")
        account.spare_reads("list the servers")


class _NoToken(StubToken):
    def __init__(self, error: Exception) -> None:
        super().__init__()
        self._error = error

    async def get_token(self, *_scopes: str, **_options: Any) -> Any:
        raise self._error


@pytest.mark.parametrize(
    ("error", "kind", "reason"),
    [
        (
            ClientAuthenticationError("AADSTS7000215: Invalid client secret. Trace ID: 1f Timestamp: 2026"),
            Terminal,
            "CredentialsInvalid",
        ),
        (ConnectionError("refused"), Transient, ""),
    ],
)
async def test_no_token_is_said_in_the_same_words_every_time(
    stub: ArmStub, error: Exception, kind: type[Failure], reason: str
) -> None:
    async with connected(stub) as account:
        silent = client_of(account.config, _NoToken(error))
        async with silent.client:
            with pytest.raises(kind) as failed:
                await silent.whoami()

    assert getattr(failed.value, "reason", "") == reason
    assert "Trace" not in str(failed.value)
    assert stub.log == []


async def test_tokens_are_for_the_cloud_of_the_config(stub: ArmStub) -> None:
    token = StubToken()
    async with connected(stub, cloud="AzureUSGovernment") as account:
        government = client_of(account.config, token)
        async with government.client:
            await government.whoami()

    assert set(token.scopes) == {"https://management.usgovcloudapi.net/.default"}


async def test_nobody_answers(stub: ArmStub) -> None:
    async with connected(stub, endpoint="http://127.0.0.1:9") as account:
        with pytest.raises(Transient) as failed:
            await account.whoami()

    assert failed.value.is_momentary
    assert not isinstance(failed.value, Blocked)


@pytest.mark.parametrize("method", ["PUT", "PATCH", "DELETE"])
async def test_change_whose_connection_breaks_is_sent_once(stub: ArmStub, method: str) -> None:
    """Also where the connection was used before, and aiohttp would send it again by itself."""
    stub.broken = {method}
    async with connected(stub) as account:
        await account.whoami()
        with pytest.raises(Transient):
            await account.send(method, account.server(SERVER), "try it", body={}, fence=OPEN)

    assert [line for line in stub.log if line.startswith(method)] == [f"{method} {account.server(SERVER)}"]


async def test_each_request_to_arm_takes_a_token_and_is_counted(stub: ArmStub) -> None:
    time = SteppedClock()
    async with connected(stub) as account:
        account.meter = AccountMeter("azure-of-rates", "default", Budget(Rate(1, 1), time.clock))
        for _ in range(3):
            await account.whoami()

    assert sum(time.waits) == pytest.approx(2.0)
    assert CALLS.labels("azure-of-rates", "GET subscriptions", "ok")._value.get() == 3


@pytest.mark.parametrize(
    ("path", "resource_type"),
    [
        ("/subscriptions/s", "subscriptions"),
        ("/subscriptions/s/providers/Microsoft.DBforPostgreSQL/flexibleServers", "flexibleServers"),
        (
            "/subscriptions/s/resourceGroups/g/providers/Microsoft.DBforPostgreSQL/flexibleServers/one/databases/orders",
            "flexibleServers/databases",
        ),
    ],
)
def test_request_is_counted_by_its_type_of_resource(path: str, resource_type: str) -> None:
    assert _type_of(path) == resource_type


PEM = "the certificates"


@pytest.mark.parametrize("cloud", CLOUDS)
def test_hosts_of_microsoft_are_verified_by_the_systems_roots(cloud: str) -> None:
    assert ca_of(CLOUDS[cloud].resource_manager, PEM) == ""
    assert ca_of(f"{CLOUDS[cloud].authority}/", PEM) == ""


@pytest.mark.parametrize("url", ["https://127.0.0.1:8000", "https://management.azure.com.example", "https://arm.corp"])
def test_other_hosts_are_verified_by_the_certificates(url: str) -> None:
    assert ca_of(url, PEM) == PEM


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with running(Options(tls=tmp_path_factory.mktemp("api"))) as simulator:
        yield simulator


def _config(served: Served, **fields: Any) -> ProviderConfigSpec:
    spec = {
        "subscriptionID": served.subscription,
        "endpoint": served.url,
        "authorityHost": served.url,
        "credentials": {"source": "ClientSecret", "secretRef": {"name": "client"}},
        "caBundleRef": {"name": "ca"},
        **fields,
    }
    return msgspec.convert(
        {name: value for name, value in spec.items() if value is not None}, ProviderConfigSpec, strict=False
    )


def _secrets(served: Served, pem: str) -> dict[str, Mapping[str, str]]:
    client, secret = served.credentials
    keys = {"AZURE_TENANT_ID": served.tenant, "AZURE_CLIENT_ID": client, "AZURE_CLIENT_SECRET": secret}
    return {"client": keys, "ca": {"ca.crt": pem} if pem else {}}


def _authority(served: Served) -> str:
    assert served.authority is not None
    return served.authority.read_text()


async def test_arm_and_entra_answer_under_the_authority(served: Served) -> None:
    config = _config(served)
    assert secrets_of(config) == ("client", "ca")

    with pytest.raises(Terminal, match="holds no PEM certificate; put the certificates there"):
        async with connect(config, _secrets(served, "nonsense")):
            pass
    async with connect(config, _secrets(served, _authority(served))) as account:
        assert await account.whoami() == served.subscription
        assert account.ca == _authority(served)


async def test_nothing_is_sent_to_whom_another_authority_would_have_to_prove(served: Served, tmp_path: Path) -> None:
    strange = authority_in(tmp_path, "strange").pem.decode()
    for config, pem in ((_config(served), strange), (_config(served, caBundleRef=None), "")):
        with pytest.raises(Transient, match="no answer"):
            async with connect(config, _secrets(served, pem)):
                pass
