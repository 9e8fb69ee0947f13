"""Endpoints that a ProviderConfig may and may not name."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from typing import Any

import msgspec
import pytest

from providers.accounts.connections import Accounts
from providers.accounts.endpoints import refusal
from runtime.errors import Terminal
from tests.providers.toy import ToyCloud, provider_of
from tests.providers.world import World


class Case(msgspec.Struct, frozen=True):
    says: str
    endpoint: str
    allowed: tuple[str, ...] = ()
    refused: str = ""


PLAIN = "no plain URL"
CASES = (
    Case("no endpoint is the cloud's own", ""),
    Case("nothing is allowed by default", "https://rds.example.org", refused="not allowed"),
    Case("an allowed host", "https://rds.example.org", ("rds.example.org",)),
    Case("an allowed host with any port", "https://rds.example.org:8443/", ("rds.example.org",)),
    Case("the letter case of a host does not matter", "https://RDS.example.org", ("rds.Example.org",)),
    Case("an allowed pair of host and port", "http://127.0.0.1:4566", ("127.0.0.1:4566",)),
    Case("another port than the allowed one", "http://127.0.0.1:4567", ("127.0.0.1:4566",), "127.0.0.1:4567"),
    Case("the port that a scheme implies", "https://rds.example.org", ("rds.example.org:443",)),
    Case("http within this machine", "http://127.0.0.9", ("127.0.0.9",)),
    Case("http within this machine by IPv6", "http://[::1]:4566", ("[::1]",)),
    Case("http to elsewhere", "http://rds.example.org", ("rds.example.org",), "use https"),
    Case("a name for the loopback may lead elsewhere", "http://localhost:1", ("localhost",), "use https"),
    Case("the metadata service", "http://169.254.169.254", (), "not allowed"),
    Case("the metadata service, though allowed", "http://169.254.169.254", ("169.254.169.254",), "use https"),
    Case("an address in another notation", "http://2130706433", ("127.0.0.1",), "not allowed"),
    Case("a login in the URL", "https://rds.example.org@evil.example", ("rds.example.org",), PLAIN),
    Case("a login before an allowed host", "https://evil@rds.example.org", ("rds.example.org",), PLAIN),
    Case("a subdomain of an allowed host", "https://rds.example.org.evil.example", ("rds.example.org",), "not allowed"),
    Case("a file", "file:///etc/passwd", ("",), PLAIN),
    Case("another scheme", "gopher://127.0.0.1", ("127.0.0.1",), PLAIN),
    Case("no scheme", "127.0.0.1:80", ("127.0.0.1",), PLAIN),
    Case("no host", "https://", ("",), PLAIN),
    Case("a newline behind", "https://rds.example.org\n", ("rds.example.org",), PLAIN),
    Case("a newline within", "https://rds.exam\nple.org", ("rds.example.org",), PLAIN),
    Case("a space", "https://rds.example.org /", ("rds.example.org",), PLAIN),
    Case("letters of another alphabet", "https://rds.ex\u0430mple.org", ("rds.ex\u0430mple.org",), PLAIN),
    Case("a backslash", "https://rds.example.org\\@evil.example", ("rds.example.org",), PLAIN),
    Case("a path", "https://rds.example.org/x", ("rds.example.org",), PLAIN),
    Case("a query", "https://rds.example.org?x=1", ("rds.example.org",), PLAIN),
    Case("a fragment", "https://evil.example#rds.example.org", ("rds.example.org",), PLAIN),
    Case("an escaped letter", "https://rds%2eexample.org", ("rds%2eexample.org",), PLAIN),
    Case("a port that is none", "https://rds.example.org:x", ("rds.example.org",), PLAIN),
    Case("a port out of range", "https://rds.example.org:99999", ("rds.example.org",), PLAIN),
)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.says)
def test_endpoint_is_refused_unless_it_is_allowed(case: Case) -> None:
    message = refusal(case.endpoint, case.allowed)

    assert case.refused in message
    assert bool(message) is bool(case.refused)
    assert ("nothing was sent" in message) is bool(case.refused)


@pytest.mark.parametrize(("allowed", "dialled"), [((), False), (("127.0.0.1:9",), True)])
async def test_endpoint_that_is_not_allowed_is_not_connected(allowed: tuple[str, ...], *, dialled: bool) -> None:
    cloud, dials = ToyCloud(), []

    def connect(*arguments: Any) -> AbstractAsyncContextManager[Any]:
        dials.append(arguments)
        return provider_of(cloud).connect(*arguments)

    provider = replace(provider_of(cloud), endpoint_of=lambda _config: "http://127.0.0.1:9", connect=connect)
    world = World(cloud)
    world.feed()
    accounts: Accounts[Any, Any] = Accounts(provider, world.cache, "fairlead-toy", endpoints=allowed)

    outcome = await _outcome(accounts)

    assert outcome == ("connected" if dialled else "EndpointNotAllowed")
    assert bool(dials) is dialled


async def _outcome(accounts: Accounts[Any, Any]) -> str:
    try:
        await accounts.connect("default")
    except Terminal as failure:
        return failure.reason
    return "connected"
