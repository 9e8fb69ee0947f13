"""Which Secrets of the cluster each process can read with its own token: those of prepared namespaces, and its own."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from pathlib import Path

import pytest

from devcloud.controlplane.plane import Plane
from tests.support.api import Api, ApiError, JsonObject, connect
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


@dataclass(frozen=True)
class Case:
    """A process's account, and all the Secrets that it can read."""

    namespace: str
    account: str
    readable: tuple[str, ...]


CASES = (
    Case("fairlead-system", "fairlead-composer", ("reach-onprem/app", "reach-aws/app", "reach-both/app")),
    Case(
        "fairlead-onprem",
        "fairlead-provider-onprem",
        ("fairlead-onprem/onprem-admin", "fairlead-onprem/fairlead-hash-key", "reach-onprem/app", "reach-both/app"),
    ),
    Case(
        "fairlead-aws",
        "fairlead-provider-aws",
        ("fairlead-aws/aws-key", "fairlead-aws/fairlead-hash-key", "reach-aws/app", "reach-both/app"),
    ),
)


@pytest.fixture(scope="module")
def filled(base: Plane) -> Plane:
    """Return both clouds installed, Secrets everywhere, and namespaces prepared for one cloud, for both, for none."""
    asyncio.run(_fill(base))
    return base


async def _fill(plane: Plane) -> None:
    await plane.kubectl.run("apply", "--server-side", "--kustomize", str(_DEPLOY / "kustomize" / "clouds" / "aws"))
    async with connect(plane.kubeconfig) as api:
        for namespace, clouds in _HOMES.items():
            await api.create(NAMESPACE.path(), NAMESPACE.new("", namespace))
            await prepare(api, namespace, *clouds)
        for place in _SECRETS:
            namespace, name = place.split("/")
            await api.create(SECRET.path(namespace), SECRET.new(namespace, name, stringData={"canary": place}))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.account)
async def test_a_token_reads_its_own_secrets_and_those_of_prepared_namespaces(filled: Plane, case: Case) -> None:
    kubeconfig = await filled.service_account_kubeconfig(case.namespace, case.account)
    async with connect(filled.kubeconfig) as administrator:
        places = [_place(secret) for secret in await administrator.items(SECRET.path())]
    assert set(_SECRETS) <= set(places)

    async with connect(kubeconfig) as process:
        readable = [place for place in places if await _reads(process, place)]

    assert sorted(readable) == sorted(case.readable)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.account)
async def test_a_token_lists_the_secrets_of_its_own_namespace_at_most(filled: Plane, case: Case) -> None:
    kubeconfig = await filled.service_account_kubeconfig(case.namespace, case.account)

    async with connect(kubeconfig) as process:
        listed = [name for name in (*_HOMES, *_spaces(_SECRETS)) if await _lists(process, name)]
        lists_all = await _lists(process, "")

    assert set(listed) == {case.namespace} - {"fairlead-system"}
    assert not lists_all


def _place(secret: JsonObject) -> str:
    return f"{secret['metadata']['namespace']}/{secret['metadata']['name']}"


def _spaces(places: tuple[str, ...]) -> list[str]:
    return sorted({place.split("/")[0] for place in places} - set(_HOMES))


async def _reads(api: Api, place: str) -> bool:
    namespace, name = place.split("/")
    return await _is_allowed(api, SECRET.path(namespace, name))


async def _lists(api: Api, namespace: str) -> bool:
    return await _is_allowed(api, SECRET.path(namespace))


async def _is_allowed(api: Api, path: str) -> bool:
    try:
        await api.get(path)
    except ApiError as error:
        if error.status == 403:
            return False
        raise
    return True
