"""Which Secrets of the cluster each process can read with its own token: those of prepared namespaces, and its own."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from devcloud.controlplane.plane import Plane
from tests.support.api import Api, ApiError, connect
from tests.support.kinds import NAMESPACE, SECRET
from tests.support.prepared import prepare

_DEPLOY = Path(__file__).resolve().parents[3] / "deploy"
_SECRETS = (
    "fairlead-system/any",
    "fairlead-onprem/onprem-admin",
    "fairlead-onprem/fairlead-hash-key",
    "fairlead-aws/aws-key",
    "fairlead-aws/fairlead-hash-key",
    "kube-system/platform-key",
    "default/any",
    "reach-onprem/app",
    "reach-aws/app",
    "reach-both/app",
    "reach-neither/app",
)
_HOMES = {"reach-onprem": ("onprem",), "reach-aws": ("aws",), "reach-both": ("onprem", "aws"), "reach-neither": ()}


_READS = {
    "fairlead-composer": ("fairlead-system", {"reach-onprem", "reach-aws", "reach-both"}),
    "fairlead-provider-onprem": ("fairlead-onprem", {"fairlead-onprem", "reach-onprem", "reach-both"}),
    "fairlead-provider-aws": ("fairlead-aws", {"fairlead-aws", "reach-aws", "reach-both"}),
}
"""Of a process's account: its own namespace, and those of which it reads every Secret."""


@pytest.fixture(scope="module")
def filled(base: Plane) -> Iterator[Plane]:
    """Yield both clouds installed, Secrets everywhere, and namespaces prepared for one cloud, for both, for none."""
    made = asyncio.run(_fill(base))
    yield base
    asyncio.run(_clear(base, made))


async def _fill(plane: Plane) -> list[str]:
    await plane.kubectl.run("apply", "--server-side", "--kustomize", str(_DEPLOY / "kustomize" / "clouds" / "aws"))
    made = []
    async with connect(plane.kubeconfig) as api:
        for namespace, clouds in _HOMES.items():
            await api.create(NAMESPACE.path(), NAMESPACE.new("", namespace))
            await prepare(api, namespace, *clouds)
        for place in _SECRETS:
            namespace, name = place.split("/")
            if await api.find(SECRET.path(namespace, name)) is None:
                await api.create(SECRET.path(namespace), SECRET.new(namespace, name, stringData={"canary": place}))
                made.append(SECRET.path(namespace, name))
    return made


async def _clear(plane: Plane, made: list[str]) -> None:
    """Delete what would be in the way of a process that works here later, its hash key above all."""
    async with connect(plane.kubeconfig) as api:
        for path in (*made, *(NAMESPACE.path("", namespace) for namespace in _HOMES)):
            await api.delete(path)


@pytest.mark.parametrize("account", _READS)
async def test_a_token_reads_the_secrets_of_prepared_namespaces_and_reads_and_lists_its_own(
    filled: Plane, account: str
) -> None:
    own, reads = _READS[account]
    kubeconfig = await filled.service_account_kubeconfig(own, account)
    async with connect(filled.kubeconfig) as administrator:
        stored = [secret["metadata"] for secret in await administrator.items(SECRET.path())]
    # Other tests prepare namespaces of their own.
    ours = {*_HOMES, *(place.split("/")[0] for place in _SECRETS)}
    places = {(meta["namespace"], meta["name"]) for meta in stored if meta["namespace"] in ours}
    assert {f"{namespace}/{name}" for namespace, name in places} >= set(_SECRETS)

    async with connect(kubeconfig) as process:
        readable = {place for place in places if await _is_allowed(process, SECRET.path(*place))}
        listed = {namespace for namespace in ours if await _is_allowed(process, SECRET.path(namespace))}
        lists_all = await _is_allowed(process, SECRET.path())

    assert readable == {place for place in places if place[0] in reads}
    assert listed == {own} - {"fairlead-system"}
    assert not lists_all


async def _is_allowed(api: Api, path: str) -> bool:
    try:
        await api.get(path)
    except ApiError as error:
        if error.status == 403:
            return False
        raise
    return True
