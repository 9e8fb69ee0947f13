"""The choice `all-namespaces`, applied to a real API server: what it gives, what it does not, and that it ends."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from devcloud.controlplane.plane import Plane
from tests.apiserver.policies.test_roles import COMPOSER, ONPREM, is_allowed
from tests.support.api import Api, connect
from tests.support.waiting import eventually

_FOLDER = Path(__file__).resolve().parents[3] / "deploy" / "kustomize" / "all-namespaces"
_AWS = "system:serviceaccount:fairlead-aws:fairlead-provider-aws"
_UNPREPARED = ("default", "kube-system")
_SECRETS = frozenset({"get", "create", "update", "delete"})
_VERBS = (*sorted(_SECRETS), "list", "watch", "patch", "deletecollection")
# Who may do what to which resource in a namespace that nobody prepared.
_GIVEN = {
    (COMPOSER, "secrets"): _SECRETS,
    (COMPOSER, "configmaps"): frozenset({"get"}),
    (ONPREM, "secrets"): _SECRETS,
    (ONPREM, "configmaps"): frozenset[str](),
    (_AWS, "secrets"): frozenset[str](),
    (_AWS, "configmaps"): frozenset[str](),
}


async def _allowed(api: Api, who: str, resource: str, namespace: str) -> frozenset[str]:
    attributes = {"resource": resource, "namespace": namespace}
    named = {"get", "update", "delete", "patch", "watch"}
    return frozenset(
        [
            verb
            for verb in _VERBS
            if await is_allowed(api, who, {**attributes, "verb": verb, "name": "some-name" if verb in named else ""})
        ]
    )


async def _until_secrets(plane: Plane, *, are_given: bool) -> None:
    """Wait until the authorizer has seen the bindings come or go."""
    async with connect(plane.kubeconfig) as api:
        for who in (COMPOSER, ONPREM):

            async def is_heeded(who: str = who) -> bool:
                attributes = {"verb": "get", "resource": "secrets", "namespace": "default", "name": "some-name"}
                return await is_allowed(api, who, attributes) == are_given

            await eventually(is_heeded, f"{who} {'has' if are_given else 'lost'} the rights of all-namespaces")


@pytest.fixture
def everywhere(base: Plane) -> Iterator[Plane]:
    """Yield the base with the choice applied; taken back afterwards, for the other tests of the session."""
    asyncio.run(base.kubectl.run("apply", "--server-side", "--kustomize", str(_FOLDER)))
    asyncio.run(_until_secrets(base, are_given=True))
    yield base
    asyncio.run(base.kubectl.run("delete", "--ignore-not-found", "--kustomize", str(_FOLDER)))
    asyncio.run(_until_secrets(base, are_given=False))


async def _rights(plane: Plane) -> dict[tuple[str, str, str], frozenset[str]]:
    async with connect(plane.kubeconfig) as api:
        return {
            (who, resource, namespace): await _allowed(api, who, resource, namespace)
            for who, resource in _GIVEN
            for namespace in _UNPREPARED
        }


def test_the_composer_and_one_provider_may_use_secrets_by_name_everywhere(everywhere: Plane) -> None:
    assert asyncio.run(_rights(everywhere)) == {
        (who, resource, namespace): verbs for (who, resource), verbs in _GIVEN.items() for namespace in _UNPREPARED
    }


def test_a_deleted_claim_leaves_nothing(everywhere: Plane) -> None:
    asyncio.run(everywhere.kubectl.run("delete", "--kustomize", str(_FOLDER)))
    asyncio.run(_until_secrets(everywhere, are_given=False))

    assert set(asyncio.run(_rights(everywhere)).values()) == {frozenset()}
