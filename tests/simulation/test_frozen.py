"""A provider that stands still in the middle of a rotation of the only login, while another takes over and it wakes."""

from __future__ import annotations

import asyncio
import base64
from typing import Final

import pytest

from fairlead.assets import assets
from fairlead.simulation import clouds, virtual_time
from fairlead.simulation.platform import CLAIMS, Platform
from fairlead.yaml_files import objects_in
from runtime.conditions import find
from runtime.objects import LEASES, SECRETS, Key
from tests.simulation.cast import Cast
from tests.simulation.history import TEAM

pytestmark = pytest.mark.slow

_CLAIM: Final = Key(TEAM, "a")
_EFFECTS: Final = 5
_LONGER_THAN_A_LEASE_S: Final = 18.0


@pytest.mark.parametrize("cloud", ["gcp", "azure"])
def test_a_rotation_in_which_the_leader_stands_still_ends_with_a_password_that_works(cloud: str) -> None:
    assert virtual_time.run(cloud, lambda: _refused(cloud)) == (2 * _EFFECTS, [])


async def _refused(cloud: str) -> tuple[int, list[str]]:
    """Return how often a leader stood still in a rotation, and where the claim was then not as it says."""
    about = clouds.described(cloud)
    platform = Platform(cloud, virtual_time.Trace(), about, replicas=2)
    platform.install((TEAM,), objects_in(assets("compositions"), f"postgres-{cloud}.yaml"))
    background, cast = platform.background(), Cast(platform, cloud)
    for process in platform.names:
        await platform.start(process)
    await cast.make(CLAIMS, _CLAIM, {"version": "16", "size": "small"})
    await asyncio.sleep(1800)
    stood, refused = 0, []
    for moment in ("before", "after"):
        for effect in range(1, _EFFECTS + 1):
            former = _password(platform)
            name = _leader(platform)
            life = platform.processes[name].connection.life
            platform.freeze_at(name, effect, moment, _LONGER_THAN_A_LEASE_S)
            token = {"token": f"{moment}-{effect}"}
            await cast.edit(CLAIMS, _CLAIM, "/spec/passwordRotation", token)
            await asyncio.sleep(600)
            platform.check()
            stood += life.interruption is None
            if not _is_as_it_says(platform, former):
                refused.append(f"{moment} effect {effect}")
    for process in tuple(platform.processes):
        await platform.kill(process)
    for task in background:
        task.cancel()
    return stood, refused


def _leader(platform: Platform) -> str:
    """Return the provider's process that holds the Lease."""
    about = platform.description
    lease = platform.server.all_of(LEASES)[Key(about.namespace, about.provider_process)]
    return str(lease["spec"]["holderIdentity"]).rpartition(".")[0]


def _secret(platform: Platform) -> dict[str, str]:
    data = platform.server.all_of(SECRETS)[Key(TEAM, "a-connection")]["data"]
    return {name: base64.b64decode(text).decode() for name, text in data.items()}


def _password(platform: Platform) -> str:
    return _secret(platform)["password"]


def _is_as_it_says(platform: Platform, former: str) -> bool:
    """Return whether a claim is Ready with a new password that its server takes."""
    secret, (server,) = _secret(platform), platform.cloud.servers()
    ready = find(platform.server.all_of(CLAIMS)[_CLAIM], "Ready") or {}
    is_in = platform.cloud.admits(server, secret["username"], secret["password"], secret["database"])
    return is_in and ready.get("status") == "True" and secret["password"] != former
