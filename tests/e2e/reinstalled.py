"""The chart's release uninstalled and installed again, with claims; the last that `make e2e` does on its cluster."""

from __future__ import annotations

import asyncio

from tests.support import helm
from tests.support.kinds import condition
from tests.support.pods import NAMESPACES, SHOP, Cluster
from tests.support.waiting import eventually


async def test_claims_and_databases_outlive_the_release_and_a_new_one_takes_them_up(cluster: Cluster) -> None:
    claims = await cluster.items("pgi", SHOP)

    await asyncio.to_thread(
        cluster.helm, "uninstall", "fairlead", f"--namespace={helm.RELEASE}", "--wait", "--timeout=240s"
    )

    async def none_runs() -> bool:
        return not [pod for name in NAMESPACES for pod in await cluster.items("pods", name)]

    await eventually(none_runs, "no pod of ours is left", limit_s=120.0, every_s=1.0)
    assert [claim["metadata"]["uid"] for claim in await cluster.items("pgi", SHOP)] == [
        claim["metadata"]["uid"] for claim in claims
    ]
    assert await cluster.logs_in("without-us") == "True"

    await asyncio.to_thread(cluster.install)
    await cluster.claim("afterwards")
    await cluster.wait("pgi/afterwards", "condition=Ready")
    states = [condition(claim, "Ready")["status"] for claim in await cluster.items("pgi", SHOP)]
    assert states == ["True"] * (len(claims) + 1)
    assert await cluster.logs_in("after-us") == "True"
