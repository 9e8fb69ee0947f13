"""A finalizer that a tenant puts on the Secrets of a claim keeps neither the claim nor its database from going."""

from __future__ import annotations

import asyncio

import pytest

from fairlead.assets import assets
from fairlead.simulation import clouds, virtual_time
from fairlead.simulation.platform import CLAIMS, Platform
from fairlead.yaml_files import objects_in
from runtime.objects import SECRETS, Key
from tests.simulation.cast import Cast
from tests.simulation.history import TEAM

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("part", ["credentials", "connection"])
def test_a_claim_goes_whose_secret_a_tenant_holds(part: str) -> None:
    assert virtual_time.run(part, lambda: _left(part)) == (1, 0, set(), 1)


async def _left(part: str) -> tuple[int, int, set[str], int]:
    """Return how many Secrets were held; which claims, things of the cloud and Secrets are left of the claim."""
    about = clouds.described("onprem")
    platform = Platform(part, virtual_time.Trace(), about)
    platform.install((TEAM,), objects_in(assets("compositions"), "postgres-onprem.yaml"))
    background, cast = platform.background(), Cast(platform, part)
    for process in platform.names:
        await platform.start(process)
    empty = platform.cloud.left()
    await cast.make(CLAIMS, Key(TEAM, "a"), {"version": "16", "size": "small", "deletionPolicy": "Delete"})
    await asyncio.sleep(600)
    secrets = platform.server.all_of(SECRETS)
    held = [key for _, key in cast.keys(SECRETS) if (key in cast.connections()) == (part == "connection")]
    for key in held:
        await cast.edit(SECRETS, key, "/metadata/finalizers", ["example.org/tenant"])
    await cast.remove(CLAIMS, Key(TEAM, "a"))
    await asyncio.sleep(1800)
    platform.check()
    secrets = platform.server.all_of(SECRETS)
    left = [secrets[key] for _, key in cast.keys(SECRETS)]
    for process in platform.names:
        await platform.kill(process)
    for task in background:
        task.cancel()
    going = sum("deletionTimestamp" in secret["metadata"] for secret in left)
    return len(held), len(platform.server.all_of(CLAIMS)), platform.cloud.left() - empty, going
