"""A published login that is refused is put back, also where that takes more than one pass."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from runtime.errors import Blocked, Failure, Transient
from tests.providers.toy import ToyCloud, logins_of, provider_of
from tests.providers.world import World


@pytest.mark.parametrize("failure", [Blocked("CloudBusy", "not now"), Transient("no answer")])
async def test_a_login_is_put_back_although_that_failed_first(failure: Failure) -> None:
    cloud = ToyCloud()
    logins = ("app_fecnde4xn7_a", "app_fecnde4xn7_b")
    # As where a row of the server says nothing of its password: logins are tried at each resync alone.
    rules = replace(logins_of(cloud), versions=lambda _observed: dict.fromkeys(logins, "1"), shows_passwords=False)
    provider = provider_of(cloud, logins=rules)
    world = World(cloud, provider=provider)
    world.ask()
    await world.settle()
    (toy,) = cloud.toys.values()
    published = dict(toy.passwords)
    assert set(published) <= set(logins)

    (name,) = published
    toy.passwords[name] = "by-hand"
    cloud.faults.append(("set_password", failure, False))
    world.annotate(**{"reconcile-requested-at": "now"})
    for _ in range(4):
        await world.step()
        world.now += timedelta(seconds=30)
    assert toy.passwords == published
    assert (world.reason("Ready"), world.reason()) == ("Available", "InSync")
