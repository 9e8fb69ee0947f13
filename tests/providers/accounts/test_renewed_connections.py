"""What a ProviderConfig's Secrets say anew, as a certificate's authority, reaches its users at once."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

from providers.accounts.reconciler import ConfigReconciler, Dependencies
from providers.external.client import Clients
from providers.settings import Settings
from runtime import clock
from runtime.objects import SECRETS, Key
from tests.providers.toy import ToyCloud, provider_of
from tests.providers.world import World


def fresh_clients(cloud: ToyCloud) -> Clients[Any, Any]:
    toys = replace(cloud)
    return Clients(toys, toys, toys, toys, toys)


async def test_users_are_enqueued_by_a_renewed_connection_and_not_otherwise() -> None:
    cloud = ToyCloud()
    # Each connection has a cloud of its own, as those of real providers have.
    provider = replace(provider_of(cloud, clients=fresh_clients), secrets=lambda _config: ("ca",))
    world = World(cloud, provider=provider)
    port: Any = world.kube
    enqueued: list[str] = []
    settings = Settings(
        "home", "process-1", "fairlead-toy", "fairlead.dev/provider-toy", b"key", now=lambda: world.now,
        monotonic=clock.monotonic,
        grace=timedelta(seconds=60),
    )  # fmt: skip
    reconcile = ConfigReconciler(
        provider, port, world.accounts, settings, Dependencies((), world.events, enqueued.append)
    )

    def write(text: str) -> None:
        secret = {"metadata": {"name": "ca", "namespace": "fairlead-toy"}, "data": {"ca.crt": text}}
        world.kube.store(SECRETS, secret)
        world.feed()

    async def passed() -> list[str]:
        enqueued.clear()
        await reconcile(Key("", "default"))
        return list(enqueued)

    write("b2xk")
    assert await passed() == ["default"]
    assert await passed() == []
    write("bmV3")
    assert await passed() == ["default"]
    assert await passed() == []
