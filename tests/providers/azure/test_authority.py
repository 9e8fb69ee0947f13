"""Who answers instead of Microsoft is verified by the certificates of caBundleRef, and by those alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest

from devcloud.azure.server import Options, Served, running
from devcloud.certificates import authority_in
from providers.azure.arm import connect
from providers.azure.config import CLOUDS, ProviderConfigSpec, ca_of, secrets_of
from providers.azure.transport import Transport
from runtime.errors import Blocked, Terminal, Transient

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

    async with connect(config, _secrets(served, _authority(served))) as account:
        assert await account.whoami() == served.subscription
        assert account.ca == _authority(served)


async def test_arm_and_entra_are_asked_through_what_is_handed_in_to_carry_requests(served: Served) -> None:
    made: list[str] = []

    def transport(ca: str) -> Transport:
        made.append(ca)
        return Transport(ca)

    pem = _authority(served)
    async with connect(_config(served), _secrets(served, pem), transport=transport) as account:
        assert await account.whoami() == served.subscription

    assert made == [pem, pem]


async def test_nothing_is_sent_to_whom_another_authority_would_have_to_prove(served: Served, tmp_path: Path) -> None:
    strange = authority_in(tmp_path, "strange").pem.decode()
    for config, pem in ((_config(served), strange), (_config(served, caBundleRef=None), "")):
        with pytest.raises(Transient, match="no answer"):
            async with connect(config, _secrets(served, pem)):
                pass


@pytest.mark.parametrize(
    ("pem", "failure", "sentence"),
    [
        pytest.param("", Blocked, "there is no key ca.crt of Secret ca", id="a missing key is named"),
        pytest.param("nonsense", Terminal, "holds no PEM certificate; put the certificates there", id="so is a text"),
    ],
)
async def test_what_holds_no_certificate_is_refused(
    pem: str, failure: type[Exception], sentence: str, served: Served
) -> None:
    with pytest.raises(failure, match=sentence):
        async with connect(_config(served), _secrets(served, pem)):
            pass
